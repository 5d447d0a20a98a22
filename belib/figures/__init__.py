"""Figures: tables and arrays in, matplotlib Axes out; one function a figure."""

from belib.figures import collection as collection
from belib.figures import coverage as coverage
from belib.figures import returns as returns
from belib.figures import rewards as rewards
from belib.figures import style as style
from belib.figures import theory as theory
from belib.figures.style import caption as caption
from belib.figures.style import use_style as use_style
