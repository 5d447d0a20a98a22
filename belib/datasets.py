"""Datasets on disk, in ExORL's episode format, with the rewards of all tasks beside them.

    <runs_dir>/datasets/<domain>/<name>/
        buffer/episode_000000_1000.npz     what ExORL reads: 5 arrays of length + 1 rows
        rewards/episode_000000_1000.npz    one array a task, float64, recorded as it was collected
        config.yaml  card.json  metrics.csv  checkpoint.pt

Row 0 of an episode is the reset: its action and rewards are zero and belong to no transition. Row i
is what the i-th action led to. Nothing here deletes a file.
"""

import json
import platform
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np

from belib import paths
from belib.config import PretrainConfig
from belib.envs import TaskRewards, domain_tasks, primal_task

DTYPES = {
    "observation": np.float32,
    "action": np.float32,
    "reward": np.float32,
    "discount": np.float32,
    "physics": np.float64,
}
"""The arrays of an episode file; reward and discount are (rows, 1), the others (rows, size)."""

_UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


class DatasetError(ValueError):
    """A dataset that is not what its format says; the message names the file."""


def dataset_folder(runs_dir: str | Path, domain: str, name: str) -> Path:
    """`<runs_dir>/datasets/<domain>/<name>`; ExORL's own loader takes `<runs_dir>/datasets`."""
    return paths.resolve(runs_dir) / "datasets" / domain / name


def write_episode(
    folder: Path, index: int, episode: dict[str, np.ndarray], rewards: dict[str, np.ndarray]
) -> Path:
    """Write an episode's task rewards, then its arrays, whose file says that it is there."""
    name = f"episode_{index:06d}_{len(episode['action']) - 1}.npz"
    for kind, arrays in (("rewards", rewards), ("buffer", episode)):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        paths.write_atomic(folder / kind / name, partial(np.savez_compressed, **arrays))
    return folder / "buffer" / name


def read_episode(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an episode file; DatasetError names the file, the array and row at fault."""
    episode = _read(path)
    rows = int(path.stem.split("_")[2]) + 1
    for key, dtype in DTYPES.items():
        array = episode.get(key)
        if array is None or array.dtype != dtype or array.shape[:1] != (rows,) or array.ndim != 2:
            found = "none" if array is None else f"{array.dtype} {array.shape}"
            wanted = f"{np.dtype(dtype)} ({rows}, size)"
            raise DatasetError(f"{path}: array {key!r} must be {wanted}, got {found}")
        if not np.isfinite(array).all():
            row, column = np.argwhere(~np.isfinite(array))[0]
            found = f"{array[row, column]} in row {row}, column {column}"
            raise DatasetError(f"{path}: array {key!r} must be finite, got {found}")
    return episode


def _read(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except _UNREADABLE as error:
        raise DatasetError(f"{path} cannot be read, it may be truncated: {error}") from error


@dataclass(frozen=True)
class Dataset:
    """A dataset's files, in the order in which they were collected."""

    folder: Path
    domain: str
    files: tuple[Path, ...]

    @property
    def name(self) -> str:
        """`behavioral-0.5-s0`."""
        return self.folder.name

    @property
    def steps(self) -> int:
        """Transitions: the rows of all episodes but their first ones."""
        return sum(int(file.stem.split("_")[2]) for file in self.files)

    def episodes(self) -> Iterator[dict[str, np.ndarray]]:
        """Each episode's arrays, read and checked one at a time."""
        return (read_episode(file) for file in self.files)

    def config(self) -> PretrainConfig | None:
        """How the dataset was collected; None for data without a config.yaml."""
        file = self.folder / "config.yaml"
        return PretrainConfig.from_yaml(file) if file.exists() else None


def load(folder: str | Path, *, domain: str | None = None) -> Dataset:
    """Open a dataset: its file names now, its arrays as they are asked for.

    Args:
        folder: holds `buffer/`.
        domain: what its parent folder's name must be, if given.

    Raises DatasetError for a folder that is missing, empty, of another domain or with other files.
    """
    folder = paths.resolve(folder)
    found = folder.parent.name
    if domain is not None and found != domain:
        raise DatasetError(f"{folder} must hold data of the domain {domain}, got {found}")
    files = tuple(sorted((folder / "buffer").glob("*.npz")))
    if not files:
        raise DatasetError(f"{folder / 'buffer'} must hold at least one episode, got none")
    for file in files:
        parts = file.stem.split("_")
        if len(parts) != 3 or not (parts[1] + parts[2]).isdecimal():
            raise DatasetError(f"{file} must be named episode_<index>_<length>.npz")
    return Dataset(folder, found, files)


def task_rewards(dataset: Dataset, tasks: Sequence[str]) -> list[np.ndarray]:
    """For each episode the rewards (rows, T) float64 of T tasks: as recorded, or else relabelled.

    Raises DatasetError for a task that the states of the dataset do not determine.
    """
    _check_tasks(dataset, tasks)
    recorded = [dataset.folder / "rewards" / file.name for file in dataset.files]
    if all(file.exists() for file in recorded):
        return [np.stack([labels[t] for t in tasks], -1) for labels in map(_read, recorded)]
    columns = [domain_tasks(dataset.domain).index(task) for task in tasks]
    return [rewards[:, columns] for rewards in _relabelled(dataset)]


def relabel(dataset: Dataset, task: str) -> list[np.ndarray]:
    """For each episode the rewards (rows,) float64 of a task, computed from the physics states.

    Equal to the rewards recorded at collection, to the bit, for Walker and Quadruped; row 0 is 0.
    Raises DatasetError where the stored reward is not reproduced, as for tasks (reacher) whose
    target is no part of the state.
    """
    _check_tasks(dataset, [task])
    column = domain_tasks(dataset.domain).index(task)
    return [rewards[:, column] for rewards in _relabelled(dataset)]


def _relabelled(dataset: Dataset) -> Iterator[np.ndarray]:
    """Each episode's rewards (rows, T) of all tasks of the domain, in one pass over its states."""
    of_states = TaskRewards(dataset.domain).of_states
    primal = domain_tasks(dataset.domain).index(primal_task(dataset.domain))
    for file, episode in zip(dataset.files, dataset.episodes(), strict=True):
        rewards = of_states(episode["physics"])
        rewards[0] = 0.0
        worst = np.abs(rewards[:, primal] - episode["reward"][:, 0]).max()
        if worst > 1e-6 and dataset.config() is not None:
            raise DatasetError(f"{file}: states reproduce the stored reward only to {worst:.1e}")
        yield rewards


def _check_tasks(dataset: Dataset, tasks: Sequence[str]) -> None:
    known = domain_tasks(dataset.domain)
    for task in tasks:
        if task not in known:
            raise DatasetError(f"task of {dataset.folder} must be one of {known}, got {task!r}")


def write_card(folder: Path) -> dict:
    """Compute a dataset's card from its files and configuration, write it and return it."""
    dataset = load(folder)
    config = dataset.config()
    tasks = domain_tasks(dataset.domain)
    rewards = np.concatenate([rows[1:] for rows in task_rewards(dataset, tasks)])
    card = {
        "name": dataset.name,
        "domain": config.domain,
        "objective": config.objective,
        "parameter": config.parameter,
        "seed": config.seed,
        "scale": config.scale,
        "num_steps": config.num_steps,
        "episodes": len(dataset.files),
        "steps": dataset.steps,
        "mean_reward": dict(zip(tasks, rewards.mean(0).tolist(), strict=True)),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("belib", "dm_control", "mujoco", "numpy", "torch")},
        },
        "git_revision": paths.git_revision(),
    }
    paths.write_text(folder / "card.json", json.dumps(card, indent=2) + "\n")
    return card


def read_card(folder: Path) -> dict | None:
    """A dataset's card, None where it has none yet."""
    file = folder / "card.json"
    return json.loads(file.read_text()) if file.exists() else None
