"""Rewards from physics states: our relabelling against ExORL's loop over rows and tasks.

`python benchmarks/relabelling.py` writes results/relabelling.csv: processor seconds for the rewards
of all tasks of a domain, in memory and from disk. Both are measured in turn in one process, and
their rewards are equal to the bit.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from measuring import in_turn, provenance, write_table

from belib import datasets
from belib.config import PretrainConfig
from belib.envs import TaskRewards, domain_tasks
from belib.training import pretrain


def exorl(rewards: TaskRewards, states: np.ndarray) -> np.ndarray:
    """Return rewards (n, T) as ExORL computes them: a task at a time, a full forward pass a row."""
    physics, result = rewards._physics, np.empty((len(states), len(rewards.tasks)))
    for column, task in enumerate(rewards._tasks):
        for row, state in enumerate(states):
            with physics.reset_context():
                physics.set_state(state)
            result[row, column] = task.get_reward(physics)
    return result


def labels(dataset: datasets.Dataset) -> np.ndarray:
    """Return the rewards (n, T) of all tasks by `relabel`, without those of the resets."""
    columns = [datasets.relabel(dataset, task) for task in domain_tasks(dataset.domain)]
    return np.stack([np.concatenate([rows[1:] for rows in column]) for column in columns], -1)


def pairs(dataset: datasets.Dataset, rewards: TaskRewards) -> Iterator[tuple[str, Callable, ...]]:
    """Yield what is measured, ours and ExORL's: in memory, with reading the files, cached."""
    states = np.concatenate([episode["physics"][1:] for episode in dataset.episodes()])

    def from_disk() -> np.ndarray:
        episodes = dataset.episodes()
        return np.concatenate([exorl(rewards, each["physics"][1:]) for each in episodes])

    def first_time() -> np.ndarray:
        for file in (dataset.folder / "relabelled").glob("*.npz"):
            file.unlink()
        return labels(dataset)

    in_memory = (lambda: rewards.of_states(states), lambda: exorl(rewards, states))
    yield "rewards of states in memory", *in_memory
    yield "relabel, files read, labels kept", first_time, from_disk
    yield "relabel again", lambda: labels(dataset), from_disk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=5, help="of 1,000 steps, a domain")
    parser.add_argument("--repeats", type=int, default=7, help="repetitions")
    options = parser.parse_args()
    head, rows, steps = provenance("numpy", "dm_control", "mujoco"), [], 1000 * options.episodes
    for domain in ("walker", "quadruped"):
        config = PretrainConfig(domain=domain, objective="random", num_steps=steps)
        with tempfile.TemporaryDirectory() as runs_dir:
            (folder,) = pretrain(config, runs_dir=runs_dir, progress=False)
            dataset, rewards = datasets.load(folder), TaskRewards(domain)
            setting = f"{domain}, {len(rewards.tasks)} tasks, {steps} states, 1 process"
            for what, *both in pairs(dataset, rewards):
                times, found = in_turn(both, options.repeats, warm_up=0, clock=time.process_time)
                np.testing.assert_array_equal(*found, err_msg=what)
                ratios = times[1] / times[0]
                row = {"what": what, "setting": setting, "ours": np.median(times[0])}
                row |= {"ExORL's": np.median(times[1]), "ratio": np.median(ratios)}
                row["spread"] = f"{ratios.min():.2f} to {ratios.max():.2f}"
                row["target"] = ">= 8" if domain == "walker" and "memory" in what else ""
                rows.append(row | {"repetitions": options.repeats})
                print(rows[-1], flush=True)
    write_table("relabelling", pd.DataFrame(rows), head)


if __name__ == "__main__":
    main()
