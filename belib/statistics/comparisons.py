"""Comparisons of the arms of a study with datasets as units, collected in blocks of all arms.

Values are arrays (B,), one value a block, with blocks in one order. `docs/study.md` says which of
these tests decide, and at which level.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats

from belib.arrays import real_array
from belib.statistics import Array


class Difference(NamedTuple):
    """The mean of one arm less that of another."""

    value: float
    low: float
    high: float
    """Ends of Welch's confidence interval."""
    sd: float
    """Root of the mean variance between datasets of the two arms: the unit of effect sizes."""
    p: float
    """Welch's two-sided t test of no difference."""
    p_permuted: float
    """The permutation test of no difference."""
    p_different: float
    """Two one-sided Welch tests of a difference of `margin` or more: small for equivalent arms."""


def compare(
    one: ArrayLike,
    other: ArrayLike,
    *,
    margin: float = 0.5,
    confidence: float = 0.95,
    draws: int = 100_000,
) -> Difference:
    """Compare two arms (B,) of two or more blocks.

    Variances may differ (Welch 1947). Equivalence (Schuirmann 1987) has a `margin` in standard
    deviations; `draws` are those of `permutation_p`.
    """
    x, y = _blocks(one, other)
    test = stats.ttest_ind(x, y, equal_var=False)
    low, high = map(float, test.confidence_interval(confidence))
    sd = float(np.sqrt((x.var(ddof=1) + y.var(ddof=1)) / 2))
    p_different = max(
        float(stats.ttest_ind(x + shift * sd, y, equal_var=False, alternative=side).pvalue)
        for side, shift in (("greater", margin), ("less", -margin))
    )
    p_permuted = permutation_p(x, y, draws=draws)
    value = float(x.mean() - y.mean())
    return Difference(value, low, high, sd, float(test.pvalue), p_permuted, p_different)


def permutation_p(
    one: ArrayLike, other: ArrayLike, *, draws: int = 100_000, seed: int = 0
) -> float:
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
        rng=np.random.default_rng(seed),
    )
    return float(test.pvalue)


def holm(p: ArrayLike) -> Array:
    """Return p-values (m,) adjusted for m tests by Holm's (1979) method, in their order.

    >>> holm([0.01, 0.04, 0.03]).round(3)
    array([0.03, 0.06, 0.06])
    """
    p = real_array("p", p, ndim=1)
    order = p.argsort()
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(adjusted, 1)


def verdict(p: float, p_different: float, value: float, *, level: float = 0.05) -> str:
    """Return `better`, `worse`, `equivalent` or `undecided` for a `Difference`.

    Both p-values are adjusted for the number of comparisons.
    """
    if p < level:
        return "better" if value > 0 else "worse"
    return "equivalent" if p_different < level else "undecided"


def power(blocks: int, effect: float, *, level: float = 0.05) -> float:
    """Return the power of a two-sided t test of two arms for an effect in standard deviations."""
    df, shift = 2 * blocks - 2, effect * np.sqrt(blocks / 2)
    critical = stats.t.ppf(1 - level / 2, df)
    return float(stats.ncf.sf(critical**2, 1, df, shift**2))  # t squared is F


def detectable(blocks: int, *, level: float = 0.05, chance: float = 0.8) -> float:
    """Return the effect, in standard deviations, for which the test has a power of `chance`.

    >>> round(detectable(40), 2), round(detectable(6), 1)
    (0.63, 1.8)
    """
    return float(optimize.brentq(lambda e: power(blocks, e, level=level) - chance, 1e-6, 10.0))


def variance_components(values: Sequence[ArrayLike]) -> dict[str, float]:
    """Return the variances that datasets, learner seeds and checkpoints add to an evaluation.

    Values are one array (seeds, checkpoints) a dataset, all of one shape. Estimates are those of a
    balanced nested design (Searle et al. 1992, chapter 3); small ones may be negative.
    """
    table = real_array("values", np.stack([real_array("values", v, ndim=2) for v in values]))
    if min(table.shape) < 2:
        raise ValueError(f"values must be of 2 datasets, seeds, checkpoints, got {table.shape}")
    seeds, checkpoints = table.shape[1:]
    # mean squares
    within = table.var(axis=2, ddof=1).mean()
    between_seeds = checkpoints * table.mean(2).var(axis=1, ddof=1).mean()
    between_datasets = seeds * checkpoints * table.mean((1, 2)).var(ddof=1)
    return {
        "dataset": float((between_datasets - between_seeds) / (seeds * checkpoints)),
        "seed": float((between_seeds - within) / checkpoints),
        "checkpoint": float(within),
    }


def _blocks(one: ArrayLike, other: ArrayLike) -> tuple[Array, Array]:
    x, y = real_array("one", one, ndim=1), real_array("other", other, ndim=1)
    if len(x) != len(y) or len(x) < 2:
        raise ValueError(f"arms must have the same blocks, 2 or more, got {len(x)} and {len(y)}")
    return x, y
