"""Figures of what was collected."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from belib.datasets import Dataset

# Where the torso is in the physics state: column, offset and label of the two axes. The walker's
# height is counted from its torso's place in the model, 1.3 m above the ground.
_TORSO = {
    "walker": ((1, 0.0, "forward position (m)"), (0, 1.3, "torso height (m)")),
    "quadruped": ((0, 0.0, "x position (m)"), (1, 0.0, "y position (m)")),
}
_FIRST_COORDINATES = ((0, 0.0, "first coordinate"), (1, 0.0, "second coordinate"))


def collection_curves(metrics: pd.DataFrame, domain: str) -> np.ndarray:
    """What the agent was paid, and what each task would have paid, episode by episode.

    Args:
        metrics: a dataset's `metrics.csv`: a row an episode, `step` at its end.
        domain: whose tasks are shown.

    Returns two Axes. The intrinsic reward is missing for episodes without updates.
    """
    _, (left, right) = plt.subplots(1, 2, figsize=(13, 4.5))
    if "intrinsic_reward" in metrics:
        sns.lineplot(metrics, x="step", y="intrinsic_reward", ax=left, color="black", marker="o")
    left.set(xlabel="environment steps", ylabel="intrinsic reward", title="What the agent is paid")
    returns = metrics.filter(regex="^return_").set_axis(metrics["step"])
    returns.columns = returns.columns.str.removeprefix(f"return_{domain}_")
    long = returns.reset_index().melt("step", var_name="task", value_name="return")
    sns.lineplot(long, x="step", y="return", hue="task", ax=right, palette="colorblind", marker="o")
    right.set(xlabel="environment steps", ylabel="episode return")
    right.set_title("What the tasks would have paid")
    sns.move_legend(right, "upper left", bbox_to_anchor=(1, 1), frameon=False, title=None)
    for ax in (left, right):
        ax.set_ylim(0, 1.1 * ax.dataLim.y1 if np.isfinite(ax.dataLim.y1) else None)
    return np.array([left, right])


def torso_map(dataset: Dataset, reference: Dataset | None = None) -> np.ndarray:
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
    return ax
