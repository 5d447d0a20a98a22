"""Volumetric coverage: the radius of the smallest ball around a dataset's states, as it grows."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from belib.coverage.ball import smallest_ball
from belib.coverage.states import SCALINGS, Array, Integers, draw_increments, scale
from belib.datasets import Dataset


def volumetric_coverage(
    datasets: Sequence[Dataset], *, increments: int = 10, share: float = 0.2, seed: int = 0
) -> pd.DataFrame:
    """Return the radius of the smallest ball around the states so far (paper, appendix).

    The paper draws 10,000 states of every 50,000 steps, accumulates them, and divides by
    the largest radius of all datasets. It names no scaling, so it very likely used raw
    observations, "none", where one fast sensor can decide the radius.

    Args:
        increments, share: the number of increments, and the share of steps drawn from each.

    The table has one row per scaling, dataset and increment: the dataset's description, `scaling`,
    `step`, `points`, `radius`, `leading_share` (the largest share of the squared radius due to one
    feature), and `coverage` (radius / largest radius of this scaling; NaN if that is 0).
    """
    states = draw_increments(datasets, increments, share, seed)
    described = states.rows.drop_duplicates("dataset")
    columns = ["dataset", "objective", "parameter", "variant", "seed", "scale"]
    described = described.filter(columns)
    curves = []
    for scaling in SCALINGS:
        features = scale(states.features, scaling)
        for dataset in datasets:
            selected = states.of(dataset.name)
            curve = _balls(features[selected], states.rows.loc[selected, "increment"].to_numpy())
            ends = dataset.steps * np.arange(1, increments + 1) / increments
            step = ends.round().astype(int)
            curves.append(curve.assign(dataset=dataset.name, scaling=scaling, step=step))
    table = described.merge(pd.concat(curves, ignore_index=True), how="right", on="dataset")
    largest = table.groupby("scaling")["radius"].transform("max")
    return table.assign(coverage=table["radius"] / largest)


def _balls(points: Array, increment: Integers) -> pd.DataFrame:
    """Return the ball of the points up to each increment, one row per increment."""
    rows, support = [], None
    for size in np.flatnonzero(np.diff(increment, append=np.inf)) + 1:
        ball = smallest_ball(points[:size], start=support)  # the last support saves steps
        support = ball.support
        parts = ball.weights @ np.square(points[support] - ball.center)  # of r^2, by feature
        leading = parts.max() / (parts.sum() or 1.0)
        rows.append({"points": size, "radius": ball.radius, "leading_share": leading})
    return pd.DataFrame(rows)
