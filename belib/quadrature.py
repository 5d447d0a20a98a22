"""Integrals of functions of a probability density, given by its logarithm, over a line or a plane.

Rays start at the density's mode. They are cut where the density crosses a given level, at which
the weighting is not smooth, and where it jumps to 0. The double-exponential rule
(`scipy.integrate.tanhsinh`) integrates the pieces and, in a plane, over the angle.
"""

from collections.abc import Callable, Sequence
from functools import partial
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
    value: float
    error: float  # estimated, absolute


@np.errstate(all="ignore")
def integrate_density(
    log_density: LogDensity, bounds: Bounds, term: Callable, level: float, label: str
) -> Integral:
    """Return the integral of term(log f) for a density f over `bounds`, one or two (low, high).

    `term` is elementwise and need not be smooth at log f = `level`. `label` names the integral in
    messages. Raise ValueError if f does not integrate to 1 within 1e-6 (a peak of less may be
    missed), and if the integral is infinite or ten times its estimated error exceeds `ACCURACY`.
    """
    box = real_array("bounds", bounds, ndim=2, finite=False).T
    if box.shape not in ((2, 1), (2, 2)) or not (box[0] < box[1]).all():
        raise ValueError(f"bounds must be 1 or 2 pairs low < high, got {bounds}")
    d = box.shape[1]

    def log_f(x: Array) -> Array:
        points = np.clip(x, *box)
        values = log_density(points if d == 2 else points[..., 0])
        values = real_array("log_density", values, finite=False).reshape(x.shape[:-1])
        return np.where(np.isnan(values), -np.inf, values)

    mode = _mode(log_f, box)
    around_mode = partial(_integral, lambda z: log_f(mode + z), box - mode)
    mass, _ = around_mode(np.exp, 0.0)
    if not abs(mass - 1) < 1e-6:
        got = f"got {mass:.9g} over {bounds}: give its logarithm, and bounds near its peaks"
        raise ValueError(f"density must integrate to 1, {got}")
    value, error = around_mode(term, level)
    ends = box[np.isfinite(box) & (box != 0)]
    pole = d == 1 and (log_f(ends[:, None]) == np.inf).any()  # floats are coarse except near 0
    if pole or not 10 * error <= ACCURACY[d] * max(1.0, abs(value)):
        result = f"{value:.12g} with an error of {error:.3g} (f may be infinite only at x = 0)"
        raise ValueError(f"{label} is infinite, or cannot be resolved: {result}")
    return Integral(float(value), float(error))


def _mode(log_f: Callable, box: Array) -> Array:
    """Return the point where f is largest, by steps of all sizes."""
    d = box.shape[1]
    steps = np.stack(np.meshgrid(*[[0, *range(-8, 9)]] * d), -1).reshape(-1, d)
    mode = np.clip(np.zeros(d), *box)
    for size in 2.0 ** np.arange(40, -60, -2):
        points = np.clip(mode + size * steps, *box)
        mode = points[log_f(points).argmax()]
    return mode


def _integral(log_f: Callable, box: Array, term: Callable, level: float) -> tuple[float, float]:
    """Return (value, error) of the integral of term(log f) over the box around 0."""
    if box.shape[1] == 1:
        value = complex(_along_rays(log_f, box, np.array([[-1.0], [1.0]]), term, level).sum())
        return value.real, value.imag

    def at_angles(angle: NDArray) -> NDArray:
        angles = np.real(angle).ravel()
        directions = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        return _along_rays(log_f, box, directions, term, level).reshape(angle.shape)

    # split at the corners of the box: within a part all rays end on one side of it
    x, y = np.meshgrid(*box.T)
    cuts = np.unique([*np.arctan2(y, x)[np.isfinite(x + y)], *np.linspace(-np.pi, np.pi, 5)])
    options = {"atol": 1e-12, "rtol": 1e-10, "minlevel": 4, "maxlevel": 6}
    part = scipy.integrate.tanhsinh(at_angles, cuts[:-1], cuts[1:], **options)
    return part.integral.real.sum(), (part.integral.imag + part.error.real).sum()


def _along_rays(
    log_f: Callable, box: Array, directions: Array, term: Callable, level: float
) -> NDArray:
    """Return integrals of term(log f) r^(d - 1) dr along rays (m, d), errors as imaginary parts."""
    m, d = directions.shape
    reach = np.fmax(*(box[:, None] / directions)).min(1)

    def log_f_at(r: Array, ray: NDArray) -> Array:
        return log_f(r[..., None] * directions[ray.astype(int)])

    def integrand(r: Array, ray: NDArray) -> Array:
        value = term(log_f_at(r, ray))
        return np.where(value == 0, 0.0, value * r ** (d - 1))

    def state(r: Array, ray: NDArray) -> NDArray:
        value = log_f_at(r, ray)
        return (value > level) + 2 * (value > -np.inf)

    # cuts where log f crosses the level or jumps to -inf, by bisection
    r = np.where(np.isfinite(reach), reach, 1e12)[:, None] * np.logspace(-24, -1e-9, 400)
    states = state(r, np.arange(m)[:, None])
    ray, i = np.nonzero(np.diff(states))
    left, right, before = r[ray, i], r[ray, i + 1], states[ray, i]
    for _ in range(70):
        middle = (left + right) / 2
        same = state(middle, ray) == before
        left, right = np.where(same, middle, left), np.where(same, right, middle)
    # pieces between start, cuts and end
    ray, cut = np.append(ray, [*range(m)] * 2), np.concatenate([left, np.zeros(m), reach])
    order = np.lexsort((cut, ray))
    ray, cut = ray[order], cut[order]
    piece = np.flatnonzero((np.diff(ray) == 0) & (np.diff(cut) > 0))
    options = {"atol": 1e-13, "rtol": 1e-11, "minlevel": 4, "maxlevel": 8, "args": (ray[piece],)}
    part = scipy.integrate.tanhsinh(integrand, cut[piece], cut[piece + 1], **options)
    return np.bincount(ray[piece], part.integral, m) + 1j * np.bincount(ray[piece], part.error, m)
