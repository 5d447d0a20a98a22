"""Coverage: what part of the states datasets visit, as maps, balls and numbers."""

from belib.coverage.ball import Ball, NotConvergedError, smallest_ball
from belib.coverage.embedding import Embedding, embed, episodes_inside
from belib.coverage.halves import FEWEST_EPISODES
from belib.coverage.measures import MEASURES, intrinsic_dimension, measures
from belib.coverage.prediction import FEWEST_RECIPES, offline_returns, rank_correlations
from belib.coverage.sampling import (
    SCALINGS,
    Sample,
    growing_subsample,
    scale,
    subsample,
)
from belib.coverage.volume import volumetric_coverage

__all__ = [
    "FEWEST_EPISODES",
    "FEWEST_RECIPES",
    "MEASURES",
    "SCALINGS",
    "Ball",
    "Embedding",
    "NotConvergedError",
    "Sample",
    "embed",
    "episodes_inside",
    "growing_subsample",
    "intrinsic_dimension",
    "measures",
    "offline_returns",
    "rank_correlations",
    "scale",
    "smallest_ball",
    "subsample",
    "volumetric_coverage",
]
