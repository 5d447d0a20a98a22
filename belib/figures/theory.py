"""Figures of the estimators."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from belib.figures import style


def over_size(table: pd.DataFrame, y: str, ylabel: str) -> np.ndarray:
    """Plot mean and sd of the column `y` of each `estimator` over `n`: one Axes per `alpha`.

    Estimates, `value`, begin at 0 beside their `truth`; other columns have a logarithmic axis.
    """
    groups, ticks = table.groupby("alpha"), np.unique(table["n"])
    axes, ticks = style.panels(len(groups), 7, 5, sharey=True), ticks[:: -(-len(ticks) // 4)]
    drawn = {"hue": "estimator", "style": "estimator", "palette": "colorblind", "markers": True}
    for ax, (alpha, rows) in zip(axes, groups, strict=True):
        sns.lineplot(rows, x="n", y=y, ax=ax, errorbar="sd", **drawn)
        ax.set(xscale="log", xlabel="samples n", ylabel=ylabel, title=f"α = {alpha:g}")
        ax.set_xticks(ticks, [f"{n:,}" for n in ticks])
        ax.minorticks_off()
        if y == "value":
            ax.axhline(rows["truth"].iloc[0], label="the true entropy", **style.SHANNON)
            style.from_zero(ax)
        else:
            ax.set_yscale("log")
    return style.legend(axes)


def estimator_bars(table: pd.DataFrame) -> Axes:
    """Plot `value` / `truth`: one bar per `case` and `estimator`, one dot per repetition."""
    table = table.assign(ratio=table["value"] / table["truth"])
    _, ax = plt.subplots(figsize=(11, 5))
    shared = {"x": "case", "y": "ratio", "hue": "estimator", "ax": ax}
    sns.barplot(table, errorbar=None, palette="pastel", **shared)
    sns.stripplot(table, dodge=True, size=4, palette="dark:black", legend=False, **shared)
    ax.axhline(1, **style.SHANNON)
    ax.set(xlabel="", ylabel="estimate / truth", ylim=(0, None))
    return style.legend(ax)
