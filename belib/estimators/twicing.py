"""The correction of a k-NN estimator for the noise of its densities, by twicing to order 2."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

Array = NDArray[np.float64]
_STEP = 0.01  # nats, of the grid that tabulates the correction; halving it changes about 1e-6


def twiced(term: Callable[[Array], Array], u: Array, k: int) -> Array:
    """Return phi = sum_{j<=2} (I - K)^j G = 3G - (3K - K^2) G at u, G = term (order-2 twicing).

    K is what the noise of a k-NN density does: (K G)(u) = E G(u + log T - psi(k)), T ~ Gamma(k).
    The bias of phi is (I - K)^3 G where G's is (K - I) G; both are 0 for G(u) = u, and phi = u.
    (3K - K^2) G is smooth, so a grid and linear interpolation do; G itself is exact. The products
    are summed directly, not by FFT: G grows like e^u, and rounding must stay relative.
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
