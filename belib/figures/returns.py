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

from belib.figures import style
from belib.results import BASELINES, evaluations, scores
from belib.statistics import MARGIN

_DOTS = {"color": "white", "edgecolor": "black", "linewidth": 0.8, "s": 20, "zorder": 3}
_TURNED = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}
_LINES: dict[str, tuple] = dict(zip(BASELINES, (("0.35", "--"), ("0.35", ":")), strict=True))
_LINES["trained online"] = ("tab:green", ":")


def returns(table: pd.DataFrame, online: Mapping[str, float] = {}) -> np.ndarray:
    """Plot final returns: one bar per dataset, with one standard deviation over seeds, and dots.

    Datasets of one recipe stand side by side over its name. Return Axes (tasks, learners). `table`
    has baselines, too; `online` is the return of a policy trained online, for each task.
    """
    trained = {"algorithm": "trained online", "dataset": "none"}
    trained = [{"task": task, "return": level, **trained} for task, level in online.items()]
    table = style.labelled(pd.concat([scores(table), pd.DataFrame(trained)]))
    look, codes = style.of(table, "label"), table["label"].cat.codes
    places = codes.groupby(table["recipe"]).agg(["min", "max"]).sort_values("min")

    def draw(rows: pd.DataFrame, ax: Axes) -> None:
        bars = {"errorbar": "sd", "err_kws": {"color": "0.5", "linewidth": 1.5}, "saturation": 1}
        sns.barplot(rows, x="label", y="return", ax=ax, dodge=False, legend=False, **look, **bars)
        ax.scatter(rows["label"].cat.codes, rows["return"], **_DOTS)
        ax.set_xticks(places.mean(axis=1), places.index, **_TURNED)
        ax.set_xticks(places["max"] + 0.5, minor=True)  # between recipes
        ax.tick_params(axis="x", length=0)

    return _grid(table, draw, width=min(20, 3 + 0.35 * len(look["hue_order"])))


def learning_curves(table: pd.DataFrame) -> np.ndarray:
    """Plot returns over updates: one thin line per seed, a thick one for their mean.

    Return Axes (tasks, learners). `table` has all evaluations, and baselines.
    """
    table = style.labelled(evaluations(table, "objective", "parameter", "variant"))
    look = style.of(table, "label", lines=True)

    def draw(rows: pd.DataFrame, ax: Axes) -> None:
        lines = {"data": rows, "x": "step", "y": "return", "ax": ax, **look}
        sns.lineplot(**lines, units="seed", estimator=None, linewidth=1, alpha=0.7, legend=False)
        sns.lineplot(**lines, errorbar=None, linewidth=4, markersize=9)

    return _grid(table, draw, width=6, xlabel="updates")


def _grid(
    table: pd.DataFrame, draw: Callable[..., Any], *, width: float = 9.2, xlabel: str = ""
) -> np.ndarray:
    """Return Axes (tasks, learners) with what `draw` makes of their rows, and lines of the rest."""
    learnt = table[~table["algorithm"].isin(_LINES)]
    tasks, learners = (list(learnt[name].unique()) for name in ("task", "algorithm"))
    shape, size = (len(tasks), len(learners)), (len(learners) * width + 2.5, 3.6 * len(tasks) + 1)
    _, axes = plt.subplots(*shape, sharex="col", sharey="row", squeeze=False, figsize=size)
    for row, (task, mine) in zip(axes, learnt.groupby("task", sort=False), strict=True):
        levels = table[table["task"] == task].groupby("algorithm")["return"].mean()
        for ax, learner in zip(row, learners, strict=True):
            draw(mine[mine["algorithm"] == learner], ax=ax)
            for name, (color, line) in _LINES.items():
                if name in levels:
                    ax.axhline(levels[name], color=color, linestyle=line, linewidth=2, label=name)
            title = f"{task.replace('_', ' ')}, {learner.upper().replace('_', '+')}"
            ax.set(title=title, xlabel=xlabel, ylabel="episode return")
            style.from_zero(ax)
            ax.label_outer()
        if mine["return"].min() >= 0:  # intervals may reach below 0, and far above returns
            most = 1.5 * max(mine["return"].max(), levels.max())
            row[0].set_ylim(0, min(most, row[0].get_ylim()[1]))
    return style.legend(axes)


def datasets(table: pd.DataFrame, means: pd.DataFrame, baselines: pd.DataFrame) -> np.ndarray:
    """Plot one dot per dataset over its recipe; to their left the mean with its interval.

    Return Axes (tasks, learners). `table` has returns of `study.units`; `means` are theirs.
    """
    table = table.merge(means[["measure", "task", "recipe", "mean", "low", "high"]])
    table = table.rename(columns={"value": "return", "measure": "algorithm"})
    look, line = style.of(table), {"color": "black", "linewidth": 2, "markersize": 12}
    names = look["hue_order"]

    def draw(rows: pd.DataFrame, ax: Axes) -> None:
        dots = {"x": "recipe", "y": "return", "order": names, "legend": False, "size": 4}
        sns.swarmplot(rows, ax=ax, **dots, **look)
        mean, low, high = rows.groupby("recipe")[["mean", "low", "high"]].first().to_numpy().T
        x = np.array([names.index(name) for name in sorted({*rows["recipe"]})]) - 0.4
        ax.errorbar(x, mean, yerr=np.nan_to_num([mean - low, high - mean]), fmt="_", **line)
        ax.set_xticks(range(len(names)), names, **_TURNED)

    return _grid(pd.concat([table, baselines]), draw, width=3 + 0.8 * len(names))


def comparisons(table: pd.DataFrame) -> np.ndarray:
    """Plot differences of arms, `study.compared`, in standard deviations of datasets.

    Return Axes, one per task, from -2 to 2; a mean beyond is written. Intervals are of 95 % and,
    thick, 90 %; the grey band is `MARGIN`. Differences are orange, equivalence is blue.
    """
    groups, height = table.groupby("task", sort=False), 1.8 + 0.6 * table["pair"].nunique()
    axes = style.panels(len(groups), max(5, 11 - 2 * len(groups)), height, sharex=True, sharey=True)
    colors = {"equivalent": "tab:blue", "undecided": "0.35", "nothing learnt": "0.35"}
    above = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "ha": "right"}
    for ax, (task, rows) in zip(axes, groups, strict=True):
        for row in rows.itertuples():
            place, color = (row.effect, row.pair), colors.get(row.verdict, style.ACCENT)
            ends = ("none", 2, row.high - row.low), ("o", 6, row.high_90 - row.low_90)
            for marker, width, reach in ends:
                ax.errorbar(*place, xerr=reach / 2 / row.sd, fmt=marker, c=color, ms=11, lw=width)
            far = f", {row.effect:+.1f} sd {'←→'[row.effect > 0]}" * (abs(row.effect) > 2)
            said = {"text": row.verdict + far, "fontsize": 12, "color": color}
            ax.annotate(xy=(1, row.pair), xytext=(0, 9), **above, **said)
        ax.axvline(0, color="black", linewidth=1.5)
        ax.axvspan(-MARGIN, MARGIN, color="0.9", linewidth=0)
        sides = "← second better   (sd)   first better →"
        ax.set(title=task.replace("_", " "), xlabel=sides, xlim=(-2, 2))
        ax.margins(y=0.2)  # for the topmost verdict
        ax.grid(axis="x")
    axes[0].invert_yaxis()  # the first pair is on top
    return axes


def labels(table: pd.DataFrame) -> Axes:
    """Plot what every task would have paid for every episode of every dataset: one dot each.

    `table` comes from `datasets.task_returns`.
    """
    table, (_, ax) = style.labelled(table), plt.subplots(figsize=(11, 5))
    look = {"dodge": True, "size": 5, "alpha": 0.7, **style.of(table, "label")}
    sns.stripplot(table, x="task", y="return", ax=ax, **look)
    ax.set(xlabel="", ylabel="return of an episode")
    style.from_zero(ax)
    return style.legend(ax)
