"""The rewards of tasks: recorded at collection, or computed from physics states and cached."""

import contextlib
import functools
import hashlib
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from belib import envs, paths, runs
from belib.datasets.files import Dataset, DatasetError, check, read_arrays, read_episode


def task_rewards(dataset: Dataset, tasks: Sequence[str]) -> list[np.ndarray]:
    """Return rewards (rows, T) float64 of T tasks for each episode: recorded, else relabelled.

    Raise DatasetError if recorded rewards contradict their episode, and as `relabel` does.
    """
    files = [dataset.folder / "rewards" / file.name for file in dataset.files]
    pairs = zip(files, dataset.episodes(), strict=True) if all(f.exists() for f in files) else ()
    rewards = [read_rewards(*pair, envs.primal_task(dataset.domain)) for pair in pairs]
    if not rewards or any(task not in recorded for recorded in rewards for task in tasks):
        rewards = _relabelled(dataset, tasks)
    return [np.stack([columns[task] for task in tasks], -1) for columns in rewards]


def read_rewards(file: Path, episode: dict[str, np.ndarray], primal: str) -> dict[str, np.ndarray]:
    """Return an episode's recorded rewards (rows,) by task; DatasetError if they contradict it."""
    rewards, stored = read_arrays(file), episode["reward"][:, 0]
    rules = [(task, slice(0, 1), lambda r: r == 0, "0 in row 0, the reset") for task in rewards]
    if primal in rewards:
        same = lambda r: r.astype(np.float32) == stored  # noqa: E731
        rules += [(primal, slice(0, None), same, "the stored reward")]
    check(file, rewards, dict.fromkeys(rewards, f"float64 {stored.shape}"), rules)
    return rewards


def relabel(dataset: Dataset, task: str) -> list[np.ndarray]:
    """Return rewards (rows,) float64 of a task for each episode, computed from physics states.

    For Walker, Quadruped and Gymnasium they equal the recorded rewards to the bit. Row 0 is 0. One
    pass, about 30 s per million rows (Gymnasium simulates again), computes all tasks of the domain.
    Those of dm_control's suite are cached while the file and dm_control's and MuJoCo's versions
    last; others', whose code may change, are not.

    Raise DatasetError without physics states, for a task of another model, or if the stored reward
    is not reproduced, as for reacher, whose target is not part of the state.
    """
    return [rewards[task] for rewards in _relabelled(dataset, [task])]


def _relabelled(dataset: Dataset, tasks: Sequence[str]) -> Iterator[dict[str, np.ndarray]]:
    """Yield each episode's rewards (rows,) of all tasks, cached or computed."""
    domain, cache = dataset.domain, dataset.folder / "relabelled"
    valid = envs.domain_tasks(domain)
    for task in tasks:
        if task not in valid:
            raise DatasetError(f"task of {dataset.folder} must be one of {valid}, got {task!r}")
    # `pretrain` stores the primal task's reward; imported data may store another's
    sources = (dataset.provenance() or {}).get("sources")
    ours = dataset.config() or (sources and all(source.get("objective") for source in sources))
    if domain in envs.DOMAINS.maps[0]:  # registered or Gymnasium's: their code may change
        yield from (_computed(file, domain, ours=bool(ours)) for file in dataset.files)
        return
    versions = f" dm_control {version('dm_control')} mujoco {version('mujoco')}"
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # a read-only folder gets no cache
            stack.enter_context(runs.locked([cache], wait=True))
        for file in dataset.files:
            rewards, key = {}, hashlib.sha256(file.read_bytes()).hexdigest() + versions
            with contextlib.suppress(DatasetError):  # a missing or damaged file is written again
                rewards = read_arrays(cache / file.name)
            if str(rewards.pop("key", "")) != key or tuple(rewards) != valid:
                rewards = _computed(file, domain, ours=bool(ours))
                with contextlib.suppress(OSError):
                    write = functools.partial(np.savez_compressed, key=np.array(key), **rewards)
                    paths.write_atomic(cache / file.name, write)
            yield rewards


def _computed(file: Path, domain: str, *, ours: bool) -> dict[str, np.ndarray]:
    """Return an episode's rewards (rows,) of all tasks; `ours` stores the primal task's."""
    tasks, primal = envs.domain_tasks(domain), envs.primal_task(domain)
    episode = read_episode(file, dict(envs.domain_sizes(domain)))
    if "physics" not in episode:
        raise DatasetError(f"{file} has no physics states, which determine rewards")
    columns = _task_rewards(domain).of_states(episode["physics"], episode["action"]).T
    rewards = {task: np.r_[0.0, r[1:]] for task, r in zip(tasks, columns, strict=True)}
    worst = np.abs(rewards[primal] - episode["reward"][:, 0]).max()
    if ours and worst > 1e-6:
        raise DatasetError(f"{file}: states' and stored reward differ by {worst:.1e}")
    return rewards


_task_rewards = functools.cache(envs.TaskRewards)
