"""The rewards of tasks: recorded at collection, or computed from physics states and cached."""

import contextlib
import functools
import hashlib
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from belib import envs, paths
from belib.datasets.dataset import Dataset
from belib.datasets.episodes import DatasetError, RowFault, first_fault, read_arrays, read_episode

CACHE = "relabelled"


def task_rewards(dataset: Dataset, tasks: Sequence[str]) -> list[np.ndarray]:
    """Return rewards (rows, T) float64 of T tasks for each episode: recorded, else relabelled.

    Raise DatasetError if recorded rewards contradict their episode, and as `relabel` does.
    """
    files = [dataset.folder / "rewards" / file.name for file in dataset.files]
    recorded = [read_arrays(file) for file in files] if all(f.exists() for f in files) else []
    if not recorded or any(task not in rewards for rewards in recorded for task in tasks):
        return list(_relabelled(dataset, tasks))
    for file, rewards, episode in zip(files, recorded, dataset.files, strict=True):
        stored = read_arrays(episode, ["reward"]).get("reward")
        if stored is None or stored.ndim != 2:
            stored = read_episode(episode)["reward"]  # raises
        for _, text in reward_faults(rewards, stored, envs.primal_task(dataset.domain)):
            raise DatasetError(f"{file}: {text}")
    return [np.stack([rewards[task] for task in tasks], -1) for rewards in recorded]


def reward_faults(
    rewards: dict[str, np.ndarray], stored: np.ndarray, primal: str
) -> Iterator[RowFault]:
    """Yield faults of recorded rewards, given an episode's `stored` rewards (rows, 1)."""
    for task, column in rewards.items():
        if column.dtype != np.float64 or column.shape != stored.shape[:1]:
            rule = f"float64 ({len(stored)},), got {column.dtype} {column.shape}"
            yield None, f"array {task!r} must be {rule}"
            return
        yield from first_fault(task, column, ~np.isfinite(column), "finite")
        yield from first_fault(task, column, column[:1] != 0, "0 in row 0, which is the reset")
    if primal in rewards:
        column, expected = rewards[primal][1:], stored[1:, 0].astype(np.float32)
        wrong = (column.astype(np.float32) != expected) & np.isfinite(expected)
        rule = f"the stored reward, {expected[wrong][:1]}"
        yield from first_fault(primal, column, wrong, rule, begin=1)


def relabel(dataset: Dataset, task: str) -> list[np.ndarray]:
    """Return rewards (rows,) float64 of a task for each episode, computed from physics states.

    For Walker and Quadruped they equal the recorded rewards to the bit. Row 0 is 0. One pass, about
    30 s per million rows, computes and caches all tasks of the domain. The cache is valid while the
    episode's file and the versions of dm_control and MuJoCo stay the same.

    Raise DatasetError without physics states, for a task of another model, or if the stored reward
    is not reproduced, as for reacher, whose target is not part of the state.
    """
    return [rewards[:, 0] for rewards in _relabelled(dataset, [task])]


def _relabelled(dataset: Dataset, tasks: Sequence[str]) -> Iterator[np.ndarray]:
    """Yield rewards (rows, T) for each episode, cached or computed."""
    valid = envs.domain_tasks(dataset.domain)
    for task in tasks:
        if task not in valid:
            raise DatasetError(f"task of {dataset.folder} must be one of {valid}, got {task!r}")
    columns = [valid.index(task) for task in tasks]
    # `pretrain` stores the primal task's reward; imported data may store another's
    sources = (dataset.provenance() or {}).get("sources")
    ours = dataset.config() or (sources and all(source.get("objective") for source in sources))
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # a read-only folder gets no cache
            (dataset.folder / CACHE).mkdir(exist_ok=True)
            stack.enter_context(paths.locked(dataset.folder / CACHE / ".lock", wait=True))
        for file in dataset.files:
            yield _rewards(dataset.domain, file, bool(ours))[:, columns]


def _rewards(domain: str, file: Path, ours: bool) -> np.ndarray:
    """Return the rewards (rows, T) of all tasks from the cache, or compute and cache them."""
    tasks, cached = envs.domain_tasks(domain), file.parents[1] / CACHE / file.name
    with open(file, "rb") as opened:
        key = hashlib.file_digest(opened, "sha256").hexdigest()
    key += f" dm_control {version('dm_control')} mujoco {version('mujoco')}"
    with contextlib.suppress(DatasetError):  # a missing or damaged file is written again
        arrays = read_arrays(cached)
        if str(arrays.pop("key", "")) == key and tuple(arrays) == tasks:
            return np.stack(list(arrays.values()), -1)
    rewards = _computed(domain, file, ours)
    arrays = {"key": np.array(key), **dict(zip(tasks, rewards.T, strict=True))}
    try:
        paths.write_atomic(cached, functools.partial(np.savez_compressed, **arrays))
    except OSError as error:
        warnings.warn(f"rewards are not cached: {error.strerror}", stacklevel=2)
    return rewards


_rewards_of = functools.cache(envs.TaskRewards)


def _computed(domain: str, file: Path, ours: bool) -> np.ndarray:
    """Compute the rewards (rows, T) of all tasks from the states of an episode."""
    episode, primal = read_episode(file), envs.primal_task(domain)
    if "physics" not in episode:
        raise DatasetError(f"{file} has no physics states, from which rewards are computed")
    try:
        rewards = _rewards_of(domain).of_states(episode["physics"])
    except ValueError as error:
        raise DatasetError(f"{file}: {error}") from error
    rewards[0] = 0.0
    column = rewards[:, envs.domain_tasks(domain).index(primal)]
    worst = np.abs(column - episode["reward"][:, 0]).max()
    if ours and worst > 1e-6:
        raise DatasetError(f"{file}: states reproduce the stored reward only to {worst:.1e}")
    return rewards
