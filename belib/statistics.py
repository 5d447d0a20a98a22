"""Statistics of runs, and comparisons of arms whose units are datasets.

Arms are arrays (n,), one value per dataset; their variances may differ (Welch 1947).
`docs/study.md` says which of these tests decide.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from belib.arrays import real_array

Array = NDArray[np.float64]
LEVEL, MARGIN = 0.05, 0.5  # of tests; of equivalence, in standard deviations


class Interval(NamedTuple):
    """An estimate with its confidence interval and p-value."""

    value: float
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan


def interquartile_mean(scores: ArrayLike) -> Interval:
    """Return the mean of the middle half of the scores (R,) of R runs, with a 95 % interval.

    The interval is a percentile bootstrap, as in rliable (Agarwal et al. 2021). It is NaN for
    fewer than two runs; the mean is NaN without runs.

    >>> interquartile_mean([0.0, 1.0, 2.0, 3.0, 1000.0]).value
    2.0
    """
    x = real_array("scores", scores, ndim=1)
    mean = lambda x, axis=-1: stats.trim_mean(x, 0.25, axis)  # noqa: E731
    if len(x) < 2:
        return Interval(float(x.mean()) if len(x) else np.nan)
    options = {"n_resamples": 2000, "method": "percentile", "rng": 0}
    ends = stats.bootstrap([x], mean, **options).confidence_interval
    return Interval(float(mean(x)), float(ends.low), float(ends.high))


def rank_correlation(x: Array, y: Array, *, level: float = LEVEL) -> Interval:
    """Return Spearman's rho of values (n,), and the two-sided permutation p of no correlation.

    The interval, Bonett and Wright's (2000), has the confidence 1 - `level`. n is at least 4.
    """
    x, y = (stats.rankdata(real_array(name, v, ndim=1)) for name, v in (("x", x), ("y", y)))
    rho = float(stats.pearsonr(x, y).statistic)
    products = lambda x, axis: np.tensordot(x, y - y.mean(), (axis, 0))  # noqa: E731
    pairings = {"permutation_type": "pairings", "vectorized": True, "rng": 0}
    test = stats.permutation_test((x,), products, **pairings)
    reach = stats.norm.isf(level / 2) * np.sqrt((1 + rho**2 / 2) / (len(x) - 3))
    low, high = np.tanh(np.arctanh(np.clip(rho, -0.9999, 0.9999)) + np.array([-reach, reach]))
    return Interval(rho, float(low), float(high), float(test.pvalue))


class Difference(NamedTuple):
    """The mean of one arm less that of another, with Welch's interval from `low` to `high`."""

    value: float
    low: float
    high: float
    p: float  # Welch's two-sided t test of no difference
    sd: float  # root of the two arms' mean variance, the unit of effect sizes
    effect: float  # value / sd
    p_equivalence: float  # Schuirmann's (1987) of a difference of `MARGIN` sd or more, either way
    low_90: float  # Welch's interval of 90 %: inside the margin if p_equivalence < 5 %
    high_90: float
    p_levene: float  # of equal variances, about medians (Brown and Forsythe 1974); NaN for two


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
    value = x.mean() - y.mean()
    levene = stats.levene(x, y).pvalue if min(len(x), len(y)) > 2 else np.nan
    numbers = (value, *interval, test.pvalue, sd, value / sd, max(above, below))
    return Difference(*map(float, (*numbers, *test.confidence_interval(1 - 2 * LEVEL), levene)))


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
    test, Berger 1982). `high` exchanges the roles. `p` is one-sided; its null: ours is not ahead.
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
    """Return the variance of one arm over another's, the F test's interval and two-sided p."""
    x, y = _arms(one, other)
    ratio, df = float(x.var(ddof=1) / y.var(ddof=1)), (len(x) - 1, len(y) - 1)
    low, high = ratio / stats.f.ppf([1 - level / 2, level / 2], *df)
    tail = min(stats.f.cdf(ratio, *df), stats.f.sf(ratio, *df))
    return Interval(ratio, float(low), float(high), float(min(1, 2 * tail)))


def holm(p: ArrayLike) -> Array:
    """Return p-values (m,) adjusted for m tests by Holm's (1979) method, in their order.

    NaN stays NaN, and is no test.
    """
    p = real_array("p", p, ndim=1, finite=False)
    order = p.argsort()[: np.isfinite(p).sum()]  # NaN are last
    adjusted = np.full_like(p, np.nan)
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1))
    return np.minimum(adjusted, 1)


def verdict(p: float, p_equivalence: float, value: float) -> str:
    """Return `better`, `worse`, `equivalent` or `undecided` for a `Difference`.

    The caller adjusts p for the number of comparisons, for example with `holm`.
    """
    if p < LEVEL:
        return "better" if value > 0 else "worse"
    return "equivalent" if p_equivalence < LEVEL else "undecided"


FINDINGS = {
    "better": "Data of {} are better to learn from than data of {}",
    "worse": "Data of {} are worse to learn from than data of {}",
    "equivalent": "Data of {} and of {} differ by less than half an sd in what is learnt from them",
    "undecided": "Whether data of {} or of {} are better to learn from is undecided",
    "nothing learnt": "From data of {} or of {} nothing was learnt",
}
"""What a verdict says of two arms."""


def detectable(datasets: float, *, level: float = LEVEL) -> float:
    """Return the effect, in standard deviations, that is seen with a power of 80 %.

    The test is the two-sided t test of two arms of `datasets` each; t squared is noncentral F.

    >>> round(detectable(40), 2), round(detectable(6), 1)
    (0.63, 1.8)
    """
    df = 2 * datasets - 2
    noncentrality = special.ncfdtrinc(1, df, 0.2, stats.f.isf(level, 1, df))
    return float(np.sqrt(2 * noncentrality / datasets))


def _arms(one: ArrayLike, other: ArrayLike) -> tuple[Array, Array]:
    x, y = real_array("one", one, ndim=1), real_array("other", other, ndim=1)
    if min(len(x), len(y)) < 2:
        raise ValueError(f"arms must have 2 datasets or more, got {len(x)} and {len(y)}")
    return x, y
