"""Volumetric coverage: how large a ball the states of a dataset need, as it grows."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from belib.coverage.ball import Ball, smallest_ball
from belib.coverage.sampling import SCALINGS, Array, growing_subsample, scale
from belib.datasets import Dataset


def volumetric_coverage(
    datasets: Sequence[Dataset],
    *,
    increments: int = 10,
    share: float = 0.2,
    seed: int = 0,
    scalings: Sequence[str] = SCALINGS,
) -> pd.DataFrame:
    """Radius of the smallest ball around the states collected so far (paper, appendix).

    The paper draws 10,000 states of every 50,000, adds them up, and divides by the largest radius
    over all datasets. It names no scaling, so it very likely used raw observations, "none", in
    which one fast sensor can decide; `leading_share` says how far one does.

    Args:
        increments, share: see `growing_subsample`.
        scalings: see `scale`; robust scaling is joint over all datasets.

    Returns a row a dataset, scaling and increment: the dataset's description, `scaling`, `step`,
    `points`, `radius`, `coverage` (of the largest radius with this scaling, NaN where that is 0),
    `leading_share` (of the squared radius that is due to the feature with the largest part).
    """
    if not scalings:
        raise ValueError(f"scalings must be of {', '.join(SCALINGS)}, got none")
    sample = growing_subsample(datasets, increments=increments, share=share, seed=seed)
    described = sample.rows.drop_duplicates("dataset").set_index("dataset")
    steps = {dataset.name: dataset.steps for dataset in datasets}
    rows = []
    for scaling in scalings:
        features = scale(sample.features, scaling)
        for name in sample.names:
            mine = sample.of(name)
            sizes = sample.rows.loc[mine, "increment"].value_counts().sort_index().cumsum()
            known = described.loc[name, ["objective", "parameter", "seed", "scale"]]
            for increment, size, ball, leading in _growing(features[mine], sizes):
                step = round(steps[name] * increment / increments)
                found = {"step": step, "points": size, "radius": ball.radius}
                row = {"dataset": name, **known, "scaling": scaling, **found}
                rows.append({**row, "leading_share": leading})
    table = pd.DataFrame(rows)
    return table.assign(
        coverage=table["radius"] / table.groupby("scaling")["radius"].transform("max")
    )


def _growing(points: Array, sizes: pd.Series):
    """The ball of the first points, for each size; each begins from the support of the last."""
    ball: Ball | None = None
    for increment, size in sizes.items():
        ball = smallest_ball(points[:size], start=None if ball is None else ball.support)
        apart = np.square(points[ball.support] - ball.center)
        parts = ball.weights @ apart  # of the squared radius, a feature each
        yield increment, size, ball, parts.max() / (parts.sum() or 1.0)
