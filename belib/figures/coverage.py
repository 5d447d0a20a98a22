"""Figures of the states that datasets visit."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from belib.coverage import MEASURES, Embedding
from belib.coverage.measures import by_dataset
from belib.figures import style
from belib.results.tables import checked, once

_COLUMNS = 4  # panels a row
_SCALINGS = {"none": "raw observations", "robust": "robustly scaled"}


def maps(embedding: Embedding) -> np.ndarray:
    """Plot one panel per dataset in its objective's colour, with all points light grey behind.

    All panels show one joint fit, with equal limits. Return the Axes.
    """
    axes, rows = _panels(embedding)
    for ax, row in zip(axes, rows.itertuples(), strict=True):
        points, color = embedding[row.dataset], style.objective_color(row.objective, row.parameter)
        ax.scatter(points["x"], points["y"], s=_size(points), color=color, linewidths=0)
    return axes


def time_maps(embedding: Embedding, *, episodes: int = 3) -> np.ndarray:
    """Plot the same panels, coloured by the step of each state, with lines along some episodes.

    The episodes are evenly spaced from the first to the last.
    """
    (axes, rows), colors = _panels(embedding), plt.get_cmap("viridis_r")
    for ax, name in zip(axes, rows["dataset"], strict=True):
        points = embedding[name].sort_values("step")
        share = points["step"] / points["step"].max()
        shades = {"c": share, "cmap": colors, "vmin": 0, "vmax": 1, "linewidths": 0}
        ax.scatter(points["x"], points["y"], s=_size(points), **shades)
        numbers = points["episode"].unique()
        for number in numbers[np.linspace(0, len(numbers) - 1, episodes).round().astype(int)]:
            path = points[points["episode"] == number]
            color = colors(share[path.index].mean())
            ax.plot(path["x"], path["y"], color=color, linewidth=0.8, alpha=0.8)
    bar = {"label": "share of the dataset's steps", "shrink": 0.8, "aspect": 30}
    axes[0].figure.colorbar(axes[0].collections[-1], ax=list(axes), **bar)
    return axes


def volumetric(table: pd.DataFrame) -> np.ndarray:
    """Plot radius / largest radius of the ball around the states so far: one Axes per scaling.

    The table comes from `coverage.volumetric_coverage`.
    """
    keys = ["dataset", "scaling", "step"]
    described = ["objective", "parameter", "seed"]
    table = checked(table, names=keys[:2], numbers=["step", "coverage"], others=described)
    table = once(table, keys, ["coverage"])
    table["label"] = table["dataset"].map(style.labelled(table).set_index("dataset")["label"])
    scalings = sorted(table["scaling"].unique())
    size = (6 * len(scalings) + 3, 5)
    _, axes = plt.subplots(1, len(scalings), figsize=size, sharey=True, squeeze=False)
    drawn = {"x": "step", "y": "coverage", "estimator": None}
    drawn |= style.of(table, "label", lines=True)
    for ax, scaling in zip(axes[0], scalings, strict=True):
        sns.lineplot(table[table["scaling"] == scaling], ax=ax, **drawn)
        ax.set(xlabel="environment steps T", title=_SCALINGS[scaling], ylim=(0, 1.05))
        ax.set_ylabel("radius / largest radius")
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    return style.legend(axes[0], ncols=1 + len(drawn["hue_order"]) // 10)


def measures(measured: pd.DataFrame) -> np.ndarray:
    """Plot one panel per measure and one dot per dataset, with bars of 1.96 standard errors.

    The table comes from `coverage.measures`.
    """
    measured = by_dataset(measured)
    names = [name for name in MEASURES if name in measured]
    rows = style.labelled(measured.reset_index())[::-1]
    size = (15, -(-len(names) // _COLUMNS) * (1.6 + 0.36 * len(rows)))
    axes = _grid(len(names), size, sharey=True)
    for ax, measure in zip(axes, names, strict=True):
        for label, row in rows.iterrows():
            error = 1.96 * row.get(f"{measure}_se", np.nan)
            color = style.objective_color(row["objective"], row["parameter"])
            drawn = {"color": color, "fmt": style.look(row["objective"]).marker, "markersize": 10}
            ax.errorbar(row[measure], label, xerr=None if np.isnan(error) else error, **drawn)
        ax.set_title(MEASURES[measure], fontsize="medium")
        ax.grid(axis="x")
        ax.xaxis.set_major_locator(MaxNLocator(3))
        ax.set_ylim(-0.6, len(rows) - 0.4)
    return axes


def _panels(embedding: Embedding) -> tuple[np.ndarray, pd.DataFrame]:
    """Return one Axes per dataset with all points in grey, and the `labelled` datasets."""
    points, rows = embedding.points, style.labelled(embedding.points)
    columns, lines = min(_COLUMNS, len(rows)), -(-len(rows) // _COLUMNS)
    axes = _grid(len(rows), (3.7 * columns, 3.7 * lines), sharex=True, sharey=True)
    for ax, label in zip(axes, rows["label"], strict=True):
        ax.scatter(points["x"], points["y"], s=2 * _size(points), color="0.86", linewidths=0)
        ax.set(xticks=[], yticks=[], title=label)  # maps have no units
        ax.grid(False)
        ax.spines[:].set_visible(False)
    return axes, rows


def _grid(count: int, size: tuple[float, float], **shared: Any) -> np.ndarray:
    """Return `count` Axes in rows of four."""
    columns, lines = min(_COLUMNS, count), -(-count // _COLUMNS)
    _, axes = plt.subplots(lines, columns, figsize=size, squeeze=False, **shared)
    for ax in axes.flat[count:]:
        ax.remove()
    return axes.flatten()[:count]


def _size(points: pd.DataFrame) -> float:
    """Return the area of a dot, smaller for more points."""
    return float(np.clip(4000 / len(points), 1.5, 14))
