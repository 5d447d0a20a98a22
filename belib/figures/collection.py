"""Figures of what was collected: rewards, the states that were visited, maps, clips."""

import base64
import html
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import mujoco
import numpy as np
import pandas as pd
import seaborn as sns
from IPython.display import HTML
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator
from scipy import stats

from belib import envs, rendering
from belib.coverage import MEASURES, Embedding
from belib.datasets import Dataset
from belib.figures import style
from belib.results.tables import once

# Columns of the physics state, origin (of the walker's height 1.3 m) and labels of the torso.
_TORSO = {
    "walker": ([1, 0], (0, 1.3), "forward position (m)", "torso height (m)"),
    "quadruped": ([0, 1], (0, 0), "x position (m)", "y position (m)"),
}


def curves(metrics: pd.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """Plot columns of `metrics.csv` over steps: one Axes for each that exists.

    The table has the rows of one dataset or several, each with its `datasets.origin`.
    """
    keys = ["step", "objective", "parameter", "variant", "seed"]
    table = metrics[[*keys, *(name for name in columns if name in metrics)]]
    table = table.melt(keys, var_name="metric")
    table["recipe"] = style.recipes(table)
    return style.over_steps(table, "metric", units="seed", **style.of(table, lines=True))


def state_histograms(dataset: Dataset, reference: Dataset) -> np.ndarray:
    """Plot the eight observations in which a dataset and a reference, black, differ most.

    Titles give the Kolmogorov-Smirnov distance between their samples of every tenth state.
    """
    pair = [[e["observation"][1::10] for e in data.episodes()] for data in (dataset, reference)]
    ours, theirs = map(np.concatenate, pair)
    distance = stats.ks_2samp(ours, theirs).statistic
    names = envs.observation_names(dataset.domain)
    lows, highs = np.percentile(np.concatenate([ours, theirs]), [0.5, 99.5], axis=0)
    outline = {"histtype": "step", "color": "black", "linewidth": 2, "label": reference.name}
    shown = np.argsort(distance)[:-9:-1]
    axes = style.panels(len(shown))
    for ax, column in zip(axes, shown, strict=True):
        bins = np.linspace(lows[column], highs[column], 41)
        ax.hist(ours[:, column], bins, density=True, color="steelblue", label=dataset.name)
        ax.hist(theirs[:, column], bins, density=True, **outline)
        ax.set(title=f"{names[column].replace('_', ' ')}: {distance[column]:.2f}", yticks=[])
    return style.legend(axes)


def torso(*datasets: Dataset) -> np.ndarray:
    """Plot the torso's positions in every tenth state; later episodes are darker.

    Of other domains plot two coordinates of the physics state, or else of the observation.
    """
    other = ([0, 1], (0, 0), "coordinate 1", "coordinate 2")
    columns, origin, xlabel, ylabel = _TORSO.get(datasets[0].domain, other)
    axes = style.panels(len(datasets), 6.5, sharex=True, sharey=True)
    for ax, data in zip(axes, datasets, strict=True):
        shades = sns.color_palette("viridis_r", len(data.files))
        for color, episode in zip(shades, data.episodes(), strict=True):
            positions = episode.get("physics", episode["observation"])[::10, columns] + origin
            ax.scatter(*positions.T, s=12, color=color, linewidths=0)
        ax.set(xlabel=xlabel, ylabel=ylabel, title=data.name)
    return axes


def maps(embedding: Embedding, *, by_time: bool = False) -> np.ndarray:
    """Plot one panel per dataset in its objective's colour, with all points light grey behind.

    All panels show one joint fit, with equal limits. With `by_time` the colour is the step, and
    lines join the states of the first, middle and last episode. Return the Axes.
    """
    points, shades = style.labelled(embedding.points), plt.get_cmap("viridis_r")
    palette = style.of(points, "label")["palette"]
    axes = style.panels(len(palette), 3.7, 3.7, sharex=True, sharey=True)
    for ax, (label, rows) in zip(axes, points.groupby("label", observed=True), strict=True):
        share, numbers = rows["step"] / rows["step"].max(), rows["episode"].unique()
        timed = {"c": share, "cmap": shades, "vmin": 0, "vmax": 1}
        _dots(ax, points, color="0.8")
        _dots(ax, rows, **(timed if by_time else {"color": palette[label]}))
        for number in numbers[[0, len(numbers) // 2, -1]] if by_time else ():
            path = rows[rows["episode"] == number]
            color = shades(share[path.index].mean())
            ax.plot(path["x"], path["y"], color=color, linewidth=0.8, alpha=0.8)
        ax.set_axis_off()  # maps have no units
        ax.set_title(label)
    if by_time:
        bar = {"label": "share of the dataset's steps", "shrink": 0.8, "aspect": 30}
        axes[0].figure.colorbar(axes[0].collections[-1], ax=list(axes), **bar)
    return axes


def measures(measured: pd.DataFrame) -> np.ndarray:
    """Plot `coverage.measures`: a panel each, a dot per dataset, bars of 1.96 standard errors."""
    names = [name for name in MEASURES if name in measured]
    rows = style.labelled(once(measured.reset_index(), ["dataset"], names))
    axes = style.panels(len(names), 3.75, 1.6 + 0.36 * len(rows), sharey=True)
    for ax, measure in zip(axes, names, strict=True):
        for _, row in rows.sort_values("label", ascending=False).iterrows():
            look = {"fmt": style.look(row["objective"]).marker, "markersize": 10}
            look["color"] = style.objective_color(row["objective"], row["parameter"])
            reach = 1.96 * row.get(f"{measure}_se", np.nan)
            ax.errorbar(row[measure], row["label"], xerr=reach, **look)
        ax.set_title(MEASURES[measure], fontsize="medium")
        ax.grid(axis="x")
        ax.xaxis.set_major_locator(MaxNLocator(3))
        ax.set_ylim(-0.6, len(rows) - 0.4)
    return axes


def _dots(ax: Axes, points: pd.DataFrame, **colors: Any) -> None:
    """Plot points, smaller ones for more."""
    size = np.clip(4000 / len(points), 1.5, 14)
    ax.scatter(points["x"], points["y"], s=size, linewidths=0, **colors)


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
    source = "data:image/webp;base64," + base64.b64encode(rendering.webp(frames)).decode()
    text = html.escape(text)
    return HTML(f'<img src="{source}" alt="A clip. {text}" width="300"><p>{text}</p>')


def frame_strip(model: mujoco.MjModel, states: np.ndarray) -> Axes:
    """Draw physics states (T, nq + nv + na) side by side, seen along y, without OpenGL.

    A geom is a line of its length, as thick as its thinnest side.
    """
    data, body = mujoco.MjData(model), np.flatnonzero(model.geom_bodyid)  # no floor
    half, width = model.geom_aabb[body, 3:], model.stat.extent  # of sides; of a state
    points = 72 * 13 / (len(states) * width)  # of a metre
    _, ax = plt.subplots(figsize=(13, 2))
    for place, state in enumerate(states):
        mujoco.mj_setState(model, data, state, rendering.PHYSICS)
        mujoco.mj_kinematics(model, data)
        axis = data.geom_xmat.reshape(-1, 3, 3)[body, :, half.argmax(1)]
        along = axis * np.ptp(half, 1)[:, None]
        middle = data.geom_xpos[body] + [place * width - data.xpos[1, 0], 0, 0]
        lines = np.stack([middle - along, middle + along], 1)[..., [0, 2]]
        look = {"linewidths": 2 * points * half.min(1), "capstyle": "round", "alpha": 0.8}
        ax.add_collection(LineCollection([*lines], **look))
    ax.set(xlim=(-width / 2, (len(states) - 0.5) * width), aspect="equal")
    ax.autoscale(axis="y")
    ax.set_axis_off()
    return ax
