"""Intrinsic rewards: what an exploring agent is paid, as functions of neighbour distances.

`distance` is R >= 0 of any shape: a tensor, an array or what numpy makes one of. In APT it is the
mean distance to the k nearest neighbours in representation space. The reward has its shape, kind
and precision (at least float32), and is NaN where R is. Masked, negative or complex arrays raise
ValueError. Of tensors only the type is checked.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from belib.arrays import check_positive, floats, is_tensor
from belib.weighting import prelec_beta

if TYPE_CHECKING:  # torch takes seconds to import, and arrays can do without it
    from torch import Tensor

Distance = TypeVar("Distance", "Tensor", NDArray[Any], float)


def shannon_reward(distance: Distance) -> Distance:
    """log(1 + R): APT's particle entropy (Liu and Abbeel 2021; Yarats et al. 2021).

    >>> shannon_reward(np.array([0.0, 1.0, 10.0])).round(3)
    array([0.   , 0.693, 2.398])
    """
    xp, distance = _library(distance)
    return xp.log1p(distance)


def renyi_reward(distance: Distance, *, q: float, literal: bool = False) -> Distance:
    """The q-logarithm of 1 + R, ((1 + R)^(1 - q) - 1) / (1 - q), for Renyi entropy of order q > 0.

    It grows with R for every q, is 0 at R = 0, and tends to the Shannon reward as q -> 1.

    `literal` is the published k-NN form R^(1 - q) (RISE, Yuan et al. 2022, for 0 < q < 1). It lacks
    the sign of 1 / (1 - q): for q > 1 it falls with R, from inf at R = 0.

    >>> renyi_reward(np.array([0.0, 1.0, 10.0]), q=0.5).round(3)
    array([0.   , 0.828, 4.633])
    """
    check_positive("q", q)
    xp, r = _library(distance)
    if literal:
        return r ** (1 - q)
    log = xp.log1p(r)
    return log if q == 1 else xp.expm1((1 - q) * log) / (1 - q)


def behavioral_reward(distance: Distance, *, alpha: float, beta: float, c: float = 1.0) -> Distance:
    """R exp(-beta L^alpha) L^alpha with L = log(R + c): the paper's final reward (`r_final`).

    It is 0 at R = 0; so is its gradient if c = 1. At alpha = beta = c = 1 it is R / (1 + R) times
    the Shannon reward. For alpha > 1 it falls beyond a peak.

    Raises ValueError for c < 1, and unless alpha and beta are positive.

    >>> from belib.weighting import prelec_beta
    >>> distance = np.array([0.0, 1.0, 10.0])
    >>> behavioral_reward(distance, alpha=0.5, beta=prelec_beta(0.5, 512)).round(3)
    array([0.   , 0.104, 0.324])
    """
    for name, value in (("alpha", alpha), ("beta", beta), ("c", c)):
        check_positive(name, value)
    if c < 1:
        raise ValueError(
            f"c must be at least 1, got {c}: log(R + c) < 0 for R < 1 - c, where its power alpha "
            "is not real, or not increasing"
        )
    xp, distance = _library(distance)
    log = xp.log1p(distance) if c == 1 else xp.log(distance + c)
    zero = log == 0
    # The inner `where` keeps 0^(alpha - 1) out of the gradient, in which 0 * inf would be NaN.
    power = xp.where(zero, 1.0, log) ** alpha
    return distance * xp.where(zero, 0.0, power * xp.exp(-beta * power))


def peak_distance(*, alpha: float, beta: float) -> float:
    """The distance beyond which `behavioral_reward` (c = 1) falls; inf for alpha <= 1.

    It solves (1 + R) / R L = alpha (beta L^alpha - 1), where the derivative of log reward is 0.

    >>> round(peak_distance(alpha=2.0, beta=0.16), 1)
    92.4
    """
    check_positive("alpha", alpha)
    check_positive("beta", beta)
    if alpha <= 1:
        return math.inf

    def slope(log_l: float) -> float:
        log, power = math.exp(log_l), math.exp(min(alpha * log_l, 700.0))
        return log / -math.expm1(-log) - alpha * (beta * power - 1)

    largest = math.log(700.0)  # where L is the logarithm of the largest float
    root = brentq(slope, -690.0, largest) if slope(largest) < 0 else math.inf
    return math.expm1(math.exp(root)) if root < largest else math.inf


class SignedLog(NamedTuple, Generic[Distance]):
    """A number sign * exp(log), as in `numpy.linalg.slogdet`, beyond what floats can hold."""

    sign: Distance
    log: Distance


def behavioral_reward_exact(
    distance: Distance, *, alpha: float, beta: float, k: int, n: int, d: int
) -> SignedLog[Distance]:
    """The reward before the paper's simplifications: a state's summand of its entropy estimate.

    The density at the state is estimated as exp(-u) with u = d log R + D (equation `r_deriv:2`),
    D = log(n pi^(d/2) / (k Gamma(d/2 + 1))). The summand is beta exp(u - beta u^alpha) u^alpha
    (`r_deriv:4`); its mean over a sample is the estimated entropy, in nats. The paper then drops
    exp(D) and D (`r_deriv:5` and `r_deriv:6`: "negligible"), and sets d = 1 (`r_final`).

    Where the density exceeds 1 (u < 0) the weighting is the identity, as in
    `belib.weighting.Prelec`, and the reward is u for every alpha: Shannon's.

    Args:
        distance: R to the k-th neighbour.
        k, n: number of the neighbour, and of the states among which it is the k-th.
        d: dimension of the states, or of their representation.

    Returns (sign, log of the size): at d = 512 doubling R may multiply the reward by 1e154.
    At R = 0 the log is inf and the sign -1.
    """
    for name, value in (("alpha", alpha), ("beta", beta), ("k", k), ("n", n), ("d", d)):
        check_positive(name, value)
    xp, distance = _library(distance)
    log_volume = d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1)
    with np.errstate(divide="ignore"):
        u = d * xp.log(distance) + (math.log(n / k) + log_volume)
        dense = u <= 0
        sparse_u = xp.where(dense, 1.0, u)  # for the gradient, as above
        size = alpha * xp.log(sparse_u) + sparse_u + math.log(beta) - beta * sparse_u**alpha
        return SignedLog(xp.sign(u), xp.where(dense, xp.log(abs(u)), size))


def _library(distance: object) -> tuple[Any, Any]:
    """Return numpy or torch, whose functions share their names, and the distances as its floats."""
    if is_tensor(distance):
        import torch

        if not distance.is_floating_point():
            raise ValueError(f"distance must be of a floating-point type, got {distance.dtype}")
        return torch, distance.float() if distance.element_size() < 4 else distance
    array = floats("distance", distance)
    array = array.astype(np.float32) if array.itemsize < 4 else array
    if (array < 0).any():
        raise ValueError(f"distance must be at least 0, got {array[array < 0].flat[0]}")
    return np, array


class Objective(NamedTuple):
    """What a dataset is collected for."""

    reward: Callable[[Any], Callable] | None = None
    """APT's: from a `PretrainConfig` to a function of distances R, tensors of any shape."""
    parameter: str | None = None
    """The field, `alpha` or `q`, whose value is part of the dataset's name."""
    agent: str | None = "apt"
    """A key of `belib.agents.AGENTS`; None for uniformly random actions."""


def _behavioral(config: Any) -> Callable:
    beta = prelec_beta(config.alpha, config.representation_dim)
    return partial(behavioral_reward, alpha=config.alpha, beta=beta)


def _renyi(config: Any) -> Callable:
    reward = renyi_reward if config.renyi_form == "signed" else _published_renyi
    return partial(reward, q=config.q)


def _published_renyi(distance: Any, *, q: float) -> Any:
    """R^(1 - q), cut below R = 1e-6: for q > 1 it is infinite among duplicates."""
    return renyi_reward(distance.clamp(min=1e-6), q=q, literal=True)


OBJECTIVES: ChainMap[str, Objective] = ChainMap(
    {},  # what this process adds: worker processes do not know it
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
"""All that a dataset can be collected for. A line here makes a new objective."""


def outcomes(config: Any, obs_dim: int) -> int:
    """Return M of Prelec's beta: the dimension in which APT takes distances."""
    return obs_dim if config.representation == "observation" else config.representation_dim


def distance_reward(config: Any, obs_dim: int) -> Callable:
    """Return the reward of distances that a config's APT agent maximises."""
    reward = OBJECTIVES[config.objective].reward
    assert reward, f"{config.objective} has no reward of distances"
    return reward(replace(config, representation_dim=outcomes(config, obs_dim)))


def facts(config: Any, obs_dim: int) -> dict[str, float]:
    """Return the numbers in a config's reward of distances, with M as `n_outcomes` beside beta.

    >>> from belib.config import PretrainConfig
    >>> facts(PretrainConfig(alpha=0.5), obs_dim=24)
    {'alpha': 0.5, 'beta': 2.4976638334730934, 'n_outcomes': 512}
    """
    if not OBJECTIVES[config.objective].reward:
        return {}
    numbers: dict[str, float] = dict(getattr(distance_reward(config, obs_dim), "keywords", {}))
    return numbers | ({"n_outcomes": outcomes(config, obs_dim)} if "beta" in numbers else {})
