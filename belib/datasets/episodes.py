"""The files of a dataset: their names, their arrays, what makes one an episode."""

import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from belib import paths

DTYPES = {
    "observation": np.float32,
    "action": np.float32,
    "reward": np.float32,
    "discount": np.float32,
    "physics": np.float64,
}
"""The arrays of an episode file; reward and discount are (rows, 1), the others (rows, size)."""

OPTIONAL = ("physics",)
"""Arrays that URLB's own files lack. Other arrays, as SMM's skill `z` (rows, 4), are kept."""

ROUNDING = 1e-6
"""By so much may actions exceed 1: what a float32 policy's last operation rounds."""

_UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


class DatasetError(ValueError):
    """A dataset that is not what its format says; the message names the file."""


class ArrayFault(NamedTuple):
    """What is wrong with an array, and from which row on."""

    row: int | None
    text: str


def write_episode(
    folder: Path, index: int, episode: dict[str, np.ndarray], rewards: dict[str, np.ndarray]
) -> Path:
    """Write an episode's task rewards, then its arrays, whose file says that it is there.

    Arrays beyond those of `DTYPES` are written as they are. Raises OSError that names the file.
    """
    name = episode_name(index, len(episode["action"]) - 1)
    for kind, arrays in (("rewards", rewards), ("buffer", episode)):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        paths.write_atomic(folder / kind / name, partial(np.savez_compressed, **arrays))
    return folder / "buffer" / name


def episode_name(index: int, length: int) -> str:
    """`episode_000000_1000.npz`: the index counts from 0, the length is rows - 1."""
    return f"episode_{index:06d}_{length}.npz"


def parse_name(file: Path) -> tuple[int, int]:
    """Index and length from a file's name, ours and ExORL's or URLB's `<time>_<index>_<length>`."""
    match = re.fullmatch(r"[^_]+_(\d+)_(\d+)\.npz", file.name, re.ASCII)
    if match is None:
        raise DatasetError(f"{file} must be named episode_<index>_<length>.npz")
    return int(match[1]), int(match[2])


def read_episode(
    path: Path, *, strict: bool = False, sizes: dict[str, int] | None = None
) -> dict[str, np.ndarray]:
    """The arrays of an episode file, float64 ones cast to float32 except for the physics.

    Args:
        path: the file.
        strict: whether rows and sizes have to keep the rules of `row_faults`, too, as `validate`
            has them: for whatever learns from an episode or makes another dataset of it.
        sizes: numbers in a row of each array, as far as they are known; the episode's are added.

    Raises DatasetError, which names the file, the array and the row at fault.
    """
    episode = {key: _cast(key, array) for key, array in read_arrays(path).items()}
    faults = array_faults(episode, parse_name(path)[1])
    if strict:
        faults = chain(faults, row_faults(episode, {} if sizes is None else sizes))
    for fault in faults:
        raise DatasetError(f"{path}: {fault.text}")
    return episode


def read_arrays(path: Path, keys: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """All arrays of an npz file, or those among `keys`; DatasetError where it cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {key: file[key] for key in file.files if not keys or key in keys}
    except _UNREADABLE as error:
        raise DatasetError(f"{path} cannot be read, it may be truncated: {error}") from error
    except TypeError as error:  # a single array, which np.load returns as it is
        raise DatasetError(f"{path} cannot be read, it is no npz file") from error


def read_object(path: Path, keys: Sequence[str]) -> dict[str, Any]:
    """The object of a JSON file with these keys at least; DatasetError for any other file."""
    try:
        return paths.read_json(path, keys)
    except ValueError as error:
        raise DatasetError(str(error)) from error


def array_faults(episode: dict[str, np.ndarray], length: int) -> Iterator[ArrayFault]:
    """What keeps arrays from being an episode of `length` transitions: shapes, types, numbers."""
    if length < 1:
        yield ArrayFault(None, "it must have a transition, so 2 rows or more, got the reset alone")
        return
    for key in [*DTYPES, *(key for key in episode if key not in DTYPES)]:
        array = episode.get(key)
        if array is None:
            if key not in OPTIONAL:
                yield ArrayFault(None, f"array {key!r} must be {_wanted(key, length)}, got none")
        elif not _fits(key, array, length):
            found = f"{array.dtype} {array.shape}"
            yield ArrayFault(None, f"array {key!r} must be {_wanted(key, length)}, got {found}")
        elif array.dtype.kind == "f" and not np.isfinite(array).all():
            row, *column = np.argwhere(~np.isfinite(array))[0].tolist()
            place = f"row {row}" + (f", column {column[0]}" if column else "")
            value = array[(row, *column)]
            yield ArrayFault(row, f"array {key!r} must be finite, got {value} in {place}")


def row_faults(episode: dict[str, np.ndarray], sizes: dict[str, int]) -> Iterator[ArrayFault]:
    """What keeps arrays without `array_faults` from being what a policy saw and did.

    The reset row has no action and no reward; actions are within [-1, 1], discounts within [0, 1]
    and 0 in the last row only; numbers a row are as in `sizes`, to which those missing are added.
    """
    action, reward, discount = (episode[key] for key in ("action", "reward", "discount"))
    for key, array, value in (
        ("action", action, 0),
        ("reward", reward, 0),
        ("discount", discount, 1),
    ):
        if (array[0] != value).any():
            text = f"array {key!r} must be {value} in row 0, which is the reset, got {array[0]}"
            yield ArrayFault(0, text)
    yield from first_fault("action", action, np.abs(action) > 1 + ROUNDING, "within [-1, 1]")
    yield from first_fault("discount", discount, (discount < 0) | (discount > 1), "within [0, 1]")
    inside = np.zeros_like(discount, bool)
    inside[1:-1] = discount[1:-1] == 0
    yield from first_fault("discount", discount, inside, "above 0 before the last row")
    yield from _size_faults(episode, sizes)


def first_fault(key: str, array: np.ndarray, wrong: np.ndarray, rule: str) -> Iterator[ArrayFault]:
    """The first row of an array (rows, size) with `wrong` numbers, none without any."""
    rows = np.flatnonzero(wrong.any(-1))
    if rows.size:
        value = array[rows[0]][wrong[rows[0]]][0]
        more = f" (and in {rows.size - 1} more rows)" if rows.size > 1 else ""
        row = int(rows[0])
        yield ArrayFault(row, f"array {key!r} must be {rule}, got {value} in row {row}{more}")


def _size_faults(episode: dict[str, np.ndarray], sizes: dict[str, int]) -> Iterator[ArrayFault]:
    for key, array in episode.items():
        if array.ndim != 2 or (key not in DTYPES and key not in sizes):
            continue
        if sizes.setdefault(key, array.shape[1]) != array.shape[1]:
            text = f"array {key!r} must have {sizes[key]} numbers a row, got {array.shape[1]}"
            yield ArrayFault(None, text)


def _fits(key: str, array: np.ndarray, length: int) -> bool:
    if key not in DTYPES:
        return array.shape[:1] == (length + 1,)
    sizes = (1,) if key in ("reward", "discount") else array.shape[1:]
    return (
        array.dtype == DTYPES[key]
        and array.ndim == 2
        and array.shape == (length + 1, *sizes)
        and array.size > 0
    )


def _wanted(key: str, length: int) -> str:
    if key not in DTYPES:
        return f"of {length + 1} rows"
    size = 1 if key in ("reward", "discount") else "size"
    return f"{np.dtype(DTYPES[key])} ({length + 1}, {size})"


def _cast(key: str, array: np.ndarray) -> np.ndarray:
    if DTYPES.get(key) is np.float32 and array.dtype == np.float64:
        with np.errstate(over="ignore"):  # becomes infinite, which is found
            return array.astype(np.float32)
    return array
