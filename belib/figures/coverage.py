"""Figures of what part of the states datasets visit."""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from belib.coverage import MEASURES, Embedding
from belib.coverage.prediction import by_dataset
from belib.figures.style import (
    OUTSIDE,
    objective_color,
    objective_label,
    objective_marker,
    objective_order,
)
from belib.tables import checked, once

_COLUMNS = 4  # panels a row
_BEHIND = "0.86"
_THOUSANDS = StrMethodFormatter("{x:,.0f}")
_SCALINGS = {"none": "raw observations", "robust": "robustly scaled"}


def maps(embedding: Embedding) -> np.ndarray:
    """A panel a dataset in its objective's colour, all datasets' points light grey behind.

    Returns the Axes, with equal limits: the maps of one joint fit.
    """
    axes = _panels(embedding)
    for ax, (name, known) in zip(axes, described(embedding.points), strict=True):
        own = embedding[name]
        color = objective_color(known["objective"], known["parameter"])
        if known["objective"] == "random":
            color = "0.4"  # its light grey would not stand out from the one behind
        ax.scatter(own["x"], own["y"], s=_size(own), color=color, linewidths=0)
    return axes


def time_maps(embedding: Embedding, *, episodes: int = 3) -> np.ndarray:
    """The same panels, coloured by when a state was reached, with a line through some episodes.

    Args:
        episodes: spread from the first to the last; their sampled states are joined in order.
    """
    axes = _panels(embedding)
    for ax, (name, _) in zip(axes, described(embedding.points), strict=True):
        own = embedding[name].sort_values("step")
        last = own["step"].max()
        options = {"cmap": "viridis_r", "vmin": 0, "vmax": 1}
        ax.scatter(own["x"], own["y"], c=own["step"] / last, s=_size(own), linewidths=0, **options)
        known = own["episode"].unique()
        for episode in known[np.linspace(0, len(known) - 1, episodes).round().astype(int)]:
            path = own[own["episode"] == episode]
            color = plt.get_cmap("viridis_r")(path["step"].mean() / last)
            ax.plot(path["x"], path["y"], color=color, linewidth=0.8, alpha=0.8)
    bar = {"label": "share of the dataset's steps", "shrink": 0.8, "aspect": 30}
    axes[0].figure.colorbar(axes[0].collections[-1], ax=list(axes), **bar)
    return axes


def volumetric(table: pd.DataFrame) -> np.ndarray:
    """Radius of the ball around the states so far, over the largest of all: a panel a scaling.

    Args:
        table: from `coverage.volumetric_coverage`.
    """
    keys, known = ["dataset", "scaling", "step"], ["objective", "parameter", "seed"]
    table = checked(table, names=keys[:2], numbers=["step", "coverage"], others=known)
    table = once(table, keys, ["coverage"])
    table = table.sort_values(["scaling", "step"], kind="stable")
    scalings = list(table["scaling"].unique())
    _, axes = plt.subplots(1, len(scalings), figsize=(6 * len(scalings) + 3, 5), sharey=True)
    axes = np.atleast_1d(axes)
    for ax, scaling in zip(axes, scalings, strict=True):
        rows = table[table["scaling"] == scaling]
        for name, known in described(rows):
            curve = rows[rows["dataset"] == name]
            style = {
                "color": objective_color(known["objective"], known["parameter"]),
                "marker": objective_marker(known["objective"]),
                "linestyle": ":" if known["objective"] == "shannon" else "-",
            }
            ax.plot(curve["step"], curve["coverage"], label=dataset_label(name, known), **style)
        ax.set(xlabel="environment steps T", title=_SCALINGS[scaling], ylim=(0, 1.05))
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.xaxis.set_major_formatter(_THOUSANDS)
    axes[0].set_ylabel("radius / largest radius")
    columns = 1 + len(axes[-1].lines) // 10
    axes[-1].legend(ncols=columns, **OUTSIDE)
    return axes


def measures(measured: pd.DataFrame) -> np.ndarray:
    """A panel a measure, a dot a dataset with 1.96 standard errors to both sides where there are.

    Args:
        measured: from `coverage.measures`.
    """
    measured = by_dataset(measured)
    shown = [name for name in MEASURES if name in measured]
    rows = list(described(measured.reset_index()))[::-1]
    lines = -(-len(shown) // _COLUMNS)
    size = (15, lines * (1.6 + 0.36 * len(rows)))
    _, axes = plt.subplots(lines, _COLUMNS, figsize=size, sharey=True, squeeze=False)
    for ax, measure in zip(axes.flat, shown, strict=False):
        for place, (name, known) in enumerate(rows):
            value = measured.loc[name, measure]
            error = measured.loc[name].get(f"{measure}_se", np.nan)
            style = {"color": objective_color(known["objective"], known["parameter"])}
            ax.errorbar(value, place, xerr=None if np.isnan(error) else 1.96 * error, **style)
            ax.plot(value, place, objective_marker(known["objective"]), markersize=10, **style)
        ax.set_title(MEASURES[measure], fontsize="medium")
        ax.grid(axis="x")
        ax.xaxis.set_major_locator(MaxNLocator(3))
        ax.set_ylim(-0.6, len(rows) - 0.4)
    for ax in axes.flat[len(shown) :]:
        ax.remove()
    axes[0, 0].set_yticks(range(len(rows)), [dataset_label(*row) for row in rows])
    return np.array(list(axes.flat[: len(shown)]))


def _panels(embedding: Embedding) -> np.ndarray:
    """An Axes a dataset with all points in grey, a title, and no ticks: maps have no units."""
    shown = list(described(embedding.points))
    columns = min(_COLUMNS, len(shown))
    lines = -(-len(shown) // columns)
    size = (3.7 * columns, 3.7 * lines)
    _, axes = plt.subplots(lines, columns, figsize=size, sharex=True, sharey=True, squeeze=False)
    points = embedding.points
    for ax, (name, known) in zip(axes.flat, shown, strict=False):
        ax.scatter(points["x"], points["y"], s=2 * _size(points), color=_BEHIND, linewidths=0)
        ax.set(xticks=[], yticks=[], title=dataset_label(name, known))
        ax.grid(False)
        ax.spines[:].set_visible(False)
    for ax in axes.flat[len(shown) :]:
        ax.remove()
    return np.array(list(axes.flat[: len(shown)]))


def _size(points: pd.DataFrame) -> float:
    """Area of a dot: small where there are many, never invisible."""
    return float(np.clip(4000 / len(points), 1.5, 14))


def described(rows: pd.DataFrame) -> Iterator[tuple[str, dict]]:
    """Each dataset of rows of a sample, and what is known of it, in the one order of objectives."""
    first = rows.drop_duplicates("dataset").set_index("dataset")
    known = first[["objective", "parameter", "seed"]].to_dict("index")

    def key(item: tuple[str, dict]) -> tuple:
        return (*objective_order(item[1]["objective"], item[1]["parameter"]), item[0])

    repeated = first.duplicated(["objective", "parameter"], keep=False)
    twins = first.duplicated(["objective", "parameter", "seed"], keep=False)
    for name, values in sorted(known.items(), key=key):
        yield name, {**values, "repeated": repeated[name], "twin": twins[name]}


def dataset_label(name: str, known: dict) -> str:
    """`BE α = 0.5`, with its seed where another one is shown too.

    The name of foreign data, of data merged from several seeds where these are shown too, and of
    two datasets that differ in nothing else (a longer one).
    """
    objective, of_several = known["objective"], known["repeated"] and pd.isna(known["seed"])
    if objective is None or of_several or known["twin"]:
        return name
    label = objective_label(objective, known["parameter"])
    return f"{label}, seed {known['seed']}" if known["repeated"] else label
