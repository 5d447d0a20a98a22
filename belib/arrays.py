"""Checks of arguments: arrays of real numbers, positive numbers, whole numbers."""

import math
import numbers
import sys
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray


def is_tensor(x: object) -> TypeGuard[Any]:
    """Return whether x is a torch tensor, without importing torch, which takes seconds."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def real_array(
    name: str, x: object, *, ndim: int | None = None, finite: bool = True
) -> NDArray[np.float64]:
    """Return an array, list, table or tensor as a float64 array.

    `name` is the argument's, for messages; `ndim` the number of axes that it must have. Raise
    ValueError for masked values, for anything but real numbers (complex, text, dates, objects), for
    ragged lists, and if `finite` for NaN and inf.

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


def floats(name: str, x: Any) -> NDArray[Any]:
    """Return x as an array of its floating-point type; tensors and integers become float64."""
    if is_tensor(x):
        x = x.detach().cpu()
        x = (x if x.is_complex() else x.double()).numpy()
    if any(np.ma.is_masked(part) for part in (x if isinstance(x, list | tuple) else [x])):
        raise ValueError(f"{name} must have no masked values: leave them out, or fill them")
    array = np.asarray(x)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got {array.dtype}")
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def check_positive(**values: float) -> None:
    """Raise ValueError, which names the argument, unless all are positive and finite numbers."""
    for name, value in values.items():
        if not isinstance(value, numbers.Real) or not 0 < value < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {value}")


def whole_number(name: str, value: object, *, least: float = 0, most: float = math.inf) -> int:
    """Return an integer of Python or numpy as an int. Raise ValueError for others (5.0 too)."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise ValueError(f"{name} must be an integer, got {value!r}")
    number = int(value)
    if not least <= number <= most:
        allowed = f"at least {least}" if most == math.inf else f"between {least} and {most}"
        raise ValueError(f"{name} must be {allowed}, got {number}")
    return number
