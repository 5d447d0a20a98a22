"""Intrinsic rewards: what an exploring agent is paid, as functions of neighbour distances.

`distance` is any tensor of distances R >= 0; the reward has its shape. In APT it is the mean
distance to the k nearest neighbours in representation space.
"""

import torch
from torch import Tensor


def shannon_reward(distance: Tensor) -> Tensor:
    """log(1 + R): APT's particle entropy (Liu and Abbeel 2021; Yarats et al. 2021)."""
    return torch.log1p(distance)


def renyi_reward(distance: Tensor, *, q: float) -> Tensor:
    """The q-logarithm of 1 + R, ((1 + R)^(1 - q) - 1) / (1 - q), for Renyi entropy of order q.

    It grows with R for every q > 0, is 0 at R = 0, and tends to the Shannon reward as q -> 1. The
    published k-NN form R^(1 - q) (RISE, Yuan et al. 2022) falls with R for q > 1.
    """
    if q == 1:
        return shannon_reward(distance)
    return torch.expm1((1 - q) * torch.log1p(distance)) / (1 - q)


def behavioral_reward(distance: Tensor, *, alpha: float, beta: float) -> Tensor:
    """R exp(-beta L^alpha) L^alpha with L = log(1 + R): the paper's final reward with c = 1.

    Evaluated as one exponential of logarithms, which is exactly 0 at R = 0, with a gradient that is
    0 there too, and which keeps float32's precision for small R. At alpha = beta = 1 it is
    R / (1 + R) times the Shannon reward, not that reward; for alpha > 1 it falls beyond a peak.
    """
    positive = distance > 0
    # The inner `where` keeps log(0) out of the gradient, in which 0 * inf would be NaN.
    safe = torch.where(positive, distance, 1.0)
    log = torch.log1p(safe)
    reward = torch.exp(safe.log() - beta * log**alpha + alpha * log.log())
    return torch.where(positive, reward, 0.0)
