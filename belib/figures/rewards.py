"""Figures of the intrinsic rewards: curves over the distance, scales, maps of states."""

from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from numpy.typing import NDArray

from belib.coverage.maps import StateMap
from belib.figures import style
from belib.figures.style import ACCENT, REWARD_COLORS, SHANNON
from belib.rewards import behavioral_reward, behavioral_reward_exact, shannon_reward
from belib.weighting import prelec_beta

_DISTANCE = np.geomspace(1e-2, 1e3, 400)


def curves(alphas: Sequence[float], n_outcomes: int) -> NDArray:
    """Plot the reward over the distance for all alphas of a range, SE dotted: two Axes.

    The paper's appendix figure ("BE Reward Function Visualization"), beta conditioned on
    M = `n_outcomes`. The left axis is linear, cut off at 10; the right is logarithmic.
    """
    _, axes = plt.subplots(1, 2, figsize=(14, 5.5), sharex=True)
    region = np.geomspace(min(alphas), max(alphas), 100)
    rewards = [_reward(_DISTANCE, alpha, n_outcomes) for alpha in region]
    low, high = np.min(rewards, 0), np.max(rewards, 0)
    for ax in axes:
        lightest = style.objective_color("behavioral", 0.2)
        ax.fill_between(_DISTANCE, low, high, color=lightest, alpha=0.4)
        _plot(ax, "behavioral", alphas, lambda r, alpha: _reward(r, alpha, n_outcomes))
    axes[0].set(ylabel="reward", ylim=(0, 10), title="linear")
    axes[1].set(yscale="log", ylim=(1e-5, 1e4), title="logarithmic")
    return style.legend(axes)


def surface(alphas: tuple[float, float], n_outcomes: int) -> Axes:
    """Plot the reward of (distance, alpha) from one alpha to another, and its peak in orange.

    Beta is conditioned on M = `n_outcomes`.
    """
    _, ax = plt.subplots(figsize=(10, 5.5))
    alpha = np.geomspace(*alphas, 200)
    reward = np.array([_reward(_DISTANCE, a, n_outcomes) for a in alpha]).clip(1e-6, None)
    shades = {"norm": LogNorm(1e-6, 1e4), "cmap": REWARD_COLORS, "rasterized": True}
    image = ax.pcolormesh(_DISTANCE, alpha, reward, **shades)
    levels = 10.0 ** np.arange(-4, 3, 2)
    lines = ax.contour(_DISTANCE, alpha, reward, levels, colors="black", linewidths=1)
    ax.clabel(lines, fmt=lambda level: f"{level:g}", fontsize=11)
    peak = reward.argmax(1)
    inside = (peak < len(_DISTANCE) - 1) & (alpha > 1)
    ax.plot(_DISTANCE[peak[inside]], alpha[inside], color=ACCENT, linewidth=4)
    ax.axhline(1, color="black", linestyle=":")
    ax.set(xscale="log", yscale="log", xlabel="distance R", ylabel="α")
    ax.set_yticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    ax.minorticks_off()
    ax.figure.colorbar(image, label="reward", extend="both")
    return ax


def panels(rewards: Mapping[str, Callable], objective: str, parameters: Sequence[float]) -> NDArray:
    """Plot rewards over the distance, both logarithmic, SE dotted: one Axes per reward.

    `rewards` maps titles to functions of distances and the objective's parameter.
    """
    axes = _row(len(rewards))
    for ax, (title, reward) in zip(axes, rewards.items(), strict=True):
        _plot(ax, objective, parameters, reward)
        ax.set(yscale="log", ylim=(1e-5, 1e4), title=title)
    axes[0].set_ylabel("reward")
    return style.legend(axes)


def scales(paid: Mapping[tuple[str, float | None], NDArray]) -> Axes:
    """Plot the range of rewards of each (objective, parameter) on a logarithmic axis.

    `paid` has two rewards for each: at a short distance (small marker) and at a long one (large).
    """
    _, ax = plt.subplots(figsize=(12, 5))
    for place, (recipe, ends) in enumerate(paid.items()):
        color, marker = style.objective_color(*recipe), style.look(recipe[0]).marker
        ax.plot([place, place], ends, color=color, linewidth=5, alpha=0.6)
        for value, size in zip(ends, (8, 14), strict=True):
            ax.plot(place, value, marker, color=color, markersize=size)
    labels = [style.objective_label(*recipe).replace(" = ", "\n") for recipe in paid]
    ax.set_xticks(range(len(labels)), labels)
    ax.set(yscale="log", ylabel="reward")
    return ax


def exact_and_simplified(typical: Mapping[int, float], n_outcomes: int, *, k: int) -> NDArray:
    """Plot the percentage by which the reward rises with 1 % more distance, over alpha.

    `typical` maps dimensions d to distances; each d has an Axes with the exact reward (n = 1,024
    states) and the paper's simplified one. Beta is conditioned on M = `n_outcomes`.
    """
    axes, alphas = _row(len(typical)), np.geomspace(0.1, 5, 150)
    step = np.array([1 - 1e-4, 1 + 1e-4])
    for ax, (d, distance) in zip(axes, typical.items(), strict=True):
        r, betas = distance * step, [prelec_beta(alpha, n_outcomes) for alpha in alphas]
        pairs = [{"alpha": a, "beta": b} for a, b in zip(alphas, betas, strict=True)]
        exact = [behavioral_reward_exact(r, k=k, n=1024, d=d, **pair).log for pair in pairs]
        simplified = [np.log(behavioral_reward(r, **pair)) for pair in pairs]
        blue = style.objective_color("behavioral", 3.0)
        for logs, line, color in ((exact, "-", blue), (simplified, "--", ACCENT)):
            ax.plot(alphas, np.diff(logs)[:, 0] / np.diff(np.log(step)), line, color=color)
        ax.axhspan(-1e6, 0, color="0.93", zorder=0)
        ax.set(xlabel="α", title=f"d = {d}", ylim=(-1e6, 1e4))
        ax.set_yscale("symlog", linthresh=1)
        ax.set_yticks([-1e4, -100, -1, 0, 1, 100], ["−10⁴", "−100", "−1", "0", "1", "100"])
    axes[0].set_ylabel("% of reward\nper % of distance")
    axes[0].text(0.1, -2e5, "novelty is punished", color="0.35", fontsize=13)
    axes[-1].legend([*axes[0].lines], ["exact", "simplified"], **style.OUTSIDE)
    return axes


def on_states(states: StateMap, alphas: Sequence[float], n_outcomes: int) -> NDArray:
    """Plot a dataset's states in the colour of their reward: one Axes per alpha.

    The colour is reward / highest reward of the panel; the best-paid tenth is ringed.
    """
    axes = _row(len(alphas))
    for ax, alpha in zip(axes, alphas, strict=True):
        reward = _reward(states.distance, alpha, n_outcomes)
        order = np.argsort(reward)  # the best paid on top
        shades = {"c": reward[order] / reward.max(), "cmap": REWARD_COLORS, "vmin": 0, "vmax": 1}
        ax.scatter(*states.position[order].T, s=14, **shades)
        best = states.position[reward >= np.quantile(reward, 0.9)].T
        ax.scatter(*best, s=70, facecolors="none", edgecolors=ACCENT, linewidths=1.5)
        top = np.sort(reward)[-len(reward) // 10 :].sum() / reward.sum()
        ax.set(title=f"α = {alpha:g}: top tenth earns {top:.0%}", xticks=[], yticks=[])
        ax.set_xlabel("first component")
    axes[0].set_ylabel("second component")
    axes[0].figure.colorbar(axes[0].collections[0], ax=list(axes), label="reward / highest")
    return axes


def _reward(distance: NDArray, alpha: float, n_outcomes: int) -> NDArray:
    return behavioral_reward(distance, alpha=alpha, beta=prelec_beta(alpha, n_outcomes))


def _plot(ax: Axes, objective: str, parameters: Sequence[float], reward: Callable) -> None:
    """Plot the rewards of an objective over the distance, and Shannon's."""
    style.curves(ax, _DISTANCE, objective, parameters, lambda p: reward(_DISTANCE, p))
    ax.plot(_DISTANCE, shannon_reward(_DISTANCE), label="SE", **SHANNON)
    ax.set(xscale="log", xlabel="distance R", xlim=(_DISTANCE[0], _DISTANCE[-1]))


def _row(count: int) -> NDArray:
    """Return Axes side by side with equal limits."""
    size = (4.8 * count + 2, 5)
    return plt.subplots(1, count, figsize=size, sharex=True, sharey=True, squeeze=False)[1][0]
