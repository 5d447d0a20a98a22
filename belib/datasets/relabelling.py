"""The rewards of tasks: as recorded, or computed from physics states once and kept."""

import functools
import hashlib
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path

import joblib
import numpy as np

from belib import paths
from belib.arrays import whole_number
from belib.datasets.dataset import Dataset
from belib.datasets.episodes import (
    ArrayFault,
    DatasetError,
    first_fault,
    parse_name,
    read_arrays,
    read_episode,
)
from belib.envs import TaskRewards, domain_tasks, is_registered, primal_task

CACHE = "relabelled"

# Below this many rows it takes longer to start processes than to compute.
_WORTH_PROCESSES = 1_000_000


def task_rewards(dataset: Dataset, tasks: Sequence[str]) -> list[np.ndarray]:
    """For each episode the rewards (rows, T) float64 of T tasks: as recorded, or else relabelled.

    Raises DatasetError for a task that the states of the dataset do not determine, and for recorded
    rewards that are not their episode's (`label_faults`).
    """
    _check_tasks(dataset, tasks)
    recorded = [dataset.folder / "rewards" / file.name for file in dataset.files]
    if all(file.exists() for file in recorded):
        labels = [read_arrays(file) for file in recorded]
        if all(task in episode for episode in labels for task in tasks):
            for each in zip(recorded, labels, dataset.files, strict=True):
                _check_labels(*each, primal_task(dataset.domain))
            return [np.stack([episode[task] for task in tasks], -1) for episode in labels]
    columns = [domain_tasks(dataset.domain).index(task) for task in tasks]
    return [rewards[:, columns] for rewards in relabelled(dataset)]


def _check_labels(file: Path, labels: dict[str, np.ndarray], episode: Path, primal: str) -> None:
    stored = read_arrays(episode, ["reward"]).get("reward", np.empty(0))
    if stored.ndim == 2 and stored.dtype.kind == "f":  # other ones are refused with their episode
        for fault in label_faults(labels, primal, stored):
            raise DatasetError(f"{file}: {fault.text}")


def label_faults(
    labels: dict[str, np.ndarray], primal: str, stored: np.ndarray
) -> Iterator[ArrayFault]:
    """What keeps recorded rewards from being those of an episode with `stored` ones (rows, 1)."""
    for task, array in labels.items():
        if array.dtype != np.float64 or array.shape != stored.shape[:1]:
            rule, found = f"float64 ({len(stored)},)", f"{array.dtype} {array.shape}"
            yield ArrayFault(None, f"array {task!r} must be {rule}, got {found}")
            return
        column = array[:, None]
        yield from first_fault(task, column, ~np.isfinite(column), "finite")
        yield from first_fault(task, column[:1], column[:1] != 0, "0 in row 0, which is the reset")
    if primal in labels:
        column = labels[primal][:, None]
        wrong = (column.astype(np.float32) != stored.astype(np.float32)) & np.isfinite(stored)
        wrong[0] = False  # both have their own rule for the reset
        rule = f"the stored reward, {stored[wrong][0] if wrong.any() else 0}"
        yield from first_fault(primal, column, wrong, rule)


def relabel(dataset: Dataset, task: str, *, processes: int | None = None) -> list[np.ndarray]:
    """For each episode the rewards (rows,) float64 of a task, computed from the physics states.

    Equal to the rewards recorded at collection, to the bit, for Walker and Quadruped; row 0 is 0.
    All tasks of the domain are computed in one pass and kept in `relabelled/`, where they are found
    again for as long as the episode's file and the versions of dm_control and MuJoCo stay the same.

    Args:
        dataset: with physics states.
        task: of the dataset's domain.
        processes: to share the work; by default one a core where the dataset is large.

    Raises DatasetError where the stored reward is not reproduced, as for tasks (reacher) whose
    target is no part of the state.
    """
    _check_tasks(dataset, [task])
    if processes is not None:
        processes = whole_number("processes", processes, least=1)
    column = domain_tasks(dataset.domain).index(task)
    return [rewards[:, column] for rewards in relabelled(dataset, processes)]


def relabelled(dataset: Dataset, processes: int | None = None) -> list[np.ndarray]:
    """Each episode's rewards (rows, T) of all tasks of the domain, from the cache or the states."""
    keys = [_key(file) for file in dataset.files]
    found = [_cached(dataset, *each) for each in zip(dataset.files, keys, strict=True)]
    known = [rewards for rewards in found if rewards is not None]
    if len(known) == len(found):
        return known
    with _cache(dataset) as folder:
        found = [_cached(dataset, *each) for each in zip(dataset.files, keys, strict=True)]
        missing = [i for i, rewards in enumerate(found) if rewards is None]
        rows = sum(parse_name(dataset.files[i])[1] for i in missing)
        if processes is None:
            large = rows >= _WORTH_PROCESSES and not is_registered(dataset.domain)
            processes = joblib.cpu_count() if large else 1
        label = joblib.delayed(partial(_label, dataset.domain, _collected_here(dataset)))
        work = (label(dataset.files[i], keys[i], folder) for i in missing)
        computed = iter(joblib.Parallel(processes)(work))
        return [next(computed) if rewards is None else rewards for rewards in found]


def _collected_here(dataset: Dataset) -> bool:
    """Whether the stored reward is the primal task's: in what `pretrain` collected, and merges."""
    sources = (dataset.provenance() or {}).get("sources", [])
    merged = bool(sources) and all(source.get("objective") for source in sources)
    return dataset.config() is not None or merged


@functools.cache
def _rewards_of(domain: str) -> TaskRewards:
    return TaskRewards(domain)


def _label(domain: str, collected: bool, file: Path, key: str, cache: Path | None) -> np.ndarray:
    """The rewards (rows, T) of an episode, which are put into the cache.

    `collected` says that its stored reward is the primal task's, which is then to be reproduced.
    """
    episode, tasks = read_episode(file), domain_tasks(domain)
    if "physics" not in episode:
        raise DatasetError(f"{file} has no physics states, from which rewards are computed")
    try:
        rewards = _rewards_of(domain).of_states(episode["physics"])
    except ValueError as error:
        raise DatasetError(f"{file}: {error}") from error
    rewards[0] = 0.0
    worst = np.abs(rewards[:, tasks.index(primal_task(domain))] - episode["reward"][:, 0]).max()
    if worst > 1e-6 and collected:
        raise DatasetError(f"{file}: states reproduce the stored reward only to {worst:.1e}")
    if cache is not None:
        labels = dict(zip(tasks, rewards.T, strict=True))
        write = partial(np.savez_compressed, key=np.array(key), **labels)
        paths.write_atomic(cache / file.name, write)
    return rewards


def _key(file: Path) -> str:
    """What the labels of an episode depend on."""
    with open(file, "rb") as opened:
        content = hashlib.file_digest(opened, "sha256").hexdigest()
    return f"{content} dm_control {version('dm_control')} mujoco {version('mujoco')}"


def _cached(dataset: Dataset, file: Path, key: str) -> np.ndarray | None:
    """Labels (rows, T) from the cache; None where it lacks them or the data have changed."""
    cached = dataset.folder / CACHE / file.name
    try:
        labels = read_arrays(cached) if cached.exists() else {}
    except DatasetError:
        return None  # the cache is ours: it is computed again
    if str(labels.pop("key", "")) != key or tuple(labels) != domain_tasks(dataset.domain):
        return None
    return np.stack(list(labels.values()), -1)


@contextmanager
def _cache(dataset: Dataset) -> Iterator[Path | None]:
    """The cache's folder, for one process at a time; None where nothing can be written."""
    folder = dataset.folder / CACHE
    try:
        folder.mkdir(exist_ok=True)
        (folder / ".lock").touch()
    except OSError as error:
        warnings.warn(f"labels are not kept: {error}", stacklevel=4)
        yield None
        return
    with paths.locked(folder / ".lock", wait=True):
        yield folder


def _check_tasks(dataset: Dataset, tasks: Sequence[str]) -> None:
    known = domain_tasks(dataset.domain)
    for task in tasks:
        if task not in known:
            raise DatasetError(f"task of {dataset.folder} must be one of {known}, got {task!r}")
