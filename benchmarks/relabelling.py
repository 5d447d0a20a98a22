"""Rewards from physics states: our relabelling against ExORL's loop over rows and tasks.

`python benchmarks/relabelling.py` writes results/relabelling.csv: processor seconds for the rewards
of all tasks of a domain, measured in turn in one process. The rewards are equal to the bit.
"""

import time

import numpy as np
import pandas as pd
from measuring import in_turn, provenance, write_table

from belib.envs import Environment, TaskRewards, primal_task

STEPS, REPEATS = 5000, 7


def exorl(rewards: TaskRewards, states: np.ndarray) -> np.ndarray:
    """Return rewards (n, T) as ExORL computes them: one full forward pass per task and row."""
    physics = rewards._physics
    table = np.empty((len(states), len(rewards.tasks)))
    for column, task in enumerate(rewards._tasks):
        for row, state in enumerate(states):
            with physics.reset_context():
                physics.set_state(state)
            table[row, column] = task.get_reward(physics)
    return table


def visited(domain: str, steps: int) -> np.ndarray:
    """Return physics states (steps, size) of uniformly random actions."""
    env, random, states = Environment(primal_task(domain), 0), np.random.default_rng(0), []
    while len(states) < steps:
        step = env.reset()
        while not step.last:
            step = env.step(random.uniform(-1, 1, env.action_dim))
            states.append(step.physics)
    return np.array(states[:steps])


def row(domain: str) -> dict:
    """Return median seconds of both methods, and the median ratio."""
    rewards, states = TaskRewards(domain), visited(domain, STEPS)
    calls = [lambda: rewards.of_states(states), lambda: exorl(rewards, states)]
    times, tables = in_turn(calls, REPEATS, warm_up=0, clock=time.process_time)
    np.testing.assert_array_equal(*tables)
    ours, theirs = np.median(times, axis=1)
    ratios = times[1] / times[0]
    setting = f"{domain}, {len(rewards.tasks)} tasks, {STEPS} states, 1 process"
    made = {"what": "rewards of states in memory", "setting": setting, "ours": ours}
    made |= {"ExORL's": theirs, "ratio": np.median(ratios), "repetitions": REPEATS}
    return made | {"spread": f"{ratios.min():.2f} to {ratios.max():.2f}"}


if __name__ == "__main__":
    head = provenance("numpy", "dm_control", "mujoco")
    write_table("relabelling", pd.DataFrame([row("walker"), row("quadruped")]), head)
