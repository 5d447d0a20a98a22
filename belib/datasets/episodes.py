"""The files of a dataset: their names, their arrays, what makes one an episode."""

import re
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

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


def read_episode(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an episode file, float64 ones cast to float32 except for the physics.

    Raises DatasetError, which names the file, the array and the row at fault.
    """
    episode = {key: _cast(key, array) for key, array in read_arrays(path).items()}
    for fault in array_faults(episode, parse_name(path)[1]):
        raise DatasetError(f"{path}: {fault.text}")
    return episode


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """All arrays of an npz file, which is closed again; DatasetError where it cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except _UNREADABLE as error:
        raise DatasetError(f"{path} cannot be read, it may be truncated: {error}") from error
    except TypeError as error:  # a single array, which np.load returns as it is
        raise DatasetError(f"{path} cannot be read, it is no npz file") from error


def array_faults(episode: dict[str, np.ndarray], length: int) -> Iterator[ArrayFault]:
    """What keeps arrays from being an episode of `length` transitions: shapes, types, numbers."""
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


def _fits(key: str, array: np.ndarray, length: int) -> bool:
    if key not in DTYPES:
        return array.shape[:1] == (length + 1,)
    sizes = (1,) if key in ("reward", "discount") else array.shape[1:]
    return (
        array.dtype == DTYPES[key]
        and array.ndim == 2
        and array.shape == (length + 1, *sizes)
        and length > 0
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
