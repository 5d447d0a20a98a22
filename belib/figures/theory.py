"""Figures of the theory: weightings, entropies of pmfs, estimators."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from belib.entropy import behavioral_entropy, renyi_entropy, shannon_entropy
from belib.figures import style
from belib.weighting import prelec_beta


def bernoulli_entropies(alphas: Sequence[float], qs: Sequence[float]) -> np.ndarray:
    """Plot the entropies of a Bernoulli trial over p (figure 2): behavioral, and Renyi."""
    p = np.linspace(0, 1, 401)
    pmf = np.stack([p, 1 - p], -1)
    shannon = {("shannon", None): shannon_entropy(pmf)}
    behavioral = {("behavioral", a): behavioral_entropy(pmf, alpha=a) for a in alphas} | shannon
    renyi = {("renyi", q): renyi_entropy(pmf, q=q) for q in qs} | shannon
    lines = {"Behavioral entropy, β for M = 2": behavioral, "Rényi entropy": renyi}
    axes = style.curves(p, lines, xlabel="p", ylabel="entropy (nats)", ylim=(0, None))
    axes[1].plot(p, renyi_entropy(pmf, q=np.inf), "--", color="darkred", label="RE q → ∞")
    return style.legend(axes)


def weighting_slopes(alphas: Sequence[float], n_outcomes: int) -> np.ndarray:
    """Plot the slope of Prelec's weighting near p = 0 and 1, which theorem 1 assumes is bounded."""
    distance, lines = np.logspace(-12, -0.5, 300), {}
    for end, u in (("p = 0", -np.log(distance)), ("p = 1", -np.log1p(-distance))):  # u = -log p
        lines[f"towards {end}"] = slopes = {}
        for alpha in alphas:
            beta = prelec_beta(alpha, n_outcomes)
            slope = alpha * beta * u ** (alpha - 1) * np.exp(u - beta * u**alpha)
            slopes["behavioral", alpha] = slope
    labels = {"xlabel": "distance to it", "ylabel": "slope of w", "ylim": (1e-6, 1e9)}
    return style.curves(distance, lines, xscale="log", yscale="log", **labels)


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
