"""A dataset: a list of episode files, whose arrays are read on demand."""

import fnmatch
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from belib import paths
from belib.config import PretrainConfig, read_yaml
from belib.datasets.episodes import DatasetError, parse_name, read_episode

PROVENANCE = "provenance.json"


class Transitions(NamedTuple):
    """N transitions of a dataset, in the order of collection; none spans two episodes."""

    obs: np.ndarray  # (N, obs_dim) float32
    action: np.ndarray  # (N, action_dim) float32
    reward: np.ndarray  # (N,) float32, as stored in the episodes
    discount: np.ndarray  # (N,) float32, 0 if next_obs is a terminal
    next_obs: np.ndarray  # (N, obs_dim) float32
    episode: np.ndarray  # (N,) int64, the index in the file's name
    row: np.ndarray  # (N,) int64, of action, reward and next_obs in the file; obs is the row before


@dataclass(frozen=True, repr=False)
class Dataset:
    """A dataset's files, in the order of collection."""

    folder: Path
    domain: str
    files: tuple[Path, ...]

    def __repr__(self) -> str:
        return f"Dataset({str(self.folder)!r}: {len(self.files)} episodes, {self.steps} steps)"

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
        """Return all transitions; read one episode at a time."""
        first, n = read_episode(self.files[0]), self.steps
        obs_dim, action_dim = (first[key].shape[1] for key in ("observation", "action"))
        shapes = ((n, obs_dim), (n, action_dim), n, n, (n, obs_dim))
        indices = [parse_name(file)[0] for file in self.files]
        result = Transitions(
            *(np.empty(shape, np.float32) for shape in shapes),
            episode=np.repeat(indices, self.lengths),
            row=np.concatenate([np.arange(1, length + 1) for length in self.lengths]),
        )
        begins = np.cumsum([0, *self.lengths])
        for episode, begin, end in zip(self.episodes(), begins, begins[1:], strict=False):
            result.obs[begin:end] = episode["observation"][:-1]
            result.action[begin:end] = episode["action"][1:]
            result.reward[begin:end] = episode["reward"][1:, 0]
            result.discount[begin:end] = episode["discount"][1:, 0]
            result.next_obs[begin:end] = episode["observation"][1:]
        return result

    def config(self) -> PretrainConfig | None:
        """Return the configuration of the collection; None without a config.yaml.

        Raise DatasetError for a malformed file or another domain.
        """
        file = self.folder / "config.yaml"
        if not file.exists():
            return None
        try:
            config = PretrainConfig.from_dict({"objective": "", **read_yaml(file)})
        except (TypeError, ValueError) as error:
            reason = str(error).removeprefix(str(file)).lstrip(":, ")
            raise DatasetError(f"{file} is no recorded configuration: {reason}") from error
        if config.domain != self.domain:
            rule = f"of the domain {self.domain}, as its folder"
            raise DatasetError(f"{file} must be {rule}, got {config.domain}")
        return config

    def provenance(self) -> dict[str, Any] | None:
        """Return the sources of a merged, subsampled or imported dataset; None for others.

        Raise ValueError for a malformed file.
        """
        file = self.folder / PROVENANCE
        if not file.exists():
            return None
        provenance = paths.read_json(file, ["sources"])
        sources = provenance["sources"]
        if not isinstance(sources, list) or not all(isinstance(one, dict) for one in sources):
            raise DatasetError(f"{file}: sources must be a list of objects, got {sources!r:.80}")
        return provenance


def load(folder: str | Path) -> Dataset:
    """Open the dataset in a folder that holds `buffer/`; no array is read.

    Raise DatasetError for a folder that is missing, empty, or has other files in `buffer/`.
    """
    folder = paths.resolve(folder)
    if not folder.is_dir():
        raise DatasetError(f"there is no folder {folder}")
    return Dataset(folder, folder.parent.name, episode_files(folder / "buffer"))


def episode_files(buffer: Path) -> tuple[Path, ...]:
    """Return a buffer's episodes by index; DatasetError if it is empty or an index repeats."""
    by_index: dict[int, Path] = {}
    for file in buffer.glob("[!.]*.npz"):
        other = by_index.setdefault(parse_name(file)[0], file)
        if other != file:
            raise DatasetError(f"{file} and {other.name} must differ in their index")
    if not by_index:
        raise DatasetError(f"{buffer} must hold at least one episode, got none")
    return tuple(by_index[index] for index in sorted(by_index))


def find_datasets(runs_dir: str | Path, domain: str, names: Sequence[str] = ()) -> list[Dataset]:
    """Return a domain's datasets that have episodes, sorted by name, or those of `names`.

    `names` are names, patterns of names (`behavioral-*`), or paths of datasets' folders.

    Raise DatasetError if a name or pattern matches nothing, or a path is in another `runs_dir`.
    """
    folder = paths.resolve(runs_dir) / "datasets" / domain
    buffers = (buffer for buffer in folder.glob("[!.]*/buffer") if any(buffer.glob("*.npz")))
    present = sorted(buffer.parent.name for buffer in buffers)
    chosen = [match for name in names for match in _matches(folder, present, name)]
    return [load(folder / name) for name in dict.fromkeys(chosen if names else present)]


def _matches(folder: Path, present: Sequence[str], name: str) -> list[str]:
    """Return the datasets that match a name, pattern or path."""
    path = Path(name).expanduser()
    parent = paths.resolve(path).parent if len(path.parts) > 1 else folder
    if parent.resolve() != folder.resolve():
        rule = f"a dataset must be in {folder}, got {name!r}"
        raise DatasetError(f"{rule}: choose its runs_dir and domain")
    matches = [path.name] if path.name in present else fnmatch.filter(present, path.name)
    if not matches:
        missing = f"there is no folder {path.name!r} of episodes in {folder}"
        raise DatasetError(f"{missing}, which has {', '.join(present) or 'none'}")
    return matches
