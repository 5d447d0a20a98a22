"""Figures of an agent's rewards and of the states it visited."""

import base64
import html
from collections.abc import Sequence

import matplotlib.pyplot as plt
import mujoco
import numpy as np
import pandas as pd
import seaborn as sns
from IPython.display import HTML
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from scipy import stats

from belib import envs, rendering
from belib.config import PretrainConfig
from belib.datasets import Dataset
from belib.figures import style

# Columns of the physics state, origin (of the walker's height 1.3 m) and labels of the torso.
_TORSO = {
    "walker": ([1, 0], (0, 1.3), "forward position (m)", "torso height (m)"),
    "quadruped": ([0, 1], (0, 0), "x position (m)", "y position (m)"),
}


def curves(metrics: pd.DataFrame, domain: str) -> np.ndarray:
    """Plot the rows (episodes) of `metrics.csv`: reward, scale of its input, task returns.

    A panel without its metric says so (random actions lack two). Return three Axes.
    """
    _, axes = plt.subplots(1, 3, figsize=(16, 4.5))
    for ax, name in zip(axes, ("intrinsic_reward", "representation_scale"), strict=False):
        ax.set_ylabel(label := name.replace("_", " "))
        if name in metrics:
            sns.lineplot(metrics, x="step", y=name, ax=ax, color="black", marker="o")
        else:
            ax.text(0.5, 0.5, f"no {label}", transform=ax.transAxes, ha="center")
    returns = metrics.set_index("step").filter(regex="^return_")
    returns.columns = returns.columns.str.removeprefix(f"return_{domain}_")
    sns.lineplot(returns, ax=axes[2], palette="colorblind", markers=True, dashes=False)
    axes[2].set_ylabel("episode return")
    _over_steps(axes)
    return style.legend(axes)


def objectives(
    metrics: Sequence[pd.DataFrame], configs: Sequence[PretrainConfig], tasks: Sequence[str]
) -> np.ndarray:
    """Plot the task returns of several objectives' datasets: one Axes per task (`walker_stand`)."""
    table = pd.concat(
        m.assign(objective=c.objective, parameter=c.parameter, variant=c.variant)
        for m, c in zip(metrics, configs, strict=True)
    )
    table["recipe"] = style.recipes(table)
    _, axes = plt.subplots(1, len(tasks), figsize=(15, 4.5), squeeze=False)
    for ax, task in zip(axes[0], tasks, strict=True):
        drawn = {"x": "step", "y": f"return_{task}", "estimator": None, "ax": ax}
        sns.lineplot(table, **drawn, **style.of(table, lines=True))
        ax.set(title=task, ylabel="episode return")
    _over_steps(axes[0])
    return style.legend(axes[0])


def agreement(table: pd.DataFrame) -> np.ndarray:
    """Plot rows of `coverage.agreement` with their `step`, `seed` and the space's name, `among`."""
    drawn = {"hue": "of", "style": "among", "units": "seed", "estimator": None, "markers": True}
    drawn |= {f"{name}_order": table[drawn[name]].unique() for name in ("hue", "style")}
    names = table["measure"].unique()
    _, axes = plt.subplots(1, len(names), figsize=(4.5 * len(names), 4.5))
    for ax, name in zip(axes, names, strict=True):
        rows = table[table["measure"] == name]
        sns.lineplot(rows, x="step", y="value", ax=ax, palette="colorblind", **drawn)
        ax.set(ylabel="", title=name, xticks=sorted({*rows["step"]}))
    _over_steps(axes)
    return style.legend(axes)


def _over_steps(axes: np.ndarray) -> None:
    for ax in axes:
        style.from_zero(ax)
        ax.set_xlabel("environment steps")


def state_histograms(dataset: Dataset, reference: Dataset) -> np.ndarray:
    """Plot the six observations in which a dataset and a reference, black, differ most.

    Titles give the Kolmogorov-Smirnov distance between their samples of every tenth state.
    """
    pair = [[e["observation"][1::10] for e in data.episodes()] for data in (dataset, reference)]
    ours, theirs = map(np.concatenate, pair)
    distance = stats.ks_2samp(ours, theirs).statistic
    names = envs.observation_names(dataset.domain)
    lows, highs = np.percentile(np.concatenate([ours, theirs]), [0.5, 99.5], axis=0)
    outline = {"histtype": "step", "color": "black", "linewidth": 2, "label": reference.name}
    lines = 1 + (len(names) > 3)
    _, axes = plt.subplots(lines, 3, figsize=(15, 3.75 * lines), squeeze=False)
    for ax, column in zip(axes.flat, np.argsort(distance)[::-1], strict=False):
        bins = np.linspace(lows[column], highs[column], 41)
        ax.hist(ours[:, column], bins, density=True, color="steelblue", label=dataset.name)
        ax.hist(theirs[:, column], bins, density=True, **outline)
        ax.set(title=f"{names[column].replace('_', ' ')}: {distance[column]:.2f}", yticks=[])
    for ax in axes.flat[len(names) :]:
        ax.remove()
    return style.legend(axes)


def torso(*datasets: Dataset) -> np.ndarray:
    """Plot the torso's positions in every tenth state; later episodes are darker.

    Of other domains plot two coordinates of the physics state, or else of the observation.
    """
    other, size = ([0, 1], (0, 0), "coordinate 1", "coordinate 2"), (6.5 * len(datasets), 4.5)
    columns, origin, xlabel, ylabel = _TORSO.get(datasets[0].domain, other)
    _, axes = plt.subplots(1, len(datasets), figsize=size, sharex=True, sharey=True, squeeze=False)
    for ax, data in zip(axes[0], datasets, strict=True):
        shades = plt.get_cmap("viridis_r")(np.linspace(0.2, 1, len(data.files)))
        for color, episode in zip(shades, data.episodes(), strict=True):
            state = episode.get("physics", episode["observation"])
            positions = state[::10, columns] + origin
            ax.scatter(*positions.T, s=12, color=color, linewidths=0)
        ax.set(xlabel=xlabel, title=data.name)
    axes[0, 0].set_ylabel(ylabel)
    return axes[0]


def clip(domain: str, states: np.ndarray, text: str = "") -> HTML | None:
    """Return a looped clip, as HTML, of physics states (T, nq + nv + na) at 20 pictures a second.

    Where nothing renders, draw eight of the states instead, with `frame_strip`, and return None.
    `text` is the caption and the alternative text.
    """
    model = envs.model(domain)
    if model.nbody == 1:
        return HTML(f"<p>{domain} has no MuJoCo bodies to show.</p>")
    if (frames := rendering.frames(model, states)) is None:
        ax = frame_strip(model, states[np.linspace(0, len(states) - 1, 8).astype(int)])
        return style.caption(ax, f"Moments, side by side in the order of time. {text}")
    source = "data:image/gif;base64," + base64.b64encode(rendering.gif(frames)).decode()
    text = html.escape(text)
    return HTML(f'<img src="{source}" alt="A clip. {text}" width="300"><p>{text}</p>')


def frame_strip(model: mujoco.MjModel, states: np.ndarray) -> Axes:
    """Draw physics states (T, nq + nv + na) side by side, seen along y, without OpenGL.

    A geom is a line of its length, as thick as its thinnest side.
    """
    data, ends, body = mujoco.MjData(model), [], np.flatnonzero(model.geom_bodyid)  # no floor
    half = model.geom_aabb[body, 3:]  # of the geoms' sides
    axis, radius = half.argmax(1), half.min(1)
    for state in states:
        mujoco.mj_setState(model, data, state, rendering.PHYSICS)
        mujoco.mj_kinematics(model, data)
        along = data.geom_xmat.reshape(-1, 3, 3)[body, :, axis] * np.ptp(half, 1)[:, None]
        middle = data.geom_xpos[body] - [data.xpos[1, 0], 0, 0]
        ends.append(np.stack([middle - along, middle + along], 1)[..., [0, 2]])
    lines = np.array(ends)  # (T, geoms, 2 ends, 2)
    x, z = np.moveaxis(lines, -1, 0)
    width = 1.2 * (np.ptp(x) + 2 * radius.max())
    inches = 13 / (len(states) * width)  # of a metre
    x += np.arange(len(states))[:, None, None] * width
    low, high = z.min() - 0.1 * width, z.max() + 0.1 * width
    _, ax = plt.subplots(figsize=(13, inches * (high - low)))
    thick = [*np.tile(2 * 72 * inches * radius, len(states))]
    lines = [*lines.reshape(-1, 2, 2)]
    ax.add_collection(LineCollection(lines, linewidths=thick, capstyle="round", alpha=0.8))
    ax.set(xlim=(-width / 2, (len(states) - 0.5) * width), ylim=(low, high), aspect="equal")
    ax.set_position((0, 0, 1, 1))
    ax.set_axis_off()
    return ax
