"""Integrals of a function of a density over a box of one or two dimensions, infinite ones included.

The box is cut into rays from the density's mode. A ray is cut where the density passes a given
level (weightings are not smooth there) and where it jumps to 0; each piece is integrated by the
double-exponential rule (Takahasi and Mori 1974), and so is the direction in two dimensions. Where
the density underflows, and where its argument rounds off beside a pole, its logarithm is continued
by a short expansion in the distance (1, log r, log^2 r, r, r^2, 1/r, ...), which must reproduce it
nearby to nearly full precision, and tells an infinite integral from a finite one.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from belib.arrays import real_array
from belib.quadrature.rays import Array, Rays, Term, finite_rule, reach

Density = Callable[[Array], ArrayLike]
"""Maps points (..., d) to densities (...)."""

Bounds = Sequence[tuple[float, float]]
"""A pair (low, high) a dimension; ends may be infinite."""

_GOAL, _ACCEPTED = 1e-9, 1e-8  # error over max(1, |value|): to stop at, and to return at all
_STEPS = {1: (2, 3, 4, 5), 2: (1, 2, 3, 4, 5)}  # see `_directions`; rays have 4 times the nodes


class Integral(NamedTuple):
    """A quadrature's value and the estimate of its absolute error; `float` gives the value."""

    value: float
    error: float

    def __float__(self) -> float:
        return self.value


def integrate_density(
    density: Density,
    bounds: Bounds,
    term: Term,
    *,
    level: float = 0.0,
    label: str,
) -> Integral:
    """The integral of term(log f(x), log dx) over a box, where f is a probability density.

    Args:
        density: maps points (..., d) to densities (...).
        bounds: d pairs (low, high), d = 1 or 2; ends may be infinite.
        term: (log f, log dx) to integrand times dx, so that no factor overflows alone.
        level: log f at which `term` is not smooth.
        label: what is integrated, for messages.

    Raises ValueError where the integral is infinite, where it cannot be resolved to 1e-8, and where
    `density` does not integrate to 1 over `bounds`.
    """
    box = real_array("bounds", bounds, ndim=2, finite=False).T
    if box.shape not in ((2, 1), (2, 2)) or not (box[0] < box[1]).all():
        raise ValueError(f"bounds must be 1 or 2 pairs low < high, got {bounds}")
    with np.errstate(all="ignore"):
        value, error, mass, lost = _converged(_log_density(density, *box), box, term, level, label)
    _refuse(label, bounds, value, error, mass, lost)
    return Integral(float(value), float(error))


def _converged(
    log_f: Callable, box: Array, term: Term, level: float, label: str
) -> tuple[float, float, float, float]:
    """(value, error, mass, lost) at the first step that changes no more."""
    origin = _mode(log_f, *box)
    value = error = mass = lost = np.inf
    for step in _STEPS[len(origin)]:
        before = value, mass
        parts = [
            weight @ Rays(log_f, origin, directions, box, level).integrate(term, step + 2, label)
            for directions, weight in _directions(origin, box, step)
        ]
        value, mass, lost = np.sum(parts, axis=0)
        error = max(abs(value - before[0]), abs(mass - before[1])) + lost
        if error <= _GOAL * max(1, abs(value)):
            break
    return value, error, mass, lost


def _refuse(
    label: str, bounds: Bounds, value: float, error: float, mass: float, lost: float
) -> None:
    """Raise ValueError for a result that should not be trusted."""
    if not np.isfinite([value, mass]).all():
        raise ValueError(f"{label} is infinite, or cannot be resolved at a pole: found {value}")
    if abs(mass - 1) > 1e-3:
        raise ValueError(
            f"density must integrate to 1 over bounds {bounds}, found {mass:.6g}: it is not "
            "normalised there, or has a peak that is too narrow to be found"
        )
    allowed = _ACCEPTED * max(1, abs(value))
    if not lost <= allowed:
        raise ValueError(
            f"{label} cannot be resolved: of {value:.6g}, about {lost:.3g} or more lies in a tail "
            "where the density underflows and has no simple continuation"
        )
    if not error <= allowed:
        raise ValueError(f"{label} cannot be resolved: {value:.12g} with an error of {error:.3g}")


def _log_density(density: Density, low: Array, high: Array) -> Callable:
    """The function of points (..., d), clipped to the box, to log densities (...)."""

    def log_f(x: Array) -> Array:
        points = np.clip(x, low, high).reshape(-1, x.shape[-1])
        value = real_array("density", density(points), finite=False)
        if value.size != len(points):
            raise ValueError(
                f"density must map an array (..., d) to (...), got {value.shape} for an array "
                f"{points.shape}"
            )
        if (value < 0).any():
            raise ValueError(f"density must be at least 0, got {value.min()}")
        log_value = np.nan_to_num(np.log(value), nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        return log_value.reshape(x.shape[:-1])

    return log_f


def _mode(log_f: Callable, low: Array, high: Array) -> Array:
    """The density's highest point, (d,): on a grid of all scales, then on ever closer ones."""
    scales = np.logspace(-10, 12, 4000 if len(low) == 1 else 150)
    axes = []
    for a, b in zip(low, high, strict=True):
        ends = np.unique([x for x in (0.0, a, b) if np.isfinite(x)])
        points = np.concatenate([ends, *(e + scales for e in ends), *(e - scales for e in ends)])
        inner = np.linspace(a, b, len(scales)) if np.isfinite(b - a) else []
        axes.append(np.unique(np.concatenate([points[(points >= a) & (points <= b)], inner])))
    origin = low
    for _ in range(16):
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        values = log_f(grid)
        if values.max() == -np.inf:
            raise ValueError(f"density is 0 at all {values.size} points tried: narrow the bounds")
        top = np.argwhere(values == values.max())
        best = top[np.abs(top - top.mean(0)).sum(-1).argmin()]  # the middle of a plateau
        origin = grid[tuple(best)]
        around = [np.linspace(i - 1, i + 1, 33) for i in best]
        axes = [
            np.unique(np.interp(near, np.arange(len(axis)), axis))
            for near, axis in zip(around, axes, strict=True)
        ]
    for end in (np.zeros_like(low), low, high):
        origin = np.where(np.isclose(origin, end, rtol=1e-13, atol=1e-13), end, origin)
    return origin


def _directions(origin: Array, box: Array, step: int) -> Iterator[tuple[Array, Array]]:
    """Directions (m, d) and weights (m,), a batch for each range over which rays vary smoothly.

    In two dimensions they are (+-1, t) and (t, +-1) with t in [-1, 1], cut at 0 and at the corners:
    dx dy = r dr dt.
    """
    if len(origin) == 1:
        for sign in (-1.0, 1.0):
            if reach(origin, np.array([[sign]]), box)[0] > 0:
                yield np.array([[sign]]), np.ones(1)
        return
    log_share, _, log_weight = finite_rule(step, 4.0)
    for axis in (0, 1):
        for sign in (-1.0, 1.0):
            ahead = abs(box[int(sign > 0), axis] - origin[axis])
            corners = (box[:, 1 - axis] - origin[1 - axis]) / ahead
            cuts = np.unique([-1, 0, 1, *corners[np.abs(corners) < 1]])
            for start, stop in pairwise(cuts):
                t = np.append(start + (stop - start) * np.exp(log_share), (start + stop) / 2)
                directions = np.full((len(t), 2), sign)
                directions[:, 1 - axis] = t
                if reach(origin, directions[-1:], box)[0] > 0:
                    yield directions[:-1], (stop - start) * np.exp(log_weight)
