"""The exact smallest ball around a set of points, with a certificate.

A dual active-set method (Dearing and Zeck 2009; the walk of Fischer, Gaertner and Kutz 2003 in
reverse). The support, a few points on the boundary, defines the ball. The farthest point outside
enters the support, the centre moves until that point is as far as the others, and a point whose
weight falls to zero on the way leaves. The radius grows with every point that enters, so no support
repeats. All points are visited only to find those outside the ball of the points seen so far.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr, solve_triangular

from belib.arrays import real_array

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

_TOLERANCE = 1e-12  # relative excess of a distance over the radius; rounding is about 1e-15
_FLAT = 1e-10  # least height / distance of a point outside the support's plane
_JOINING = 512  # most points that a visit of all points adds


class Ball(NamedTuple):
    """A ball around points (n, d), and a proof that it is the smallest.

    From any center other than this one, some point of the support is farther than `radius`.
    """

    center: Array  # (d,)
    radius: float  # the largest distance of a point from the center
    support: Rows  # (m,) rows of points on the boundary, ascending, m <= d + 1
    weights: Array  # (m,) positive numbers of sum 1 with center = weights @ points[support]


def smallest_ball(points: ArrayLike, *, start: ArrayLike | None = None) -> Ball:
    """Return the smallest ball around points (n, d), its radius exact to a relative 1e-12.

    Args:
        points: n >= 1, d >= 1; duplicates, and points on one sphere or plane, are fine.
        start: rows to begin with, such as the support of the ball of some of the points.

    Raise ValueError for points that are not finite, IndexError if `start` has a row out of range.

    >>> ball = smallest_ball([[0, 0], [4, 0], [2, 1], [1, -1]])
    >>> ball.radius, ball.center, ball.support
    (2.0, array([2., 0.]), array([0, 1]))
    """
    points = real_array("points", points, ndim=2)
    x = real_array("points - points[0]", points - points[0])
    scale = np.abs(x).max() or 1.0
    x = x / scale
    squares = np.einsum("ij,ij->i", x, x)
    rows = np.arange(len(x))
    seen = rows[[squares.argmax()]] if start is None else np.unique(rows[np.asarray(start)])
    support, weights = seen[:1], np.ones(1)
    while True:
        support, weights = _enclose(x, seen, support, weights)
        joining = _outside(x, squares, seen, support, weights)
        if len(joining) == 0:
            break
        seen = np.append(seen, joining)
    center, order = weights @ x[support], np.argsort(support)
    radius = float(scale * np.sqrt(_distances(x, center).max()))
    return Ball(scale * center + points[0], radius, support[order], weights[order])


def _outside(x: Array, squares: Array, seen: Rows, support: Rows, weights: Array) -> Rows:
    """Return rows of points outside the support's ball, at most the `_JOINING` farthest."""
    center = weights @ x[support]
    beyond = squares - 2 * (x @ center)  # |x - c|^2 - |c|^2
    beyond[seen] = -np.inf
    limit = (1 + _TOLERANCE) ** 2 * _square(x, support, weights) - center @ center
    joining = np.flatnonzero(beyond > limit)
    if len(joining) > _JOINING:
        joining = joining[np.argpartition(-beyond[joining], _JOINING)[:_JOINING]]
    return joining


def _enclose(x: Array, seen: Rows, support: Rows, weights: Array) -> tuple[Rows, Array]:
    """Let the farthest point seen enter the support until its ball holds all points seen."""
    near = x[seen]
    for _ in range(100 * (x.shape[1] + 10)):  # usually one to two times as many enter as stay
        squares = _distances(near, weights @ x[support])
        farthest = int(squares.argmax())
        limit = (1 + _TOLERANCE) ** 2 * _square(x, support, weights)
        if squares[farthest] <= limit or seen[farthest] in support:
            return support, weights
        support, weights = _enter(x, support, weights, int(seen[farthest]))
    raise ArithmeticError(f"found no smallest ball of {len(x)} points, because of rounding errors")


def _enter(x: Array, support: Rows, weights: Array, row: int) -> tuple[Rows, Array]:
    """Return support and weights of the ball around the support and one point outside.

    The centre moves by t (point - projection of the point on the support's plane). It stays equally
    far from all of the support, until the point is as far. The point's weight rises by t; weights
    of the support fall by t times the projection's affine coordinates.
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
    """Return a point's projection on the plane of m points, affine (m,), and its squared height.

    A height of the size of rounding errors is returned as 0.
    """
    apart = point - plane[0]
    if len(plane) == 1:
        return np.ones(1), float(apart @ apart)
    q, r = qr((plane[1:] - plane[0]).T, mode="economic")
    along = q.T @ apart
    across = apart - q @ along
    across -= q @ (q.T @ across)  # a second time, to be orthogonal up to rounding
    others = solve_triangular(r, along)
    height = float(across @ across)
    flat = height <= _FLAT**2 * (apart @ apart)
    return np.append(1 - others.sum(), others), 0.0 if flat else height


def _circumscribed(x: Array, support: Rows) -> tuple[Rows, Array]:
    """Return support and weights of the ball through all support points, computed afresh.

    With s_0 as the origin, s_i . c = |s_i|^2 / 2. Rounding errors of earlier steps do not add up.
    """
    sides = x[support[1:]] - x[support[0]]
    r = qr(sides.T, mode="r")[0][: len(sides)]
    half = solve_triangular(r, np.einsum("ij,ij->i", sides, sides) / 2, trans="T")
    others = solve_triangular(r, half)
    weights = np.maximum(np.append(1 - others.sum(), others), 0)
    return support[weights > 0], weights[weights > 0] / weights.sum()


def _distances(points: Array, center: Array) -> Array:
    """Return squared distances (n,)."""
    apart = points - center
    return np.einsum("ij,ij->i", apart, apart)


def _square(x: Array, support: Rows, weights: Array) -> float:
    """Return the dual's value, a lower bound of the squared radius."""
    return float(weights @ _distances(x[support], weights @ x[support]))
