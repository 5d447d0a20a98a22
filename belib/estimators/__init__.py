"""k-nearest-neighbour estimators of densities and entropies from samples, in nats.

They compute with u = -log f, which neither over- nor underflows in 512 dimensions. For many samples
a k-NN density's u is the true u plus the log of a Gamma(k) variable; corrections remove this noise.
"""

import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from functools import cached_property, partial
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln, polygamma

from belib.arrays import check_positive, real_array, whole_number
from belib.estimators.twicing import twiced
from belib.knn import knn_distances
from belib.weighting import Prelec, entropy_term

Array = NDArray[np.float64]
Support = tuple[ArrayLike, ArrayLike]

CORRECTIONS, DUPLICATES = (None, "iterated"), ("raise", "jitter", "drop")
_JITTER = 1e-8  # standard deviations of a column
_GROUPS, _GROUP_SIZE = 64, 500  # for the standard error: groups, and samples of one at most


class Options(TypedDict, total=False):
    """Options of the entropy estimators: see `KNNSample`."""

    k: int
    reference_volume: float
    support: Support | None
    duplicates: str
    seed: int


class CorrectedOptions(Options, total=False):
    """Options of the estimators that have a correction: see `KNNSample`."""

    correction: str | None


@dataclass(frozen=True)
class EntropyEstimate:
    """An entropy (nats) estimated from n samples of d dimensions; `float` returns the value.

    `value` is the mean of `local_values` (n,). `share_above_one` is the share of samples with
    an estimated density above 1, where entropies depend on the weighting's extension.
    """

    value: float
    local_values: Array = field(repr=False)
    n: int
    k: int
    d: int
    share_above_one: float
    _subsample: Callable[[], float] | None = field(repr=False)

    def __float__(self) -> float:
        return self.value

    def __getstate__(self) -> dict[str, Any]:
        """Return all numbers, without the samples, for pickling."""
        return {**vars(self), "standard_error": self.standard_error, "_subsample": None}

    @cached_property
    def standard_error(self) -> float:
        """Standard error of the value from disjoint groups of samples; NaN where n < 8 k.

        It does not include the bias, and assumes a variance proportional to 1/n. Local values are
        dependent, so that their standard deviation / sqrt(n) is up to 20 % too small.
        """
        return self._subsample() if self._subsample else math.nan


def generalized_behavioral_entropy_knn(
    samples: ArrayLike, *, weighting: Callable, **options: Unpack[CorrectedOptions]
) -> EntropyEstimate:
    """Return -int w(f) log w(f) dx from samples of f, nats (paper, equation 13).

    Args:
        samples: (n, d), or (n,) for d = 1.
        weighting: a `belib.weighting.Weighting`, or any function of f.
        options: of `KNNSample`.

    Raise ValueError for samples that are not finite, too few, of a wrong shape, equal, or constant
    in a column; for parameters out of range; and if the value over- or underflows.
    """
    sample = KNNSample(samples, **options)  # u = -log f at each sample, from its neighbours

    def ratio(u: Array) -> Array:  # -w(f) log w(f) / f
        return entropy_term(weighting, -u, -u)

    if sample.correction is None:
        return sample.mean(ratio)
    if isinstance(weighting, Prelec) and weighting.extension == "odd" and weighting.alpha > 1:
        rule = "correction must be None for the odd extension with alpha > 1"
        raise ValueError(f"{rule}: estimates have no finite mean, got {sample.correction!r}")
    return sample.mean(lambda u: twiced(ratio, u, sample.k))


def behavioral_entropy_knn(
    samples: ArrayLike,
    *,
    alpha: float,
    beta: float = 1.0,
    extension: str = "identity",
    **options: Unpack[CorrectedOptions],
) -> EntropyEstimate:
    """Return behavioral entropy with Prelec's weighting (paper, equations 8 and 13).

    For alpha < 1 and unbounded support, estimates are far too low at any sample size: most of the
    integral comes from tails without samples (N(0, 1), alpha = 0.2: 23.5, estimated as 3). The
    following density has the entropy 1.412 nats (`differential_behavioral_entropy`):

    >>> samples = np.random.default_rng(0).beta(2, 2, size=(10_000, 1))
    >>> estimate = behavioral_entropy_knn(4 * samples, alpha=0.5)
    >>> print(f"{estimate.value:.3f} ± {estimate.standard_error:.3f} nats")
    1.422 ± 0.008 nats
    """
    weighting = Prelec(alpha, beta, extension)
    return generalized_behavioral_entropy_knn(samples, weighting=weighting, **options)


def naive_behavioral_entropy_knn(
    samples: ArrayLike, *, alpha: float, beta: float = 1.0, **options: Unpack[Options]
) -> EntropyEstimate:
    """Return the mean of -w(f) log w(f), a mistake for teaching (paper, equation 11).

    Without the division by f it estimates the integral of -w(f) log w(f) f, in other units.
    """
    weighting, sample = Prelec(alpha, beta), KNNSample(samples, **options, correction=None)
    return sample.mean(lambda u: entropy_term(weighting, -u))


def shannon_entropy_knn(samples: ArrayLike, **options: Unpack[CorrectedOptions]) -> EntropyEstimate:
    """Return Shannon's entropy log(n - 1) - psi(k) + mean log(V_d R^d) (Kozachenko, Leonenko 1987).

    `correction=None` is the paper's plug-in, log n - log k + mean log(V_d R^d) (equation 10). In
    many dimensions balls are wide and estimates too high: by 1 nat for n = 100,000 at d = 24.
    """
    return KNNSample(samples, **options).mean(lambda u: u)


def renyi_entropy_knn(
    samples: ArrayLike, *, q: float, **options: Unpack[Options]
) -> EntropyEstimate:
    """Return Renyi's entropy of order q, 0 < q < k + 1 (Leonenko, Pronzato and Savani 2008).

    log(mean ((n - 1) V_d R^d)^(1 - q) Gamma(k) / Gamma(k + 1 - q)) / (1 - q), and Shannon's entropy
    at q = 1. Local values are its linearisation, whose mean is the value.
    """
    check_positive("q", q)
    sample, y = KNNSample(samples, **options, correction="iterated"), 1 - q
    if q >= sample.k + 1:
        raise ValueError(f"q must be above 0 and below k + 1 = {sample.k + 1}, got {q}")

    def local(u: Array) -> Array:
        log_power = y * u + _log_gamma_ratio(sample.k, y)
        peak = log_power.max(-1, keepdims=True)
        log_mean = peak + np.log1p(np.expm1(log_power - peak).mean(-1, keepdims=True))
        return (log_mean + np.expm1(log_power - log_mean)) / y

    return sample.mean(local if y else lambda u: u)


def _log_gamma_ratio(k: int, y: float) -> float:
    """Return y psi(k) + log Gamma(k) - log Gamma(k + y), without cancellation near y = 0."""
    if abs(y) < 1e-4:  # Taylor series
        return -float(polygamma(1, k) * y**2 / 2 + polygamma(2, k) * y**3 / 6)
    return y * digamma(k) + gammaln(k) - gammaln(k + y)


def knn_density(
    samples: ArrayLike, *, k: int = 5, log: bool = False, duplicates: str = "raise", seed: int = 0
) -> Array:
    """Return k-NN densities at the samples, (n,), or their logarithms (paper, equation 9).

    f(x) = k / (n V_d R_k(x)^d); R_k is the distance to the k-th neighbour, the point excluded.
    """
    log_f = -KNNSample(samples, k=k, correction=None, duplicates=duplicates, seed=seed).u
    if log:
        return log_f
    with np.errstate(over="ignore", under="ignore"):
        density = np.exp(log_f)
    if density.min() == 0 or density.max() == np.inf:
        raise ValueError(f"densities e^{log_f.min():.4g} to e^{log_f.max():.4g}: use log=True")
    return density


@dataclass
class KNNSample:
    """Checked samples `points` (n, d), and u = -log f (n,) of their k-NN densities f.

    Args:
        k: neighbours, below n.
        correction: "iterated" removes the noise of the densities to second order (see `twiced`);
            None is the paper's equation as printed.
        reference_volume: v > 0; the entropy is that of the dimensionless density f v of x / v.
        support: (low, high) of a box that holds the density. Balls become cubes, cut at its sides.
            This removes the bias at the sides if the density is not near 0 there, and adds error
            if it is (Beta(2, 2) in d = 4: twice the error).
        duplicates: equal samples have no density: "raise", "drop" duplicates, or "jitter" all
            samples by 1e-8 standard deviations, which changes the entropy.
        seed: of the jitter, and of the groups for the standard error.
    """

    samples: InitVar[ArrayLike]
    k: int = 5
    correction: str | None = "iterated"
    reference_volume: float = 1.0
    support: Support | None = None
    duplicates: str = "raise"
    seed: int = 0

    def __post_init__(self, samples: ArrayLike) -> None:
        if self.correction not in CORRECTIONS:
            raise ValueError(f"correction must be one of {CORRECTIONS}, got {self.correction!r}")
        if self.duplicates not in DUPLICATES:
            raise ValueError(f"duplicates must be one of {DUPLICATES}, got {self.duplicates!r}")
        check_positive("reference_volume", self.reference_volume)
        whole_number("seed", self.seed)
        points = real_array("samples", samples)
        self.points = points = points[:, None] if points.ndim == 1 else points
        if points.ndim != 2 or points.shape[1] == 0:
            raise ValueError(f"samples must have shape (n, d) or (n,), got {points.shape}")
        if constant := np.flatnonzero(np.ptp(points, axis=0) == 0).tolist():
            raise ValueError(f"samples must vary in every column, columns {constant} are constant")
        nearest, self.u = self._neighbours(points)
        if not nearest.all():  # equal samples
            self.points = _distinct(self.points, self.duplicates, self.seed)
            _, self.u = self._neighbours(self.points)

    def _neighbours(self, points: Array) -> tuple[Array, Array]:
        """Return distances to the nearest neighbours (n,), and u (n,)."""
        metric = "euclidean" if self.support is None else "chebyshev"
        distances = knn_distances(points, k=self.k, metric=metric)
        with np.errstate(divide="ignore"):
            volume = _log_ball(points, distances[:, -1], self.support)
        n, psi = len(points), digamma(self.k)
        count = math.log(n / self.k) if self.correction is None else math.log(n - 1) - psi
        return distances[:, 0], count + volume - math.log(self.reference_volume)

    def mean(self, local: Callable[[Array], Array]) -> EntropyEstimate:
        """Return the mean of local(u); `local` maps (..., n) to (..., n)."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = local(self.u)
        value, (n, d), u = float(values.mean()), self.points.shape, self.u
        if not np.isfinite(value) or not values.any():
            raise ValueError(
                f"the estimate over- or underflows float64: -log f goes from {u.min():.4g} to "
                f"{u.max():.4g}; choose a reference_volume near e^{np.median(u):.4g}"
            )
        share, subsample = float((u < 0).mean()), partial(self.standard_error, local)
        return EntropyEstimate(value, values, n, self.k, d, share, subsample)

    def standard_error(self, local: Callable[[Array], Array]) -> float:
        """Return sqrt(m / n * variance of the value between groups of m samples)."""
        n, random = len(self.points), np.random.default_rng(self.seed)
        m = min(n // 2, _GROUP_SIZE)
        if m < 4 * self.k:
            return math.nan
        variances = []
        for _ in range(math.ceil(_GROUPS / (n // m))):
            groups = random.permutation(n)[: n // m * m].reshape(-1, m)
            u = np.stack([self._neighbours(self.points[group])[1] for group in groups[:_GROUPS]])
            variances.append(local(u).mean(-1).var(ddof=1))
        return math.sqrt(np.mean(variances) * m / n)


def _distinct(points: Array, duplicates: str, seed: int) -> Array:
    """Return the points without duplicates, or jittered."""
    distinct = np.unique(points, axis=0)
    if duplicates == "raise":
        equal = f"{len(points) - len(distinct)} duplicates among {len(points)}"
        raise ValueError(f'samples must be distinct, got {equal}; see duplicates="drop", "jitter"')
    if duplicates == "drop":
        return distinct
    noise = np.random.default_rng(seed).normal(size=points.shape)
    unit = np.abs(points).max(0)  # squares may overflow
    return points + _JITTER * (points / unit).std(0) * unit * noise


def _log_ball(points: Array, distances: Array, support: Support | None) -> Array:
    """Return log volumes (n,) of balls around points, or of cubes cut at the support's sides."""
    d, reach = points.shape[1], distances[:, None]
    if support is None:
        return d * np.log(distances) + d / 2 * math.log(math.pi) - gammaln(d / 2 + 1)
    sides = [real_array("support", side, finite=False) for side in support]
    if len(sides) != 2 or any(side.shape not in ((), (1,), (d,)) for side in sides):
        raise ValueError(f"support must be (low, high), numbers or {d} of them, got {support}")
    low, high = (np.broadcast_to(side, d) for side in sides)
    if not (low < high).all():
        raise ValueError(f"support must be (low, high) with low < high, got {support}")
    if outside := ((points < low) | (points > high)).any(1).sum():
        raise ValueError(f"samples must lie in support {support}, but {outside} do not")
    return np.log(np.minimum(points + reach, high) - np.maximum(points - reach, low)).sum(1)
