"""Statistics of runs (Agarwal et al. 2021, rliable): one array (R,) per task, of R scores."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from belib.arrays import real_array

Array = NDArray[np.float64]
Runs = Sequence[Array]


def interquartile_mean(runs: Runs) -> Array:
    """Return the mean of the middle half of all scores (..., R) of all tasks; NaN without any.

    >>> float(interquartile_mean([np.array([0.0, 1.0, 2.0]), np.array([3.0, 1000.0])]))
    2.0
    """
    scores = np.concatenate([real_array("runs", task) for task in runs], -1)
    if not scores.size:
        return np.full(scores.shape[:-1], np.nan)
    return stats.trim_mean(scores, 0.25, axis=-1)


def bootstrap(
    runs: Runs, statistic: Callable[[Runs], Array], *, repetitions: int = 2000
) -> tuple[float, float]:
    """Return a 95 % percentile interval of a statistic of runs, resampled within tasks.

    Tasks are fixed and runs are random: the interval is over other seeds. It is NaN if no task has
    two runs. `statistic` reduces the last axis of scores (..., R).
    """
    runs, random = _checked_runs(runs), np.random.default_rng(0)
    if max(map(len, runs), default=0) < 2:
        return np.nan, np.nan
    resampled = [random.choice(task, (repetitions, len(task))) for task in runs]
    low, high = np.quantile(statistic(resampled), [(1 - 0.95) / 2, (1 + 0.95) / 2])
    return float(low), float(high)


def probability_of_improvement(runs: Runs, others: Runs) -> float:
    """Return P(X > Y) + P(X = Y) / 2 for a run X and another run Y, averaged over tasks.

    >>> probability_of_improvement([np.array([3.0, 1.0])], [np.array([2.0, 1.0])])
    0.625
    """
    pairs = zip(_checked_runs(runs), _checked_runs(others), strict=True)
    return float(np.mean([np.sign(x[:, None] - y).mean() for x, y in pairs])) / 2 + 0.5


def _checked_runs(runs: Runs) -> list[Array]:
    """Return runs as a list; ValueError for missing scores, or a matrix (its axes are unclear)."""
    if isinstance(runs, np.ndarray):
        raise ValueError(f"runs must be a list of one array (R,) per task, got shape {runs.shape}")
    return [real_array("runs", task, ndim=1) for task in runs]


class Interval(NamedTuple):
    """An estimate with its confidence interval and p-value."""

    value: float
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan


def rank_correlation(x: Array, y: Array, *, level: float = 0.05) -> Interval:
    """Return Spearman's rho of values (n,), and the two-sided permutation p of no correlation.

    The interval is Bonett and Wright's (2000).
    """
    x, y = (stats.rankdata(real_array(name, v, ndim=1)) for name, v in (("x", x), ("y", y)))
    rho = float(stats.pearsonr(x, y).statistic)
    products = lambda x, axis: np.tensordot(x, y - y.mean(), (axis, 0))  # noqa: E731
    pairings = {"permutation_type": "pairings", "vectorized": True, "rng": 0}
    test = stats.permutation_test((x,), products, **pairings)
    reach = stats.norm.isf(level / 2) * np.sqrt((1 + rho**2 / 2) / (len(x) - 3))
    low, high = np.tanh(np.arctanh(np.clip(rho, -0.9999, 0.9999)) + np.array([-reach, reach]))
    return Interval(rho, float(low), float(high), float(test.pvalue))
