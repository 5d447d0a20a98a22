"""Statistics of runs (Agarwal et al. 2021, rliable) and of groups with few repetitions.

Runs are one array (R,) per task, of R scores. Groups share one standard deviation, `Noise`, pooled
over all groups with several repetitions.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from belib.arrays import real_array

_DRAWS = 20_000  # simulations of a null distribution; their seed is fixed
_PLACES = 8  # up to so many values, permutation tests use all orders (40,320); beyond, _DRAWS

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
    """Return runs as a list; ValueError for missing scores and for a matrix (runs or tasks?)."""
    if isinstance(runs, np.ndarray):
        raise ValueError(f"runs must be a list of one array (R,) per task, got shape {runs.shape}")
    return [real_array("runs", task, ndim=1) for task in runs]


class Noise(NamedTuple):
    """The standard deviation of repetitions, NaN without any, and its degrees of freedom."""

    sd: float
    df: int


class Interval(NamedTuple):
    """An estimate with its confidence interval and p-value."""

    value: float
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan


class Means(NamedTuple):
    """Means of groups (G,) and their numbers of repetitions (G,)."""

    values: Array
    counts: NDArray[np.intp]


def pooled_noise(groups: Iterable[Array]) -> Noise:
    """Return the standard deviation within groups, assumed to be equal in all groups."""
    groups = [real_array("groups", group, ndim=1) for group in groups]
    df = sum(len(group) - 1 for group in groups)
    squares = sum(((group - group.mean()) ** 2).sum() for group in groups)
    return Noise(float(np.sqrt(squares / df)) if df else np.nan, df)


def crossed_noise(values: Array) -> Noise:
    """Return the residual standard deviation of a two-way table (R, C) without interaction.

    NaN are missing values; effects are then estimated from the means of the others.
    """
    values = real_array("values", values, ndim=2, finite=False)
    means = [np.nanmean(values, axis=axis, keepdims=True) for axis in (0, 1)]
    residuals = values - means[0] - means[1] + np.nanmean(values)
    df = max(0, int(np.isfinite(residuals).sum()) - sum(values.shape) + 1)
    return Noise(float(np.sqrt(np.nansum(residuals**2) / df)) if df else np.nan, df)


def sd_interval(noise: Noise) -> tuple[float, float]:
    """Return the 95 % chi-square interval of the standard deviation of normal repetitions."""
    low, high = noise.sd * np.sqrt(
        noise.df / stats.chi2.ppf([(1 + 0.95) / 2, (1 - 0.95) / 2], noise.df)
    )
    return float(low), float(high)


def mean_against_mean(
    ours: Means, others: Means, noise: Noise, *, confidence: float = 0.95
) -> Interval:
    """Return the mean of our means less that of the others, its t interval and two-sided p.

    The noise may be estimated from other groups.
    """
    value = float(ours.values.mean() - others.values.mean())
    error = noise.sd * np.sqrt(
        sum((1 / m.counts).sum() / len(m.counts) ** 2 for m in (ours, others))
    )
    reach = stats.t.ppf((1 + confidence) / 2, noise.df) * error
    p = 2 * stats.t.sf(abs(value) / error, noise.df)
    return Interval(value, float(value - reach), float(value + reach), float(p))


def best_against_best(
    ours: Means, others: Means, noise: Noise, *, confidence: float = 0.95
) -> Interval:
    """Return the best of our means less the best of the others, corrected for choosing the best.

    The interval is of max mu_i - max nu_j = min_j max_i (mu_i - nu_j). For every j, Dunnett's
    (1955) simultaneous lower bounds of mu_i - nu_j give one of the max_i; the lower end is their
    minimum over j. The upper end exchanges the roles. `p` is the one-sided p of an advantage as
    large if all means are equal. Both are simulated with normal noise.
    """
    differences = np.subtract.outer(ours.values, others.values)
    value = float(ours.values.max() - others.values.max())
    if not noise.df:
        return Interval(value)
    counts = (tuple(map(int, means.counts)) for means in (ours, others))
    advantages, above, below = _equal_groups(*counts, noise.df)
    errors = noise.sd * np.sqrt(np.add.outer(1 / ours.counts, 1 / others.counts))
    reach = [np.quantile(side, (1 + confidence) / 2, axis=0).max() for side in (above, below)]
    low = (differences - reach[0] * errors).max(0).min()
    high = (differences + reach[1] * errors).min(1).max()
    p = (1 + np.sum(advantages * noise.sd >= value)) / (1 + len(advantages))
    return Interval(value, float(low), float(high), float(p))


@functools.lru_cache(32)
def _equal_groups(
    ours: tuple[int, ...], others: tuple[int, ...], df: int
) -> tuple[Array, Array, Array]:
    """Simulate groups of equal means, in units of a noise that is estimated with `df`.

    Returns the advantage of our best mean (draws,); the largest standardised difference of our
    means from every other (draws, others), and of the others from every mean of ours (draws, ours).
    """
    random = np.random.default_rng(0)
    sds = np.sqrt(random.chisquare(df, _DRAWS) / df)[:, None]
    counts = [np.array(ours), np.array(others)]
    one, two = (random.normal(size=(_DRAWS, len(n))) / np.sqrt(n) / sds for n in counts)
    errors = np.sqrt(np.add.outer(1 / counts[0], 1 / counts[1]))
    pairs = (one[:, :, None] - two[:, None, :]) / errors
    return one.max(1) - two.max(1), pairs.max(1), (-pairs).max(2)


def jumps(groups: Means, noise: Noise) -> Interval:
    """Return the mean squared successive difference in units of the noise, and its one-sided p.

    Groups are in the order of a parameter; the expectation is 1 if their means are equal.
    """
    if not noise.df or len(groups.values) < 2:
        return Interval(np.nan)
    random, errors = np.random.default_rng(0), 1 / groups.counts[1:] + 1 / groups.counts[:-1]
    equal = random.normal(size=(_DRAWS, len(groups.counts))) / np.sqrt(groups.counts)
    values, null = ((np.diff(v) ** 2 / errors).mean(-1) for v in (groups.values, equal))
    ratio = values / noise.sd**2
    larger = np.sum(null / (random.chisquare(noise.df, _DRAWS) / noise.df) >= ratio)
    return Interval(float(ratio), p=float((1 + larger) / (1 + _DRAWS)))


def order_test(values: Array) -> tuple[float, float]:
    """Return von Neumann's (1941) ratio of values (T, P), averaged over rows, and its p.

    The ratio is the mean squared successive difference over the variance: about 2 for a random
    order of the columns, near 0 for values that vary smoothly. p is the share of all orders of the
    columns, the same in every row, with a ratio as low.
    """
    values = real_array("values", values, ndim=2)
    centred = values - values.mean(1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(1, keepdims=True))
    orders = _orders(values.shape[1])
    squares = sum(((row[orders[:, 1:]] - row[orders[:, :-1]]) ** 2 for row in scaled), np.zeros(()))
    ratios = squares.mean(1) / len(scaled)
    return float(ratios[0]), float(np.mean(ratios <= ratios[0] * (1 + 1e-9)))


@functools.lru_cache(4)
def _orders(places: int) -> NDArray[np.intp]:
    """Return orders (orders, places), the identity first; see `_PLACES`."""
    if places <= _PLACES:
        return np.array(list(permutations(range(places))))
    copies = np.tile(np.arange(places), (_DRAWS, 1))
    return np.vstack([copies[:1], np.random.default_rng(0).permuted(copies, axis=1)])


def spread_ratio(
    between: Noise, within: Noise, repetitions: int, *, confidence: float = 0.95
) -> Interval:
    """Return the sd of group effects over the sd within groups (one-way random effects).

    `between` is the spread of group means of so many `repetitions`; `within` is that of
    repetitions. p is the F test's that groups have no effect.
    """
    f = repetitions * (between.sd / within.sd) ** 2
    tails = [(1 + confidence) / 2, (1 - confidence) / 2]
    ends = f / stats.f.ppf(tails, between.df, within.df)
    value, low, high = np.sqrt(np.maximum(0, np.array([f, *ends]) - 1) / repetitions).tolist()
    return Interval(value, low, high, float(stats.f.sf(f, between.df, within.df)))


def rank_correlation(x: Array, y: Array, *, confidence: float = 0.95) -> Interval:
    """Return Spearman's rho, Bonett and Wright's (2000) interval, and the two-sided p of none."""
    x, y = real_array("x", x, ndim=1), real_array("y", y, ndim=1)
    rho, p = stats.spearmanr(x, y)
    if len(x) <= _PLACES:  # the t approximation needs more values
        ranks = [stats.rankdata(values) - (len(x) + 1) / 2 for values in (x, y)]
        products = np.abs(ranks[0][_orders(len(x))] @ ranks[1])
        p = np.mean(products >= products[0] * (1 - 1e-9))
    reach = stats.norm.ppf((1 + confidence) / 2) * np.sqrt((1 + rho**2 / 2) / (len(x) - 3))
    low, high = np.tanh(np.arctanh(np.clip(rho, -0.9999, 0.9999)) + np.array([-reach, reach]))
    return Interval(float(rho), float(low), float(high), float(p))
