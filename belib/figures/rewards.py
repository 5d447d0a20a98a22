"""Figures of the intrinsic rewards: curves over the distance, their scale, a dataset's map."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from numpy.typing import NDArray

from belib.figures.style import (
    ACCENT,
    OUTSIDE,
    REWARD_COLORS,
    SHANNON,
    objective_color,
    objective_label,
    objective_marker,
)
from belib.rewards import behavioral_reward, shannon_reward
from belib.statemap import StateMap
from belib.weighting import prelec_beta


def curves(alphas: Sequence[float], n_outcomes: int) -> NDArray:
    """The reward over the distance for all alphas of a range, SE dotted: two Axes.

    The paper's appendix figure ("BE Reward Function Visualization"), beta conditioned on
    M = `n_outcomes`. Left the reward itself, cut off at 10; right its logarithm.
    """
    _, axes = plt.subplots(1, 2, figsize=(14, 5.5), sharex=True)
    distance = np.geomspace(1e-2, 1e3, 400)
    fine = np.geomspace(min(alphas), max(alphas), 100)
    rewards = [behavioral_reward(distance, alpha=a, beta=prelec_beta(a, n_outcomes)) for a in fine]
    low, high = np.min(rewards, 0), np.max(rewards, 0)
    for ax in axes:
        ax.fill_between(distance, low, high, color=objective_color("behavioral", 0.2), alpha=0.4)
        for alpha in alphas:
            reward = behavioral_reward(distance, alpha=alpha, beta=prelec_beta(alpha, n_outcomes))
            label = objective_label("behavioral", alpha)
            ax.plot(distance, reward, color=objective_color("behavioral", alpha), label=label)
        ax.plot(distance, shannon_reward(distance), label="SE", **SHANNON)
        ax.set(xscale="log", xlabel="distance R", xlim=(distance[0], distance[-1]))
    axes[0].set(ylabel="reward", ylim=(0, 10), title="linear")
    axes[1].set(yscale="log", ylim=(1e-5, 1e4), title="logarithmic")
    axes[1].legend(**OUTSIDE)
    return axes


def surface(alphas: tuple[float, float], n_outcomes: int) -> Axes:
    """The reward as a function of (distance, alpha), with the peak beyond which it falls.

    Args:
        alphas: lowest and highest.
        n_outcomes: M, on which beta is conditioned.
    """
    _, ax = plt.subplots(figsize=(10, 5.5))
    distance, alpha = np.geomspace(1e-2, 1e3, 400), np.geomspace(*alphas, 200)
    rows = [behavioral_reward(distance, alpha=a, beta=prelec_beta(a, n_outcomes)) for a in alpha]
    surface = np.array(rows).clip(1e-6, None)
    norm = LogNorm(1e-6, 1e4)
    image = ax.pcolormesh(distance, alpha, surface, norm=norm, cmap=REWARD_COLORS, rasterized=True)
    levels = 10.0 ** np.arange(-4, 3, 2)
    lines = ax.contour(distance, alpha, surface, levels, colors="black", linewidths=1)
    ax.clabel(lines, fmt=lambda level: f"{level:g}", fontsize=11)
    peak = surface.argmax(1)
    inside = (peak < len(distance) - 1) & (alpha > 1)
    ax.plot(distance[peak[inside]], alpha[inside], color=ACCENT, linewidth=4)
    ax.axhline(1, color="black", linestyle=":")
    ax.set(xscale="log", yscale="log", xlabel="distance R", ylabel="α")
    ax.set_yticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    ax.minorticks_off()
    ax.figure.colorbar(image, label="reward", extend="both")
    return ax


def panels(table: pd.DataFrame, *, limits: tuple[float, float] = (1e-5, 1e4)) -> NDArray:
    """Rewards over the distance, both logarithmic: Axes a panel, with SE dotted in each.

    Args:
        table: columns `panel`, `objective`, `parameter`, `distance`, `reward`.
        limits: of the reward's axis.
    """
    panels = list(table.groupby("panel", sort=False))
    size = (4.6 * len(panels) + 2, 5)
    _, axes = plt.subplots(1, len(panels), figsize=size, sharex=True, sharey=True, squeeze=False)
    handles = {}
    for ax, (title, rows) in zip(axes[0], panels, strict=True):
        for (objective, parameter), line in rows.groupby(["objective", "parameter"]):
            color, label = (
                objective_color(objective, parameter),
                objective_label(objective, parameter),
            )
            (handles[label],) = ax.plot(line["distance"], line["reward"], color=color, label=label)
        distance = np.sort(rows["distance"].unique())
        (handles["SE"],) = ax.plot(distance, shannon_reward(distance), label="SE", **SHANNON)
        ax.set(xscale="log", yscale="log", xlabel="distance R", title=title, ylim=limits)
    axes[0, 0].set_ylabel("reward")
    axes[0, -1].legend(handles=list(handles.values()), **OUTSIDE)
    return axes[0]


def scales(table: pd.DataFrame) -> Axes:
    """From what to what each objective pays between two distances: a bar of a logarithmic axis.

    Args:
        table: columns `objective`, `parameter`, `low`, `high`, in the order to show.
    """
    _, ax = plt.subplots(figsize=(12, 5))
    labels = []
    for place, (objective, parameter, low, high) in enumerate(table.itertuples(index=False)):
        color = objective_color(objective, parameter)
        ax.plot([place, place], [low, high], color=color, linewidth=5, alpha=0.6)
        marker = objective_marker(objective)
        ax.plot(place, high, marker, color=color, markersize=14)
        ax.plot(place, low, marker, color=color, markersize=8)
        labels.append(objective_label(objective, parameter).replace(" = ", "\n"))
    ax.set_xticks(range(len(labels)), labels)
    ax.set(yscale="log", ylabel="reward")
    return ax


def exact_and_simplified(table: pd.DataFrame) -> NDArray:
    """By what percentage the reward rises with 1 % more distance, before and after simplifying.

    Args:
        table: columns `d`, `alpha`, `exact`, `simplified`: d log(reward) / d log(distance). Axes
            for each d.
    """
    panels = list(table.groupby("d"))
    size = (4.8 * len(panels) + 2, 5)
    _, axes = plt.subplots(1, len(panels), figsize=size, sharex=True, sharey=True, squeeze=False)
    for ax, (d, rows) in zip(axes[0], panels, strict=True):
        ax.axhspan(-1e6, 0, color="0.93", zorder=0)
        ax.plot(rows["alpha"], rows["exact"], color=objective_color("behavioral", 3.0))
        ax.plot(rows["alpha"], rows["simplified"], "--", color=ACCENT)
        ax.set(xlabel="α", title=f"d = {d}", ylim=(-1e6, 1e4))
        ax.set_yscale("symlog", linthresh=1)
        ax.set_yticks([-1e4, -100, -1, 0, 1, 100], ["−10⁴", "−100", "−1", "0", "1", "100"])
    axes[0, 0].set_ylabel("% of reward\nper % of distance")
    axes[0, 0].text(0.1, -2e5, "novelty is punished", color="0.35", fontsize=13)
    axes[0, -1].legend([*axes[0, 0].lines], ["exact", "simplified"], **OUTSIDE)
    return axes[0]


def on_states(states: StateMap, alphas: Sequence[float], n_outcomes: int) -> NDArray:
    """A dataset's states, coloured by the reward each would earn, the top decile ringed.

    Axes for each alpha; the colour is the share of the highest reward of the panel.
    """
    _, axes = plt.subplots(
        1, len(alphas), figsize=(5.2 * len(alphas), 5), sharex=True, sharey=True, squeeze=False
    )
    for ax, alpha in zip(axes[0], alphas, strict=True):
        beta = prelec_beta(alpha, n_outcomes)
        reward = behavioral_reward(states.distance, alpha=alpha, beta=beta)
        order = np.argsort(reward)  # the best paid on top
        shade = reward[order] / reward.max()
        ax.scatter(*states.position[order].T, c=shade, s=14, cmap=REWARD_COLORS, vmin=0, vmax=1)
        best = states.position[reward >= np.quantile(reward, 0.9)].T
        ax.scatter(*best, s=70, facecolors="none", edgecolors=ACCENT, linewidths=1.5)
        top = np.sort(reward)[-len(reward) // 10 :].sum() / reward.sum()
        ax.set(title=f"α = {alpha:g}: top tenth earns {top:.0%}", xticks=[], yticks=[])
        ax.set(xlabel="first component")
    axes[0, 0].set_ylabel("second component")
    axes[0, -1].figure.colorbar(
        axes[0, -1].collections[0], ax=list(axes[0]), label="reward / highest"
    )
    return axes[0]
