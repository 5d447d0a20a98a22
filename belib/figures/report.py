"""Figures of the reproduction report: every dataset and every learner seed, beside what is claimed.

All take tables of `belib.study`; nothing is computed here.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from belib.figures.style import (
    ACCENT,
    ALPHAS,
    OUTSIDE,
    QS,
    draw_baselines,
    objective_color,
    objective_marker,
    task_label,
)

_DOTS = {"color": "white", "edgecolor": "black", "linewidth": 0.8, "s": 16, "zorder": 3}
_FAMILIES = {"behavioral": ("BE", "α", ALPHAS, 1.5), "renyi": ("RE", "q", QS, 0.9)}
_RANDOM = "0.45"  # the light grey of random actions would not stand out as a dot


def dataset_returns(policies: pd.DataFrame, baselines: pd.DataFrame) -> np.ndarray:
    """A bar a dataset, those of one recipe side by side, a dot a learner seed; a panel a task.

    Args:
        policies: from `study.policies`, in the order in which recipes are shown.
        baselines: rows of doing nothing and of random actions.
    """
    tasks, recipes = policies["task"].unique(), list(policies["recipe"].unique())
    size = (0.62 * len(recipes) + 4, 3.3 * len(tasks) + 1.4)
    _, axes = plt.subplots(len(tasks), 1, figsize=size, sharex=True, squeeze=False)
    for ax, task in zip(axes[:, 0], tasks, strict=True):
        rows = policies[policies["task"] == task]
        for name, own in rows.groupby("recipe", sort=False):
            _recipe_bars(ax, recipes.index(name), own)
        draw_baselines(ax, baselines[baselines["task"] == task])
        ax.set(title=task_label(task), ylabel="episode return", ylim=(0, None))
    axes[-1, 0].set_xlim(-0.8, len(recipes) - 0.2)
    turned = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}
    axes[-1, 0].set_xticks(range(len(recipes)), recipes, **turned)
    axes[0, 0].legend(**OUTSIDE)
    return axes[:, 0]


def _recipe_bars(ax: Axes, place: int, rows: pd.DataFrame) -> None:
    """The datasets of a recipe, each with its policies."""
    names = rows["dataset"].unique()
    width = 0.84 / max(2, len(names))
    hatch = "///" if rows["variant"].iloc[0] else None
    style = {"color": _color(rows.iloc[0]), "edgecolor": "white", "hatch": hatch}
    for number, name in enumerate(names):
        values = rows.loc[rows["dataset"] == name, "return"].dropna().to_numpy()
        x = place + (number - (len(names) - 1) / 2) * width
        if len(values):
            ax.bar(x, values.mean(), 0.92 * width, **style)
            ax.scatter(x + np.linspace(-0.2, 0.2, len(values)) * width, values, **_DOTS)


def parameter_curves(
    units: pd.DataFrame, means: pd.DataFrame, baselines: pd.DataFrame
) -> np.ndarray:
    """Returns over alpha (left) and q (right) by rank; a row of panels a task.

    A dot a dataset, a line through the recipes' means with their intervals; the band is SE.

    Args:
        units: a row a dataset: `task`, `objective`, `parameter`, `variant`, `value`.
        means: from `study.means`.
        baselines: rows of doing nothing and of random actions.
    """
    tasks = means["task"].unique()
    options = {"sharey": "row", "squeeze": False, "figsize": (13.5, 3.3 * len(tasks) + 1)}
    known = means[means["variant"] == ""].groupby("objective")["parameter"].nunique()
    widths = [max(3, known.get(objective, 0)) for objective in _FAMILIES]
    _, axes = plt.subplots(len(tasks), 2, width_ratios=widths, **options)
    for row, task in zip(axes, tasks, strict=True):
        for ax, objective in zip(row, _FAMILIES, strict=True):
            own = [
                each[(each["task"] == task) & (each["variant"] == "")] for each in (units, means)
            ]
            _family_curve(ax, objective, *own)
            _shannon_band(ax, own[1])
            draw_baselines(ax, baselines[baselines["task"] == task])
            ax.set_title(f"{task_label(task)}, {_FAMILIES[objective][0]}")
            there = own[1]["objective"].eq(objective).any()
            ax.set_visible(there or ax is row[0] or ax is axes[0, -1])  # which has the legend
        row[0].set(ylabel="episode return", ylim=(0, None))
    for ax, (_, symbol, *_) in zip(axes[-1], _FAMILIES.values(), strict=True):
        ax.set_xlabel(symbol)
    axes[0, -1].legend(**OUTSIDE)
    return axes


def _family_curve(ax: Axes, objective: str, units: pd.DataFrame, means: pd.DataFrame) -> None:
    _, _, grid, middle = _FAMILIES[objective]
    own, dots = (each[each["objective"] == objective] for each in (means, units))
    shown = sorted({*own["parameter"]}) or list(grid)
    place = lambda rows: [shown.index(value) for value in rows["parameter"]]  # noqa: E731
    reach = [own["mean"] - own["low"], own["high"] - own["mean"]]
    style = {"color": objective_color(objective, middle), "marker": objective_marker(objective)}
    bars: dict[str, Any] = {"linewidth": 3, "markersize": 10, "elinewidth": 2, "capsize": 4}
    if len(own):
        drawn = None if own["low"].isna().all() else reach
        ax.errorbar(place(own), own["mean"], yerr=drawn, **style, **bars, label="mean of datasets")
        ax.scatter(place(dots), dots["value"], **{**_DOTS, "s": 34}, label="one dataset")
    ax.set_xticks(range(len(shown)), [f"{value:g}" for value in shown])
    ax.set_xlim(-0.5, len(shown) - 0.5)


def _shannon_band(ax: Axes, means: pd.DataFrame) -> None:
    for found in means[means["objective"] == "shannon"].itertuples():
        ax.axhline(found.mean, color="black", linestyle="-.", linewidth=2, label="SE")
        if np.isfinite(found.low):
            ax.axhspan(found.low, found.high, color="0.5", alpha=0.15, linewidth=0)


def spreads(table: pd.DataFrame) -> Axes:
    """The sd between datasets of one recipe beside that between learner seeds, with intervals.

    Args:
        table: from `study.spreads`.
    """
    tasks = list(table["task"].unique())
    _, ax = plt.subplots(figsize=(9, 1.1 * len(tasks) + 2))
    marks = {"datasets": (0.15, "o", ACCENT), "seeds": (-0.15, "s", "0.35")}
    for source, (shift, marker, color) in marks.items():
        rows = table[table["source"] == source]
        y = [len(tasks) - 1 - tasks.index(task) + shift for task in rows["task"]]
        known = rows["low"].notna()
        reach = [(rows["sd"] - rows["low"])[known], (rows["high"] - rows["sd"])[known]]
        style = {"color": color, "capsize": 4, "elinewidth": 3, "fmt": "none"}
        ax.errorbar(rows["sd"][known], np.array(y)[known], xerr=reach, **style)
        ax.plot(rows["sd"], y, marker, color=color, markersize=12, label=f"between {source}")
    ax.set_yticks(range(len(tasks)), [task_label(task) for task in tasks[::-1]])
    ax.set(xlabel="standard deviation of returns", xlim=(0, None), ylim=(-0.6, len(tasks) - 0.4))
    ax.grid(axis="x")
    ax.legend(**OUTSIDE)
    return ax


def advantages(table: pd.DataFrame) -> np.ndarray:
    """What a side's best recipe is ahead of another's, with the interval that pays for choosing.

    Args:
        table: rows of `study` with `task`, `sides`, `value`, `low`, `high`; a panel a task.
    """
    places, names = table["task"].unique(), list(table["sides"].unique())[::-1]
    size = (4.2 * len(places) + 2, 0.55 * len(names) + 2)
    options = {"sharey": True, "squeeze": False, "figsize": size}
    _, axes = plt.subplots(1, max(1, len(places)), **options)
    for ax, place in zip(axes[0], places, strict=False):  # without places an empty panel
        for found in table[table["task"] == place].itertuples():
            y, clear = names.index(found.sides), found.low > 0 or found.high < 0
            style = {"color": ACCENT if clear else "0.35"}
            ax.plot(found.value, y, "o", markersize=11, **style)
            if np.isfinite(found.low):
                ax.plot([found.low, found.high], [y, y], linewidth=3, **style)
        ax.axvline(0, color="black", linewidth=1.5)
        ax.set(
            title=task_label(place), xlabel="difference of returns", ylim=(-0.6, len(names) - 0.4)
        )
        ax.grid(axis="x")
    axes[0, 0].set_yticks(range(len(names)), names)
    return axes[0]


def coverage_returns(table: pd.DataFrame, baselines: pd.DataFrame) -> np.ndarray:
    """A dot a dataset: its coverage and what was learnt from it; a panel a task.

    Args:
        table: columns `task`, `objective`, `parameter`, `variant`, `value`, `other` (coverage).
        baselines: rows of doing nothing and of random actions.
    """
    tasks = table["task"].unique()
    size = (4.3 * len(tasks) + 2.5, 4.6)
    _, axes = plt.subplots(1, len(tasks), figsize=size, squeeze=False)
    for ax, task in zip(axes[0], tasks, strict=True):
        for found in table[(table["task"] == task) & (table["variant"] == "")].itertuples():
            marker, color = objective_marker(found.objective), _color(found._asdict())
            style = {"markersize": 11, "markeredgecolor": "black", "markeredgewidth": 0.6}
            ax.plot(found.other, found.value, marker, color=color, **style)
        draw_baselines(ax, baselines[baselines["task"] == task])
        ax.set(title=task_label(task), xlabel="volumetric coverage", ylim=(0, None))
    axes[0, 0].set_ylabel("episode return")
    lines, _ = axes[0, -1].get_legend_handles_labels()
    axes[0, -1].legend(handles=[*_objective_handles(table), *lines], **OUTSIDE)
    return axes[0]


def _objective_handles(table: pd.DataFrame) -> list[Line2D]:
    """A handle a family; darkness is its parameter."""
    shown = {"shannon": "SE", "behavioral": "BE, darker with α", "renyi": "RE, darker with q"}
    shown |= {"rnd": "RND", "smm": "SMM", "random": "random actions"}
    middle = {"behavioral": 1.5, "renyi": 0.9}
    known = [name for name in shown if name in set(table["objective"])]
    return [
        Line2D(
            [],
            [],
            linestyle="none",
            markersize=11,
            marker=objective_marker(name),
            color=_color({"objective": name, "parameter": middle.get(name)}),
            label=shown[name],
        )
        for name in known
    ]


def _color(row) -> tuple | str:
    objective, parameter = row["objective"], row["parameter"]
    return _RANDOM if objective == "random" else objective_color(objective, parameter)
