"""Checked samples, their neighbours, and what all k-NN estimators do with them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln

from belib.arrays import real_array, whole_number
from belib.knn import knn_distances
from belib.weighting import check_positive

Array = NDArray[np.float64]
Support = tuple[ArrayLike, ArrayLike]

CORRECTIONS = (None, "iterated")
DUPLICATES = ("raise", "jitter", "drop")
_STEP = 0.01  # nats, of the grid that tabulates the correction; halving it changes about 1e-6
_JITTER = 1e-8  # standard deviations of a column
_GROUPS, _GROUP_SIZE = 64, 500  # at least, and at most, for the standard error


@dataclass(frozen=True)
class Estimate:
    """An entropy estimated from n samples of d dimensions; `float` gives the value.

    Attributes:
        value: nats; the mean of `local_values` (n,).
        n, k, d: samples, neighbours, dimensions.
        share_above_one: share of samples at which the estimated density exceeds 1, where entropies
            of densities depend on how the weighting is extended (see `reference_volume`).
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
        """What a copy in another process needs: all numbers, and not the samples."""
        return {**vars(self), "standard_error": self.standard_error, "_subsample": None}

    @cached_property
    def standard_error(self) -> float:
        """Standard error of the value about its expectation, by subsampling, computed when read.

        It is the spread between disjoint groups of samples, scaled by the root of their size. It
        knows nothing of bias, and assumes a variance that falls as 1/n; NaN where n < 8 k. Local
        values are dependent: their deviation over root n would be up to 20 % too small.
        """
        return self._subsample() if self._subsample else math.nan


class Sample:
    """Checked samples (n, d), and u = -log f (n,) at each."""

    def __init__(self, samples, k, correction, reference_volume, support, duplicates, seed):
        if correction not in CORRECTIONS:
            raise ValueError(f"correction must be one of {CORRECTIONS}, got {correction!r}")
        check_positive("reference_volume", reference_volume)
        self.k, self.correction, self.support, self.seed = k, correction, support, seed
        self.log_reference = math.log(reference_volume)
        self.metric = "euclidean" if support is None else "chebyshev"
        self.points, distances = neighbours(samples, k, duplicates, seed, self.metric)
        self.u = self._surprise(self.points, distances)

    def _surprise(self, points: Array, distances: Array) -> Array:
        n, k = len(points), self.k
        noise = math.log(n / k) if self.correction is None else math.log(n - 1) - digamma(k)
        return noise + log_ball(points, distances, self.support) - self.log_reference

    def estimate(self, local: Callable[[Array], Array]) -> Estimate:
        """The mean of local(u); `local` maps (..., n) to (..., n)."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = local(self.u)
        value, (n, d) = values.mean(), self.points.shape
        if not np.isfinite(value) or not values.any():
            raise ValueError(
                f"the estimate over- or underflows float64: -log f goes from {self.u.min():.4g} to "
                f"{self.u.max():.4g}; choose a reference_volume near e^{np.median(self.u):.4g}"
            )
        share = float((self.u < 0).mean())
        subsample = partial(self.standard_error, local)
        return Estimate(float(value), values, n, self.k, d, share, subsample)

    def standard_error(self, local: Callable[[Array], Array]) -> float:
        """Root mean variance between the groups of random partitions, scaled from m to n."""
        n, random = len(self.points), np.random.default_rng(self.seed)
        m = min(n // 2, _GROUP_SIZE)
        if m < 4 * self.k:
            return math.nan
        variances = []
        for _ in range(math.ceil(_GROUPS / (n // m))):
            groups = random.permutation(n)[: n // m * m].reshape(-1, m)
            groups = self.points[groups[:_GROUPS]]
            distances = [knn_distances(g, k=self.k, metric=self.metric)[:, -1] for g in groups]
            u = np.stack([self._surprise(*pair) for pair in zip(groups, distances, strict=True)])
            variances.append(local(u).mean(-1).var(ddof=1))
        return math.sqrt(np.mean(variances) * m / n)


def neighbours(
    samples: ArrayLike, k: int, duplicates: str, seed: int, metric: str
) -> tuple[Array, Array]:
    """Samples (n, d) that a density can have made, and the distances (n,) to k-th neighbours."""
    if duplicates not in DUPLICATES:
        raise ValueError(f"duplicates must be one of {DUPLICATES}, got {duplicates!r}")
    whole_number("seed", seed)
    points = _checked(samples, k)
    distances = knn_distances(points, k=k, metric=metric)
    if (distances[:, 0] == 0).any():
        distinct = np.unique(points, axis=0)
        if duplicates == "raise":
            raise ValueError(
                f"samples must be distinct, got {len(points) - len(distinct)} duplicates among "
                f'{len(points)}: no density makes them; see duplicates="drop" and "jitter"'
            )
        if duplicates == "jitter":
            noise = np.random.default_rng(seed).normal(size=points.shape)
            unit = np.abs(points).max(0)  # since squares may overflow
            distinct = points + _JITTER * (points / unit).std(0) * unit * noise
        return neighbours(distinct, k, "raise", seed, metric)
    return points, distances[:, -1]


def _checked(samples: ArrayLike, k: int) -> Array:
    points = real_array("samples", samples, finite=False)
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2 or points.shape[1] == 0:
        raise ValueError(f"samples must have shape (n, d) or (n,), got {points.shape}")
    bad = ~np.isfinite(points).all(1)
    if bad.any():
        raise ValueError(
            f"samples must be finite, got NaN or inf in {bad.sum()} of {len(points)} rows, "
            f"first in row {bad.argmax()}"
        )
    if not 1 <= whole_number("k", k, least=-math.inf) < len(points):
        raise ValueError(f"k must be at least 1 and below n = {len(points)} samples, got {k}")
    constant = np.flatnonzero(np.ptp(points, axis=0) == 0)
    if len(constant):
        raise ValueError(
            f"samples must vary in every column, but columns {constant.tolist()} are constant: "
            "there is no density in these dimensions"
        )
    return points


def log_ball(points: Array, distances: Array, support: Support | None) -> Array:
    """Log volumes (n,) of balls around points, or of cubes cut at the sides of the support."""
    d = points.shape[1]
    if support is None:
        return d * np.log(distances) + d / 2 * math.log(math.pi) - gammaln(d / 2 + 1)
    sides = [real_array("support", side, finite=False) for side in support]
    if len(sides) != 2 or any(side.shape not in ((), (1,), (d,)) for side in sides):
        raise ValueError(f"support must be (low, high), numbers or {d} of them, got {support}")
    low, high = (np.broadcast_to(side, d) for side in sides)
    if not (low < high).all():
        raise ValueError(f"support must be (low, high) with low < high, got {support}")
    outside = ((points < low) | (points > high)).any(1).sum()
    if outside:
        raise ValueError(f"samples must lie in support {support}, but {outside} do not")
    reach = distances[:, None]
    return np.log(np.minimum(points + reach, high) - np.maximum(points - reach, low)).sum(1)


def twiced(term: Callable[[Array], Array], u: Array, k: int) -> Array:
    """phi = sum_{j<=2} (I - K)^j G = 3G - (3K - K^2) G at u, where G = term (twicing, order 2).

    K is what the noise of a k-NN density does: (K G)(u) = E G(u + log T - psi(k)), T ~ Gamma(k).
    The bias of phi is (I - K)^3 G where G's is (K - I) G; both are 0 for G(u) = u, and phi = u.
    (3K - K^2) G is smooth, so a grid and linear interpolation do; G itself is exact. The products
    are summed directly, not by FFT: G grows like e^u, and rounding must stay relative.
    """
    centre, log_gamma = digamma(k), gammaln(k)
    low = math.floor(((log_gamma - 40) / k - centre) / _STEP)
    high = math.ceil((math.log(k + 12 * math.sqrt(k) + 40) - centre) / _STEP)
    s = np.arange(low, high + 1) * _STEP + centre
    kernel = np.exp(k * s - np.exp(s) - log_gamma) * _STEP
    double = -np.convolve(kernel, kernel)
    double[-low : -low + len(kernel)] += 3 * kernel
    first, last = math.floor(u.min() / _STEP) - 1, math.ceil(u.max() / _STEP) + 1
    wide = np.arange(first + 2 * low, last + 2 * high + 1) * _STEP
    table = np.convolve(term(wide), double[::-1], mode="valid")
    grid = np.arange(first, last + 1) * _STEP
    return 3 * term(u) - np.interp(u, grid, table)
