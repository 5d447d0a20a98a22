"""The machine: device, precision of matrix products, threads, memory."""

import ctypes
import functools
import platform
import re
import sys
import time
import timeit
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch


def device() -> torch.device:
    """Return the GPU if torch finds one, else the CPU; `CUDA_VISIBLE_DEVICES=` hides GPUs."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def processor() -> str:
    """Return the processor's name, with its family and model, or else its architecture."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text() if file.exists() else ""
    known = dict(re.findall(r"(?m)^(model name|cpu family|model)\s*: (.*)", lines))
    name = known.pop("model name", "") or platform.processor() or platform.machine()
    numbers = ", ".join(f"{key} {value}" for key, value in known.items())
    return f"{name} ({numbers})" if numbers else name


@contextmanager
def products(precision: str, where: torch.device | str = "cpu") -> Iterator[None]:
    """Compute matrix products on the device `where` in `float32`, `tf32` or `bfloat16`.

    `tf32` rounds factors to 10 binary digits on a GPU and is float32 on a CPU. Parameters,
    gradients and optimisers stay in float32. torch's settings are restored at the end.
    """
    kind, before = torch.device(where).type, torch.get_float32_matmul_precision()
    on_gpu = "high" if precision == "tf32" else "highest"
    torch.set_float32_matmul_precision(fastest_float32() if kind == "cpu" else on_gpu)
    try:
        # no cache: it would return the parameters from before a step
        reduced = {"enabled": precision == "bfloat16", "cache_enabled": False}
        with torch.autocast(kind, torch.bfloat16, **reduced):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


@functools.cache
def fastest_float32() -> str:
    """Return torch's setting `medium` if products then keep single precision, else `highest`.

    `medium` is twice as fast on some machines, but rounds factors to bfloat16 on those with AMX.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    error = _error_of_a_product()  # in bfloat16: 2e-3
    torch.set_float32_matmul_precision(before)
    return "medium" if error < 1e-5 else "highest"


@functools.cache
def fastest_precision() -> str:
    """Return the precision for `precision: auto`, measured once, in about 50 ms.

    It is `bfloat16` on GPUs that have it, and on CPUs where its products are 1.3 times as fast as
    float32's, with errors below 2 % of the largest entry; else `float32`.
    """
    if device().type == "cuda":
        pays = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        float32, bfloat16 = map(_seconds_of_a_product, ("float32", "bfloat16"))
        with products("bfloat16"):
            pays = float32 >= 1.3 * bfloat16 and _error_of_a_product() < 2e-2
    return "bfloat16" if pays else "float32"


def _seconds_of_a_product(precision: str) -> float:
    """Return the shortest of ten CPU times of one thread, which other processes do not change."""
    one, clock = torch.ones(4, 256, 256), time.thread_time
    with threads(1), products(precision):
        return min(timeit.repeat(lambda: one @ one, timer=clock, number=1, repeat=10))


def _error_of_a_product() -> float:
    """Return the largest error of a product with torch's settings / its largest entry."""
    one, two = torch.randn(2, 256, 256, generator=torch.Generator().manual_seed(0))
    exact = one.double() @ two.double()
    return float((one @ two - exact).abs().max() / exact.abs().max())


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Let torch use this number of threads, and restore the number at the end."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@functools.cache
def keep_freed_memory() -> None:
    """Reuse the memory of freed arrays below 256 MB, up to 1 GB, on Linux with glibc.

    Otherwise new pages are zeroed at every step, which takes longer than the computation.
    """
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if hasattr(libc, "mallopt"):
        libc.mallopt(-3, 2**28)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, 2**30)  # M_TRIM_THRESHOLD
