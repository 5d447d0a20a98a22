"""Correction of k-NN estimators for the noise of their densities: twicing of order 2."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

Array = NDArray[np.float64]
_STEP = 0.01  # grid step of u, in nats; half the step changes results by about 1e-6


def twiced(term: Callable[[Array], Array], u: Array, k: int) -> Array:
    """Return phi = sum_{j<=2} (I - K)^j G = 3G - (3K - K^2) G at u, G = term (order-2 twicing).

    K averages over the noise of a k-NN density: (K G)(u) = E G(u + log T - psi(k)), T ~ Gamma(k).
    G has the bias (K - I) G, and phi has -(I - K)^3 G. Both are 0 for G(u) = u, and phi = u.
    (3K - K^2) G is smooth, so it is tabulated and interpolated linearly. The convolution is direct,
    not by FFT: G grows like e^u, and an FFT's rounding error is relative to its largest value.
    """
    # the noise's density on a grid, and the kernel of 3K - K^2
    centre, log_gamma = digamma(k), gammaln(k)
    low = math.floor(((log_gamma - 40) / k - centre) / _STEP)
    high = math.ceil((math.log(k + 12 * math.sqrt(k) + 40) - centre) / _STEP)
    s = np.arange(low, high + 1) * _STEP + centre
    kernel = np.exp(k * s - np.exp(s) - log_gamma) * _STEP
    double = -np.convolve(kernel, kernel)
    double[-low : -low + len(kernel)] += 3 * kernel
    # (3K - K^2) G on a grid around u
    first, last = math.floor(u.min() / _STEP) - 1, math.ceil(u.max() / _STEP) + 1
    wide = np.arange(first + 2 * low, last + 2 * high + 1) * _STEP
    table = np.convolve(term(wide), double[::-1], mode="valid")
    grid = np.arange(first, last + 1) * _STEP
    return 3 * term(u) - np.interp(u, grid, table)
