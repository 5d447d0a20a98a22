"""Log densities of Gaussian actions, a number a dimension, as the learners need them."""

import math

import torch
from torch import Tensor
from torch.nn import functional

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def normal_log_density(x: Tensor, mean: Tensor, std: Tensor | float) -> Tensor:
    """log N(x; mean, std^2), a number a dimension."""
    log_std = std.log() if isinstance(std, Tensor) else math.log(std)
    return -0.5 * ((x - mean) / std).square() - log_std - _HALF_LOG_TWO_PI


def tanh_normal(mean: Tensor, std: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Actions tanh(mean + std noise) and their log densities, a number a dimension.

    The density's change of variables is written in x = mean + std noise, log(1 - tanh(x)^2) =
    2 (log 2 - x - softplus(-2x)), which stays finite where the action itself rounds to 1.
    """
    x = torch.addcmul(mean, std, noise)
    log_slope = 2 * (math.log(2) - x - functional.softplus(-2 * x))
    return x.tanh(), normal_log_density(x, mean, std) - log_slope
