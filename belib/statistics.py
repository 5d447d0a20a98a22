"""Statistics over runs, as rliable (Agarwal et al. 2021) defines them: few seeds, many tasks.

Runs come as one array a task, which may differ in length, so that no axis can be mistaken.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Runs = Sequence[NDArray[np.float64]]
"""For each task the scores of its runs, (R,)."""


def interquartile_mean(runs: Runs) -> NDArray[np.float64]:
    """The mean of the middle half of all runs of all tasks, of scores (..., R); NaN without any.

    >>> float(interquartile_mean([np.array([0.0, 1.0, 2.0]), np.array([3.0, 1000.0])]))
    2.0
    """
    scores = np.concatenate(runs, -1)
    return (
        stats.trim_mean(scores, 0.25, axis=-1)
        if scores.size
        else np.full(scores.shape[:-1], np.nan)
    )


def bootstrap(
    runs: Runs,
    statistic: Callable[[Runs], NDArray[np.float64]],
    *,
    confidence: float = 0.95,
    repetitions: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """A percentile interval of a statistic of runs, each task's drawn again from its own.

    Tasks are fixed and runs are not: the interval says what other seeds would have given. NaN where
    no task has two runs. `statistic` reduces the last axis of scores (..., R).
    """
    runs = check_runs(runs)
    if not runs or max(map(len, runs)) < 2:
        return np.nan, np.nan
    generator = np.random.default_rng(seed)
    drawn = [generator.choice(each, (repetitions, len(each))) for each in runs]
    low, high = np.quantile(statistic(drawn), [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def probability_of_improvement(runs: Runs, others: Runs) -> float:
    """P(X > Y) + P(X = Y) / 2 of a run of each, averaged over tasks.

    >>> probability_of_improvement([np.array([3.0, 1.0])], [np.array([2.0, 1.0])])
    0.625
    """
    pairs = zip(check_runs(runs), check_runs(others), strict=True)
    above = [(x[:, None] > y).mean() + (x[:, None] == y).mean() / 2 for x, y in pairs]
    return float(np.mean(above))


def check_runs(runs: Runs) -> list[NDArray[np.float64]]:
    """`runs` as a list of one array a task; ValueError for a matrix, whose axes say nothing."""
    if isinstance(runs, np.ndarray) or any(np.ndim(each) != 1 for each in runs):
        shape = np.shape(runs)
        raise ValueError(f"runs must be a sequence of one array (R,) a task, got shape {shape}")
    return [np.asarray(each, float) for each in runs]
