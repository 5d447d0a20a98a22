"""Figures of the theory: estimators over the number of samples, rewards over the distance."""

from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from numpy.typing import NDArray

from belib.coverage.states import StateMap
from belib.figures import style
from belib.figures.style import ACCENT, REWARD_COLORS
from belib.rewards import behavioral_reward, behavioral_reward_exact, peak_distance, shannon_reward
from belib.weighting import prelec_beta

_DISTANCE = np.geomspace(1e-2, 1e3, 400)


def over_size(table: pd.DataFrame, y: str, ylabel: str) -> np.ndarray:
    """Plot mean and sd of the column `y` of each `estimator` over `n`: one Axes per `alpha`.

    The axis of `value` begins at 0, with a line at `truth`; that of other columns is logarithmic.
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


def rewards(paid: Mapping[str, Callable], objective: str, parameters: Sequence[float]) -> NDArray:
    """Plot functions of (distance, parameter) on log axes, SE dotted: one Axes per title."""
    shannon, lines = {("shannon", None): shannon_reward(_DISTANCE)}, {}
    for title, reward in paid.items():
        lines[title] = {(objective, p): reward(_DISTANCE, p) for p in parameters} | shannon
    limits = {"xscale": "log", "yscale": "log", "xlim": (0.01, 1000), "ylim": (1e-5, 1e4)}
    return style.curves(_DISTANCE, lines, xlabel="distance R", ylabel="reward", **limits)


def surface(alphas: tuple[float, float], n_outcomes: int) -> Axes:
    """Plot the reward of (distance, alpha) from one alpha to another, and its peak in orange."""
    _, ax = plt.subplots(figsize=(10, 5.5))
    alpha = np.geomspace(*alphas, 200)
    pairs = [{"alpha": a, "beta": prelec_beta(a, n_outcomes)} for a in alpha]
    reward = np.clip([behavioral_reward(_DISTANCE, **pair) for pair in pairs], 1e-6, None)
    image = ax.pcolormesh(_DISTANCE, alpha, reward, norm=LogNorm(1e-6, 1e4), cmap=REWARD_COLORS)
    lines = ax.contour(_DISTANCE, alpha, reward, [1e-4, 0.01, 1, 100], colors="k", linewidths=1)
    ax.clabel(lines, fmt="%g", fontsize=11)
    ax.plot([peak_distance(**pair) for pair in pairs], alpha, color=ACCENT, linewidth=4)
    ax.axhline(1, color="black", linestyle=":")
    ax.set(xscale="log", yscale="log", xlim=(0.01, 1000), xlabel="distance R", ylabel="α")
    ax.set_yticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    ax.minorticks_off()
    ax.figure.colorbar(image, label="reward", extend="both")
    return ax


def scales(paid: Mapping[tuple[str, float | None], NDArray]) -> Axes:
    """Plot two rewards of each (objective, parameter); the second one's marker is larger."""
    _, ax = plt.subplots(figsize=(12, 5))
    for recipe, ends in paid.items():
        color, marker = style.objective_color(*recipe), style.look(recipe[0]).marker
        x = [style.objective_label(*recipe).replace(" = ", "\n")] * 2
        ax.plot(x, ends, color=color, linewidth=5, alpha=0.6)
        ax.scatter(x, ends, (64, 196), color=color, marker=marker, zorder=2)
    ax.set(yscale="log", ylabel="reward")
    return ax


def exact_and_simplified(typical: Mapping[int, float], n_outcomes: int, *, k: int) -> NDArray:
    """Plot the percentage by which the reward rises with 1 % more distance, over alpha.

    `typical` maps d to a distance; each d has an Axes with the exact reward (of 1,024 states) and
    the paper's simplified one. Beta is conditioned on M = `n_outcomes`.
    """
    axes, alphas = style.panels(len(typical), 5.4, 5, sharey=True), np.geomspace(0.1, 5, 150)
    pairs = [{"alpha": alpha, "beta": prelec_beta(alpha, n_outcomes)} for alpha in alphas]
    for ax, (d, distance) in zip(axes, typical.items(), strict=True):
        r = distance * np.array([1 - 1e-4, 1 + 1e-4])
        exact = [behavioral_reward_exact(r, k=k, n=1024, d=d, **pair).log for pair in pairs]
        simplified = [np.log(behavioral_reward(r, **pair)) for pair in pairs]
        for logs, name, look in ((exact, "exact", "-"), (simplified, "simplified", "--")):
            ax.plot(alphas, np.diff(logs) / np.diff(np.log(r)), look, label=name)
        ax.axhspan(-1e6, 0, color="0.93", zorder=0)
        ax.set(xlabel="α", title=f"d = {d}", ylim=(-1e6, 1e4))
        ax.set_yscale("symlog", linthresh=1)
        ax.set_yticks([-1e4, -100, -1, 0, 1, 100], ["−10⁴", "−100", "−1", "0", "1", "100"])
    axes[0].set_ylabel("% of reward\nper % of distance")
    axes[0].text(0.1, -2e5, "novelty is punished", color="0.35", fontsize=13)
    return style.legend(axes)


def on_states(states: StateMap, alphas: Sequence[float], n_outcomes: int) -> NDArray:
    """Plot states in the colour of reward / highest, the best-paid tenth ringed, per alpha."""
    axes, tenth = style.panels(len(alphas), 5.4, 5), slice(-(len(states.distance) // 10), None)
    for ax, alpha in zip(axes, alphas, strict=True):
        beta = prelec_beta(alpha, n_outcomes)
        reward = behavioral_reward(states.distance, alpha=alpha, beta=beta)
        order = np.argsort(reward)  # the best paid on top
        position, reward = states.position[order].T, reward[order]
        ax.scatter(*position, s=14, c=reward / reward[-1], cmap=REWARD_COLORS, vmin=0, vmax=1)
        ax.scatter(*position[:, tenth], s=70, facecolors="none", edgecolors=ACCENT, linewidths=1.5)
        title = f"α = {alpha:g}: top tenth earns {reward[tenth].sum() / reward.sum():.0%}"
        ax.set(title=title, xlabel="first component", xticks=[], yticks=[])
    axes[0].set_ylabel("second component")
    axes[0].figure.colorbar(axes[0].collections[0], ax=list(axes), label="reward / highest")
    return axes
