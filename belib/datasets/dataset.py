"""A dataset: a list of episode files, whose arrays are read on demand."""

import fnmatch
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from belib import paths
from belib.config import PretrainConfig
from belib.config.checks import check_type
from belib.datasets.episodes import DatasetError, parse_name, read_episode

PROVENANCE = "provenance.json"


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

    def episodes(self) -> Iterator[dict[str, np.ndarray]]:
        """Yield the arrays of each episode, row 0 included; all must have the same sizes.

        Raise DatasetError for an episode that breaks a rule of the format.
        """
        sizes: dict[str, int] = {}
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
        file = self.folder / PROVENANCE
        return paths.read_json(file, ["sources"]) if file.exists() else None


def load(folder: str | Path) -> Dataset:
    """Open the dataset in a folder that holds `buffer/`; no array is read.

    Raise DatasetError for a folder without episodes, for other names or an index given twice.
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
