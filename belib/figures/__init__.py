"""Figures: tables and arrays in, matplotlib Axes out; one function a figure."""

from belib.figures.collection import (
    collection_curves,
    frame_strip,
    objective_curves,
    state_histograms,
    torso_map,
)
from belib.figures.learning import learning_curves, returns
from belib.figures.rewards import (
    exact_and_simplified,
    reward_curves,
    reward_map,
    reward_panels,
    reward_scales,
    reward_surface,
)
from belib.figures.style import (
    caption,
    objective_color,
    objective_label,
    objective_marker,
    objective_order,
    use_style,
)
from belib.figures.theory import (
    bernoulli_entropies,
    convergence,
    entropies_by_parameter,
    estimator_bars,
    perceived_normal,
    running_estimates,
    uniform_on_part,
    weighting_slopes,
)

__all__ = [
    "bernoulli_entropies",
    "caption",
    "collection_curves",
    "convergence",
    "entropies_by_parameter",
    "estimator_bars",
    "exact_and_simplified",
    "frame_strip",
    "learning_curves",
    "objective_color",
    "objective_curves",
    "objective_label",
    "objective_marker",
    "objective_order",
    "perceived_normal",
    "returns",
    "reward_curves",
    "reward_map",
    "reward_panels",
    "reward_scales",
    "reward_surface",
    "running_estimates",
    "state_histograms",
    "torso_map",
    "uniform_on_part",
    "use_style",
    "weighting_slopes",
]
