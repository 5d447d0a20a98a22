"""Figures of what an agent was paid for, and of where it went."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from scipy import stats

from belib.config import PretrainConfig
from belib.datasets import Dataset
from belib.envs import observation_names
from belib.figures.style import (
    OUTSIDE,
    describe,
    objective_color,
    objective_label,
    objective_marker,
    objective_order,
)
from belib.tables import checked

# Where the torso is in the physics state: column, offset and label of the two axes. The walker's
# height is counted from its torso's place in the model, 1.3 m above the ground.
_TORSO = {
    "walker": ((1, 0.0, "forward position (m)"), (0, 1.3, "torso height (m)")),
    "quadruped": ((0, 0.0, "x position (m)"), (1, 0.0, "y position (m)")),
}
_FIRST_COORDINATES = ((0, 0.0, "first coordinate"), (1, 0.0, "second coordinate"))


def curves(metrics: pd.DataFrame, domain: str) -> np.ndarray:
    """What the agent was paid, in what unit, and what each task would have paid, by episode.

    Args:
        metrics: a dataset's `metrics.csv`: a row an episode, `step` at its end.
        domain: whose tasks are shown.

    Returns three Axes. What no episode had, as random actions have no intrinsic reward, is said in
    its panel.
    """
    metrics = checked(metrics, numbers=["step"])
    _, axes = plt.subplots(1, 3, figsize=(16, 4.5))
    shown = {"intrinsic_reward": "What the agent is paid", "representation_scale": "In what unit"}
    for ax, (name, title) in zip(axes, shown.items(), strict=False):
        ax.set(ylabel=name.replace("_", " "), title=title)
        if name in metrics:
            sns.lineplot(metrics, x="step", y=name, ax=ax, color="black", marker="o")
        else:
            ax.text(0.5, 0.5, f"no {ax.get_ylabel()}", transform=ax.transAxes, ha="center")
            ax.set(xticks=[], yticks=[])
    returns = metrics.filter(regex="^return_").set_axis(metrics["step"])
    returns.columns = returns.columns.str.removeprefix(f"return_{domain}_")
    long = returns.reset_index().melt("step", var_name="task", value_name="return")
    options = {"hue": "task", "style": "task", "palette": "colorblind", "markers": True}
    sns.lineplot(long, x="step", y="return", ax=axes[2], dashes=False, **options)
    axes[2].set(ylabel="episode return", title="What tasks pay for it")
    sns.move_legend(axes[2], **OUTSIDE, title=None)
    for ax in axes:
        _show_zero(ax)
        ax.set_xlabel("environment steps")
    return axes


def _show_zero(ax: Axes) -> None:
    """Let an axis of values hold 0 and, with some room, all that is drawn."""
    low, high = (1.1 * end for end in ax.dataLim.intervaly)
    if np.isfinite([low, high]).all() and (low < 0 or high > 0):
        ax.set_ylim(min(0, low), max(0, high))


def objectives(
    metrics: Sequence[pd.DataFrame], configs: Sequence[PretrainConfig], tasks: Sequence[str]
) -> np.ndarray:
    """What each task would have paid the collectors of several objectives: Axes for each task.

    Args:
        metrics: a table for each dataset, as for `curves`.
        configs: theirs, in the same order.
        tasks: `walker_stand`, ...
    """
    _, axes = plt.subplots(1, len(tasks), figsize=(15, 4.5), squeeze=False)
    key = lambda pair: objective_order(pair[0].objective, pair[0].parameter)  # noqa: E731
    for config, table in sorted(zip(configs, metrics, strict=True), key=key):
        style = {
            "color": objective_color(config.objective, config.parameter),
            "marker": objective_marker(config.objective),
            "linestyle": ":" if config.objective == "shannon" else "-",
            "label": objective_label(config.objective, config.parameter),
        }
        wanted = ["step", *(f"return_{task}" for task in tasks)]
        table = checked(table, numbers=wanted).sort_values("step")
        for ax, task in zip(axes[0], tasks, strict=True):
            ax.plot(table["step"], table[f"return_{task}"], **style)
    for ax, task in zip(axes[0], tasks, strict=True):
        ax.set(title=task, xlabel="environment steps")
        _show_zero(ax)
    axes[0, 0].set_ylabel("episode return")
    axes[0, -1].legend(**OUTSIDE)
    return axes[0]


def state_histograms(dataset: Dataset, reference: Dataset) -> np.ndarray:
    """How often each value was met, for the six observations in which two datasets differ most.

    They are those of the largest Kolmogorov-Smirnov distances, which the titles give; every tenth
    state counts.

    Args:
        dataset: filled.
        reference: the black outline, such as random data of equal size.
    """
    ours, other = (
        np.concatenate([episode["observation"][1::10] for episode in each.episodes()])
        for each in (dataset, reference)
    )
    distance = [stats.ks_2samp(a, b).statistic for a, b in zip(ours.T, other.T, strict=True)]
    names = observation_names(dataset.domain)
    _, axes = plt.subplots(2, 3, figsize=(15, 7.5))
    for ax, column in zip(axes.flat, np.argsort(distance)[::-1], strict=False):
        both = np.concatenate([ours[:, column], other[:, column]])
        low, high = np.percentile(both, [0.5, 99.5])
        shared = {"bins": np.linspace(low, high, 41), "density": True}
        ax.hist(ours[:, column], **shared, color="steelblue", label=dataset.name)
        ax.hist(
            other[:, column],
            **shared,
            histtype="step",
            color="black",
            linewidth=2,
            label=reference.name,
        )
        ax.set(title=f"{names[column].replace('_', ' ')}: {distance[column]:.2f}", yticks=[])
    axes[0, -1].legend(**OUTSIDE)
    for ax in axes.flat[len(names) :]:
        ax.remove()
    return axes


def torso(dataset: Dataset, reference: Dataset | None = None) -> np.ndarray:
    """Where the torso went: every tenth state, a colour an episode from first (light) to last.

    Args:
        dataset: what to show.
        reference: shown beside it with equal limits, such as random data of equal size.

    Returns an array of Axes.
    """
    shown = [each for each in (dataset, reference) if each is not None]
    columns = _TORSO.get(dataset.domain, _FIRST_COORDINATES)
    _, axes = plt.subplots(
        1, len(shown), figsize=(6.5 * len(shown), 4.5), sharex=True, sharey=True, squeeze=False
    )
    for ax, each in zip(axes[0], shown, strict=True):
        for number, episode in enumerate(each.episodes()):
            x, y = (episode["physics"][::10, column] + offset for column, offset, _ in columns)
            share = 0.2 + 0.8 * number / max(len(each.files) - 1, 1)
            ax.scatter(x, y, s=12, color=plt.get_cmap("viridis_r")(share), linewidths=0)
        ax.set(xlabel=columns[0][2], title=each.name)
    axes[0, 0].set_ylabel(columns[1][2])
    return axes[0]


def frame_strip(frames: Sequence[np.ndarray]) -> Axes:
    """Rendered frames (height, width, 3), side by side."""
    _, ax = plt.subplots(figsize=(13, 13 * frames[0].shape[0] / (len(frames) * 240)))
    ax.imshow(np.concatenate(frames, 1))
    ax.set_axis_off()
    describe(ax, f"{len(frames)} rendered frames, side by side in the order of time.")
    return ax
