"""Figures: tables and arrays in, matplotlib Axes out; one function a figure."""

from belib.figures.coverage import (
    coverage_maps,
    coverage_measures,
    time_maps,
    volumetric_curves,
)
from belib.figures.learning import (
    collection_curves,
    frame_strip,
    learning_curves,
    returns,
    torso_map,
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
    "coverage_maps",
    "coverage_measures",
    "entropies_by_parameter",
    "estimator_bars",
    "frame_strip",
    "learning_curves",
    "objective_color",
    "objective_label",
    "objective_marker",
    "objective_order",
    "perceived_normal",
    "returns",
    "running_estimates",
    "time_maps",
    "torso_map",
    "uniform_on_part",
    "use_style",
    "volumetric_curves",
    "weighting_slopes",
]
