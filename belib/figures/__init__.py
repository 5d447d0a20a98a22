"""Figures: tables and arrays in, matplotlib Axes out; one function a figure."""

from belib.figures.learning import (
    collection_curves,
    frame_strip,
    torso_map,
)
from belib.figures.offline import (
    ablation,
    averages,
    improvement,
    labels,
    learning_curves,
    returns,
    sensitivity,
    table_1,
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
    "ablation",
    "averages",
    "bernoulli_entropies",
    "caption",
    "collection_curves",
    "convergence",
    "entropies_by_parameter",
    "estimator_bars",
    "frame_strip",
    "improvement",
    "labels",
    "learning_curves",
    "objective_color",
    "objective_label",
    "objective_marker",
    "objective_order",
    "perceived_normal",
    "returns",
    "running_estimates",
    "sensitivity",
    "table_1",
    "torso_map",
    "uniform_on_part",
    "use_style",
    "weighting_slopes",
]
