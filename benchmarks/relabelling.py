"""Rewards from physics states: our relabelling against ExORL's loop over rows and tasks.

`python benchmarks/relabelling.py` writes results/relabelling.csv: processor seconds (which other
programs disturb less than the clock's) for the rewards of all tasks of a domain, in memory and from
disk. Both are measured in turn in one process, and their rewards are equal to the bit.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from measuring import in_turn, provenance, write_table

from belib import datasets
from belib.config import PretrainConfig
from belib.datasets import Dataset, dataset_folder
from belib.envs import TaskRewards, domain_tasks
from belib.training import pretrain


def exorl(rewards: TaskRewards, states: np.ndarray) -> np.ndarray:
    """(n, T) rewards as ExORL computes them: a task at a time, a full forward pass a row."""
    physics = rewards._physics
    found = np.empty((len(states), len(rewards.tasks)))
    for column, task in enumerate(rewards._tasks):
        for row, state in enumerate(states):
            with physics.reset_context():
                physics.set_state(state)
            found[row, column] = task.get_reward(physics)
    return found


def against(
    what: str, setting: str, ours: Callable, other: Callable, target: str, repeats: int
) -> dict:
    """A row of median processor seconds, measured in turn; raises where rewards differ at all."""
    times, found = in_turn([ours, other], repeats, warm_up=0, clock=time.process_time)
    if np.abs(found[0] - found[1]).max() != 0.0:
        raise AssertionError(f"{what}: rewards differ")
    ratios = times[1] / times[0]
    return {
        "what": what,
        "setting": setting,
        "ours": np.median(times[0]),
        "ExORL's": np.median(times[1]),
        "ratio": np.median(ratios),
        "spread": f"{ratios.min():.2f} to {ratios.max():.2f}",
        "target": target,
        "repetitions": repeats,
    }


def labels(dataset: Dataset) -> np.ndarray:
    """The rewards of all tasks by `relabel`, without those of the resets."""
    columns = [datasets.relabel(dataset, task) for task in domain_tasks(dataset.domain)]
    return np.stack([np.concatenate([rows[1:] for rows in column]) for column in columns], -1)


def rows(domain: str, dataset: Dataset, repeats: int, target: str) -> Iterator[dict]:
    """The rewards alone; then with reading the files, computed and found again."""
    rewards = TaskRewards(domain)
    states = np.concatenate([episode["physics"][1:] for episode in dataset.episodes()])
    setting = f"{domain}, {len(rewards.tasks)} tasks, {len(states)} states, 1 process"

    def from_disk() -> np.ndarray:
        episodes = dataset.episodes()
        return np.concatenate([exorl(rewards, each["physics"][1:]) for each in episodes])

    def first_time() -> np.ndarray:
        for file in (dataset.folder / "relabelled").glob("*.npz"):
            file.unlink()
        return labels(dataset)

    memory = (lambda: rewards.of_states(states), lambda: exorl(rewards, states))
    yield against("rewards of states in memory", setting, *memory, target, repeats)
    yield against("relabel, files read, labels kept", setting, first_time, from_disk, "", repeats)
    yield against("relabel again", setting, lambda: labels(dataset), from_disk, "", repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=5, help="of 1,000 steps, a domain")
    parser.add_argument("--repeats", type=int, default=7, help="repetitions")
    arguments = parser.parse_args()
    head, found = provenance("numpy", "dm_control", "mujoco"), []
    with tempfile.TemporaryDirectory() as folder:
        for domain, target in (("walker", ">= 8"), ("quadruped", "")):
            steps = 1000 * arguments.episodes
            config = PretrainConfig(domain=domain, objective="random", num_steps=steps)
            pretrain(config, runs_dir=folder, progress=False)
            dataset = datasets.load(dataset_folder(Path(folder), domain, config.dataset))
            for row in rows(domain, dataset, arguments.repeats, target):
                print(row, flush=True)
                found.append(row)
    write_table("relabelling", pd.DataFrame(found), head)


if __name__ == "__main__":
    main()
