"""Figures of offline returns: every dataset and every learner seed, beside the baselines.

Tables have `results.COLUMNS` with the rows of `results.BASELINES`, or are those of `belib.study`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from pandas.io.formats.style import Styler

from belib.figures import style
from belib.results import BASELINES, evaluations, final

_DOTS = {"color": "white", "edgecolor": "black", "linewidth": 0.8, "s": 20, "zorder": 3}
_TURNED = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}
_TICKS = sorted({*style.ALPHAS, *style.QS})


def returns(table: pd.DataFrame, online: Mapping[str, float] | None = None) -> np.ndarray:
    """Plot final returns: one bar per dataset, with one standard deviation over seeds, and dots.

    Return Axes (tasks, learners).

    Args:
        table: evaluations of learners and baselines.
        online: for each task the return of a policy trained online.
    """
    table, look = _labelled(final(table))
    names, place = look["hue_order"], {"x": "label", "y": "return", "order": look["hue_order"]}

    def draw(ax: Axes, rows: pd.DataFrame) -> None:
        bars = {"errorbar": "sd", "err_kws": {"color": "0.5", "linewidth": 1.5}, "saturation": 1}
        sns.barplot(rows, ax=ax, **place, **look, **bars, legend=False)
        ax.scatter(rows["label"].map(names.index), rows["return"], **_DOTS)
        ax.set_xticks(range(len(names)), names, **_TURNED)

    return _grid(table, draw, width=len(names), online=online)


def learning_curves(table: pd.DataFrame) -> np.ndarray:
    """Plot returns over updates: one thin line per seed, a thick one for their mean.

    Return Axes (tasks, learners). `table` has all evaluations, and baselines.
    """
    table, look = _labelled(evaluations(table, "objective", "parameter", "variant"), lines=True)

    def draw(ax: Axes, rows: pd.DataFrame) -> None:
        lines = {"data": rows, "x": "step", "y": "return", "ax": ax, **look}
        sns.lineplot(**lines, units="seed", estimator=None, linewidth=1, alpha=0.7, legend=False)
        sns.lineplot(**lines, errorbar=None, linewidth=4, markersize=9)

    return _grid(table, draw, width=6, xlabel="updates")


def _labelled(table: pd.DataFrame, **options: Any) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the table with a `label` for each dataset, and the look of the labels."""
    datasets = style.labelled(table[table["dataset"] != "none"])  # that of baselines
    table = table.assign(label=table["dataset"].map(datasets.set_index("dataset")["label"]))
    return table, style.of(datasets, "label", **options)


def _grid(
    table: pd.DataFrame,
    draw: Callable[[Axes, pd.DataFrame], None],
    *,
    width: int,
    xlabel: str = "",
    online: Mapping[str, float] | None = None,
) -> np.ndarray:
    """Return Axes (tasks, learners) with what `draw` makes of their rows, and the baselines."""
    learnt = table[~table["algorithm"].isin(BASELINES)]
    tasks, learners = (list(learnt[name].unique()) for name in ("task", "algorithm"))
    size = (len(learners) * max(4.5, 1.5 + 0.55 * width) + 2.5, 3.6 * len(tasks) + 1)
    shape = len(tasks), len(learners)
    _, axes = plt.subplots(*shape, sharex="col", sharey="row", squeeze=False, figsize=size)
    for (row, column), ax in np.ndenumerate(axes):
        task, learner = tasks[row], learners[column]
        draw(ax, learnt[(learnt["task"] == task) & (learnt["algorithm"] == learner)])
        if online and task in online:
            ax.axhline(online[task], color="tab:green", linestyle=":", label="trained online")
        means = table[table["task"] == task].groupby("algorithm")["return"].mean()
        for name, line in zip(BASELINES, ("--", ":"), strict=True):
            if pd.notna(means.get(name)):
                ax.axhline(means[name], color="0.35", linestyle=line, linewidth=2, label=name)
        title = f"{_title(task)}, {learner.upper().replace('_', '+')}"
        ax.set(title=title, xlabel=xlabel, ylabel="episode return", ylim=(0, None))
        ax.label_outer()
    return style.legend(axes)


def _title(task: str) -> str:
    return task.replace("_", " ").capitalize()


def parameter_curves(table: pd.DataFrame, means: pd.DataFrame | None = None) -> np.ndarray:
    """Plot returns over alpha and q, by rank on the paper's grids, with a line through the means.

    Return Axes (tasks, learners). SE is a line, with a band where `means` have intervals.

    Args:
        table: one dot per row, of a policy or of a dataset, and baselines.
        means: from `study.means`; by default those of the dots, without intervals.
    """
    keys = ["task", "algorithm", "objective", "parameter"]
    dots = table.groupby(keys, dropna=False)["return"].mean().reset_index(name="mean")
    dots = dots.assign(measure=dots["algorithm"], low=dots["mean"], high=dots["mean"])
    curves = dots if means is None else means

    def draw(ax: Axes, rows: pd.DataFrame) -> None:
        task, learner = rows[["task", "algorithm"]].iloc[0]
        lines = curves[(curves["task"] == task) & (curves["measure"] == learner)]
        for objective, shift in (("behavioral", -0.08), ("renyi", 0.08)):
            line, dots = (t[t["objective"] == objective] for t in (lines, rows))
            look, color = style.look(objective), style.objective_color(objective)
            drawn = {"color": color, "marker": look.marker, "markersize": 9, "linewidth": 3}
            reach = np.nan_to_num([line["mean"] - line["low"], line["high"] - line["mean"]])
            x, of_dots = (
                shift + np.interp(t["parameter"], _TICKS, range(len(_TICKS))) for t in (line, dots)
            )
            drawn |= {"elinewidth": 2, "capsize": 4, "label": f"{look.label}, {look.symbol}"}
            if len(line):
                ax.errorbar(x, line["mean"], yerr=reach, **drawn)
            ax.scatter(of_dots, dots["return"], **_DOTS)
        for shannon in lines[lines["objective"] == "shannon"].itertuples():
            ax.axhline(shannon.mean, color="black", linestyle="-.", linewidth=2, label="SE")
            ax.axhspan(shannon.low, shannon.high, color="0.5", alpha=0.15, linewidth=0)
        ax.set_xticks(range(len(_TICKS)), [f"{tick:g}" for tick in _TICKS])

    return _grid(table, draw, width=14, xlabel="α or q")


def spreads(table: pd.DataFrame) -> Axes:
    """Plot the sd between datasets of one recipe and between learner seeds: `study.spreads`."""
    tasks = list(table["task"].unique())[::-1]
    _, ax = plt.subplots(figsize=(9, 1.1 * len(tasks) + 2))
    marks = {"datasets": (0.15, "o", style.ACCENT), "seeds": (-0.15, "s", "0.35")}
    for row in table.itertuples():
        shift, marker, color = marks[row.source]
        y, label = tasks.index(row.task) + shift, f"between {row.source}"
        _interval(ax, y, row.sd, row, color=color, marker=marker, label=label)
    ax.set_yticks(range(len(tasks)), [_title(task) for task in tasks])
    ax.set(xlabel="standard deviation of returns", xlim=(0, None), ylim=(-0.6, len(tasks) - 0.4))
    ax.grid(axis="x")
    return style.legend(ax)


def _interval(ax: Axes, y: float, value: float, row: Any, **look: Any) -> None:
    """Plot a value with its interval from `row.low` to `row.high`."""
    ax.plot([row.low, row.high], [y, y], linewidth=3, color=look["color"])
    ax.plot(value, y, markersize=11, linestyle="none", **look)


def advantages(table: pd.DataFrame) -> np.ndarray:
    """Plot how far a best recipe is ahead of another, one panel per task; orange leaves zero out.

    `table` has rows of `study.study`: `task`, `sides`, `value`, `low`, `high`. Return the Axes.
    """
    tasks, names = table["task"].unique(), list(table["sides"].unique())[::-1]
    count, size = max(1, len(tasks)), (4.2 * len(tasks) + 2, 0.55 * len(names) + 2)
    _, axes = plt.subplots(1, count, sharey=True, squeeze=False, figsize=size)
    for ax, task in zip(axes[0], tasks, strict=False):  # without tasks an empty panel
        for row in table[table["task"] == task].itertuples():
            color = style.ACCENT if row.low > 0 or row.high < 0 else "0.35"
            _interval(ax, names.index(row.sides), row.value, row, color=color, marker="o")
        ax.axvline(0, color="black", linewidth=1.5)
        ax.set(title=_title(task), xlabel="difference of returns")
        ax.grid(axis="x")
    axes[0, 0].set(yticks=range(len(names)), yticklabels=names, ylim=(-0.6, len(names) - 0.4))
    return axes[0]


def coverage_returns(table: pd.DataFrame, baselines: pd.DataFrame) -> np.ndarray:
    """Plot one dot per dataset, its return over its coverage. Return Axes (tasks, learners).

    `table` comes from `study.paired`; `baselines` are rows of `results.BASELINES`.
    """
    table = table.rename(columns={"value": "return", "measure": "algorithm"})
    look = style.of(table, lines=True) | {"s": 130, "edgecolor": "black"}
    del look["dashes"]

    def draw(ax: Axes, rows: pd.DataFrame) -> None:
        sns.scatterplot(rows, x="other", y="return", ax=ax, **look)

    axes = _grid(pd.concat([table, baselines]), draw, width=14, xlabel="coverage")
    return style.legend(axes, ncols=2)


def labels(table: pd.DataFrame) -> Axes:
    """Plot what every task would have paid for every episode of every dataset: one dot each.

    `table` comes from `datasets.task_returns`.
    """
    table, look = _labelled(table)
    _, ax = plt.subplots(figsize=(9, 5))
    sns.stripplot(table, x="task", y="return", ax=ax, dodge=True, size=5, alpha=0.7, **look)
    ax.set(xlabel="", ylabel="return of an episode", ylim=(0, None))
    return style.legend(ax)


def improvement(matrix: pd.DataFrame) -> Axes:
    """Plot `results.improvement`: the chance that a row's run is better than a column's."""
    size = 1.2 * len(matrix) + 3
    _, ax = plt.subplots(figsize=(size + 1.5, size))
    numbers = {"vmin": 0, "vmax": 1, "center": 0.5, "cmap": "PRGn", "annot": True, "fmt": ".2f"}
    sns.heatmap(matrix, ax=ax, square=True, cbar_kws={"label": "P(row above column)"}, **numbers)
    ax.set(ylabel="this", xlabel="over this")
    ax.set_xticklabels(ax.get_xticklabels(), **_TURNED)
    return ax


def table_1(rows: pd.DataFrame) -> Styler:
    """Return `results.table_1` as the paper prints it, objectives across, the highest bold."""
    numbers = ["best over everything", "mean of finals", "best mean", "policies"]
    order = [name for name in style.LOOKS if name in rows["objective"].unique()]
    wide = rows.pivot(index="task", columns="objective", values=numbers)
    wide = wide.loc[rows["task"].unique(), [(n, name) for n in numbers for name in order]]
    wide = wide.rename(columns=lambda name: style.LOOKS[name].label, level=1)
    styled = wide.style.format("{:.0f}", na_rep="")
    for name in numbers[:3]:
        styled = styled.highlight_max(axis=1, subset=[name], props="font-weight: bold")
    return styled
