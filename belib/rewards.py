"""Intrinsic rewards of exploring agents, as functions of neighbour distances.

`distance` is R >= 0, a tensor or array of any shape; in APT, the mean distance to the k nearest
neighbours in representation space. The reward has the same shape, type and precision (at least
float32). Masked, negative or complex arrays raise ValueError; of tensors only the type is checked.
"""

import math
from collections import ChainMap
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import brentq

from belib.arrays import check_positive, floats, is_tensor
from belib.weighting import prelec_beta

Distance = TypeVar("Distance")  # a tensor, an array, a list or a number


def shannon_reward(distance: Distance) -> Distance:
    """Return log(1 + R), APT's particle entropy (Liu and Abbeel 2021; Yarats et al. 2021).

    >>> shannon_reward(np.array([0.0, 1.0, 10.0])).round(3)
    array([0.   , 0.693, 2.398])
    """
    xp, r = _library(distance)
    return xp.log1p(r)


def renyi_reward(distance: Distance, *, q: float, literal: bool = False) -> Distance:
    """Return ((1 + R)^(1 - q) - 1) / (1 - q), the q-logarithm of 1 + R: Renyi's reward, q > 0.

    It increases with R, is 0 at R = 0, and tends to the Shannon reward as q -> 1.

    `literal` returns the published k-NN form R^(1 - q) (RISE, Yuan et al. 2022, for 0 < q < 1). It
    lacks the sign of 1 / (1 - q): for q > 1 it decreases with R, from inf at R = 0.

    >>> renyi_reward(np.array([0.0, 1.0, 10.0]), q=0.5).round(3)
    array([0.   , 0.828, 4.633])
    """
    check_positive(q=q)
    xp, r = _library(distance)
    if literal:
        return r ** (1 - q)
    log = xp.log1p(r)
    return log if q == 1 else xp.expm1((1 - q) * log) / (1 - q)


def behavioral_reward(distance: Distance, *, alpha: float, beta: float, c: float = 1.0) -> Distance:
    """Return R exp(-beta L^alpha) L^alpha, L = log(R + c): the paper's final reward (`r_final`).

    At R = 0 the reward is 0, and its gradient too if c = 1. At alpha = beta = c = 1 the reward is
    R / (1 + R) times the Shannon reward. For alpha > 1 it has a peak: see `peak_distance`. Raise
    ValueError for c < 1.

    >>> from belib.weighting import prelec_beta
    >>> distance = np.array([0.0, 1.0, 10.0])
    >>> behavioral_reward(distance, alpha=0.5, beta=prelec_beta(0.5, 512)).round(3)
    array([0.   , 0.104, 0.324])
    """
    check_positive(alpha=alpha, beta=beta, c=c)
    if c < 1:
        raise ValueError(f"c must be at least 1, got {c}: log(R + c) < 0 has no real power alpha")
    xp, r = _library(distance)
    log = xp.log1p(r) if c == 1 else xp.log(r + c)
    zero = log == 0
    # the inner `where` avoids 0^(alpha - 1) = inf in the gradient, since 0 * inf is NaN
    power = xp.where(zero, 1.0, log) ** alpha
    return r * xp.where(zero, 0.0, power * xp.exp(-beta * power))


def peak_distance(*, alpha: float, beta: float) -> float:
    """Return the R at which `behavioral_reward` (c = 1) is largest; inf if it rises for ever.

    The derivative of the log reward is 0 there: L (1 + R) / R = alpha (beta L^alpha - 1).

    >>> round(peak_distance(alpha=2.0, beta=0.16), 1)
    92.4
    """
    check_positive(alpha=alpha, beta=beta)
    if alpha < 1 or (alpha == 1 and beta <= 1):
        return math.inf

    def slope(log_l: float) -> float:
        log, power = math.exp(log_l), math.exp(min(alpha * log_l, 700.0))
        return log / -math.expm1(-log) - alpha * (beta * power - 1)

    largest = math.log(700.0)  # e^700 is near the largest float
    return math.expm1(math.exp(brentq(slope, -690.0, largest))) if slope(largest) < 0 else math.inf


class SignedLog(NamedTuple):
    """The number sign * exp(log), which may overflow, as in `numpy.linalg.slogdet`."""

    sign: Any
    log: Any


def behavioral_reward_exact(
    distance: Any, *, alpha: float, beta: float, k: int, n: int, d: int
) -> SignedLog:
    """Return a state's term of the entropy estimate: the reward before the paper simplifies it.

    The density at the state is estimated as exp(-u) with u = d log R + D (equation `r_deriv:2`),
    D = log(n pi^(d/2) / (k Gamma(d/2 + 1))). The term is beta exp(u - beta u^alpha) u^alpha
    (`r_deriv:4`); its mean over a sample is the estimated entropy, in nats. The paper then drops
    exp(D) and D as negligible (`r_deriv:5`, `r_deriv:6`), and sets d = 1 (`r_final`).

    R is the distance to the k-th neighbour among n states of dimension d. Where the density exceeds
    1 (u < 0), the weighting is the identity and the term is Shannon's, u. At R = 0 the log is inf
    and the sign -1.
    """
    check_positive(alpha=alpha, beta=beta, k=k, n=n, d=d)
    xp, r = _library(distance)
    log_volume = d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1)
    with np.errstate(divide="ignore"):
        u = d * xp.log(r) + (math.log(n / k) + log_volume)
        dense = u <= 0
        sparse_u = xp.where(dense, 1.0, u)  # no NaN in the gradient
        size = alpha * xp.log(sparse_u) + sparse_u + math.log(beta) - beta * sparse_u**alpha
        return SignedLog(xp.sign(u), xp.where(dense, xp.log(abs(u)), size))


def _library(distance: object) -> tuple[Any, Any]:
    """Return the library (numpy or torch), and the distances as its floats."""
    if is_tensor(distance):
        import torch  # takes seconds, and arrays do not need it

        if not distance.is_floating_point():
            raise ValueError(f"distance must be of a floating-point type, got {distance.dtype}")
        return torch, distance.float() if distance.element_size() < 4 else distance
    array = floats("distance", distance)
    array = array.astype(np.result_type(array, np.float32), copy=False)
    if (array < 0).any():
        raise ValueError(f"distance must be at least 0, got {array[array < 0].flat[0]}")
    return np, array


class Objective(NamedTuple):
    """What a dataset is collected for."""

    reward: Callable[[Any], Callable] | None = None  # for APT: config -> function of distances
    parameter: str | None = None  # the config's field, `alpha` or `q`, in the dataset's name
    agent: str | None = "apt"  # a key of `belib.agents.AGENTS`; None for uniformly random actions


def _behavioral(config: Any) -> Callable:
    beta = prelec_beta(config.alpha, config.representation_dim)
    return partial(behavioral_reward, alpha=config.alpha, beta=beta)


def _renyi(config: Any) -> Callable:
    def published(distance: Any, *, q: float) -> Any:
        return renyi_reward(distance.clamp(min=1e-6), q=q, literal=True)  # finite at R = 0

    return partial(renyi_reward if config.renyi_form == "signed" else published, q=config.q)


OBJECTIVES: ChainMap[str, Objective] = ChainMap(
    {},  # objectives added in this process; worker processes do not have them
    {
        "behavioral": Objective(_behavioral, parameter="alpha"),
        "renyi": Objective(_renyi, parameter="q"),
        "shannon": Objective(lambda config: shannon_reward),
        "rnd": Objective(agent="rnd"),
        "smm": Objective(agent="smm"),
        "random": Objective(agent=None),
        "task": Objective(agent="ddpg"),
    },
)


def distance_reward(config: Any, obs_dim: int) -> Callable:
    """Return the reward, a function of distances, that a config's APT agent maximises.

    M of Prelec's beta is the dimension of the representation: of obs, or of the trunk's output.
    """
    reward: Any = OBJECTIVES[config.objective].reward
    dim = obs_dim if config.representation == "observation" else config.representation_dim
    return reward(replace(config, representation_dim=dim))


def facts(config: Any, obs_dim: int) -> dict[str, float]:
    """Return the parameters of a config's reward; beta comes with its M, `n_outcomes`.

    >>> from belib.config import PretrainConfig
    >>> facts(PretrainConfig(alpha=0.5), obs_dim=24)
    {'alpha': 0.5, 'beta': 2.4976638334730934, 'n_outcomes': 512}
    """
    if not OBJECTIVES[config.objective].reward:
        return {}
    numbers: dict[str, float] = dict(getattr(distance_reward(config, obs_dim), "keywords", {}))
    dim = obs_dim if config.representation == "observation" else config.representation_dim
    return numbers | ({"n_outcomes": dim} if "beta" in numbers else {})
