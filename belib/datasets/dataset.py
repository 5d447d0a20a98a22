"""A dataset in memory: file names now, arrays as they are asked for."""

import fnmatch
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from belib import paths
from belib.config import PretrainConfig, read_yaml
from belib.datasets.episodes import DatasetError, parse_name, read_episode, read_object

PROVENANCE = "provenance.json"


class Transitions(NamedTuple):
    """N transitions of a dataset, in the order in which they were collected."""

    obs: np.ndarray
    """(N, obs_dim) float32."""
    action: np.ndarray
    """(N, action_dim) float32."""
    reward: np.ndarray
    """(N,) float32, as stored in the episodes."""
    discount: np.ndarray
    """(N,) float32: 0 where `next_obs` is a terminal."""
    next_obs: np.ndarray
    """(N, obs_dim) float32."""
    episode: np.ndarray
    """(N,) int64: the index in the name of the file."""
    row: np.ndarray
    """(N,) int64: the row of action, reward and next_obs in the file; obs is the row before."""


@dataclass(frozen=True, repr=False)
class Dataset:
    """A dataset's files, in the order in which they were collected."""

    folder: Path
    domain: str
    files: tuple[Path, ...]

    def __repr__(self) -> str:
        return f"Dataset({str(self.folder)!r}: {len(self.files)} episodes, {self.steps} steps)"

    @property
    def name(self) -> str:
        """`behavioral-0.5-s0`."""
        return self.folder.name

    @property
    def lengths(self) -> list[int]:
        """Transitions of each episode."""
        return [parse_name(file)[1] for file in self.files]

    @property
    def steps(self) -> int:
        """Transitions: the rows of all episodes but their first ones."""
        return sum(self.lengths)

    def episodes(self, *, strict: bool = False) -> Iterator[dict[str, np.ndarray]]:
        """Each episode's arrays, row 0 included, read and checked one at a time.

        Strict: by all rules of a row, and of the sizes of the first one (see `read_episode`).
        """
        sizes: dict[str, int] = {}
        return (read_episode(file, strict=strict, sizes=sizes) for file in self.files)

    def transitions(self) -> Transitions:
        """All transitions, none from one episode to the next: their arrays and one episode more.

        Raises DatasetError for episodes that `validate` finds faults in.
        """
        first = read_episode(self.files[0])
        obs, action, n = first["observation"].shape[1], first["action"].shape[1], self.steps
        shapes = ((n, obs), (n, action), n, n, (n, obs))
        found = Transitions(
            *(np.empty(shape, np.float32) for shape in shapes),
            episode=np.repeat([parse_name(file)[0] for file in self.files], self.lengths),
            row=np.concatenate([np.arange(1, length + 1) for length in self.lengths]),
        )
        begin = 0
        for episode in self.episodes(strict=True):
            end = begin + len(episode["action"]) - 1
            found.obs[begin:end] = episode["observation"][:-1]
            found.action[begin:end] = episode["action"][1:]
            found.reward[begin:end] = episode["reward"][1:, 0]
            found.discount[begin:end] = episode["discount"][1:, 0]
            found.next_obs[begin:end] = episode["observation"][1:]
            begin = end
        return found

    def config(self) -> PretrainConfig | None:
        """How the dataset was collected; None for data without a config.yaml.

        Raises DatasetError for one that is damaged or of another domain.
        """
        file = self.folder / "config.yaml"
        if not file.exists():
            return None
        try:
            values = read_yaml(file)
            if "objective" not in values:
                raise ValueError("it has no objective")
            config = PretrainConfig.from_dict(values)
        except (TypeError, ValueError) as error:
            reason = str(error).removeprefix(str(file)).lstrip(":, ")
            raise DatasetError(f"{file} is no recorded configuration: {reason}") from error
        if config.domain != self.domain:
            rule = f"of the domain {self.domain}, as its folder"
            raise DatasetError(f"{file} must be {rule}, got {config.domain}")
        return config

    def provenance(self) -> dict[str, Any] | None:
        """What a merged, subsampled or imported dataset was made of; None for a collected one.

        Raises DatasetError for a file of anything else.
        """
        file = self.folder / PROVENANCE
        if not file.exists():
            return None
        found = read_object(file, ("sources",))
        sources = found["sources"]
        if not isinstance(sources, list) or not all(isinstance(each, dict) for each in sources):
            raise DatasetError(f"{file}: sources must be a list of objects, got {sources!r:.80}")
        return found


def dataset_folder(runs_dir: str | Path, domain: str, name: str) -> Path:
    """`<runs_dir>/datasets/<domain>/<name>`; ExORL's own loader takes `<runs_dir>/datasets`."""
    return paths.resolve(runs_dir) / "datasets" / domain / name


def load(folder: str | Path, *, domain: str | None = None) -> Dataset:
    """Open a dataset: its file names now, its arrays as they are asked for.

    Args:
        folder: holds `buffer/`.
        domain: what its parent folder's name must be, if given.

    Raises DatasetError for a folder that is missing, empty, of another domain or with other files.
    """
    folder = paths.resolve(folder)
    if not folder.is_dir():
        raise DatasetError(f"there is no folder {folder}")
    found = folder.parent.name
    if domain is not None and found != domain:
        raise DatasetError(f"{folder} must hold data of the domain {domain}, got {found}")
    return Dataset(folder, found, episode_files(folder / "buffer"))


def find_datasets(runs_dir: str | Path, domain: str, names: Sequence[str] = ()) -> list[Dataset]:
    """The datasets of a domain that have episodes, each once: all by name, or those asked for.

    Args:
        runs_dir: holds `datasets/`.
        names: of datasets, patterns of names (`behavioral-*`), or paths of datasets' folders.

    Raises DatasetError for a name or pattern of none, and for a folder of another `runs_dir`.
    """
    folder = dataset_folder(runs_dir, domain, "")
    buffers = (path for path in folder.glob("[!.]*/buffer") if any(path.glob("*.npz")))
    there = sorted(path.parent.name for path in buffers)
    asked = [found for name in names for found in _asked(folder, there, name)] if names else there
    return [load(folder / name) for name in dict.fromkeys(asked)]


def _asked(folder: Path, there: Sequence[str], name: str) -> list[str]:
    """What a name, a pattern or a path means of the datasets that a folder has."""
    path = Path(name).expanduser()
    parent = paths.resolve(path).parent if len(path.parts) > 1 else folder
    if parent.resolve() != folder.resolve():
        raise DatasetError(
            f"a dataset must be in {folder}, got {name!r}: choose its runs_dir and domain"
        )
    found = [path.name] if path.name in there else fnmatch.filter(there, path.name)
    if not found:
        has = ", ".join(there) or "none"
        missing = f"there is no folder {path.name!r} of episodes in {folder}"
        raise DatasetError(f"{missing}, which has {has}")
    return found


def episode_files(buffer: Path) -> tuple[Path, ...]:
    """The episodes of a `buffer/`, by their index; DatasetError for none, or two with one index."""
    by_index: dict[int, Path] = {}
    for file in buffer.glob("[!.]*.npz"):
        other = by_index.setdefault(parse_name(file)[0], file)
        if other != file:
            raise DatasetError(f"{file} and {other.name} must differ in their index")
    if not by_index:
        raise DatasetError(f"{buffer} must hold at least one episode, got none")
    return tuple(by_index[index] for index in sorted(by_index))


def content_sha256(dataset: Dataset, *, strict: bool = False) -> str:
    """SHA-256 of all episodes' arrays in order: their names, types, shapes and numbers.

    A copy has the same digest whatever its files' names and compression. `strict` as `episodes`.
    """
    digest = hashlib.sha256()
    for episode in dataset.episodes(strict=strict):
        for key, array in sorted(episode.items()):
            digest.update(f"{key} {array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
