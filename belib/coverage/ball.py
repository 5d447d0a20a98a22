"""The smallest ball that holds a set of points, exactly, with its certificate.

A dual active-set method (Dearing and Zeck 2009; the walk of Fischer, Gaertner and Kutz 2003 in
reverse). The ball of a few points grows: the farthest point outside enters, the centre walks to
where that point is as far as the others, and a point whose weight falls to zero on the way leaves.
The radius rises with every point that enters, so no support comes twice. The whole set is visited
only to find the points that stick out of the ball of those seen so far.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr, solve_triangular

from belib.arrays import real_array, whole_number

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

_TOLERANCE = 1e-12  # of the radius: how far a point may stick out; distances round to about 1e-15
_FLAT = 1e-10  # of its distance: a point this near to the plane of the support counts as in it
_JOINING = 512  # points, at most, that are seen after a visit of all


class NotConvergedError(ArithmeticError):
    """The cap on steps struck; the message bounds the radius from both sides."""


@dataclass(frozen=True)
class Ball:
    """A ball around points (n, d), and the proof that no smaller one holds them.

    Attributes:
        center: (d,).
        radius: the largest distance of a point from the center.
        support: (m,) rows of points on the boundary, ascending, m <= d + 1.
        weights: (m,) positive numbers of sum 1 with center = weights @ points[support]. From any
            other place one of these points is farther, hence no smaller ball holds them.
    """

    center: Array
    radius: float
    support: Rows
    weights: Array


def smallest_ball(
    points: ArrayLike, *, start: ArrayLike | None = None, max_steps: int | None = None
) -> Ball:
    """The smallest enclosing ball of points (n, d), its radius exact to 1e-12 of itself.

    Args:
        points: any n >= 1, d >= 1; duplicates, and points on one sphere or plane, are fine.
        start: rows to begin with, such as the support of the ball of some of the points.
        max_steps: points that may enter the support, 100 (d + 10) by default; usually one to two
            times as many enter as stay.

    Raises ValueError for points that are not finite, of a wrong shape or further apart than floats
    can tell, NotConvergedError.

    >>> ball = smallest_ball([[0, 0], [4, 0], [2, 1], [1, -1]])
    >>> ball.radius, ball.center, ball.support
    (2.0, array([2., 0.]), array([0, 1]))
    """
    points = _checked(points)
    n, d = points.shape
    with np.errstate(over="ignore"):
        x = points - points[0]
    scale = np.abs(x).max() or 1.0
    if not np.isfinite(scale):
        raise ValueError(f"points must be less than 1.8e308 apart, got {np.abs(points).max():.3g}")
    x /= scale
    squares = np.einsum("ij,ij->i", x, x)
    seen = np.array([squares.argmax()]) if start is None else _rows(start, n)
    support, weights = seen[:1], np.ones(1)
    left = 100 * (d + 10) if max_steps is None else whole_number("max_steps", max_steps)
    while True:
        support, weights, left = _enclose(x, seen, support, weights, left)
        center = weights @ x[support]
        beyond = squares - 2 * (x @ center)  # squared distances, less the centre's square
        beyond[seen] = -np.inf
        limit = (1 + _TOLERANCE) ** 2 * _square(x, support, weights) - center @ center
        joining = np.flatnonzero(beyond > limit)
        if len(joining) == 0 or left < 0:
            break
        if len(joining) > _JOINING:
            joining = joining[np.argpartition(-beyond[joining], _JOINING)[:_JOINING]]
        seen = np.append(seen, joining)
    radius = scale * np.sqrt(_distances(x, center).max())
    if left < 0:
        low = scale * np.sqrt(_square(x, support, weights))
        raise NotConvergedError(
            f"no smallest ball of {n} points in {d} dimensions in {max_steps} steps: "
            f"its radius is between {low:.12g} and {radius:.12g}"
        )
    order = np.argsort(support)
    return Ball(scale * center + points[0], float(radius), support[order], weights[order])


def _checked(points: ArrayLike) -> Array:
    points = real_array("points", points, finite=False)
    if points.ndim != 2 or 0 in points.shape:
        raise ValueError(f"points must have shape (n, d) with n, d >= 1, got {points.shape}")
    if not np.isfinite(points).all():
        row = int((~np.isfinite(points)).any(1).argmax())
        raise ValueError(f"points must be finite, got NaN or inf, first in row {row}")
    return points


def _rows(start: ArrayLike, n: int) -> Rows:
    rows = np.unique(np.asarray(start))
    if rows.dtype.kind not in "iu" or rows[0] < 0 or rows[-1] >= n:
        raise ValueError(f"start must be rows from 0 to {n - 1}, got {start}")
    return rows.astype(np.intp)


def _enclose(
    x: Array, seen: Rows, support: Rows, weights: Array, left: int
) -> tuple[Rows, Array, int]:
    """Let the farthest of the points seen enter, until the ball of the support holds them all."""
    near = x[seen]
    while left >= 0:
        squares = _distances(near, weights @ x[support])
        farthest = int(squares.argmax())
        square = _square(x, support, weights)
        if squares[farthest] <= (1 + _TOLERANCE) ** 2 * square or seen[farthest] in support:
            break
        support, weights = _enter(x, support, weights, int(seen[farthest]))
        left -= 1
    return support, weights, left


def _enter(x: Array, support: Rows, weights: Array, row: int) -> tuple[Rows, Array]:
    """The support and weights of the ball of the support's points and of one outside.

    The centre moves by t (point - its projection on the support's plane), away from no point of the
    support more than from another, until the point is as near as they are. The point's weight rises
    by t and those of the support fall by t times the projection's affine coordinates.
    """
    point, gained = x[row], 0.0
    while True:
        coordinates, height = _projection(x[support], point)
        center = weights @ x[support] + gained * point
        excess = np.square(point - center).sum() - np.square(x[support[0]] - center).sum()
        whole = excess / (2 * height) if height > 0 else np.inf
        falling = np.flatnonzero(coordinates > 0)  # never empty: their sum is 1
        steps = weights[falling] / coordinates[falling]
        step, leaving = steps.min(), falling[steps.argmin()]
        if whole < step:
            return _circumscribed(x, np.append(support, row))
        weights = np.delete(weights - step * coordinates, leaving)
        support, gained = np.delete(support, leaving), gained + step


def _projection(plane: Array, point: Array) -> tuple[Array, float]:
    """Affine coordinates (m,) of a point's projection on m points' plane, and its squared height.

    The height is 0 where it is not to be told from rounding.
    """
    apart = point - plane[0]
    if len(plane) == 1:
        return np.ones(1), float(apart @ apart)
    q, r = qr((plane[1:] - plane[0]).T, mode="economic")
    along = q.T @ apart
    across = apart - q @ along
    across -= q @ (q.T @ across)  # once more, for orthogonality to rounding
    others = solve_triangular(r, along)
    height = float(across @ across)
    flat = height <= _FLAT**2 * (apart @ apart)
    return np.append(1 - others.sum(), others), 0.0 if flat else height


def _circumscribed(x: Array, support: Rows) -> tuple[Rows, Array]:
    """The weights whose centre is equally far from all of the support, from scratch.

    With s_0 as the origin, s_i . c = |s_i|^2 / 2; rounding is not carried from step to step.
    """
    sides = x[support[1:]] - x[support[0]]
    r = qr(sides.T, mode="r")[0][: len(sides)]
    half = solve_triangular(r, np.einsum("ij,ij->i", sides, sides) / 2, trans="T")
    others = solve_triangular(r, half)
    weights = np.maximum(np.append(1 - others.sum(), others), 0)
    return support[weights > 0], weights[weights > 0] / weights.sum()


def _distances(points: Array, center: Array) -> Array:
    """Squared distances (n,)."""
    apart = points - center
    return np.einsum("ij,ij->i", apart, apart)


def _square(x: Array, support: Rows, weights: Array) -> float:
    """The dual's value: no ball of the support has a smaller squared radius."""
    return float(weights @ _distances(x[support], weights @ x[support]))
