"""Figures: tables and arrays in, matplotlib Axes out; one function a figure."""

from belib.figures import collection, returns, style, theory
from belib.figures.style import caption, use_style

__all__ = ["caption", "collection", "returns", "style", "theory", "use_style"]
