"""Comparisons of the arms of a study, whose units are datasets; blocks hold one of every arm.

Values come as arrays (B,), one a block, in the same order of blocks for all arms. `docs/study.md`
says which of these tests decide, and at which level.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, stats

from belib.arrays import real_array

Array = NDArray[np.float64]


class Difference(NamedTuple):
    """The mean of one arm less that of another."""

    value: float
    low: float
    high: float
    """Ends of Welch's confidence interval."""
    sd: float
    """Root of the mean of the two variances between datasets: the unit of effect sizes."""
    p: float
    """Of no difference, by Welch's t test, two-sided."""
    p_permuted: float
    """The same by exchanging the two arms within blocks: exact, or from 100,000 draws."""
    p_different: float
    """Of a difference of `margin` or more, by two one-sided Welch tests: small if equivalent."""


def compare(
    one: ArrayLike,
    other: ArrayLike,
    *,
    margin: float = 0.5,
    confidence: float = 0.95,
    draws: int = 100_000,
) -> Difference:
    """Compare two arms (B,) of at least two blocks; `margin` is in standard deviations.

    `draws` are the permutations where there are more. Variances need not be equal (Welch 1947);
    equivalence is Schuirmann's (1987).
    """
    x, y = _blocks(one, other)
    test = stats.ttest_ind(x, y, equal_var=False)
    low, high = test.confidence_interval(confidence)
    sd = float(np.sqrt((x.var(ddof=1) + y.var(ddof=1)) / 2))
    sides = (("greater", margin), ("less", -margin))
    p_sides = [
        stats.ttest_ind(x + shift * sd, y, equal_var=False, alternative=side).pvalue
        for side, shift in sides
    ]
    value = float(x.mean() - y.mean())
    ends = (value, float(low), float(high), sd, float(test.pvalue))
    return Difference(*ends, permutation_p(x, y, draws=draws), float(max(p_sides)))


def permutation_p(
    one: ArrayLike, other: ArrayLike, *, draws: int = 100_000, seed: int = 0
) -> float:
    """Return p of no difference, two-sided, where arms are exchanged within blocks."""
    x, y = _blocks(one, other)
    test = stats.permutation_test(
        (x, y),
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
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1)
    return adjusted


def verdict(p: float, p_different: float, value: float, *, level: float = 0.05) -> str:
    """Return `better`, `worse`, `equivalent` or `undecided` of a comparison.

    Args:
        p: of no difference, adjusted for how many were tried.
        p_different: of a difference beyond the margin, adjusted likewise.
        value: the difference.
    """
    if p < level:
        return "better" if value > 0 else "worse"
    return "equivalent" if p_different < level else "undecided"


def power(blocks: int, effect: float, *, level: float = 0.05) -> float:
    """Return the chance that a two-sided t test of two arms finds an effect, in sd, at a level."""
    df, shift = 2 * blocks - 2, effect * np.sqrt(blocks / 2)
    reach = stats.t.ppf(1 - level / 2, df)
    return float(stats.ncf.sf(reach**2, 1, df, shift**2))  # t squared is F


def detectable(blocks: int, *, level: float = 0.05, chance: float = 0.8) -> float:
    """Return the effect, in sd, that so many blocks find with a chance.

    >>> round(detectable(40), 2), round(detectable(6), 1)
    (0.63, 1.8)
    """
    return float(optimize.brentq(lambda e: power(blocks, e, level=level) - chance, 1e-6, 10.0))


def variance_components(values: Sequence[ArrayLike]) -> dict[str, float]:
    """Return the variances that datasets, learner seeds and checkpoints add to an evaluation.

    Args:
        values: one array a dataset, (seeds, checkpoints), all of one shape.

    Expected mean squares of a balanced nested design (Searle et al. 1992, chapter 3). Estimates of
    a component that is small may be negative, and are not cut off.
    """
    table = real_array("values", np.stack([real_array("values", each, ndim=2) for each in values]))
    if min(table.shape) < 2:
        raise ValueError(f"values must be of 2 datasets, seeds, checkpoints, got {table.shape}")
    seeds, checkpoints = table.shape[1:]
    policy, dataset = table.mean(2), table.mean((1, 2))
    within = table.var(axis=2, ddof=1).mean()
    between_seeds = checkpoints * policy.var(axis=1, ddof=1).mean()
    between_datasets = seeds * checkpoints * dataset.var(ddof=1)
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
