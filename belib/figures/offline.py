"""Figures of offline returns: bars with every seed, baselines beside them, one style for all.

All take rows of `results.COLUMNS`, final or best ones where nothing else is said, with the rows of
`results.BASELINES`, and draw a grid: a row of panels a task, a column a learner. In all of them a
bar is a mean, its whisker one standard deviation (n - 1), a dot one policy.
"""

from collections.abc import Callable, Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from pandas.io.formats.style import Styler

from belib.figures.style import (
    ALPHAS,
    OUTSIDE,
    QS,
    draw_baselines,
    learner_label,
    objective_color,
    objective_label,
    objective_marker,
    objective_order,
    task_label,
)
from belib.results import BASELINES, MEMBER, evaluations
from belib.tables import checked, once

_FAMILIES = {"shannon": "SE", "behavioral": "BE", "renyi": "RE", "rnd": "RND", "smm": "SMM"}


def returns(table: pd.DataFrame, online: Mapping[str, float] | None = None) -> np.ndarray:
    """A bar a dataset, in the order of objectives; Axes (tasks, learners).

    Args:
        table: a row a policy, and baselines.
        online: for each task the return of a policy trained online, drawn as a dotted line.
    """
    return _bars(_policies(table), _datasets, online)


def averages(table: pd.DataFrame, online: Mapping[str, float] | None = None) -> np.ndarray:
    """A bar an objective, the mean over its datasets; a dot a dataset's mean over seeds."""
    keys = ["task", "algorithm", "dataset", "objective", "parameter"]
    groups = _policies(table).groupby(keys, dropna=False, sort=False)
    means = groups["return"].mean().reset_index()
    return _bars(means, _families, online)


def ablation(conditions: Mapping[str, pd.DataFrame]) -> np.ndarray:
    """A bar a condition, such as `500K steps, 100K updates`: what more data or updates change.

    Args:
        conditions: for each label its policies, a row each; baselines may stand in any of them.
    """
    tables = [_policies(rows).assign(condition=label) for label, rows in conditions.items()]
    table = pd.concat(tables, ignore_index=True)
    shades = dict(zip(conditions, sns.color_palette("Greys", len(conditions) + 2)[2:], strict=True))
    bars = lambda rows: [  # noqa: E731
        (label, shades[label], rows.loc[rows["condition"] == label, "return"])
        for label in conditions
    ]
    return _bars(table, bars)


def _bars(
    table: pd.DataFrame,
    bars: Callable[[pd.DataFrame], list[tuple]],
    online: Mapping[str, float] | None = None,
) -> np.ndarray:
    """A grid of the bars (label, colour, returns) that `bars` makes of a panel's rows."""
    places = {label: place for place, (label, *_) in enumerate(bars(_learnt(table)))}
    turned = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"} if len(places) > 2 else {}

    def draw(ax: Axes, rows: pd.DataFrame) -> None:
        for label, color, values in bars(rows):
            _bar(ax, places[label], values.dropna().to_numpy(), color)
        ax.set_xticks(range(len(places)), places, **turned)

    return _grid(table, draw, width=len(places), online=online)


def _grid(
    table: pd.DataFrame,
    draw: Callable[[Axes, pd.DataFrame], None],
    *,
    width: int,
    xlabel: str = "",
    online: Mapping[str, float] | None = None,
) -> np.ndarray:
    """Axes (tasks, learners), each with what `draw` makes of its rows, baselines, one legend."""
    learnt, online = _learnt(table), online or {}
    tasks, learners = (list(learnt[name].unique()) for name in ("task", "algorithm"))
    size = (len(learners) * max(4.5, 1.5 + 0.55 * width) + 2.5, 3.6 * len(tasks) + 1)
    options = {"sharey": "row", "sharex": "col", "squeeze": False, "figsize": size}
    _, axes = plt.subplots(len(tasks), len(learners), **options)
    for row, task in zip(axes, tasks, strict=True):
        for ax, learner in zip(row, learners, strict=True):
            draw(ax, learnt[(learnt["task"] == task) & (learnt["algorithm"] == learner)])
            draw_baselines(ax, table[table["task"] == task])
            if task in online:
                ax.axhline(online[task], color="tab:green", linestyle=":", label="trained online")
            ax.set_title(f"{task_label(task)}, {learner_label(learner)}")
        row[0].set(ylabel="episode return", ylim=(0, None))
    for ax in axes[-1]:
        ax.set_xlabel(xlabel)
    named = [ax.get_legend_handles_labels() for ax in axes[:, -1]]
    entries = {
        label: line for lines, names in named for line, label in zip(lines, names, strict=True)
    }
    axes[0, -1].legend(entries.values(), entries.keys(), **OUTSIDE)
    return axes


def _policies(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of `results.evaluations`; ValueError where they are not a row a policy."""
    table = evaluations(table, "objective", "parameter")
    several = table[table.duplicated(MEMBER)]
    if len(several):
        policy = ", ".join(map(str, several[MEMBER].iloc[0]))
        rule = "a row a policy, as results.final and results.best give"
        raise ValueError(f"table must have {rule}, got several of {policy}")
    return table


def _learnt(table: pd.DataFrame) -> pd.DataFrame:
    return table[~table["algorithm"].isin(BASELINES)]


def _datasets(rows: pd.DataFrame) -> list[tuple]:
    groups = [group for _, group in rows.groupby("dataset", sort=False)]
    groups.sort(key=lambda group: objective_order(*_objective(group)))
    labels = [_label(group) for group in groups]
    names = [group["dataset"].iloc[0] for group in groups]
    labels = [
        f"{a} ({b})" if labels.count(a) > 1 else a for a, b in zip(labels, names, strict=True)
    ]
    return [
        (label, objective_color(*_objective(group)), group["return"])
        for label, group in zip(labels, groups, strict=True)
    ]


def _families(rows: pd.DataFrame) -> list[tuple]:
    shown = {"behavioral": 1.5, "renyi": 0.9}  # the colour of a family: its middle one
    groups = {name: group["return"] for name, group in rows.groupby("objective")}
    return [
        (label, objective_color(name, shown.get(name)), groups[name])
        for name, label in {**_FAMILIES, "random": "random"}.items()
        if name in groups
    ]


def _bar(ax: Axes, place: float, values: np.ndarray, color: tuple) -> None:
    if not len(values):
        return
    sd = values.std(ddof=1) if len(values) > 1 else 0.0
    ax.bar(place, values.mean(), 0.7, color=color, yerr=sd, error_kw={"ecolor": "0.4"})
    spread = np.linspace(-0.2, 0.2, len(values)) if len(values) > 1 else np.zeros(1)
    dots = {"color": "white", "edgecolor": "black", "linewidth": 1, "zorder": 3, "s": 30}
    ax.scatter(place + spread, values, **dots)


def learning_curves(table: pd.DataFrame) -> np.ndarray:
    """Returns over updates, a panel a task and learner: thin lines seeds, thick ones their mean.

    Args:
        table: all evaluations, with baselines.
    """
    table = evaluations(table, "objective", "parameter")
    return _grid(table, _curves, width=6, xlabel="updates")


def _curves(ax: Axes, rows: pd.DataFrame) -> None:
    groups = [group for _, group in rows.groupby("dataset", sort=False)]
    for group in sorted(groups, key=lambda each: objective_order(*_objective(each))):
        _curve(ax, group)


def _curve(ax: Axes, rows: pd.DataFrame) -> None:
    """A dataset's seeds and their mean."""
    objective = _objective(rows)
    style = {"color": objective_color(*objective), "marker": objective_marker(objective[0])}
    curves = rows.pivot(index="step", columns="seed", values="return")
    ax.plot(curves.index, curves, color=style["color"], linewidth=1, alpha=0.7)
    mean = curves.mean(axis=1)
    ax.plot(curves.index, mean, linewidth=4, markersize=9, label=_label(rows), **style)


def sensitivity(table: pd.DataFrame) -> np.ndarray:
    """Returns over alpha and q, on the paper's grid by rank; Shannon entropy as a line.

    A family's line joins means over seeds, dots are seeds; Axes (tasks, learners).
    """
    return _grid(_policies(table), _families_over_parameters, width=8, xlabel="α or q")


def _families_over_parameters(ax: Axes, rows: pd.DataFrame) -> None:
    ticks = sorted({*ALPHAS, *QS})
    for family, (label, value) in {"behavioral": ("BE, α", 1.5), "renyi": ("RE, q", 0.9)}.items():
        own = rows[rows["objective"] == family]
        if len(own):
            color, marker = objective_color(family, value), objective_marker(family)
            place = lambda parameter: np.interp(parameter, ticks, range(len(ticks)))  # noqa: E731
            ax.scatter(place(own["parameter"]), own["return"], color=color, s=20, alpha=0.6)
            means = own.groupby("parameter")["return"].mean()
            style = {"color": color, "marker": marker, "linewidth": 3, "markersize": 9}
            ax.plot(place(means.index), means, label=label, **style)
    shannon = rows.loc[rows["objective"] == "shannon", "return"]
    if len(shannon):
        ax.axhline(shannon.mean(), color="black", linestyle="-.", linewidth=2, label="SE")
    ax.set_xticks(range(len(ticks)), [f"{tick:g}" for tick in ticks])


def labels(table: pd.DataFrame) -> Axes:
    """What each task would have paid for each episode of each dataset: a dot an episode.

    Args:
        table: columns `dataset`, `objective`, `parameter`, `task`, `return`, a row an episode and
            task.
    """
    numbers = ["parameter", "return"]
    table = checked(table, names=["dataset", "task"], numbers=numbers, others=["objective"])
    _, ax = plt.subplots(figsize=(9, 5))
    datasets = table.groupby("dataset", sort=False)
    palette = {name: objective_color(*_objective(rows)) for name, rows in datasets}
    options = {"dodge": True, "size": 5, "alpha": 0.7, "palette": palette}
    sns.stripplot(table, x="task", y="return", hue="dataset", ax=ax, **options)
    ax.set(xlabel="", ylabel="return of an episode", ylim=(0, None))
    sns.move_legend(ax, **OUTSIDE, title=None)
    return ax


def improvement(matrix: pd.DataFrame) -> Axes:
    """The matrix of `results.improvement`: the chance that a row's run beats a column's."""
    size = 1.2 * len(matrix) + 3
    _, ax = plt.subplots(figsize=(size + 1.5, size))
    options = {"vmin": 0, "vmax": 1, "center": 0.5, "cmap": "PRGn", "annot": True, "fmt": ".2f"}
    sns.heatmap(matrix, ax=ax, square=True, cbar_kws={"label": "P(row above column)"}, **options)
    ax.set(ylabel="this", xlabel="over this")
    ax.grid(False)
    ax.tick_params(length=0, rotation=0)
    plt.setp(ax.get_xticklabels(), rotation=30, ha="right", rotation_mode="anchor")
    return ax


def table_1(rows: pd.DataFrame) -> Styler:
    """`results.table_1` as the paper prints it, objectives across, with the means beside the best.

    The highest number of a line is bold, as there; it is not said to differ from the others.
    """
    numbers = ["best over everything", "mean of finals", "best mean", "policies"]
    rows = once(
        checked(rows, others=["task", "objective", *numbers]), ["task", "objective"], numbers
    )
    wide = rows.pivot(index="task", columns="objective", values=numbers)
    wide = wide.reindex(rows["task"].unique())
    order = [name for name in (*_FAMILIES, "random") if name in rows["objective"].unique()]
    wide = wide.reindex(columns=pd.MultiIndex.from_product([numbers, order]))
    wide = wide.rename(columns=_FAMILIES, level=1)
    styled = wide.style.format("{:.0f}", na_rep="")
    for name in numbers[:3]:
        styled = styled.highlight_max(axis=1, subset=[name], props="font-weight: bold")
    return styled


def _label(rows: pd.DataFrame) -> str:
    """`BE α = 0.5` of the rows of one dataset; its name where its objective is not known."""
    objective, parameter = _objective(rows)
    return rows["dataset"].iloc[0] if objective is None else objective_label(objective, parameter)


def _objective(rows: pd.DataFrame) -> tuple[str | None, float | None]:
    first = rows.iloc[0]
    objective = first["objective"] if isinstance(first["objective"], str) else None
    return objective, None if pd.isna(first["parameter"]) else first["parameter"]
