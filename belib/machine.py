"""What the process is told about its machine: exactness of matrix products, and freed memory."""

import ctypes
import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_SINGLE_PRECISION = 1e-5  # error of a product, over its largest entry; bfloat16 has 2e-3


@contextmanager
def products(precision: str) -> Iterator[None]:
    """Compute matrix products, and what follows from them, in `float32` or `bfloat16`.

    Parameters stay in float32, and so do their gradients and optimisers. What torch is set to
    otherwise is left as it was.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(fastest_float32())
    try:
        # Without autocast's cache, which would keep parameters as they were before a step.
        reduced = {"enabled": precision == "bfloat16", "cache_enabled": False}
        with torch.autocast("cpu", torch.bfloat16, **reduced):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


@functools.cache
def fastest_float32() -> str:
    """torch's setting `medium` where this machine's products keep single precision with it.

    It hands products to oneDNN, which is twice as fast as MKL on some machines, and on others (with
    AMX) rounds their factors to bfloat16. So it is tried, on numbers that need all digits.
    """
    before = torch.get_float32_matmul_precision()
    generator = torch.Generator().manual_seed(0)
    one, two = torch.randn(2, 256, 256, generator=generator)
    exact = one.double() @ two.double()
    torch.set_float32_matmul_precision("medium")
    error = (one @ two - exact).abs().max() / exact.abs().max()
    torch.set_float32_matmul_precision(before)
    return "medium" if error < _SINGLE_PRECISION else "highest"


@functools.cache
def keep_freed_memory() -> None:
    """Let the process keep the memory of freed arrays below 256 MB, up to 1 GB, for its next ones.

    A step's temporary arrays otherwise go back to Linux and come again page by page, zeroed, which
    takes longer than what is computed in them. Without glibc's `mallopt` nothing is changed.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option is not None:
        set_option(-3, 2**28)  # M_MMAP_THRESHOLD
        set_option(-1, 2**30)  # M_TRIM_THRESHOLD
