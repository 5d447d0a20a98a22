"""Figures of what was learnt from a dataset."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from belib.figures.style import objective_color, objective_label
from belib.results import BASELINES


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
