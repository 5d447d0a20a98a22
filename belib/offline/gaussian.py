"""Log densities of Gaussian actions, by dimension."""

import math

import torch
from torch import Tensor
from torch.nn import functional

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def normal_log_density(x: Tensor, mean: Tensor, std: Tensor | float) -> Tensor:
    """Return log N(x; mean, std^2), by dimension."""
    log_std = std.log() if isinstance(std, Tensor) else math.log(std)
    return -0.5 * ((x - mean) / std).square() - log_std - _HALF_LOG_TWO_PI


def tanh_normal(mean: Tensor, std: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Return actions tanh(x), x = mean + std noise, and their log densities by dimension.

    The change of variables adds -log(1 - tanh(x)^2) = -2 (log 2 - x - softplus(-2x)), which stays
    finite when tanh(x) rounds to 1.
    """
    x = torch.addcmul(mean, std, noise)
    log_slope = 2 * (math.log(2) - x - functional.softplus(-2 * x))
    return x.tanh(), normal_log_density(x, mean, std) - log_slope
