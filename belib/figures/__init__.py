"""Figures: tables and arrays in, matplotlib Axes out; one function a figure."""

from belib.figures.learning import (
    collection_curves,
    frame_strip,
    learning_curves,
    returns,
    torso_map,
)
from belib.figures.style import caption, objective_color, objective_label, use_style

__all__ = [
    "caption",
    "collection_curves",
    "frame_strip",
    "learning_curves",
    "objective_color",
    "objective_label",
    "returns",
    "torso_map",
    "use_style",
]
