"""Probability weightings w of behavioural economics; behavioral entropy is Shannon's of w(p).

Weightings are computed in log space, on [0, inf), because a density may exceed 1. A weighting that
is defined for probabilities only is the identity above 1. This extension is continuous and
increasing, and k-NN estimates with it have a finite mean.
"""

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belib.arrays import check_positive, real_array

Array = NDArray[np.float64]
EXTENSIONS = ("identity", "odd")


def prelec_beta(alpha: float, n_outcomes: float) -> float:
    """Return the beta that makes 1/M a fixed point of Prelec's weighting, (log M)^(1 - alpha).

    The uniform pmf over M = `n_outcomes` outcomes then has the entropy log M for every alpha. The
    paper (section 2) writes beta = exp((1 - alpha) log log M). In RL, M is the dimension of the
    representation.

    Raise ValueError unless alpha > 0 and M >= 2.

    >>> weighting = Prelec(0.5, prelec_beta(0.5, 512))
    >>> round(512 * float(weighting(1 / 512)), 9)
    1.0
    """
    check_positive(alpha=alpha, n_outcomes=n_outcomes)
    if n_outcomes < 2:
        raise ValueError(f"n_outcomes must be at least 2, got {n_outcomes}")
    beta = float(np.power(math.log(n_outcomes), 1.0 - alpha))
    if not sys.float_info.min <= beta < math.inf:
        raise ValueError(f"alpha must give beta within floats, got {alpha}: beta is {beta}")
    return beta


class Weighting(ABC):
    """w on [0, inf): continuous, increasing, w(0) = 0, w(1) = 1 (paper, definition 1)."""

    @abstractmethod
    def log(self, log_p: ArrayLike) -> Array:
        """Return log w(p), given log p. p itself may under- or overflow (d = 512)."""

    def __call__(self, p: ArrayLike) -> Array:
        """Return w(p), elementwise. Raise ValueError where p is negative or NaN."""
        p = real_array("p", p, finite=False)
        if not (p >= 0).all():
            raise ValueError(f"p must be at least 0 everywhere, got {p[~(p >= 0)].flat[0]}")
        with np.errstate(divide="ignore", over="ignore"):
            return np.exp(self.log(np.log(p)))


@dataclass(frozen=True)
class Prelec(Weighting):
    """w(p) = exp(-beta (-log p)^alpha) (Prelec 1998; paper, equation 3).

    alpha is the curvature; beta moves the fixed point. `extension` defines w above 1: "identity" is
    w(p) = p; "odd" is w(1/p) = 1/w(p), which has the fixed points p and 1/p, but grows faster than
    any power if alpha > 1. Raise ValueError for parameters out of range.

    >>> Prelec(0.5)([0.01, 0.5, 0.99]).round(3)
    array([0.117, 0.435, 0.905])
    """

    alpha: float
    beta: float = 1.0
    extension: str = "identity"

    def __post_init__(self):
        check_positive(alpha=self.alpha, beta=self.beta)
        if self.extension not in EXTENSIONS:
            raise ValueError(f"extension must be one of {EXTENSIONS}, got {self.extension!r}")

    def log(self, log_p: ArrayLike) -> Array:
        log_p = real_array("log_p", log_p, finite=False)
        with np.errstate(over="ignore"):
            log_w = self.beta * np.sign(log_p) * np.abs(log_p) ** self.alpha
        return log_w if self.extension == "odd" else np.where(log_p > 0, log_p, log_w)


@dataclass(frozen=True)
class TverskyKahneman(Weighting):
    """w(p) = p^g / (p^g + (1 - p)^g)^(1/g), g = gamma (Tversky and Kahneman 1992: 0.61 for gains).

    Raise ValueError for gamma below about 0.28, where w is not increasing.
    """

    gamma: float = 0.61

    def __post_init__(self):
        check_positive(gamma=self.gamma)
        g = self.gamma
        # w' has the sign of g r^g + r^(g-1) + g - 1, r = (1 - p)/p; it is least at r = (1 - g)/g^2
        if g < 1 and (2 - g) * math.log1p(-g) >= (1 - 2 * g) * math.log(g):
            raise ValueError(f"gamma must exceed about 0.2792 for w to increase, got {g}")

    def log(self, log_p: ArrayLike) -> Array:
        log_p, log_q = _log_odds_pair(log_p)
        log_sum = np.logaddexp(self.gamma * log_p, self.gamma * log_q)
        return np.where(log_p > 0, log_p, self.gamma * log_p - log_sum / self.gamma)


@dataclass(frozen=True)
class LinearInLogOdds(Weighting):
    """logit w(p) = log(delta) + gamma logit p (Gonzalez and Wu 1999)."""

    gamma: float = 0.44
    delta: float = 0.77

    def __post_init__(self):
        check_positive(gamma=self.gamma, delta=self.delta)

    def log(self, log_p: ArrayLike) -> Array:
        log_p, log_q = _log_odds_pair(log_p)
        odds_for = math.log(self.delta) + self.gamma * log_p
        log_w = odds_for - np.logaddexp(odds_for, self.gamma * log_q)
        return np.where(log_p > 0, log_p, log_w)


@dataclass(frozen=True)
class Power(Weighting):
    """w(p) = p^exponent, on all of [0, inf). The exponent 1 gives Shannon's entropy.

    If exponent e > 1 and log M > 1/(e - 1) + 1/e, the uniform pmf over M outcomes is no maximum.
    """

    exponent: float

    def __post_init__(self):
        check_positive(exponent=self.exponent)

    def log(self, log_p: ArrayLike) -> Array:
        return self.exponent * real_array("log_p", log_p, finite=False)


def entropy_term(weighting: Callable, log_p: Array, log_divisor: Array | float = 0.0) -> Array:
    """Return -w(p) log w(p) / exp(log_divisor), nats, or 0 where w(p) = 0.

    `weighting` is a `Weighting`, evaluated in log space, or any function of p.
    """
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        if isinstance(weighting, Weighting):
            log_w = weighting.log(log_p)
        else:
            log_w = np.log(real_array("weighting(p)", weighting(np.exp(log_p)), finite=False))
        return np.where(log_w == -np.inf, 0.0, -log_w * np.exp(log_w - log_divisor))


def _log_odds_pair(log_p: ArrayLike) -> tuple[Array, Array]:
    """Return log p and log(1 - p); the latter is -inf for p >= 1."""
    log_p = real_array("log_p", log_p, finite=False)
    with np.errstate(divide="ignore"):
        return log_p, np.log(-np.expm1(np.minimum(log_p, 0.0)))
