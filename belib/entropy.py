"""Entropies of probability mass functions and of densities, in nats.

Densities are given by their logarithms, and integrated over a box of one or two dimensions.
"""

import math
from collections.abc import Callable

import numpy as np
import scipy  # imports its parts at first use
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, lambertw, log_softmax, logsumexp

from belib.arrays import check_positive, real_array, whole_number
from belib.quadrature import Bounds, Integral, LogDensity, integrate_density
from belib.weighting import Prelec, entropy_term, prelec_beta


def shannon_entropy(pmf: ArrayLike, *, axis: int = -1) -> NDArray[np.float64]:
    """Return Shannon's entropy -sum p log p of pmfs along `axis`, nats (paper, section 2).

    Raise ValueError unless entries are at least 0 and sum to 1.

    >>> shannon_entropy([[0.5, 0.25, 0.25], [1, 0, 0]]).round(4)
    array([1.0397, 0.    ])
    """
    return entr(_checked_pmf(pmf, axis)).sum(axis)


def renyi_entropy(pmf: ArrayLike, *, q: float, axis: int = -1) -> NDArray[np.float64]:
    """Return Renyi's entropy log(sum p^q) / (1 - q) of pmfs along `axis`, nats (paper, section 2).

    q > 0. It is Shannon's entropy at q = 1, and -log max p at q = inf.
    Raise ValueError for a q or a pmf out of range.

    >>> [float(renyi_entropy([0.5, 0.25, 0.25], q=q).round(4)) for q in (0.5, 1, 2, np.inf)]
    [1.0696, 1.0397, 0.9808, 0.6931]
    """
    pmf = _checked_pmf(pmf, axis)
    if np.ndim(q) == 0 and q == np.inf:
        return -np.log(pmf.max(axis))
    check_positive(q=q)
    if q == 1:
        return shannon_entropy(pmf, axis=axis)
    with np.errstate(divide="ignore"):
        log_p = np.log(pmf)
    if abs(q - 1) < 0.1:  # sum p^q - 1, without cancellation
        excess = pmf * np.expm1((q - 1) * np.where(pmf > 0, log_p, 0.0))
        return np.log1p(excess.sum(axis)) / (1 - q)
    peak = log_p.max(axis, keepdims=True)  # subtracted, because q log p may overflow
    rest = logsumexp(q * (log_p - peak), axis=axis)
    return peak.squeeze(axis) * (q / (1 - q)) + rest / (1 - q)


def behavioral_entropy(
    pmf: ArrayLike, *, alpha: float, beta: float | None = None, axis: int = -1
) -> NDArray[np.float64]:
    """Return behavioral entropy -sum w(p) log w(p) of pmfs along `axis`, nats (paper, equation 4).

    w is Prelec's weighting. `beta=None` means `prelec_beta(alpha, M)`, M the pmf's length. Then the
    uniform pmf has the entropy log M, the largest up to alpha = `largest_admissible_alpha(M)`.
    Raise ValueError for a pmf or parameters out of range.

    Rare outcomes gain weight if alpha < 1, and lose weight if alpha > 1:

    >>> pmf = [0.97, 0.01, 0.01, 0.01]
    >>> [float(behavioral_entropy(pmf, alpha=alpha).round(4)) for alpha in (0.5, 1, 2)]
    [0.7731, 0.1677, 0.0007]
    """
    pmf = _checked_pmf(pmf, axis)
    beta = prelec_beta(alpha, pmf.shape[axis]) if beta is None else beta
    with np.errstate(divide="ignore"):
        return entropy_term(Prelec(alpha, beta), np.log(pmf)).sum(axis)


def largest_admissible_alpha(n_outcomes: int) -> float:
    """Return the alpha above which behavioral entropy is not admissible; inf for M <= 5.

    Just above it, a uniform pmf on some m < M outcomes has more entropy than that on all M =
    `n_outcomes`; far above, other pmfs do. beta is `prelec_beta(alpha, M)`.

    With L = log M and t = (log m / L)^alpha the entropy on m outcomes is m t exp(-L t) L. It equals
    L at t = -W(-L / m) / L, in Lambert's branch -1; t falls as alpha grows.
    """
    n_outcomes = whole_number("n_outcomes", n_outcomes, least=2)
    log_m, size = np.log(n_outcomes), np.arange(2, n_outcomes)
    size = size[size >= np.e * log_m]  # m t exp(-L t) < 1 for all t if m is smaller
    t = -lambertw(-log_m / size, -1).real / log_m
    ratio = np.log(size) / log_m
    reached = t < ratio  # t = log m / L at alpha = 1
    return float(np.min(np.log(t[reached]) / np.log(ratio[reached]), initial=np.inf))


def maximizing_pmf(
    n_outcomes: int, *, alpha: float, start: NDArray | None = None
) -> NDArray[np.float64]:
    """Return the pmf (M,) with the most behavioral entropy, M = `n_outcomes`, beta for M.

    It is the best of several ascents in the logits; a better one may exist. They begin at the pmf
    `start`, at the uniform pmf, and at pmfs that are nearly uniform on the m outcomes most probable
    in `start`, for every m < M.

    >>> maximizing_pmf(6, alpha=5.0).round(3)
    array([0.2, 0.2, 0.2, 0.2, 0.2, 0. ])
    """
    n_outcomes = whole_number("n_outcomes", n_outcomes, least=2)
    weighting = Prelec(alpha, prelec_beta(alpha, n_outcomes))
    uniform = np.full(n_outcomes, 1 / n_outcomes)
    start = uniform if start is None else real_array("start", start, ndim=1)
    if len(start) != n_outcomes:
        raise ValueError(f"start must have n_outcomes = {n_outcomes} entries, got {len(start)}")
    rank = np.argsort(np.argsort(-start, kind="stable"))
    parts = [np.where(rank < m, 1.0, 0.02) for m in range(1, n_outcomes)]

    def loss(logits: NDArray) -> float:
        return -entropy_term(weighting, log_softmax(logits)).sum()

    starts = [np.log(np.maximum(pmf, 1e-6)) for pmf in (uniform, start, *parts)]
    ends = [scipy.optimize.minimize(loss, logits, method="L-BFGS-B") for logits in starts]
    best = min(ends, key=lambda end: round(end.fun, 9))  # the first, uniform one of ties
    return np.exp(log_softmax(best.x))


def differential_behavioral_entropy(
    log_density: LogDensity,
    bounds: Bounds,
    *,
    alpha: float,
    beta: float = 1.0,
    extension: str = "identity",
    reference_volume: float = 1.0,
) -> Integral:
    """Return beta int exp(-beta (-log f)^alpha) (-log f)^alpha dx, nats (paper, equation 8).

    See `differential_generalized_entropy`. alpha = beta = 1 is Shannon's entropy. It is finite for
    every alpha if tails are Gaussian or exponential, and infinite for alpha < 1 if they are power
    laws.

    >>> from scipy import stats
    >>> real_line = [(-np.inf, np.inf)]
    >>> entropy = differential_behavioral_entropy(stats.norm.logpdf, real_line, alpha=0.5)
    >>> print(f"{entropy.value:.6f} nats")
    2.913570 nats
    """
    options = {"weighting": Prelec(alpha, beta, extension), "reference_volume": reference_volume}
    return differential_generalized_entropy(log_density, bounds, **options)


def differential_generalized_entropy(
    log_density: LogDensity, bounds: Bounds, *, weighting: Callable, reference_volume: float = 1.0
) -> Integral:
    """Return -int w(f) log w(f) dx of a density, nats (paper, equation 7).

    Args:
        log_density: maps x (...), or points (..., 2) in two dimensions, to log f (...), as scipy's
            `logpdf` does.
        bounds: one or two pairs (low, high); ends may be infinite.
        weighting: a `belib.weighting.Weighting`, or any function of f.
        reference_volume: v > 0, a volume in x's units; f is then taken per v instead of per unit.

    Return (value, error); error <= 1e-8 max(1, |value|), or 1e-5 max(1, |value|) in two dimensions.

    Raise ValueError if the integral is infinite or cannot be resolved (f may be infinite only at
    x = 0), and if the density does not integrate to 1.
    """
    check_positive(reference_volume=reference_volume)
    log_v = np.log(reference_volume)

    def term(log_f: NDArray) -> NDArray:
        return entropy_term(weighting, log_f + log_v, log_v)

    return integrate_density(log_density, bounds, term, -log_v, f"the entropy of {weighting}")


def _checked_pmf(pmf: ArrayLike, axis: int) -> NDArray[np.float64]:
    """Return a checked pmf, normalised to sum to 1 in float64."""
    pmf, axis = real_array("pmf", pmf, finite=False), whole_number("axis", axis, least=-math.inf)
    if not (pmf >= 0).all():
        raise ValueError(f"pmf must be at least 0 everywhere, got {pmf[~(pmf >= 0)].flat[0]}")
    total = pmf.sum(axis, keepdims=True)
    if not (np.abs(total - 1) < 1e-6).all():
        worst = total.flat[np.argmax(np.abs(total - 1))]
        raise ValueError(f"pmf must sum to 1 along axis {axis}, got {worst}")
    return pmf / total
