"""Estimate minutes and memory of a run before it starts.

A few real updates and steps of the environment are timed on this machine. The time of an update
grows with the number of members as M^0.84 to M^0.95 (results/bench*.csv); 0.95 is assumed.
"""

import functools
import math
import os
import time
import timeit
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from belib import envs, machine, runs
from belib.agents import SMM, agent_of
from belib.config import OfflineConfig
from belib.engine import Engine
from belib.offline import LEARNERS
from belib.replay import Replay
from belib.training.collection import lockstep

_TIMED = 2**18  # members x batch x hidden units of a timed update, at least one member
_PROCESS, _ENVIRONMENT = 0.7e9, 13e6  # bytes of a process with its imports, and of an environment


class Cost(NamedTuple):
    """Cost of a run that has this machine to itself; memory is the peak."""

    minutes: float
    memory_gb: float

    def __str__(self) -> str:
        length, unit = (60, "h") if self.minutes >= 120 else (1, "min")
        return f"about {self.minutes / length:.1f} {unit}, {self.memory_gb:.1f} GB"


def estimate(*calls: runs.Config | Sequence[runs.Config], dataset_steps: int = 500_000) -> Cost:
    """Return the cost of calls of `pretrain` or `train_offline`, mostly within a factor of 1.5.

    Several calls run side by side (`training.in_parallel`), offline learning on `dataset_steps`
    transitions. Raise ValueError for configs that cannot be members of one call.
    """
    groups = [group for configs in calls for group in lockstep(runs.members(configs))]
    processes = 1 if torch.cuda.is_available() else min(len(calls), os.cpu_count() or 1)
    with machine.threads(max(1, torch.get_num_threads() // processes)):
        minutes, memory = np.transpose([_cost(group, dataset_steps) for group in groups])
    longest = max(minutes.max(), minutes.sum() / processes)
    return Cost(float(longest), float(np.sort(memory)[-processes:].sum()))


def _cost(configs: Sequence[Any], dataset_steps: int) -> Cost:
    """Return the cost of members that run in lockstep."""
    config, members, steps = configs[0], len(configs), configs[0].num_steps
    few = min(members, max(1, _TIMED // (config.batch_size * config.hidden_dim)))
    offline = isinstance(config, OfflineConfig)
    same = {"dataset": "", "task": "", "eval_every": 1} if offline else {"alpha": 0.5, "q": 0.5}
    with runs.fitting_threads(configs):  # what costs the same is timed once
        alike = replace(config, seed=0, num_steps=1, **same)
        play, *learner = _timed(alike, few, torch.get_num_threads())
    update, act, parameters = (value * (members / few) ** 0.95 for value in learner)
    sizes = envs.domain_sizes(config.domain)
    row = 4 * (sizes["observation"] + sizes["action"] + 2) + 8
    activations = 48 * members * config.batch_size * config.hidden_dim  # 12 layers
    if offline:
        activations *= 3 * config.num_action_samples if config.algorithm == "cql" else 1
        environments = members * config.eval_episodes
        rows = min(dataset_steps, config.replay_capacity)
        acts = 1000 * math.ceil(steps / config.eval_every)
        seconds = steps * update + acts * (act + environments * play)
    else:
        environments, rows = members, members * min(config.replay_capacity, steps)
        acts = max(0, steps - config.random_steps)
        seconds = acts * (act + update / config.update_every) + steps * members * play
    learning = activations + rows * row + 16 * parameters  # with gradients and two moments
    memory = _PROCESS + environments * _ENVIRONMENT + learning * bool(parameters)
    return Cost(seconds / 60, memory / 1e9)


@functools.cache
def _timed(config: Any, members: int, threads: int) -> tuple[float, float, float, int]:
    """Time a step of an environment, updates and actions of equal members; count parameters."""
    env = envs.Environment(envs.primal_task(config.domain), 0)
    rewards = envs.TaskRewards(config.domain)
    env.reset()
    play = _seconds(lambda: rewards(env.step(np.zeros(env.action_dim)) and env.physics), 100)
    if getattr(config, "objective", "") == "random":
        return play, 0.0, 0.0, 0
    engine = practice([config] * members)
    obs = torch.zeros(members, getattr(config, "eval_episodes", 1), engine.replay.obs_dim)
    act = _seconds(lambda: engine.learner.act(obs, explore=True), 5)
    parameters = sum(tensor.numel() for tensor in engine.learner.parameters())
    return play, _seconds(engine.step, 5), act, parameters


def practice(configs: Sequence[Any], rows: int = 1000, device: Any = None) -> Engine:
    """Return an engine that updates the members of a run from random transitions."""
    config, members, sizes = configs[0], len(configs), envs.domain_sizes(configs[0].domain)
    offline = isinstance(config, OfflineConfig)
    agent: Any = LEARNERS[config.algorithm] if offline else agent_of(config.objective)
    skills, n_step = config.skill_dim if agent is SMM else 0, 1 if offline else config.n_step
    dims = (sizes["observation"] + skills, sizes["action"])
    replay = Replay(members, rows, *dims, n_step=n_step, discount=config.discount)
    for member in range(members):
        random = np.random.default_rng(member)
        columns = [random.uniform(-1, 1, (rows, size)) for size in (*dims, 1)]
        replay.add(member, *columns, np.ones((rows, 1)), first=True)
    return Engine(agent(*dims, configs), replay, device)


def _seconds(call: Callable[[], object], calls: int) -> float:
    """Return the median CPU time of a call, which other processes hardly change."""
    wait = torch.cuda.synchronize if torch.cuda.is_available() else int
    times = timeit.repeat(lambda: (call(), wait()), timer=time.thread_time, number=1, repeat=calls)
    return float(np.median(times))
