"""Figures of what was collected and of what was learnt from it."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from belib.datasets import Dataset
from belib.figures.style import objective_color, objective_label
from belib.results import BASELINES

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


def returns(table: pd.DataFrame) -> Axes:
    """Final returns: a bar a dataset (mean over seeds), a dot a seed, baselines as lines.

    Args:
        table: rows of `results.COLUMNS` of one task and one learner, final ones only, with rows of
            `results.BASELINES`.
    """
    baselines = table[table["algorithm"].isin(BASELINES)]
    learnt = table.drop(baselines.index)
    _, ax = plt.subplots(figsize=(9, 5))
    for place, (_, rows) in enumerate(learnt.groupby("dataset", sort=False)):
        objective = rows["objective"].iloc[0], rows["parameter"].iloc[0]
        ax.bar(place, rows["return"].mean(), 0.6, color=objective_color(*objective))
        spread = np.linspace(-0.12, 0.12, len(rows)) if len(rows) > 1 else [0]
        ax.scatter(place + np.asarray(spread), rows["return"], color="black", zorder=3, s=50)
    for (name, rows), line in zip(baselines.groupby("algorithm"), ("--", ":"), strict=False):
        ax.axhline(rows["return"].mean(), color="0.35", linestyle=line, label=name)
    labels = [_dataset_label(rows) for _, rows in learnt.groupby("dataset", sort=False)]
    ax.set_xticks(range(len(labels)), labels)
    ax.set(ylabel="episode return", ylim=(0, None), title=_title(table))
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def learning_curves(table: pd.DataFrame) -> Axes:
    """Returns over updates: a thin line a seed, a thick one their mean, a dataset a colour.

    Args:
        table: rows of `results.COLUMNS` of one task and one learner, with baselines.
    """
    _, ax = plt.subplots(figsize=(9, 5))
    learnt = table[~table["algorithm"].isin(BASELINES)]
    for _, rows in learnt.groupby("dataset", sort=False):
        color = objective_color(rows["objective"].iloc[0], rows["parameter"].iloc[0])
        curves = rows.pivot(index="step", columns="seed", values="return")
        ax.plot(curves.index, curves, color=color, linewidth=1, alpha=0.7)
        ax.plot(
            curves.index,
            curves.mean(axis=1),
            color=color,
            linewidth=4,
            marker="o",
            label=_dataset_label(rows),
        )
    baselines = table[table["algorithm"].isin(BASELINES)].groupby("algorithm")["return"].mean()
    for (name, value), line in zip(baselines.items(), ("--", ":"), strict=False):
        ax.axhline(value, color="0.35", linestyle=line, label=name)
    ax.set(xlabel="updates", ylabel="episode return", ylim=(0, None), title=_title(table))
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def _dataset_label(rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    return f"{objective_label(first['objective'], first['parameter'])}\n{first['dataset']}"


def _title(table: pd.DataFrame) -> str:
    algorithms = [name for name in table["algorithm"].unique() if name not in BASELINES]
    return f"{table['task'].iloc[0]}, {', '.join(algorithms).upper()}"
