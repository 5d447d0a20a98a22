"""Rays from a density's mode: where they end, where they are cut, and the integral along them."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Term = Callable[[Array, Array], Array]

_VANISHED, _SMALL = -690.0, -600.0  # log density: before it underflows; a smaller one is a tail
_FAR = 1e60  # log distance at which a convergent integrand is exactly 0 in float64


class Rays:
    """m rays, r -> origin + r direction, and what is known of the density along them.

    The density is 0, or underflows, beyond `cutoff` (m,); a ray ends at `end` (m,), the box's side
    or a jump to 0; `breaks` (m, P) cut it, from 0 on; most of the mass of d dimensions lies near
    `scale` (m,), most of the ray's own near `core` (m,).
    """

    def __init__(self, log_f: Callable, origin: Array, directions: Array, box: Array, level: float):
        self.log_f, self.origin, self.directions, self.level = log_f, origin, directions, level
        self.d = len(origin)
        self.end = reach(origin, directions, box)
        self._find_cutoff()
        self._find_breaks()
        self._continue(box)

    def _continue(self, box: Array) -> None:
        """Fit log f beside the ray's two ends, and beyond the cutoff."""
        ends = np.append(self.breaks, self.end[:, None], axis=1)
        first = np.where(ends > 0, ends, np.inf).min(-1)
        decades = np.linspace(np.log(1e-3), 0, 25)
        near = np.log(1e-3 * np.minimum(first, self.core))[:, None] + decades
        self.beside_origin = Continuation(near, self.at(np.exp(near)), 1e-8)
        near = np.log(1e-3 * np.minimum(ends[:, -1] - ends[:, -2], self.scale))[:, None] + decades
        self.beside_end = Continuation(near, self.at(self.end[:, None] - np.exp(near)), 1e-8)
        # Tails are simple in the distance from the other end, where there is one (lognormal).
        behind = reach(self.origin, -self.directions, box)
        self.shift = np.where(behind < self.cutoff / 10, behind, 0.0)[:, None]
        near = np.log(self.cutoff[:, None] + self.shift) + np.linspace(np.log(1 / 8), 0, 25)
        self.beyond = Continuation(near, self.at(np.exp(near) - self.shift), 1e-9)

    def at(self, r: Array, rows: Rows | slice = slice(None)) -> Array:
        """log f at distances (m, N) along the rays `rows`."""
        return self.log_f(self.origin + r[..., None] * self.directions[rows, None, :])

    def _find_cutoff(self) -> None:
        top = np.log(np.minimum(self.end, 1e160)) - 1e-12
        log_r = np.linspace(np.minimum(top - 35, np.log(1e-15)), top, 700, axis=1)
        log_f = self.at(np.exp(log_r))
        alive = log_f > _VANISHED
        last = np.where(alive.any(1), alive.shape[1] - 1 - alive[:, ::-1].argmax(1), 0)
        rows, at_top = np.arange(len(last)), last == alive.shape[1] - 1
        low, high = log_r[rows, last], log_r[rows, np.minimum(last + 1, alive.shape[1] - 1)]
        low = bisect(lambda s: self.at(np.exp(s)) > _VANISHED, low[:, None], high[:, None])
        jumps = self.at(np.exp(low))[:, 0] > _SMALL
        self.cutoff = np.exp(low[:, 0])
        self.cutoff = np.where(at_top & np.isfinite(self.end), self.end, self.cutoff)
        self.end = np.where(jumps & ~at_top, self.cutoff, self.end)
        log_f = np.where(alive, log_f, -np.inf)
        self.scale = np.exp(log_r[rows, (log_f + self.d * log_r).argmax(1)])
        self.core = np.exp(log_r[rows, (log_f + log_r).argmax(1)])

    def _state(self, r: Array) -> NDArray[np.int_]:
        log_f = self.at(r)
        return (log_f > self.level) + 2 * (log_f > _VANISHED)

    def _find_breaks(self) -> None:
        wide = self.scale[:, None] * np.exp(np.linspace(-25, 25, 300))
        even = np.minimum(self.cutoff, 60 * self.scale)[:, None] * np.linspace(0, 1, 301)[1:]
        r = np.sort(np.minimum(np.append(wide, even, axis=1), self.cutoff[:, None]), axis=1)
        state = self._state(r)
        changes = state[:, 1:] != state[:, :-1]
        # After a stable sort the last columns hold the changes, in order; the rest become 0.
        order = changes.argsort(1, kind="stable")[:, changes.shape[1] - changes.sum(1).max() :]
        left = np.take_along_axis(state, order, 1)
        low, high = np.take_along_axis(r, order, 1), np.take_along_axis(r, order + 1, 1)
        low = bisect(lambda x: self._state(x) == left, low, high)
        found = np.where(np.take_along_axis(changes, order, 1), low, 0.0)
        self.breaks = np.append(np.zeros((len(r), 1)), found, axis=1)

    def integrate(self, term: Term, step: int, label: str) -> Array:
        """(value, mass, part out of reach) of each ray, (m, 3), at 2^step nodes a unit."""
        self._check_convergence(term, label)
        total = np.zeros((len(self.end), 3))
        rows = np.arange(len(self.end))
        for start, stop in zip(self.breaks.T[:-1], self.breaks.T[1:], strict=True):
            total[:, :2] += self._finite_piece(term, step, rows, start, stop)
        closed, open_ = rows[np.isfinite(self.end)], rows[np.isinf(self.end)]
        start = self.breaks[:, -1]
        total[closed, :2] += self._finite_piece(term, step, closed, start[closed], self.end[closed])
        node, log_weight = infinite_rule(step)
        log_scale = np.log(self.scale[open_, None])
        log_r = np.logaddexp(np.log(start[open_, None]), log_scale + node)
        total[open_, :2] += self._sum(term, open_, log_r, log_scale + log_weight)
        at_cutoff = term(self.at(self.cutoff[:, None])[:, 0], self.d * np.log(self.cutoff))
        hidden = (self.cutoff < self.end) & ~self.beyond.found
        total[:, 2] = np.where(hidden, np.abs(at_cutoff), 0.0)
        return total

    def _finite_piece(self, term: Term, step: int, rows: Rows, start: Array, stop: Array) -> Array:
        left, right, log_weight = finite_rule(step, 6.0)
        log_length = np.log(stop - start)[:, None]
        log_r = np.logaddexp(np.log(start)[:, None], log_length + left)
        to_end = np.where((stop == self.end[rows])[:, None], log_length + right, np.inf)
        return self._sum(term, rows, log_r, log_length + log_weight, to_end)

    def _sum(
        self, term: Term, rows: Rows, log_r: Array, log_weight: Array, to_end: ArrayLike = np.inf
    ) -> Array:
        """Sums of the term and of the density over the nodes of one piece, (m, 2)."""
        least = np.where(self.beside_origin.found, self.beside_origin.log_unit[:, 0] - 15, -np.inf)
        tried = np.clip(log_r, least[rows, None], np.log(self.cutoff)[rows, None])
        log_f = self.at(np.exp(tried), rows)
        tail = log_r > np.log(self.cutoff)[rows, None]
        if tail.any():
            continued = self.beyond(np.logaddexp(log_r, np.log(self.shift[rows])), rows)
            continued = np.where(self.beyond.found[rows, None], continued, -np.inf)
            log_f = np.where(tail, continued, log_f)
        for model, distance in ((self.beside_origin, log_r), (self.beside_end, np.asarray(to_end))):
            close = (distance < model.log_unit[rows] + np.log(1e-5)) & model.found[rows, None]
            if close.any():
                log_f = np.where(close, model(distance, rows), log_f)
        log_volume = log_weight + (self.d - 1) * log_r
        inside = np.isfinite(log_volume)
        value = np.where(inside, term(log_f, log_volume), 0.0)
        mass = np.where(inside, np.exp(log_f + log_volume), 0.0)
        return np.stack([value.sum(1), mass.sum(1)], axis=-1)

    def _check_convergence(self, term: Term, label: str) -> None:
        """Raise ValueError where a continuation makes the integral infinite."""
        far = np.full((len(self.end), 1), _FAR)
        tail = (
            (self.cutoff < self.end) & np.isinf(self.end) & self.beyond.found & ~self.beyond.grows
        )
        beyond = term(self.beyond(far), self.d * far)[:, 0]
        if (beyond[tail] != 0).any():
            way = self.directions[tail & (beyond != 0)][0]
            raise ValueError(
                f"{label} is infinite: the density's tail towards {way} * inf is heavy"
            )
        ends = ((self.beside_origin, self.d, 0.0), (self.beside_end, 1, self.end[0]))
        for model, d, r in ends[: 3 - self.d]:  # a ray's end is a point only in one dimension
            pole = (term(model(-far), -d * far)[:, 0] != 0) & model.found
            if pole.any():
                x = self.origin + r * self.directions[pole][0]
                raise ValueError(f"{label} is infinite: the density's pole at {x} is too strong")


class Continuation:
    """log f of m rays as an expansion in a distance r, fitted to values nearby.

    Args:
        log_r, log_f: log distances, in the same steps for all rays, and log densities, (m, K).
        tolerance: the residual that still counts as none. `found` (m,) says where it is kept.
    """

    BASIS = (
        np.ones_like,
        lambda s: s,
        np.square,
        lambda s: np.exp(np.minimum(s, 300)),
        lambda s: np.exp(2 * np.minimum(s, 300)),
        lambda s: np.exp(-s),
        lambda s: np.exp(-2 * s),
    )
    GROWING = (3, 4)
    MODELS = (
        (0, 1),
        (0, 3),
        (0, 3, 4),
        (0, 1, 2),
        (0, 1, 3),
        (0, 1, 4),
        (0, 1, 3, 4),
        (0, 1, 5, 6),
    )

    def __init__(self, log_r: Array, log_f: Array, tolerance: float):
        self.log_unit = log_r[:, -1:]
        usable = np.all(np.isfinite(log_f), axis=-1)
        self.found = np.zeros(len(log_f), dtype=bool)
        self.coefficients = np.zeros((len(log_f), len(self.BASIS)))
        values = np.where(usable[:, None], log_f, 0.0).T
        for model in self.MODELS:
            design = np.stack([self.BASIS[i](log_r[0] - log_r[0, -1]) for i in model], axis=-1)
            fit = np.linalg.lstsq(design, values)[0]
            new = usable & ~self.found & (np.abs(design @ fit - values).max(0) < tolerance)
            fit[np.abs(fit) <= 10 * tolerance] = 0.0  # a trace of log r would look like a pole
            self.coefficients[np.ix_(new, model)] = fit.T[new]
            self.found |= new

    @property
    def grows(self) -> NDArray[np.bool_]:
        """Whether -log f grows as a power of r, which makes every term integrable, (m,)."""
        return (self.coefficients[:, self.GROWING] != 0).any(-1)

    def __call__(self, log_r: Array, rows: Rows | slice = slice(None)) -> Array:
        s = log_r - self.log_unit[rows]
        parts = [c[rows, None] * f(s) for c, f in zip(self.coefficients.T, self.BASIS, strict=True)]
        return np.sum([np.where(np.isnan(part), 0.0, part) for part in parts], axis=0)


def finite_rule(step: int, span: float) -> tuple[Array, Array, Array]:
    """tanh-sinh rule on (0, 1): log node, log(1 - node), log weight."""
    t = np.arange(-span, span + 1e-9, 2.0**-step)
    z = np.pi * np.sinh(t)
    left, right = log_expit(z), log_expit(-z)
    return left, right, left + right + np.log(np.pi * np.cosh(t)) - step * np.log(2)


def infinite_rule(step: int) -> tuple[Array, Array]:
    """exp-sinh rule on (0, inf): log node, log weight."""
    t = np.arange(-4.5, 9, 2.0**-step)
    z = np.pi / 2 * np.sinh(t)
    return z, z + np.log(np.pi / 2 * np.cosh(t)) - step * np.log(2)


def reach(origin: Array, directions: Array, box: Array) -> Array:
    """Distances (m,), in units of each direction, at which rays leave the box."""
    leaves = (np.where(directions > 0, box[1], box[0]) - origin) / directions
    return np.where(directions == 0, np.inf, leaves).min(-1)


def bisect(same: Callable[[Array], NDArray[np.bool_]], low: Array, high: Array) -> Array:
    """The last float at which `same`, which holds at `low`, still holds before `high`."""
    for _ in range(70):
        middle = (low + high) / 2
        kept = same(middle)
        low, high = np.where(kept, middle, low), np.where(kept, high, middle)
    return low
