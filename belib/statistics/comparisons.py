"""Comparisons of the arms of a study with datasets as units, collected in blocks of all arms.

Values are arrays (B,), one value per block, with blocks in one order. `docs/study.md` says which of
these tests decide; their level is 5 %.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats

from belib.arrays import real_array
from belib.statistics import Array

LEVEL = 0.05


class Difference(NamedTuple):
    """The mean of one arm less that of another, with Welch's 95 % interval from `low` to `high`.

    Attributes:
        sd: root of the two arms' mean variance, the unit of effect sizes.
        p: Welch's two-sided t test of no difference.
        p_permuted: the permutation test of no difference.
        p_different: that of a difference of `margin` sd or more, small for equivalent arms.
    """

    value: float
    low: float
    high: float
    sd: float
    p: float
    p_permuted: float
    p_different: float


def compare(
    one: ArrayLike, other: ArrayLike, *, margin: float = 0.5, draws: int = 100_000
) -> Difference:
    """Compare two arms (B,) of two or more blocks.

    Variances may differ (Welch 1947). Equivalence (Schuirmann 1987) has a `margin` in standard
    deviations; `draws` are those of `permutation_p`.
    """
    x, y = _blocks(one, other)
    test = stats.ttest_ind(x, y, equal_var=False)
    low, high = map(float, test.confidence_interval(1 - LEVEL))
    sd = float(np.sqrt((x.var(ddof=1) + y.var(ddof=1)) / 2))
    above, below = (
        stats.ttest_ind(x + shift * sd, y, equal_var=False, alternative=side).pvalue
        for side, shift in (("greater", margin), ("less", -margin))
    )
    p = float(test.pvalue), permutation_p(x, y, draws=draws), float(max(above, below))
    return Difference(float(x.mean() - y.mean()), low, high, sd, *p)


def permutation_p(one: ArrayLike, other: ArrayLike, *, draws: int = 100_000) -> float:
    """Return the two-sided p of no difference if the two arms are exchanged within blocks.

    It is exact with up to `draws` permutations, and otherwise from `draws` random ones.
    """
    test = stats.permutation_test(
        _blocks(one, other),
        lambda x, y, axis: (x - y).mean(axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=draws,
        batch=1000,
        rng=np.random.default_rng(0),
    )
    return float(test.pvalue)


def holm(p: ArrayLike) -> Array:
    """Return p-values (m,) adjusted for m tests by Holm's (1979) method, in their order."""
    p = real_array("p", p, ndim=1)
    order = p.argsort()
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(adjusted, 1)


def verdict(p: float, p_different: float, value: float) -> str:
    """Return `better`, `worse`, `equivalent` or `undecided` for a `Difference`.

    Both p-values are adjusted for the number of comparisons.
    """
    if p < LEVEL:
        return "better" if value > 0 else "worse"
    return "equivalent" if p_different < LEVEL else "undecided"


def power(blocks: int, effect: float, *, level: float = LEVEL) -> float:
    """Return the power of a two-sided t test of two arms for an effect in standard deviations."""
    df, shift = 2 * blocks - 2, effect * np.sqrt(blocks / 2)
    critical = stats.t.ppf(1 - level / 2, df)
    return float(stats.ncf.sf(critical**2, 1, df, shift**2))  # t squared is F


def detectable(blocks: int, *, level: float = LEVEL, chance: float = 0.8) -> float:
    """Return the effect, in standard deviations, for which the test has a power of `chance`.

    >>> round(detectable(40), 2), round(detectable(6), 1)
    (0.63, 1.8)
    """
    return float(optimize.brentq(lambda e: power(blocks, e, level=level) - chance, 1e-6, 10.0))


def variance_components(values: Sequence[ArrayLike]) -> dict[str, float]:
    """Return the variances that datasets, learner seeds and checkpoints add to an evaluation.

    Values have the shape (datasets, seeds, checkpoints). Estimates are those of a balanced nested
    design (Searle et al. 1992, chapter 3); small ones may be negative.
    """
    table = real_array("values", values, ndim=3)
    if min(table.shape) < 2:
        raise ValueError(f"values must be of 2 datasets, seeds, checkpoints, got {table.shape}")
    checkpoint = table.var(axis=2, ddof=1).mean()
    seeds = table.mean(2).var(axis=1, ddof=1).mean()
    datasets = table.mean((1, 2)).var(ddof=1)
    dataset, seed = datasets - seeds / table.shape[1], seeds - checkpoint / table.shape[2]
    return {"dataset": float(dataset), "seed": float(seed), "checkpoint": float(checkpoint)}


def _blocks(one: ArrayLike, other: ArrayLike) -> tuple[Array, Array]:
    x, y = real_array("one", one, ndim=1), real_array("other", other, ndim=1)
    if len(x) != len(y) or len(x) < 2:
        raise ValueError(f"arms must have the same blocks, 2 or more, got {len(x)} and {len(y)}")
    return x, y
