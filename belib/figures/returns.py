"""Figures of offline returns: every dataset and every learner seed, beside the baselines.

Tables have `results.COLUMNS` with the rows of `results.BASELINES`, or are those of `belib.study`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from pandas.io.formats.style import Styler

from belib.figures import style
from belib.results import BASELINES, MEMBER, evaluations
from belib.results.tables import checked, once

_DOTS = {"color": "white", "edgecolor": "black", "linewidth": 0.8, "s": 20, "zorder": 3}
_TURNED = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}
_TICKS = sorted({*style.ALPHAS, *style.QS})
_RANKS = range(len(_TICKS))


def returns(table: pd.DataFrame, online: Mapping[str, float] | None = None) -> np.ndarray:
    """Plot a bar a dataset, its mean with one standard deviation over seeds, and a dot a seed.

    Return Axes (tasks, learners).

    Args:
        table: a row a policy, and baselines. Datasets of one `recipe`, if there is such a column,
            stand side by side; those of a `variant` are hatched.
        online: for each task the return of a policy trained online.
    """
    table = evaluations(table, "objective", "parameter", "variant")
    several = table.loc[table.duplicated(MEMBER), MEMBER].to_numpy()
    if len(several):
        rule = "a row a policy, as results.final gives"
        raise ValueError(f"table must have {rule}, got several of {several[0]}")
    table = table if "recipe" in table else _labelled(table)
    learnt = table[~table["algorithm"].isin(BASELINES)]
    look = style.of(learnt, "recipe")

    def draw(ax: Axes, rows: pd.DataFrame) -> None:
        for recipe, own in rows.groupby("recipe", sort=False):
            _bars(ax, look["hue_order"].index(recipe), own, look["palette"][recipe])
        ax.set_xticks(range(len(look["palette"])), look["hue_order"], **_TURNED)

    return _grid(table, draw, width=len(look["palette"]), online=online)


def _bars(ax: Axes, place: int, rows: pd.DataFrame, color: tuple) -> None:
    """Plot the datasets of one recipe."""
    names = list(rows["dataset"].unique())
    width = 0.84 / max(2, len(names))
    hatch = "///" if rows["variant"].fillna("").iloc[0] else None
    bar = {"color": color, "edgecolor": "white", "hatch": hatch, "error_kw": {"ecolor": "0.5"}}
    for number, name in enumerate(names):
        values = rows.loc[rows["dataset"] == name, "return"].dropna().to_numpy()
        x = place + (number - (len(names) - 1) / 2) * width
        if len(values):
            sd = values.std(ddof=1) if len(values) > 1 else 0
            ax.bar(x, values.mean(), 0.92 * width, yerr=sd, **bar)
            ax.scatter(x + np.linspace(-0.25, 0.25, len(values)) * width, values, **_DOTS)


def learning_curves(table: pd.DataFrame) -> np.ndarray:
    """Plot returns over updates: a thin line a seed, a thick one their mean.

    Return Axes (tasks, learners). `table` has all evaluations, and baselines.
    """
    table = _labelled(evaluations(table, "objective", "parameter", "variant"))
    look = style.of(table[~table["algorithm"].isin(BASELINES)], lines=True)

    def draw(ax: Axes, rows: pd.DataFrame) -> None:
        lines = {"data": rows, "x": "step", "y": "return", "ax": ax, **look}
        sns.lineplot(**lines, units="seed", estimator=None, linewidth=1, alpha=0.7, legend=False)
        sns.lineplot(**lines, errorbar=None, linewidth=4, markersize=9)

    return _grid(table, draw, width=6, xlabel="updates")


def _labelled(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a `recipe` that tells each dataset from the others."""
    labels = style.labelled(table).set_index("dataset")["label"]
    return table.assign(recipe=table["dataset"].map(labels))


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
    for row, task in zip(axes, tasks, strict=True):
        for ax, learner in zip(row, learners, strict=True):
            draw(ax, learnt[(learnt["task"] == task) & (learnt["algorithm"] == learner)])
            if online and task in online:
                ax.axhline(online[task], color="tab:green", linestyle=":", label="trained online")
            ax.set_title(f"{_title(task)}, {style.learner_label(learner)}")
            ax.set(xlabel=xlabel)
        _finish(row, table[table["task"] == task])
    return style.legend(axes)


def _finish(row: Sequence[Axes], rows: pd.DataFrame) -> None:
    """Draw the baselines into Axes of one task, which begin at 0."""
    for ax in row:
        for name, line in zip(BASELINES, ("--", ":"), strict=True):
            if pd.notna(mean := rows.loc[rows["algorithm"] == name, "return"].mean()):
                ax.axhline(mean, color="0.35", linestyle=line, linewidth=2, label=name)
        ax.set(ylabel="", ylim=(0, None))
    row[0].set_ylabel("episode return")


def parameter_curves(table: pd.DataFrame, means: pd.DataFrame | None = None) -> np.ndarray:
    """Plot returns over alpha and q, by rank on the paper's grids, with a line through the means.

    Return Axes (tasks, learners). SE is a line, with a band where `means` have intervals.

    Args:
        table: a dot a row, of a policy or of a dataset, and baselines.
        means: from `study.means`; by default those of the dots, without intervals.
    """
    keys = ["task", "objective", "parameter"]

    def draw(ax: Axes, rows: pd.DataFrame) -> None:
        own = rows.groupby(keys, dropna=False)["return"].mean().reset_index(name="mean")
        own = own.assign(low=np.nan, high=np.nan)
        if means is not None:
            own = means[means["task"].isin(rows["task"])]
        for family, shift in (("behavioral", -0.08), ("renyi", 0.08)):
            members = (table[table["objective"] == family] for table in (rows, own))
            _family_curve(ax, *members, shift=shift)
        for shannon in own[own["objective"] == "shannon"].itertuples():
            ax.axhline(shannon.mean, color="black", linestyle="-.", linewidth=2, label="SE")
            if np.isfinite(shannon.low):
                ax.axhspan(shannon.low, shannon.high, color="0.5", alpha=0.15, linewidth=0)
        ax.set_xticks(_RANKS, [f"{tick:g}" for tick in _TICKS])

    return _grid(table, draw, width=14, xlabel="α or q")


def _family_curve(ax: Axes, dots: pd.DataFrame, means: pd.DataFrame, *, shift: float) -> None:
    """Plot the dots and means of one objective over the ranks of its parameter."""
    if means.empty:
        return
    objective, mean = means["objective"].iloc[0], means["mean"]
    look, color = style.look(objective), style.objective_color(objective)
    line = {"color": color, "marker": look.marker, "markersize": 9, "linewidth": 3}
    reach = np.nan_to_num([mean - means["low"], means["high"] - mean])
    x, of_dots = (shift + np.interp(t["parameter"], _TICKS, _RANKS) for t in (means, dots))
    label = f"{look.label}, {look.symbol}"
    ax.errorbar(x, mean, yerr=reach, elinewidth=2, capsize=4, label=label, **line)
    ax.scatter(of_dots, dots["return"], **_DOTS)


def _title(task: str) -> str:
    return task.replace("_", " ").capitalize()


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
    """Plot how far a best recipe is ahead of another, a panel a task; orange leaves zero out.

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
    """Plot a dot a dataset, its return over its coverage, a panel a task. Return the Axes.

    Args:
        table: from `study.paired`; variants are left out.
        baselines: rows of doing nothing and of random actions.
    """
    table = table[table["variant"] == ""]
    tasks = table["task"].unique()
    _, axes = plt.subplots(1, len(tasks), figsize=(4.3 * len(tasks) + 2.5, 4.6), squeeze=False)
    dot = {"markersize": 11, "markeredgecolor": "black", "markeredgewidth": 0.6}
    for ax, task in zip(axes[0], tasks, strict=True):
        for row in table[table["task"] == task].itertuples():
            look = style.look(row.objective)
            color = style.objective_color(row.objective, row.parameter)
            label = look.label + (f", darker with {look.symbol}" if look.symbol else "")
            ax.plot(row.other, row.value, look.marker, color=color, **dot, label=label)
        ax.set(title=_title(task), xlabel="volumetric coverage")
        _finish([ax], baselines[baselines["task"] == task])
    return style.legend(axes)[0]


def labels(table: pd.DataFrame) -> Axes:
    """Plot what every task would have paid for every episode of every dataset, a dot an episode.

    `table` has a row an episode and task: `dataset`, `objective`, `parameter`, `task`, `return`.
    """
    numbers = ["parameter", "return"]
    table = checked(table, names=["dataset", "task"], numbers=numbers, others=["objective"])
    table = _labelled(table)
    _, ax = plt.subplots(figsize=(9, 5))
    look = style.of(table)
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
    keys = ["task", "objective"]
    rows = once(checked(rows, others=[*keys, *numbers]), keys, numbers)
    order = [name for name in style.LOOKS if name in rows["objective"].unique()]
    wide = rows.pivot(index="task", columns="objective", values=numbers)
    wide = wide.reindex(rows["task"].unique())[[(n, each) for n in numbers for each in order]]
    wide = wide.rename(columns=lambda name: style.LOOKS[name].label, level=1)
    styled = wide.style.format("{:.0f}", na_rep="")
    for name in numbers[:3]:
        styled = styled.highlight_max(axis=1, subset=[name], props="font-weight: bold")
    return styled
