"""Figures of the states that datasets visit."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from belib.coverage import MEASURES, Embedding
from belib.figures import style
from belib.results.tables import once


def maps(embedding: Embedding) -> np.ndarray:
    """Plot one panel per dataset in its objective's colour, with all points light grey behind.

    All panels show one joint fit, with equal limits. Return the Axes.
    """
    axes, points = _panels(embedding)
    for ax, (label, color) in zip(axes, style.of(points, "label")["palette"].items(), strict=True):
        _dots(ax, points[points["label"] == label], color=color)
    return axes


def time_maps(embedding: Embedding) -> np.ndarray:
    """Plot the same panels, coloured by step; lines along the first, middle and last episode."""
    (axes, points), colors = _panels(embedding), plt.get_cmap("viridis_r")
    for ax, (_, rows) in zip(axes, points.groupby("label", observed=True), strict=True):
        share = rows["step"] / rows["step"].max()
        _dots(ax, rows, c=share, cmap=colors, vmin=0, vmax=1)
        numbers = rows["episode"].unique()
        for number in numbers[[0, len(numbers) // 2, -1]]:
            path = rows[rows["episode"] == number]
            color = colors(share[path.index].mean())
            ax.plot(path["x"], path["y"], color=color, linewidth=0.8, alpha=0.8)
    bar = {"label": "share of the dataset's steps", "shrink": 0.8, "aspect": 30}
    axes[0].figure.colorbar(axes[0].collections[-1], ax=list(axes), **bar)
    return axes


def measures(measured: pd.DataFrame) -> np.ndarray:
    """Plot one panel per measure and one dot per dataset, with bars of 1.96 standard errors.

    The table comes from `coverage.measures`. Raise ValueError if a dataset has two values.
    """
    names = [name for name in MEASURES if name in measured]
    rows = style.labelled(once(measured.reset_index(), ["dataset"], names))
    axes = style.panels(len(names), 3.75, 1.6 + 0.36 * len(rows), sharey=True)
    for ax, measure in zip(axes, names, strict=True):
        for _, row in rows.sort_values("label", ascending=False).iterrows():
            look = {"fmt": style.look(row["objective"]).marker, "markersize": 10}
            look["color"] = style.objective_color(row["objective"], row["parameter"])
            reach = 1.96 * row.get(f"{measure}_se", np.nan)
            ax.errorbar(row[measure], row["label"], xerr=reach, **look)
        ax.set_title(MEASURES[measure], fontsize="medium")
        ax.grid(axis="x")
        ax.xaxis.set_major_locator(MaxNLocator(3))
        ax.set_ylim(-0.6, len(rows) - 0.4)
    return axes


def _panels(embedding: Embedding) -> tuple[np.ndarray, pd.DataFrame]:
    """Return one Axes per dataset with all points in grey, and the `labelled` points."""
    points = style.labelled(embedding.points)
    labels = points["label"].cat.categories
    axes = style.panels(len(labels), 3.7, 3.7, sharex=True, sharey=True)
    for ax, label in zip(axes, labels, strict=True):
        _dots(ax, points, color="0.8")
        ax.set_axis_off()  # maps have no units
        ax.set_title(label)
    return axes, points


def _dots(ax: Axes, points: pd.DataFrame, **colors: Any) -> None:
    """Plot points, smaller ones for more."""
    size = np.clip(4000 / len(points), 1.5, 14)
    ax.scatter(points["x"], points["y"], s=size, linewidths=0, **colors)
