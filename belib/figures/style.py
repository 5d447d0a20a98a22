"""The one style of all figures: sizes, palette, labels, captions.

Colours mean the same everywhere: behavioral entropy is blue and Renyi entropy orange-red, darker
with its parameter (by rank on the paper's grid, whatever is shown); Shannon entropy is black.
"""

import textwrap
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgba

from belib.results import BASELINES

ALPHAS = (0.2, 0.5, 0.7, 0.9, 1.5, 2.0, 3.0, 5.0)
QS = (0.2, 0.5, 0.7, 0.9, 1.1, 2.0, 3.0, 5.0)
"""The paper's grids."""

ACCENT = "#d94801"
"""What the eye should find: it stands out of blues and greys, for colour-blind readers too."""

REWARD_COLORS = ListedColormap(plt.get_cmap("Blues")(np.linspace(0.25, 1, 256)))
"""Darker pays more."""

OUTSIDE: dict[str, Any] = {
    "frameon": False,
    "loc": "upper left",
    "bbox_to_anchor": (1, 1),
    "fontsize": 13,
}
"""A legend beside its Axes."""

SHANNON: dict[str, Any] = {"linestyle": ":", "color": "black", "linewidth": 3}
"""The line of Shannon entropy, or of what alpha = 1 leaves as it is."""


def use_style() -> None:
    """Set the style of all figures; call it once, in a notebook's set-up cell."""
    sns.set_theme(context="talk", style="ticks", font_scale=0.8)
    plt.rcParams.update(
        {
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.grid.axis": "y",
            "grid.color": "0.9",
            "figure.constrained_layout.use": True,
        }
    )


def objective_color(objective: str | None, parameter: float | None = None) -> tuple:
    """The colour of an objective, by the rank of its parameter on the paper's grid."""
    grids = {"behavioral": (ALPHAS, "Blues"), "renyi": (QS, "OrRd")}
    if objective in grids and parameter is not None:
        grid, palette = grids[objective]
        rank = np.interp(parameter, grid, np.linspace(0.35, 1, len(grid)))
        return plt.get_cmap(palette)(rank)
    others = {"shannon": "black", "rnd": "0.25", "smm": "0.5", "task": "tab:green"}
    return to_rgba(others.get(str(objective), "0.75"))


def objective_label(objective: str, parameter: float | None = None) -> str:
    """`BE α = 0.5`, `RE q = 2`, `SE`, `random actions`; others by their names."""
    symbols = {"behavioral": "BE α", "renyi": "RE q"}
    if objective in symbols:
        return f"{symbols[objective]} = {parameter:g}"
    names = {"shannon": "SE", "rnd": "RND", "smm": "SMM", "random": "random actions"}
    names |= {"task": "online"}
    own = "" if parameter is None or np.isnan(parameter) else f" {parameter:g}"
    return names.get(objective, f"{objective}{own}")


def objective_marker(objective: str | None) -> str:
    """A second sign of the family, for printing in grey and for colour-blind readers."""
    markers = {"behavioral": "o", "renyi": "s", "shannon": "X", "rnd": "^", "smm": "D"}
    return markers.get(str(objective), "P")


def objective_order(objective: str | None, parameter: float | None = None) -> tuple[int, float]:
    """A sort key with one order everywhere: SE, BE and RE ascending, RND, SMM, all others."""
    order = ("shannon", "behavioral", "renyi", "rnd", "smm")
    rank = order.index(objective) if objective in order else len(order)
    return rank, 0.0 if parameter is None or np.isnan(parameter) else parameter


def task_label(task: str) -> str:
    """`Walker stand` of `walker_stand`."""
    return task.replace("_", " ").capitalize()


def learner_label(variant: str) -> str:
    """`TD3+BC` of `td3_bc`, `CQL (standard)` of `cql-standard`."""
    name, _, rest = variant.partition("-")
    return name.upper().replace("_", "+") + (f" ({rest})" if rest else "")


def draw_baselines(ax: Axes, rows: pd.DataFrame) -> None:
    """A line for the mean return of each of `results.BASELINES` that has rows."""
    for name, line in zip(BASELINES, ("--", ":"), strict=True):
        found = rows.loc[rows["algorithm"] == name, "return"]
        if len(found):
            ax.axhline(found.mean(), color="0.35", linestyle=line, linewidth=2, label=name)


def caption(axes: Axes, text: str) -> None:
    """Write the caption under the figure: the claim, how to read it, n, seeds, bars, scale.

    Notebooks keep it as the picture's alternative text, too.
    """
    figure, text = axes.figure.get_figure(root=True), " ".join(text.split())
    lines = textwrap.fill(text, int(figure.get_figwidth() * 11))
    figure.text(0.01, -0.02, lines, va="top", fontsize=12, color="0.25")
    describe(axes, text)


def describe(axes: Axes, text: str) -> None:
    """What a notebook and the pages made of it say to those who cannot see a figure."""
    bundle = {}, {"image/png": {"alt": text}}  # data and metadata, by IPython's protocol
    vars(axes.figure.get_figure(root=True))["_repr_mimebundle_"] = lambda **_: bundle
