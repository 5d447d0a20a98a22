"""A map that is drawn again and again, as a PNG: what the interactive map shows."""

import io

import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from belib.figures.style import ACCENT, OUTSIDE

Interval = tuple[float, float]


def map_png(
    points: pd.DataFrame,
    shown: NDArray[np.bool_],
    colors: NDArray,
    key: str | dict[str, tuple],
    x: Interval,
    y: Interval,
) -> bytes:
    """All points (n) in grey, those shown in colour, and a rectangle, as a PNG.

    Args:
        points: with `x` and `y`.
        shown: which points are in colour, (n,).
        colors: RGBA (n, 4), or numbers (n,).
        key: the colours' names for a legend, or what the numbers are for a colour bar.
        x, y: the rectangle's sides.
    """
    figure = Figure(figsize=(8, 6), dpi=80, layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.add_subplot()
    size = float(np.clip(6000 / len(points), 1.5, 14))
    ax.scatter(points["x"], points["y"], s=size, color="0.85", linewidths=0)
    own, colors = points[shown], colors[shown]
    numbers = {"cmap": "viridis_r", "plotnonfinite": True} if isinstance(key, str) else {}
    drawn = ax.scatter(own["x"], own["y"], c=colors, s=2 * size, linewidths=0, **numbers)
    if isinstance(key, str):
        figure.colorbar(drawn, label=key)
    else:
        for name, color in key.items():
            ax.scatter([], [], color=[color], label=name)
        ax.legend(**{**OUTSIDE, "fontsize": 11})
    side = {"facecolor": "none", "edgecolor": ACCENT, "linewidth": 2}
    ax.add_patch(Rectangle((x[0], y[0]), x[1] - x[0], y[1] - y[0], **side))
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
    ax.spines[:].set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()
