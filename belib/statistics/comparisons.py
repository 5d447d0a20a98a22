"""Comparisons of arms whose units are datasets. `docs/study.md` says which of these tests decide.

Arms are arrays (n,), one value per dataset. Their variances may differ (Welch 1947).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats

from belib.arrays import real_array
from belib.statistics import Array, Interval

LEVEL, MARGIN = 0.05, 0.5  # of tests; of equivalence, in standard deviations


class Difference(NamedTuple):
    """The mean of one arm less that of another, with Welch's interval from `low` to `high`.

    Attributes:
        p: Welch's two-sided t test of no difference.
        sd: root of the two arms' mean variance, the unit of effect sizes.
        p_different: Schuirmann's (1987) test of a difference of `MARGIN` sd or more, small for
            equivalent arms.
    """

    value: float
    low: float
    high: float
    p: float
    sd: float
    p_different: float


def compare(one: ArrayLike, other: ArrayLike, *, level: float = LEVEL) -> Difference:
    """Compare two arms of two or more datasets; the interval has the confidence 1 - `level`."""
    x, y = _arms(one, other)
    test = stats.ttest_ind(x, y, equal_var=False)
    interval = test.confidence_interval(1 - level)
    sd = float(np.sqrt((x.var(ddof=1) + y.var(ddof=1)) / 2))
    above, below = (
        stats.ttest_ind(x + shift * sd, y, equal_var=False, alternative=side).pvalue
        for side, shift in (("greater", MARGIN), ("less", -MARGIN))
    )
    numbers = (x.mean() - y.mean(), *interval, test.pvalue, sd, max(above, below))
    return Difference(*map(float, numbers))


def permutation_p(one: ArrayLike, other: ArrayLike, *, draws: int = 100_000) -> float:
    """Return the two-sided p of no difference if two arms are exchanged within blocks.

    Block i is the pair one[i], other[i]. The p is exact with up to `draws` permutations, and
    otherwise from `draws` random ones.
    """
    arms = _arms(one, other)
    if len(arms[0]) != len(arms[1]):
        raise ValueError(f"arms must have equal lengths, got {len(arms[0])} and {len(arms[1])}")
    options = {"permutation_type": "samples", "vectorized": True, "batch": 1000, "rng": 0}
    difference = lambda x, y, axis: (x - y).mean(axis)  # noqa: E731
    return float(stats.permutation_test(arms, difference, n_resamples=draws, **options).pvalue)


def best_of(ours: Sequence[Array], others: Sequence[Array], *, level: float = LEVEL) -> Interval:
    """Return the best of our arms' means less the best of the others, and its interval and p.

    For each of our arms take the lowest of its intervals' lower ends, one interval per other arm,
    at a level divided by the number of our arms; `low` is the highest of these (intersection-union
    test, Berger 1982). `high` exchanges the roles. `p` is one-sided: the best of ours is not ahead.
    """
    lows, highs, p = (np.empty((len(ours), len(others))) for _ in range(3))
    for i, j in np.ndindex(p.shape):
        test = stats.ttest_ind(*_arms(ours[i], others[j]), equal_var=False)
        lows[i, j] = test.confidence_interval(1 - level / len(ours)).low
        highs[i, j] = test.confidence_interval(1 - level / len(others)).high
        p[i, j] = test.pvalue / 2 if test.statistic > 0 else 1 - test.pvalue / 2
    value = max(np.mean(arm) for arm in ours) - max(np.mean(arm) for arm in others)
    ends = float(lows.min(1).max()), float(highs.max(0).min())
    return Interval(float(value), *ends, min(1.0, len(ours) * float(p.max(1).min())))


def spread_ratio(one: ArrayLike, other: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Return the variance of one array (n,) over that of another, and the F test's two-sided p."""
    x, y = _arms(one, other)
    ratio, df = float(x.var(ddof=1) / y.var(ddof=1)), (len(x) - 1, len(y) - 1)
    low, high = ratio / stats.f.ppf([1 - level / 2, level / 2], *df)
    tail = min(stats.f.cdf(ratio, *df), stats.f.sf(ratio, *df))
    return Interval(ratio, float(low), float(high), float(min(1, 2 * tail)))


def holm(p: ArrayLike) -> Array:
    """Return p-values (m,) adjusted for m tests by Holm's (1979) method, in their order."""
    p = real_array("p", p, ndim=1)
    order = p.argsort()
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(adjusted, 1)


def verdict(p: float, p_different: float, value: float) -> str:
    """Return `better`, `worse`, `equivalent` or `undecided` for a `Difference`.

    The caller adjusts both p-values for the number of comparisons, for example with `holm`.
    """
    if p < LEVEL:
        return "better" if value > 0 else "worse"
    return "equivalent" if p_different < LEVEL else "undecided"


def detectable(datasets: float, *, level: float = LEVEL, power: float = 0.8) -> float:
    """Return the effect, in standard deviations, that a two-sided t test of two arms finds.

    `power` is the probability to find it with so many datasets an arm.

    >>> round(detectable(40), 2), round(detectable(6), 1)
    (0.63, 1.8)
    """
    df = 2 * datasets - 2
    critical = stats.t.ppf(1 - level / 2, df) ** 2  # t squared is F
    short = lambda effect: stats.ncf.sf(critical, 1, df, effect**2 * datasets / 2) - power  # noqa: E731
    return float(optimize.brentq(short, 1e-6, 100.0))


def variance_components(values: ArrayLike) -> dict[str, float]:
    """Return the variances that datasets, learner seeds and checkpoints add to an evaluation.

    Values have the shape (datasets, seeds, checkpoints). Estimates are those of a balanced nested
    design (Searle et al. 1992, chapter 3); small ones may be negative.
    """
    table = real_array("values", values, ndim=3)
    if min(table.shape) < 2:
        raise ValueError(f"values must have 2 or more along each axis, got {table.shape}")
    checkpoint = table.var(axis=2, ddof=1).mean()
    seeds = table.mean(2).var(axis=1, ddof=1).mean()
    datasets = table.mean((1, 2)).var(ddof=1)
    dataset, seed = datasets - seeds / table.shape[1], seeds - checkpoint / table.shape[2]
    return {"dataset": float(dataset), "seed": float(seed), "checkpoint": float(checkpoint)}


def _arms(one: ArrayLike, other: ArrayLike) -> tuple[Array, Array]:
    x, y = real_array("one", one, ndim=1), real_array("other", other, ndim=1)
    if min(len(x), len(y)) < 2:
        raise ValueError(f"arms must have 2 datasets or more, got {len(x)} and {len(y)}")
    return x, y
