"""Coverage: which states datasets visit, as maps, balls and numbers."""

from belib.coverage.ball import smallest_ball
from belib.coverage.measures import MEASURES, agreement, volumetric_coverage
from belib.coverage.measures import measures as measures
from belib.coverage.states import SCALINGS, Embedding, States, draw_states, embed, find_states
from belib.coverage.states import scale as scale

__all__ = ["MEASURES", "SCALINGS", "Embedding", "States", "agreement", "draw_states", "embed"]
__all__ += ["find_states", "smallest_ball", "volumetric_coverage"]
