"""Coverage: which states datasets visit, as maps, balls and numbers."""

from belib.coverage.ball import smallest_ball
from belib.coverage.measures import MEASURES, agreement, measures, volumetric_coverage
from belib.coverage.states import SCALINGS, Embedding, States, draw_states, embed, find_states
from belib.coverage.states import scale as scale

__all__ = ["MEASURES", "SCALINGS", "Embedding", "States", "agreement", "draw_states", "embed"]
__all__ += ["find_states", "measures", "smallest_ball", "volumetric_coverage"]
