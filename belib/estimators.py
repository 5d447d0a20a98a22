"""k-nearest-neighbour estimators of densities and entropies from samples, in nats.

They compute with u = -log f, which does not overflow in 512 dimensions. For many samples a k-NN
density's u is the true u plus log(T / k), T ~ Gamma(k); `correction` removes this noise's bias.
"""

import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from functools import cached_property, partial
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln

from belib.arrays import check_positive, real_array, whole_number
from belib.knn import knn_distances
from belib.weighting import Power, Prelec, entropy_term

Array = NDArray[np.float64]
Support = tuple[ArrayLike, ArrayLike]

CORRECTIONS, DUPLICATES = (None, "iterated"), ("raise", "drop")
_GROUPS, _GROUP_SIZE = 64, 500  # for the standard error: groups, and samples of one at most
_STEP = 0.01  # grid step of u in `twiced`, nats; half the step changes results by about 1e-6


class Options(TypedDict, total=False):
    """Options of the entropy estimators, described at `KNNSample`, which has their defaults."""

    k: int
    reference_volume: float
    support: Support | None
    duplicates: str


@dataclass(frozen=True)
class EntropyEstimate:
    """An entropy (nats), the mean of `local_values` (n,) at n samples."""

    value: float
    local_values: Array = field(repr=False)
    n: int
    _subsample: Callable[[], float] | None = field(repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return all numbers, without the samples, for pickling."""
        return {**vars(self), "standard_error": self.standard_error, "_subsample": None}

    @cached_property
    def standard_error(self) -> float:
        """Standard error from disjoint groups of samples; NaN if n < 8 k or k > 125.

        It does not include the bias, and assumes a variance proportional to 1/n. Local values are
        dependent, so that their standard deviation / sqrt(n) is up to 20 % too small.
        """
        return self._subsample() if self._subsample else math.nan


def generalized_behavioral_entropy_knn(
    samples: ArrayLike,
    *,
    weighting: Callable,
    correction: str | None = "iterated",
    **options: Unpack[Options],
) -> EntropyEstimate:
    """Return -int w(f) log w(f) dx from samples of f, nats (paper, equation 13).

    Args:
        samples: (n, d), or (n,) for d = 1.
        weighting: a `belib.weighting.Weighting`, or any function of f. The iterated correction
            multiplies the bias of one that grows about as f^2 or faster (Prelec's odd extension,
            too, for alpha near 1 and beta above 2): give `correction=None`, or a `Power`.
        correction, options: of `KNNSample`.

    Raise ValueError for samples that are not finite, too few, of a wrong shape, equal, or constant
    in a column; for parameters out of range; and if the value over- or underflows.
    """
    if isinstance(weighting, Prelec) and weighting.extension == "odd":
        if weighting.alpha > 1 and correction is not None:
            rule = "correction must be None for the odd extension with alpha > 1"
            raise ValueError(f"{rule}: estimates have no finite mean, got {correction!r}")
        weighting = Power(weighting.beta) if weighting.alpha == 1 else weighting
    sample = KNNSample(samples, correction=correction, **options)  # u = -log f at each sample
    k, e = sample.k, weighting.exponent if isinstance(weighting, Power) else 1.0
    if e >= k + 1 and correction is not None:
        raise ValueError(f"exponent must be below k + 1 = {k + 1} with a correction, got {e}")

    def ratio(u: Array) -> Array:  # -w(f) log w(f) / f
        return entropy_term(weighting, -u, -u)

    def corrected(u: Array) -> Array:
        if not isinstance(weighting, Power):
            return twiced(ratio, u, k)
        log_v = u + digamma(k)  # of a power no bias remains, as in `renyi_entropy_knn`
        log_power = (1 - e) * log_v + gammaln(k) - gammaln(k + 1 - e)
        return e * np.exp(log_power) * (log_v - digamma(k + 1 - e))

    return sample.mean(ratio if correction is None else corrected)


def behavioral_entropy_knn(
    samples: ArrayLike,
    *,
    alpha: float,
    beta: float = 1.0,
    extension: str = "identity",
    correction: str | None = "iterated",
    **options: Unpack[Options],
) -> EntropyEstimate:
    """Return behavioral entropy with Prelec's weighting (paper, equations 8 and 13).

    For alpha < 1 and unbounded support, estimates are far too low at any sample size: most of the
    integral comes from tails without samples (N(0, 1), alpha = 0.2: 23.5, estimated as 3). Options
    are those of `KNNSample`. The following density has 1.412 nats:

    >>> samples = np.random.default_rng(0).beta(2, 2, size=(10_000, 1))
    >>> estimate = behavioral_entropy_knn(4 * samples, alpha=0.5)
    >>> print(f"{estimate.value:.3f} ± {estimate.standard_error:.3f} nats")
    1.422 ± 0.008 nats
    """
    return generalized_behavioral_entropy_knn(
        samples, weighting=Prelec(alpha, beta, extension), correction=correction, **options
    )


def shannon_entropy_knn(
    samples: ArrayLike, *, correction: str | None = "iterated", **options: Unpack[Options]
) -> EntropyEstimate:
    """Return Shannon's entropy log(n - 1) - psi(k) + mean log(V_d R^d) (Kozachenko, Leonenko 1987).

    `correction=None` is the paper's plug-in, log n - log k + mean log(V_d R^d) (equation 10). In
    many dimensions balls are wide and estimates too high: by 1 nat for n = 100,000 at d = 24.
    """
    return KNNSample(samples, correction=correction, **options).mean(lambda u: u)


def renyi_entropy_knn(
    samples: ArrayLike, *, q: float, **options: Unpack[Options]
) -> EntropyEstimate:
    """Return Renyi's entropy of order q, 0 < q < k + 1 (Leonenko, Pronzato and Savani 2008).

    log(mean ((n - 1) V_d R^d)^(1 - q) Gamma(k) / Gamma(k + 1 - q)) / (1 - q), and Shannon's entropy
    at q = 1. Local values are its linearisation, whose mean is the value.
    """
    check_positive(q=q)
    sample, y = KNNSample(samples, correction="iterated", **options), 1 - q
    if q >= sample.k + 1:
        raise ValueError(f"q must be above 0 and below k + 1 = {sample.k + 1}, got {q}")
    if abs(y) < 1e-6:  # where the entropies differ by about |y| Var(u) / 2
        return sample.mean(lambda u: u)
    log_ratio = y * digamma(sample.k) + gammaln(sample.k) - gammaln(sample.k + y)

    def local(u: Array) -> Array:
        log_power = y * u + log_ratio
        peak = log_power.max(-1, keepdims=True)
        log_mean = peak + np.log1p(np.expm1(log_power - peak).mean(-1, keepdims=True))
        return (log_mean + np.expm1(log_power - log_mean)) / y

    return sample.mean(local)


def knn_log_density(samples: ArrayLike, *, k: int = 5, duplicates: str = "raise") -> Array:
    """Return logarithms of k-NN densities at the (distinct) samples, (n,) (paper, equation 9).

    f(x) = k / (n V_d R_k(x)^d); R_k is the distance to the k-th neighbour, the point excluded.
    """
    return -KNNSample(samples, k=k, correction=None, duplicates=duplicates).u


@dataclass
class KNNSample:
    """Checked samples `points` (n, d), and u = -log f (n,) of their k-NN densities f.

    Args:
        k: neighbours, below n.
        correction: "iterated" removes the noise's bias to second order (see `twiced`);
            None is the paper's equation as printed.
        reference_volume: v > 0, a volume in x's units; f is then taken per v instead of per unit.
        support: (low, high) of a box that holds the density. Balls become cubes, cut at its sides.
            This removes the bias at the sides if the density is not near 0 there, and adds error
            if it is (Beta(2, 2) in d = 4: twice the error).
        duplicates: equal samples have no density: "raise", or "drop" all but the first of them.
    """

    samples: InitVar[ArrayLike]
    k: int = 5
    correction: str | None = "iterated"
    reference_volume: float = 1.0
    support: Support | None = None
    duplicates: str = "raise"

    def __post_init__(self, samples: ArrayLike) -> None:
        if self.correction not in CORRECTIONS:
            raise ValueError(f"correction must be one of {CORRECTIONS}, got {self.correction!r}")
        if self.duplicates not in DUPLICATES:
            raise ValueError(f"duplicates must be one of {DUPLICATES}, got {self.duplicates!r}")
        check_positive(reference_volume=self.reference_volume)
        points = real_array("samples", samples)
        self.points = points = points[:, None] if points.ndim == 1 else points
        if points.ndim != 2 or len(points) <= whole_number("k", self.k) or not points.shape[1]:
            raise ValueError(f"samples must have shape (n > k = {self.k}, d), got {points.shape}")
        if constant := np.flatnonzero(np.ptp(points, axis=0) == 0).tolist():
            raise ValueError(f"samples must vary in every column, columns {constant} are constant")
        nearest, self.u = self._neighbours(points)
        if not nearest.all():  # equal samples
            _, first = np.unique(points, axis=0, return_index=True)
            if self.duplicates == "raise":
                equal = f"{len(points) - len(first)} duplicates among {len(points)}"
                raise ValueError(f'samples must be distinct, got {equal}; see duplicates="drop"')
            self.__post_init__(points[np.sort(first)])

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
        value, u = float(values.mean()), self.u
        if not np.isfinite(value) or not values.any():
            raise ValueError(
                f"the estimate over- or underflows float64: -log f goes from {u.min():.4g} to "
                f"{u.max():.4g}; choose a reference_volume near e^{np.median(u):.4g}"
            )
        return EntropyEstimate(value, values, len(u), partial(self.standard_error, local))

    def standard_error(self, local: Callable[[Array], Array]) -> float:
        """Return sqrt(m / n * variance of the value between groups of m samples)."""
        n, random = len(self.points), np.random.default_rng(0)
        m = min(n // 2, _GROUP_SIZE)
        if m < 4 * self.k:
            return math.nan
        variances = []
        for _ in range(math.ceil(_GROUPS / (n // m))):
            groups = random.permutation(n)[: n // m * m].reshape(-1, m)
            u = np.stack([self._neighbours(self.points[group])[1] for group in groups[:_GROUPS]])
            variances.append(local(u).mean(-1).var(ddof=1))
        return math.sqrt(np.mean(variances) * m / n)


def _log_ball(points: Array, distances: Array, support: Support | None) -> Array:
    """Return log volumes (n,) of balls around points, or of cubes cut at the support's sides."""
    d, reach = points.shape[1], distances[:, None]
    if support is None:
        return d * np.log(distances) + d / 2 * math.log(math.pi) - gammaln(d / 2 + 1)
    low, high = (real_array("support", side, finite=False) for side in support)
    if low.size not in (1, d) or high.size not in (1, d) or not (low < high).all():
        raise ValueError(f"support must be (low, high), numbers or {d} of them, got {support}")
    if outside := ((points < low) | (points > high)).any(1).sum():
        raise ValueError(f"samples must lie in support {support}, but {outside} do not")
    return np.log(np.minimum(points + reach, high) - np.maximum(points - reach, low)).sum(1)


def twiced(term: Callable[[Array], Array], u: Array, k: int) -> Array:
    """Return phi = sum_{j<=2} (I - K)^j G = 3G - (3K - K^2) G at u, G = term (order-2 twicing).

    K averages over the noise of a k-NN density: (K G)(u) = E G(u + log T - psi(k)), T ~ Gamma(k).
    G has the bias (K - I) G, and phi has -(I - K)^3 G. Both are 0 for G(u) = u, and phi = u.
    (3K - K^2) G is smooth, so it is tabulated and interpolated linearly. The convolution is direct,
    not by FFT: G grows like e^u, and an FFT's rounding error is relative to its largest value.
    """
    # the noise's density on a grid, and the kernel of 3K - K^2
    centre, log_gamma = digamma(k), gammaln(k)
    low = math.floor(((log_gamma - 40) / k - centre) / _STEP)
    high = math.ceil((math.log(k + 12 * math.sqrt(k) + 40) - centre) / _STEP)
    s = np.arange(low, high + 1) * _STEP + centre
    kernel = np.exp(k * s - np.exp(s) - log_gamma) * _STEP
    double = -np.convolve(kernel, kernel)
    double[-low : -low + len(kernel)] += 3 * kernel
    # (3K - K^2) G on a grid around u
    first, last = math.floor(u.min() / _STEP) - 1, math.ceil(u.max() / _STEP) + 1
    wide = np.arange(first + 2 * low, last + 2 * high + 1) * _STEP
    table = np.convolve(term(wide), double[::-1], mode="valid")
    grid = np.arange(first, last + 1) * _STEP
    return 3 * term(u) - np.interp(u, grid, table)
