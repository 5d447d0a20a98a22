"""Statistics over runs, as rliable (Agarwal et al. 2021) defines them, and over few repetitions.

Runs come as one array a task, which may differ in length, so that no axis can be mistaken. Groups
of few repetitions share one spread, `Noise`, which is pooled over all that were repeated.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from belib.arrays import real_array

_DRAWS = 20_000  # of simulations, always the same ones
_PLACES = 8  # that have 40,320 orders; of more, some are drawn

Runs = Sequence[NDArray[np.float64]]
"""For each task the scores of its runs, (R,)."""


def interquartile_mean(runs: Runs) -> NDArray[np.float64]:
    """The mean of the middle half of all runs of all tasks, of scores (..., R); NaN without any.

    >>> float(interquartile_mean([np.array([0.0, 1.0, 2.0]), np.array([3.0, 1000.0])]))
    2.0
    """
    scores = np.concatenate([real_array("runs", each) for each in runs], -1)
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
    """`runs` as a list of one array a task; ValueError for a matrix, whose axes say nothing, and
    for scores that are missing: a run without one is left out."""
    if isinstance(runs, np.ndarray) or any(np.ndim(each) != 1 for each in runs):
        shape = np.shape(runs)
        raise ValueError(f"runs must be a sequence of one array (R,) a task, got shape {shape}")
    return [real_array("runs", each, ndim=1) for each in runs]


class Noise(NamedTuple):
    """The spread of equal repetitions."""

    sd: float
    """NaN where nothing was repeated."""
    df: int
    """Its degrees of freedom."""


class Interval(NamedTuple):
    """A number with its confidence interval and a p-value, which each function explains."""

    value: float
    low: float
    high: float
    p: float


class Means(NamedTuple):
    """Means of groups (G,) and how many repetitions (G,) each is of."""

    values: NDArray[np.float64]
    counts: NDArray[np.intp]


def pooled_noise(groups: Iterable[NDArray[np.float64]]) -> Noise:
    """The standard deviation within groups, taken to be one for all; those of one tell nothing."""
    groups = [real_array("groups", group, ndim=1) for group in groups]
    df = sum(len(group) - 1 for group in groups)
    squares = sum(((group - group.mean()) ** 2).sum() for group in groups)
    return Noise(float(np.sqrt(squares / df)) if df else np.nan, df)


def crossed_noise(values: NDArray[np.float64]) -> Noise:
    """The standard deviation of rows by columns (R, C) that neither of them explains.

    NaN are missing; with some, what rows and columns explain is taken from the means that are left.
    """
    values = real_array("values", values, ndim=2, finite=False)
    means = [np.nanmean(values, axis=axis, keepdims=True) for axis in (0, 1)]
    left = values - means[0] - means[1] + np.nanmean(values)
    df = np.isfinite(left).sum() - sum(values.shape) + 1
    return Noise(float(np.sqrt(np.nansum(left**2) / df)) if df > 0 else np.nan, max(0, int(df)))


def sd_interval(noise: Noise, *, confidence: float = 0.95) -> tuple[float, float]:
    """The chi-square interval of a standard deviation of normal repetitions."""
    if not noise.df:
        return np.nan, np.nan
    tails = stats.chi2.ppf([(1 + confidence) / 2, (1 - confidence) / 2], noise.df)
    low, high = noise.sd * np.sqrt(noise.df / tails)
    return float(low), float(high)


def contrast(
    groups: Means, weights: NDArray[np.float64], noise: Noise, *, confidence: float = 0.95
) -> Interval:
    """A weighted sum of group means with a t interval; p of no difference, two-sided.

    The noise is common to the groups and may have been measured on others.
    """
    value = float(weights @ groups.values)
    if not noise.df:
        return Interval(value, np.nan, np.nan, np.nan)
    error = noise.sd * np.sqrt((weights**2 / groups.counts).sum())
    reach = stats.t.ppf((1 + confidence) / 2, noise.df) * error
    p = 2 * stats.t.sf(abs(value) / error, noise.df)
    return Interval(value, float(value - reach), float(value + reach), float(p))


def best_against_best(
    ours: Means, others: Means, noise: Noise, *, confidence: float = 0.95
) -> Interval:
    """The best mean of some groups less the best of others, which were both chosen by looking.

    The interval is of max mu_i - max nu_j = max_i min_j (mu_i - nu_j), so that the choice is paid
    for. Its lower end is right where, against the best of the others, differences to all of ours
    are bounded at once (Dunnett 1955); which other is the best is not known, so the least of these
    ends is taken; the upper end the other way round. `p` is the chance of such an advantage, or a
    larger one, where all groups are equal: the best of eight is above one most of the time. Both
    are simulated with normal noise.
    """
    apart = np.subtract.outer(ours.values, others.values)
    value = float(ours.values.max() - others.values.max())
    if not noise.df:
        return Interval(value, np.nan, np.nan, np.nan)
    counts = (tuple(map(int, each.counts)) for each in (ours, others))
    advantages, above, below = _equal_groups(*counts, noise.df)
    errors = noise.sd * np.sqrt(np.add.outer(1 / ours.counts, 1 / others.counts))
    reach = [np.quantile(each, (1 + confidence) / 2, axis=0).max() for each in (above, below)]
    low = (apart - reach[0] * errors).max(0).min()
    high = (apart + reach[1] * errors).min(1).max()
    p = (1 + np.sum(advantages * noise.sd >= value)) / (1 + len(advantages))
    return Interval(value, float(low), float(high), float(p))


@functools.lru_cache(32)
def _equal_groups(
    ours: tuple[int, ...], others: tuple[int, ...], df: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Of equal groups of so many repetitions, in units of a noise known with `df`.

    The advantage (draws,) of our best mean; the largest standardised difference of all of ours
    above each other (draws, others), and of all others above each of ours (draws, ours).
    """
    random = np.random.default_rng(0)
    sds = np.sqrt(random.chisquare(df, _DRAWS) / df)[:, None]
    counts = [np.array(each) for each in (ours, others)]
    one, two = (random.normal(size=(_DRAWS, len(n))) / np.sqrt(n) / sds for n in counts)
    errors = np.sqrt(np.add.outer(1 / counts[0], 1 / counts[1]))
    pairs = (one[:, :, None] - two[:, None, :]) / errors
    return one.max(1) - two.max(1), pairs.max(1), (-pairs).max(2)


def jumps(groups: Means, noise: Noise) -> tuple[float, float]:
    """Mean squared successive difference over the noise's; p of one as large from noise alone.

    Groups are in the order of their parameter; 1 is what equal groups give on average.
    """

    def ratio(values: NDArray[np.float64]) -> NDArray[np.float64]:
        errors = 1 / groups.counts[1:] + 1 / groups.counts[:-1]
        return (np.diff(values, axis=-1) ** 2 / errors).mean(-1)

    if not noise.df or len(groups.values) < 2:
        return np.nan, np.nan
    random = np.random.default_rng(0)
    found = ratio(groups.values) / noise.sd**2
    alone = ratio(random.normal(size=(_DRAWS, len(groups.counts))) / np.sqrt(groups.counts))
    larger = np.sum(alone / (random.chisquare(noise.df, _DRAWS) / noise.df) >= found)
    return float(found), float((1 + larger) / (1 + _DRAWS))


def order_test(values: NDArray[np.float64]) -> tuple[float, float]:
    """Von Neumann's ratio of ordered values (T, P), averaged over the T rows, and its p.

    Mean squared successive difference over the variance: about 2 where the order of
    the P columns says nothing, towards 0 where values vary smoothly along it (von Neumann 1941). p
    is the share of all orders of the columns, the same for all rows, with a ratio as low.
    """
    values = real_array("values", values, ndim=2)
    apart = values - values.mean(1, keepdims=True)
    apart = apart / np.sqrt((apart**2).mean(1, keepdims=True))
    rows = _orders(values.shape[1])
    steps = ((each[rows[:, 1:]] - each[rows[:, :-1]]) ** 2 for each in apart)
    squares = sum(steps, np.zeros(()))
    ratios = squares.mean(1) / len(apart)
    return float(ratios[0]), float(np.mean(ratios <= ratios[0] * (1 + 1e-9)))


@functools.lru_cache(4)
def _orders(places: int) -> NDArray[np.intp]:
    """All orders of so many places, or some, the first one unchanged: (orders, places)."""
    if places <= _PLACES:
        return np.array(list(permutations(range(places))))
    tries = np.tile(np.arange(places), (_DRAWS, 1))
    return np.vstack([tries[:1], np.random.default_rng(0).permuted(tries, axis=1)])


def spread_ratio(
    between: Noise, within: Noise, repetitions: int, *, confidence: float = 0.95
) -> Interval:
    """The sd that groups add to the sd within them, over the latter (one-way random effects).

    Args:
        between: of group means of so many `repetitions` each.
        within: of repetitions in a group.

    p is that of the F test that groups add nothing.
    """
    f = repetitions * (between.sd / within.sd) ** 2
    tails = [(1 + confidence) / 2, (1 - confidence) / 2]
    low, high = f / stats.f.ppf(tails, between.df, within.df)
    p = float(stats.f.sf(f, between.df, within.df))
    value, low, high = (np.sqrt(max(0.0, each - 1) / repetitions) for each in (f, low, high))
    return Interval(float(value), float(low), float(high), p)


def rank_correlation(
    x: NDArray[np.float64], y: NDArray[np.float64], *, confidence: float = 0.95
) -> Interval:
    """Spearman's rho with Bonett and Wright's (2000) interval; p of none, two-sided."""
    x, y = real_array("x", x, ndim=1), real_array("y", y, ndim=1)
    rho, p = stats.spearmanr(x, y)
    if len(x) <= _PLACES:  # too few for the usual approximation: all orders
        ranks = [stats.rankdata(each) - (len(x) + 1) / 2 for each in (x, y)]
        products = np.abs(ranks[0][_orders(len(x))] @ ranks[1])
        p = np.mean(products >= products[0] * (1 - 1e-9))
    reach = stats.norm.ppf((1 + confidence) / 2) * np.sqrt((1 + rho**2 / 2) / (len(x) - 3))
    low, high = np.tanh(np.arctanh(np.clip(rho, -0.9999, 0.9999)) + np.array([-reach, reach]))
    return Interval(float(rho), float(low), float(high), float(p))
