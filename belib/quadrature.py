"""Integrals of functions of a probability density, given by its logarithm, over a line or a plane.

Rays start at the density's mode. They are cut where the density crosses a given level, at which
the weighting is not smooth, and where it jumps to 0. The double-exponential rule
(`scipy.integrate.tanhsinh`) integrates the pieces and, in a plane, over the angle.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import scipy  # imports its parts at first use
from numpy.typing import ArrayLike, NDArray

from belib.arrays import real_array

Array = NDArray[np.float64]
LogDensity = Callable[[Array], ArrayLike]
Bounds = Sequence[tuple[float, float]]

ACCURACY = {1: 1e-8, 2: 1e-5}  # dimension: the largest error / max(1, |value|)


class Integral(NamedTuple):
    """A value and its estimated absolute error; `float` returns the value."""

    value: float
    error: float

    def __float__(self) -> float:
        return self.value


def integrate_density(
    log_density: LogDensity, bounds: Bounds, term: Callable, *, level: float = 0.0, label: str
) -> Integral:
    """Return the integral of term(log f(x)) over a box, where f is a probability density.

    Args:
        log_density: maps x (...), or points (..., 2) in two dimensions, to log f (...).
        bounds: one or two pairs (low, high); ends may be infinite.
        term: maps log f to the integrand, elementwise; it need not be smooth at `level`.
        label: name of the integral in messages.

    Raise ValueError if f does not integrate to 1, and if the integral is infinite or its error
    exceeds `ACCURACY`.
    """
    box = real_array("bounds", bounds, ndim=2, finite=False).T
    if box.shape not in ((2, 1), (2, 2)) or not (box[0] < box[1]).all():
        raise ValueError(f"bounds must be 1 or 2 pairs low < high, got {bounds}")
    with np.errstate(all="ignore"):
        rays = _Rays(log_density, *box)
        mass, _ = rays.integrate(np.exp, 0.0)
        if not abs(mass - 1) < 1e-3:
            raise ValueError(
                f"density must integrate to 1 over bounds {bounds}, got {mass:.6g}: give its "
                "logarithm (logpdf, not pdf), and bounds near its peaks"
            )
        rays.check_ends(term, label)
        value, error = rays.integrate(term, level)
    if not error <= ACCURACY[rays.d] * max(1.0, abs(value)):
        result = f"{value:.12g} with an error of {error:.3g}"
        raise ValueError(f"{label} is infinite, or cannot be resolved: {result}")
    return Integral(float(value), float(error))


class _Rays:
    """Rays from a density's mode to a box's sides, in units (d,) of the width of the peak."""

    def __init__(self, log_density: LogDensity, low: Array, high: Array):
        self.log_density, self.d = log_density, len(low)
        self.mode, self.unit, self.low, self.high = np.zeros(self.d), np.ones(self.d), low, high
        # the mode: the best of many candidates, moved uphill
        sides = list(zip(low, high, strict=True))
        axes = [_candidates(*ends, 500 if self.d == 1 else 50) for ends in sides]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, self.d)
        best = points[self.log_f(points).argmax()]
        options = {"xatol": 1e-13, "fatol": 1e-13}
        uphill = scipy.optimize.minimize(
            lambda x: -self.log_f(x), best, method="Nelder-Mead", bounds=sides, options=options
        )
        mode = uphill.x if -uphill.fun > self.log_f(best) else best
        # the width: the distance at which log f has fallen by 1, the larger of both sides
        r = np.logspace(-12, 12, 500)
        step, least = r[:, None] * np.eye(self.d)[:, None], self.log_f(mode) - 1
        fallen = self.log_f(mode + np.stack([step, -step])) < least
        width = np.where(fallen.any(-1), r[fallen.argmax(-1)], 0.0).max(0)
        unit = np.where((width > 0) & np.isfinite(least), width, 1.0)
        self.mode, self.unit = mode, unit
        self.low, self.high = (low - mode) / unit, (high - mode) / unit

    def log_f(self, z: Array) -> Array:
        """Return log densities (...) at the points mode + unit z, for z (..., d)."""
        x = self.mode + self.unit * np.clip(z, self.low, self.high).reshape(-1, self.d)
        value = self.log_density(x if self.d == 2 else x[:, 0])
        value = real_array("log_density", value, finite=False)
        if value.size != len(x):
            raise ValueError(
                f"log_density must map {len(x)} points to as many numbers, got shape {value.shape}"
            )
        return np.where(np.isnan(value), -np.inf, value).reshape(z.shape[:-1])

    def integrate(self, term: Callable, level: float) -> tuple[float, float]:
        """Return (value, error) of the integral of term(log f) over the box."""
        if self.d == 1:
            value, error = self.along(np.array([[-1.0], [1.0]]), term, level)
            return self.unit[0] * value.sum(), self.unit[0] * error.sum()

        def over_angles(part: int, maxlevel: int) -> tuple[float, float]:
            def function(angle: Array) -> Array:
                directions = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
                return self.along(directions.reshape(-1, 2), term, level)[part].reshape(angle.shape)

            options = {"atol": 1e-12, "rtol": 1e-10, "maxlevel": maxlevel}
            sector = scipy.integrate.tanhsinh(function, *ends, **options)
            return sector.integral.sum() * self.unit.prod(), sector.error.sum() * self.unit.prod()

        # angles between corners of the box: rays then end on one side
        corners = np.array(list(product(*zip(self.low, self.high, strict=True))))
        angles = np.arctan2(*corners[np.isfinite(corners).all(1)].T[::-1])
        cuts = np.unique([*angles, *np.linspace(-np.pi, np.pi, 5)])
        ends = cuts[:-1], cuts[1:]
        value, error = over_angles(0, maxlevel=6)
        return value, error + over_angles(1, maxlevel=3)[0]

    def along(self, directions: Array, term: Callable, level: float) -> tuple[NDArray, NDArray]:
        """Return the integrals of term(log f) r^(d - 1) dr along m rays, and their errors, (m,)."""
        m = len(directions)
        side = np.where(directions > 0, self.high, self.low)
        reach = np.where(directions == 0, np.inf, side / directions).min(1)

        def log_f(r: Array, ray: NDArray) -> Array:
            return self.log_f(r[..., None] * directions[ray.astype(int)])

        def integrand(r: Array, ray: NDArray) -> Array:
            value = term(log_f(r, ray))
            return np.where(value == 0, 0.0, value * r ** (self.d - 1))

        # pieces of the rays between start, cuts and end
        ray, cut = _crossings(log_f, reach, level)
        ray = np.concatenate([ray, np.arange(m), np.arange(m)])
        cut = np.concatenate([cut, np.zeros(m), reach])
        order = np.lexsort((cut, ray))
        ray, cut = ray[order], cut[order]
        piece = np.flatnonzero((np.diff(ray) == 0) & (np.diff(cut) > 0))
        ends, ray = (cut[piece], cut[piece + 1]), ray[piece]
        parts = scipy.integrate.tanhsinh(integrand, *ends, args=(ray,), atol=1e-13, rtol=1e-11)
        return np.bincount(ray, parts.integral, m), np.bincount(ray, parts.error, m)

    def check_ends(self, term: Callable, label: str) -> None:
        """Raise ValueError if r term(log f) grows with r (heavy tails), and for poles."""
        for axis, end in product(range(self.d), (self.low, self.high)):
            z = np.zeros((3, self.d))
            z[:, axis] = np.sign(end[axis]) * np.array([1e50, 1e100, 1e150])
            size = np.abs(term(self.log_f(z)) * z[:, axis])
            if np.isinf(end[axis]) and size[0] > 0 and (np.diff(size) >= 0).all():
                tail = f"the density's tail towards {end[axis]} is heavy"
                raise ValueError(f"{label} is infinite: {tail}")
            x = self.mode + self.unit * end
            if self.d == 1 and x != 0 and self.log_f(end) == np.inf:
                pole = f"the density's pole at {x[0]}: shift the pole to 0"
                raise ValueError(f"{label} cannot be resolved, because floats are coarse at {pole}")


def _crossings(log_f: Callable, reach: Array, level: float) -> tuple[NDArray, Array]:
    """Return rays and distances where log f crosses `level` or jumps to -inf, by bisection."""

    def state(r: Array, ray: NDArray) -> Array:
        value = log_f(r, ray)
        return (value > level) + 2 * (value > -np.inf)

    r = np.where(np.isfinite(reach), reach, 1e12)[:, None] * np.logspace(-24, -1e-9, 400)
    states = state(r, np.arange(len(r))[:, None])
    ray, i = np.nonzero(np.diff(states))
    left, right, before = r[ray, i], r[ray, i + 1], states[ray, i]
    for _ in range(70):
        middle = (left + right) / 2
        same = state(middle, ray) == before
        left, right = np.where(same, middle, left), np.where(same, right, middle)
    return ray, left


def _candidates(low: float, high: float, count: int) -> Array:
    """Return points at distances 1e-12 to 1e12 from 0 and finite ends, and evenly spaced ones."""
    ends = [x for x in (0.0, low, high) if np.isfinite(x)]
    scales = np.logspace(-12, 12, count)
    even = np.linspace(low, high, count) if np.isfinite(high - low) else []
    points = np.concatenate([ends, even, *(x + s * scales for x, s in product(ends, (-1, 1)))])
    return np.unique(points[(points >= low) & (points <= high)])
