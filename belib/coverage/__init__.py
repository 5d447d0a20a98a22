"""Coverage: which states datasets visit, as maps, balls and numbers."""

from belib.coverage.ball import smallest_ball as smallest_ball
from belib.coverage.measures import MEASURES as MEASURES
from belib.coverage.measures import agreement as agreement
from belib.coverage.measures import measures as measures
from belib.coverage.measures import volumetric_coverage as volumetric_coverage
from belib.coverage.states import SCALINGS as SCALINGS
from belib.coverage.states import Embedding as Embedding
from belib.coverage.states import States as States
from belib.coverage.states import draw_states as draw_states
from belib.coverage.states import embed as embed
from belib.coverage.states import find_states as find_states
from belib.coverage.states import scale as scale
