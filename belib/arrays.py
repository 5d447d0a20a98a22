"""Checks of arguments that public functions share: arrays of real numbers, whole numbers."""

from __future__ import annotations

import math
import numbers
import sys
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # torch takes seconds to import, and arrays can do without it
    from torch import Tensor

_LARGEST_EXACT = 2**53
"""Up to this size every integer is a float64."""


def is_tensor(x: object) -> TypeGuard[Tensor]:
    """Whether x is a torch tensor; torch is not imported for it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def real_array(
    name: str, x: object, *, ndim: int | None = None, finite: bool = True
) -> NDArray[np.float64]:
    """Return x as a float64 array with the same numbers, or refuse it.

    Args:
        name: of the argument, for messages.
        x: an array, a list, a table, a tensor (without its gradient).
        ndim: the number of axes that it must have.
        finite: whether NaN and inf are refused.

    Raises ValueError for masked values, for anything but real numbers (complex, text, dates,
    objects), for integers beyond 2^53, which float64 would round, and for ragged lists.

    >>> real_array("samples", [1, 2])
    array([1., 2.])
    """
    array = np.asarray(floats(name, x), dtype=np.float64)
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} axes, got shape {array.shape}")
    if finite and not np.isfinite(array).all():
        place = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ValueError(f"{name} must be finite, got {array[tuple(place)]} at index {place}")
    return array


def floats(name: str, x: object) -> NDArray[Any]:
    """Return x as an array of its own floating-point type, of float64 for integers: see above."""
    if is_tensor(x):
        x = x.detach().cpu()
        x = (x if x.is_complex() else x.double()).numpy()
    parts = x if isinstance(x, list | tuple) else [x]
    if any(np.ma.is_masked(part) for part in parts):
        raise ValueError(f"{name} must have no masked values: leave them out, or fill them")
    try:
        array = np.asarray(x)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} must be an array of numbers: {error}") from error
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got {array.dtype}")
    if array.dtype.kind == "f":
        return array
    if array.dtype.itemsize == 8 and array.size:
        largest = max(abs(int(array.max())), abs(int(array.min())))
        if largest > _LARGEST_EXACT:
            raise ValueError(f"{name} must be integers up to 2^53 in size, got {largest}")
    return array.astype(np.float64)


def whole_number(name: str, value: object, *, least: float = 0, most: float = math.inf) -> int:
    """Return an integer of Python's or numpy's as an int.

    Raises ValueError for anything else, and outside `least` to `most`.

    >>> whole_number("k", 5.0)
    Traceback (most recent call last):
    ValueError: k must be an integer, got 5.0
    """
    if not isinstance(value, numbers.Integral) or isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be an integer, got {value!r}")
    number = int(value)
    if not least <= number <= most:
        allowed = f"at least {least}" if most == math.inf else f"between {least} and {most}"
        raise ValueError(f"{name} must be {allowed}, got {number}")
    return number
