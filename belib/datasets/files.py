"""Episode files, their names, arrays and rules; a dataset is a list of them, read on demand."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from belib import paths
from belib.config import PretrainConfig
from belib.config.checks import check_type

DTYPES = {
    "observation": np.float32,
    "action": np.float32,
    "reward": np.float32,
    "discount": np.float32,
    "physics": np.float64,
}
"""The arrays of an episode, each (rows, size). URLB's lack `physics`; other arrays are kept."""

RULES = (  # array, rows, whether numbers obey, rule; float32 actions may round beyond 1
    ("action", slice(0, 1), lambda a: a == 0, "0 in row 0, which is the reset"),
    ("reward", slice(0, 1), lambda a: a == 0, "0 in row 0, which is the reset"),
    ("discount", slice(0, 1), lambda a: a == 1, "1 in row 0, which is the reset"),
    ("action", slice(0, None), lambda a: np.abs(a) <= 1 + 1e-6, "within [-1, 1]"),
    ("discount", slice(0, None), lambda a: (a >= 0) & (a <= 1), "within [0, 1]"),
    ("discount", slice(1, -1), lambda a: a != 0, "above 0 before the last row"),
)


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
    match = re.fullmatch(r"[^_]+_(\d+)_([1-9]\d*)\.npz", file.name, re.ASCII)
    if match is None:
        raise DatasetError(f"{file} must be named episode_<index>_<length>.npz")
    return int(match[1]), int(match[2])


def read_episode(path: Path, sizes: dict[str, int] | None = None) -> dict[str, np.ndarray]:
    """Return the arrays of an episode file, float64 ones cast to the types of `DTYPES`.

    `sizes` maps arrays to their row sizes; missing ones are added from this episode.

    Raise DatasetError, which names the file, and the rule and first row of every fault.
    """
    rows, sizes = parse_name(path)[1] + 1, {} if sizes is None else sizes
    sizes.update(reward=1, discount=1)
    episode, kinds = read_arrays(path), {key: "there" for key in DTYPES if key != "physics"}
    for key, array in episode.items():
        dtype = np.dtype(DTYPES.get(key, array.dtype))
        size = sizes.setdefault(key, np.atleast_2d(array).shape[-1])
        kinds[key] = f"{dtype} ({rows}, {size})"
        if array.dtype == np.float64:
            episode[key] = array.astype(dtype)  # an overflow becomes inf, which is refused
    check(path, episode, kinds, RULES)
    return episode


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an npz file; DatasetError if it cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except Exception as error:  # also of zipfile and zlib, and TypeError for a single array
        raise DatasetError(f"{path} cannot be read as an npz file: {error}") from error


def check(
    path: Path, arrays: dict[str, np.ndarray], kinds: dict[str, str], rules: Iterable[tuple]
) -> None:
    """Raise DatasetError for all arrays that differ from their `kinds`, type and shape in words.

    If none does, all floats must be finite and numbers obey the rules. The message has the first
    row of every fault.
    """
    faults = []
    for key, kind in kinds.items():
        array: Any = arrays.get(key)
        got = "none" if array is None else f"{array.dtype} {array.shape}"
        faults += [f"array {key!r} must be {kind}, got {got}"] if got != kind else []
    floats = [key for key, array in arrays.items() if array.dtype.kind == "f"]
    finite = [(key, slice(0, None), np.isfinite, "finite") for key in floats]
    for key, rows, obeys, rule in [] if faults else [*finite, *rules]:
        wrong = np.argwhere(~obeys(array := arrays[key][rows]))
        if len(wrong):
            place = f"row {rows.start + wrong[0][0]} (first of {len(wrong)})"
            faults += [f"array {key!r} must be {rule}, got {array[tuple(wrong[0])]} in {place}"]
    if faults:
        raise DatasetError(f"{path}: {'; '.join(faults)}")


class Transitions(NamedTuple):
    """N transitions of a dataset, in the order of collection; none spans two episodes."""

    obs: np.ndarray  # (N, obs_dim) float32
    action: np.ndarray  # (N, action_dim) float32
    reward: np.ndarray  # (N,) float32, as stored in the episodes
    discount: np.ndarray  # (N,) float32, 0 if next_obs is a terminal
    next_obs: np.ndarray  # (N, obs_dim) float32


@dataclass(frozen=True)
class Dataset:
    """A dataset's files, in the order of collection."""

    folder: Path
    domain: str
    files: tuple[Path, ...] = field(repr=False)

    @property
    def name(self) -> str:
        """Return the folder's name, such as `behavioral-0.5-s0`."""
        return self.folder.name

    @property
    def lengths(self) -> list[int]:
        """Return the number of transitions of each episode."""
        return [parse_name(file)[1] for file in self.files]

    @property
    def steps(self) -> int:
        """Return the number of transitions."""
        return sum(self.lengths)

    def episodes(self, **sizes: int) -> Iterator[dict[str, np.ndarray]]:
        """Yield the arrays of each episode, row 0 included; all must have the same row sizes.

        `sizes` prescribes some, as `action=6`. Raise DatasetError for a malformed episode.
        """
        return (read_episode(file, sizes) for file in self.files)

    def transitions(self) -> Transitions:
        """Return all transitions."""
        parts = []
        for episode in self.episodes():
            obs, action = episode["observation"], episode["action"][1:]
            reward, discount = episode["reward"][1:, 0], episode["discount"][1:, 0]
            parts.append((obs[:-1], action, reward, discount, obs[1:]))
        return Transitions(*map(np.concatenate, zip(*parts, strict=True)))

    def config(self) -> PretrainConfig | None:
        """Return the configuration of the collection; None without a config.yaml."""
        file = self.folder / "config.yaml"
        return PretrainConfig.from_yaml(file) if file.exists() else None

    def provenance(self) -> dict[str, Any] | None:
        """Return the sources of a merged, subsampled or imported dataset; None for others."""
        file = self.folder / "provenance.json"
        return paths.read_json(file, ["sources"]) if file.exists() else None


def load(folder: str | Path) -> Dataset:
    """Open the dataset in a folder that holds `buffer/`; no array is read.

    Raise DatasetError for no episodes, for names that `parse_name` refuses, for an index twice.
    """
    folder, by_index = paths.resolve(folder), {}
    for file in folder.glob("buffer/[!.]*.npz"):
        other = by_index.setdefault(parse_name(file)[0], file)
        if other != file:
            raise DatasetError(f"{file} and {other.name} must differ in their index")
    if not by_index:
        raise DatasetError(f"{folder / 'buffer'} must hold at least one episode, got none")
    return Dataset(folder, folder.parent.name, tuple(by_index[i] for i in sorted(by_index)))


def find_datasets(runs_dir: str | Path, domain: str, names: Sequence[str] = ()) -> list[Dataset]:
    """Return a domain's datasets that have episodes, sorted by name, or those of `names`.

    Raise DatasetError if a name or pattern (`behavioral-*`) matches nothing.
    """
    folder = paths.resolve(runs_dir) / "datasets" / check_type("domain", domain, str)
    present = sorted({file.parents[1].name for file in folder.glob("[!.]*/buffer/*.npz")})
    chosen = [] if names else present
    for name in names:
        if not (matches := fnmatch.filter(present, name)):
            missing = f"there is no folder {name!r} of episodes in {folder}"
            raise DatasetError(f"{missing}, which has {', '.join(present) or 'none'}")
        chosen += matches
    return [load(folder / name) for name in dict.fromkeys(chosen)]
