"""Figures of the intrinsic rewards: curves over the distance, their scale, a dataset's map."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from numpy.typing import NDArray

from belib.coverage.maps import StateMap
from belib.figures import style
from belib.figures.style import ACCENT, REWARD_COLORS, SHANNON
from belib.rewards import behavioral_reward, shannon_reward
from belib.weighting import prelec_beta


def curves(alphas: Sequence[float], n_outcomes: int) -> NDArray:
    """Plot the reward over the distance for all alphas of a range, SE dotted: two Axes.

    The paper's appendix figure ("BE Reward Function Visualization"), beta conditioned on
    M = `n_outcomes`. Left the reward itself, cut off at 10; right its logarithm.
    """
    _, axes = plt.subplots(1, 2, figsize=(14, 5.5), sharex=True)
    distance = np.geomspace(1e-2, 1e3, 400)
    region = np.geomspace(min(alphas), max(alphas), 100)
    rewards = [_reward(distance, alpha, n_outcomes) for alpha in region]
    low, high = np.min(rewards, 0), np.max(rewards, 0)
    for ax in axes:
        lightest = style.objective_color("behavioral", 0.2)
        ax.fill_between(distance, low, high, color=lightest, alpha=0.4)
        style.curves(
            ax, distance, "behavioral", alphas, lambda alpha: _reward(distance, alpha, n_outcomes)
        )
        ax.plot(distance, shannon_reward(distance), label="SE", **SHANNON)
        ax.set(xscale="log", xlabel="distance R", xlim=(distance[0], distance[-1]))
    axes[0].set(ylabel="reward", ylim=(0, 10), title="linear")
    axes[1].set(yscale="log", ylim=(1e-5, 1e4), title="logarithmic")
    style.legend(axes)
    return axes


def surface(alphas: tuple[float, float], n_outcomes: int) -> Axes:
    """Plot the reward as a function of (distance, alpha), and the peak beyond which it falls.

    Args:
        alphas: lowest and highest.
        n_outcomes: M, on which beta is conditioned.
    """
    _, ax = plt.subplots(figsize=(10, 5.5))
    distance, alpha = np.geomspace(1e-2, 1e3, 400), np.geomspace(*alphas, 200)
    reward = np.array([_reward(distance, a, n_outcomes) for a in alpha]).clip(1e-6, None)
    shades = {"norm": LogNorm(1e-6, 1e4), "cmap": REWARD_COLORS, "rasterized": True}
    image = ax.pcolormesh(distance, alpha, reward, **shades)
    levels = 10.0 ** np.arange(-4, 3, 2)
    lines = ax.contour(distance, alpha, reward, levels, colors="black", linewidths=1)
    ax.clabel(lines, fmt=lambda level: f"{level:g}", fontsize=11)
    peak = reward.argmax(1)
    inside = (peak < len(distance) - 1) & (alpha > 1)
    ax.plot(distance[peak[inside]], alpha[inside], color=ACCENT, linewidth=4)
    ax.axhline(1, color="black", linestyle=":")
    ax.set(xscale="log", yscale="log", xlabel="distance R", ylabel="α")
    ax.set_yticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    ax.minorticks_off()
    ax.figure.colorbar(image, label="reward", extend="both")
    return ax


def panels(table: pd.DataFrame, *, limits: tuple[float, float] = (1e-5, 1e4)) -> NDArray:
    """Plot rewards over the distance, both logarithmic: Axes for each panel, SE dotted in each.

    Args:
        table: columns `panel`, `objective`, `parameter`, `distance`, `reward`.
        limits: of the reward's axis.
    """
    table = table.assign(recipe=style.recipes(table))
    axes = _row(table["panel"].nunique())
    for ax, (title, rows) in zip(axes, table.groupby("panel", sort=False), strict=True):
        drawn = {"x": "distance", "y": "reward", "estimator": None, "ax": ax}
        sns.lineplot(rows, **drawn, **style.of(rows))
        distance = np.sort(rows["distance"].unique())
        ax.plot(distance, shannon_reward(distance), label="SE", **SHANNON)
        ax.set(xscale="log", yscale="log", xlabel="distance R", title=title, ylim=limits)
    style.legend(axes)
    return axes


def scales(table: pd.DataFrame) -> Axes:
    """Plot from what to what each objective pays between two distances, on a logarithmic axis.

    Args:
        table: columns `objective`, `parameter`, `low`, `high`, in the order of the figure.
    """
    _, ax = plt.subplots(figsize=(12, 5))
    for place, row in enumerate(table.itertuples()):
        color = style.objective_color(row.objective, row.parameter)
        ax.plot([place, place], [row.low, row.high], color=color, linewidth=5, alpha=0.6)
        for value, size in ((row.high, 14), (row.low, 8)):
            marker = style.look(row.objective).marker
            ax.plot(place, value, marker, color=color, markersize=size)
    ax.set_xticks(range(len(table)), style.recipes(table).str.replace(" = ", "\n"))
    ax.set(yscale="log", ylabel="reward")
    return ax


def exact_and_simplified(table: pd.DataFrame) -> NDArray:
    """Plot by what percentage the reward rises with 1 % more distance: Axes for each d.

    Args:
        table: columns `d`, `alpha`, and d log(reward) / d log(distance) before and after the
            paper's simplifications: `exact`, `simplified`.
    """
    axes = _row(table["d"].nunique())
    for ax, (d, rows) in zip(axes, table.groupby("d"), strict=True):
        ax.axhspan(-1e6, 0, color="0.93", zorder=0)
        blue = style.objective_color("behavioral", 3.0)
        ax.plot(rows["alpha"], rows["exact"], color=blue, label="exact")
        ax.plot(rows["alpha"], rows["simplified"], "--", color=ACCENT, label="simplified")
        ax.set(xlabel="α", title=f"d = {d}", ylim=(-1e6, 1e4))
        ax.set_yscale("symlog", linthresh=1)
        ax.set_yticks([-1e4, -100, -1, 0, 1, 100], ["−10⁴", "−100", "−1", "0", "1", "100"])
    axes[0].set_ylabel("% of reward\nper % of distance")
    axes[0].text(0.1, -2e5, "novelty is punished", color="0.35", fontsize=13)
    style.legend(axes)
    return axes


def on_states(states: StateMap, alphas: Sequence[float], n_outcomes: int) -> NDArray:
    """Plot a dataset's states in the colour of what each would earn: Axes for each alpha.

    The colour is the share of the panel's highest reward; the best paid tenth is ringed.
    """
    axes = _row(len(alphas))
    for ax, alpha in zip(axes, alphas, strict=True):
        reward = _reward(states.distance, alpha, n_outcomes)
        order = np.argsort(reward)  # the best paid on top
        shades = {"c": reward[order] / reward.max(), "cmap": REWARD_COLORS, "vmin": 0, "vmax": 1}
        points = ax.scatter(*states.position[order].T, s=14, **shades)
        best = states.position[reward >= np.quantile(reward, 0.9)].T
        ax.scatter(*best, s=70, facecolors="none", edgecolors=ACCENT, linewidths=1.5)
        top = np.sort(reward)[-len(reward) // 10 :].sum() / reward.sum()
        ax.set(title=f"α = {alpha:g}: top tenth earns {top:.0%}", xticks=[], yticks=[])
        ax.set(xlabel="first component")
    axes[0].set_ylabel("second component")
    axes[0].figure.colorbar(points, ax=list(axes), label="reward / highest")
    return axes


def _reward(distance: NDArray, alpha: float, n_outcomes: int) -> NDArray:
    """Return the reward with beta conditioned on M = `n_outcomes`."""
    return behavioral_reward(distance, alpha=alpha, beta=prelec_beta(alpha, n_outcomes))


def _row(count: int) -> NDArray:
    """Return Axes side by side with equal limits, and room for a legend."""
    size = (4.8 * count + 2, 5)
    return plt.subplots(1, count, figsize=size, sharex=True, sharey=True, squeeze=False)[1][0]
