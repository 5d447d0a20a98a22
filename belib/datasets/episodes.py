"""Episode files: their names, arrays and rules."""

import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from belib import paths

DTYPES = {
    "observation": np.float32,
    "action": np.float32,
    "reward": np.float32,
    "discount": np.float32,
    "physics": np.float64,
}
"""The arrays of an episode, each (rows, size). URLB's lack `physics`; other arrays are kept."""

RULES = (  # array, rows, test for faults, rule; float32 actions may round beyond 1
    ("action", slice(1), lambda a: a != 0, "0 in row 0, which is the reset"),
    ("reward", slice(1), lambda a: a != 0, "0 in row 0, which is the reset"),
    ("discount", slice(1), lambda a: a != 1, "1 in row 0, which is the reset"),
    ("action", slice(None), lambda a: np.abs(a) > 1 + 1e-6, "within [-1, 1]"),
    ("discount", slice(None), lambda a: (a < 0) | (a > 1), "within [0, 1]"),
    ("discount", slice(1, -1), lambda a: a == 0, "above 0 before the last row"),
)

RowFault = tuple[int | None, str]
"""The first faulty row, None for a whole array, and a message."""


class DatasetError(ValueError):
    """A dataset breaks a rule of the format; the message names the file."""


def write_episode(
    folder: Path, index: int, episode: dict[str, np.ndarray], rewards: dict[str, np.ndarray]
) -> Path:
    """Write an episode's task rewards, then its arrays, so that no episode lacks rewards."""
    name = episode_name(index, len(episode["action"]) - 1)
    for kind, arrays in (("rewards", rewards), ("buffer", episode)):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        paths.write_atomic(folder / kind / name, partial(np.savez_compressed, **arrays))
    return folder / "buffer" / name


def episode_name(index: int, length: int) -> str:
    """Return `episode_000000_1000.npz`: the index counts from 0, the length is rows - 1."""
    return f"episode_{index:06d}_{length}.npz"


def parse_name(file: Path) -> tuple[int, int]:
    """Return index and length from our and ExORL's names, and URLB's `<time>_<index>_<length>`."""
    match = re.fullmatch(r"[^_]+_(\d+)_(\d+)\.npz", file.name, re.ASCII)
    if match is None:
        raise DatasetError(f"{file} must be named episode_<index>_<length>.npz")
    return int(match[1]), int(match[2])


def read_episode(path: Path, sizes: dict[str, int] | None = None) -> dict[str, np.ndarray]:
    """Return the arrays of an episode file; cast float64 to float32, except physics.

    `sizes` maps arrays to their row sizes; missing ones are added from this episode.

    Raise DatasetError, which names the file, the array and the faulty row.
    """
    episode = read_arrays(path)
    with np.errstate(over="ignore"):  # an overflow becomes inf, which is refused
        for key, array in episode.items():
            if array.dtype == np.float64 and DTYPES.get(key) is np.float32:
                episode[key] = array.astype(np.float32)
    for _, text in episode_faults(episode, parse_name(path)[1], {} if sizes is None else sizes):
        raise DatasetError(f"{path}: {text}")
    return episode


def read_arrays(path: Path, keys: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Return the arrays of an npz file, of `keys` if given; DatasetError if it cannot be read."""
    unreadable = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)
    try:
        with np.load(path, allow_pickle=False) as file:
            return {key: file[key] for key in file.files if not keys or key in keys}
    except unreadable as error:
        raise DatasetError(f"{path} cannot be read, it may be truncated: {error}") from error
    except TypeError as error:  # np.load returned a single array
        raise DatasetError(f"{path} cannot be read, it is no npz file") from error


def episode_faults(
    episode: dict[str, np.ndarray], length: int, sizes: dict[str, int]
) -> Iterator[RowFault]:
    """Yield all faults of an episode of `length` transitions: of shapes, else of numbers."""
    if length < 1:
        yield None, "it must have a transition, so 2 rows or more, got the reset alone"
        return
    faults = list(_shape_faults(episode, length + 1, sizes))
    yield from faults
    if not faults:
        for key, array in episode.items():
            if array.dtype.kind == "f":
                yield from first_fault(key, array, ~np.isfinite(array), "finite")
        for key, rows, wrong, rule in RULES:
            array = episode[key][rows]
            yield from first_fault(key, array, wrong(array), rule, begin=rows.start or 0)


def _shape_faults(
    episode: dict[str, np.ndarray], rows: int, sizes: dict[str, int]
) -> Iterator[RowFault]:
    """Yield arrays whose type or shape is not that of `DTYPES` and `sizes`; add missing sizes."""
    sizes.update(reward=1, discount=1)
    for key in dict.fromkeys([*DTYPES, *episode]):
        array, expected = episode.get(key), f"of {rows} rows"
        if key in DTYPES:
            expected = f"{np.dtype(DTYPES[key])} ({rows}, {sizes.get(key, 'size')})"
        if array is None:
            if key != "physics":
                yield None, f"array {key!r} must be {expected}, got none"
            continue
        fits = array.shape[:1] == (rows,)
        if key in DTYPES:
            fits &= array.dtype == DTYPES[key] and array.ndim == 2 and array.size > 0
            fits = fits and sizes.setdefault(key, array.shape[1]) == array.shape[1]
        if not fits:
            yield None, f"array {key!r} must be {expected}, got {array.dtype} {array.shape}"


def first_fault(
    key: str, array: np.ndarray, wrong: np.ndarray, rule: str, begin: int = 0
) -> Iterator[RowFault]:
    """Yield the first number that is `wrong`, in an array that starts at row `begin`."""
    places = np.argwhere(wrong)
    if len(places):
        row, *column = places[0].tolist()
        place = f"row {begin + row}" + "".join(f", column {i}" for i in column[:1])
        more = len(np.unique(places[:, 0])) - 1
        place += f" (and in {more} more rows)" if more else ""
        value = array[(row, *column)]
        yield begin + row, f"array {key!r} must be {rule}, got {value} in {place}"
