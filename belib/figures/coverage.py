"""Figures of the states that datasets visit."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from belib.coverage import MEASURES, Embedding
from belib.figures import style
from belib.results.tables import once

_SCALINGS = {"none": "raw observations", "robust": "robustly scaled"}


def maps(embedding: Embedding) -> np.ndarray:
    """Plot one panel per dataset in its objective's colour, with all points light grey behind.

    All panels show one joint fit, with equal limits. Return the Axes.
    """
    axes, rows = _panels(embedding)
    for ax, row in zip(axes, rows.itertuples(), strict=True):
        points = embedding.points[embedding.points["dataset"] == row.dataset]
        _dots(ax, points, color=style.objective_color(row.objective, row.parameter))
    return axes


def time_maps(embedding: Embedding, *, episodes: int = 3) -> np.ndarray:
    """Plot the same panels, coloured by step, with lines along evenly spaced episodes."""
    (axes, rows), colors = _panels(embedding), plt.get_cmap("viridis_r")
    for ax, name in zip(axes, rows["dataset"], strict=True):
        points = embedding.points[embedding.points["dataset"] == name]
        share = points["step"] / points["step"].max()
        _dots(ax, points, c=share, cmap=colors, vmin=0, vmax=1)
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
    labels = style.labelled(table).set_index("dataset")["label"]
    table = table.assign(label=table["dataset"].map(labels))
    _, axes = plt.subplots(1, len(_SCALINGS), figsize=(15, 5), sharey=True)
    drawn = {"x": "step", "y": "coverage", **style.of(table, "label", lines=True)}
    for ax, (scaling, title) in zip(axes, _SCALINGS.items(), strict=True):
        sns.lineplot(table[table["scaling"] == scaling], ax=ax, estimator=None, **drawn)
        ax.set(xlabel="environment steps T", ylabel="radius / largest", title=title, ylim=(0, 1.05))
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.xaxis.set_major_formatter("{x:,.0f}")
    return style.legend(axes, ncols=1 + len(labels) // 10)


def measures(measured: pd.DataFrame) -> np.ndarray:
    """Plot one panel per measure and one dot per dataset, with bars of 1.96 standard errors.

    The table comes from `coverage.measures`. Raise ValueError if a dataset has two values.
    """
    names = [name for name in MEASURES if name in measured]
    rows = style.labelled(once(measured.reset_index(), ["dataset"], names))[::-1]
    axes = _grid(len(names), 3.75, 1.6 + 0.36 * len(rows), sharey=True)
    for ax, measure in zip(axes, names, strict=True):
        for label, row in rows.iterrows():
            look = {"fmt": style.look(row["objective"]).marker, "markersize": 10}
            look["color"] = style.objective_color(row["objective"], row["parameter"])
            ax.errorbar(row[measure], label, xerr=1.96 * row.get(f"{measure}_se", np.nan), **look)
        ax.set_title(MEASURES[measure], fontsize="medium")
        ax.grid(axis="x")
        ax.xaxis.set_major_locator(MaxNLocator(3))
        ax.set_ylim(-0.6, len(rows) - 0.4)
    return axes


def _panels(embedding: Embedding) -> tuple[np.ndarray, pd.DataFrame]:
    """Return one Axes per dataset with all points in grey, and the `labelled` datasets."""
    rows = style.labelled(embedding.points)
    axes = _grid(len(rows), 3.7, 3.7, sharex=True, sharey=True)
    for ax, label in zip(axes, rows.index, strict=True):
        _dots(ax, embedding.points, color="0.8")
        ax.set_axis_off()  # maps have no units
        ax.set_title(label)
    return axes, rows


def _grid(count: int, width: float, height: float, **shared: Any) -> np.ndarray:
    """Return `count` Axes of a width and height in rows of four."""
    columns, lines = min(4, count), -(-count // 4)
    figure = plt.figure(figsize=(width * columns, height * lines))
    axes = figure.subplots(lines, columns, squeeze=False, **shared).flatten()
    for ax in axes[count:]:
        ax.remove()
    return axes[:count]


def _dots(ax: Axes, points: pd.DataFrame, **colors: Any) -> None:
    """Plot points, smaller ones for more."""
    size = np.clip(4000 / len(points), 1.5, 14)
    ax.scatter(points["x"], points["y"], s=size, linewidths=0, **colors)
