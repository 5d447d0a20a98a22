"""Estimate minutes, memory and disk of a run before it starts.

A few real updates and steps of the environment are timed on this machine. The time of an update
grows with the number of members as M^0.95 (results/bench_scaling.csv).
"""

import functools
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from belib import envs, machine, runs
from belib.agents import APT, agent_of
from belib.config import OfflineConfig, PretrainConfig
from belib.engine import Engine
from belib.offline import LEARNERS
from belib.replay import Replay
from belib.streams import Streams
from belib.training.collection import Collection, lockstep

Call = runs.Config | Sequence[runs.Config]

_TIMED = 2**18  # members x batch x hidden units of a timed update, at least one member
_PROCESS, _ENVIRONMENT = 0.7e9, 13e6  # bytes of a process with its imports, and of an environment


class Cost(NamedTuple):
    """Cost of a run that has this machine to itself; memory is the peak."""

    minutes: float
    memory_gb: float
    disk_gb: float

    def __str__(self) -> str:
        units = (("h", 60.0), ("min", 1.0), ("s", 1 / 60))
        unit, length = next((u for u in units if self.minutes >= 2 * u[1]), units[-1])
        return f"about {self.minutes / length:.0f} {unit}, {self.memory_gb:.1f} GB"


def estimate(*calls: Call, dataset_steps: int = 500_000) -> Cost:
    """Return the cost of calls of `pretrain` or `train_offline`, mostly within a factor of 1.5.

    Args:
        calls: configs of a call; several calls run side by side, as in `train_groups`.
        dataset_steps: size of the dataset for offline learning.

    Raise ValueError for configs that cannot be members of one call.
    """
    processes = 1 if torch.cuda.is_available() else min(len(calls), os.cpu_count() or 1)
    with machine.threads(max(1, torch.get_num_threads() // processes)):
        costs = [_cost(group, dataset_steps) for call in calls for group in _groups(call)]
    minutes, memory, disk = np.transpose(costs).tolist()
    longest = max(*minutes, sum(minutes) / processes)
    return Cost(longest, sum(sorted(memory)[-processes:]), sum(disk))


def _groups(call: Call) -> list[list[PretrainConfig]] | list[list[runs.Config]]:
    """Return the members of a call in groups that run in lockstep."""
    configs = runs.listed(call)
    runs.check_members(configs)
    return lockstep([c for c in configs if isinstance(c, PretrainConfig)]) or [configs]


def _cost(configs: Sequence[runs.Config], dataset_steps: int) -> Cost:
    """Return the cost of members that run in lockstep."""
    config, members = configs[0], len(configs)
    sizes, tasks = envs.domain_sizes(config.domain), len(envs.domain_tasks(config.domain))
    load, collect, play = environment_seconds(config.domain)
    update, act, networks = _learner(configs)
    row = 4 * (sizes["observation"] + sizes["action"] + 2)
    if isinstance(config, OfflineConfig):
        environments, rows, disk = members * config.eval_episodes, dataset_steps, 0
        acts = 1000 * math.ceil(config.num_steps / config.eval_every)
        seconds = config.num_steps * update + acts * (act + environments * play)
    else:
        environments, rows = members, members * min(config.replay_capacity, config.num_steps)
        disk = members * config.num_steps * (row + 8 * (sizes["physics"] + tasks))
        acts = max(0, config.num_steps - config.random_steps)
        seconds = acts * (act + update / config.update_every)
        seconds += config.num_steps * members * collect
    minutes = (seconds + environments * load) / 60
    memory = _PROCESS + environments * _ENVIRONMENT + rows * (row + 8) + networks
    return Cost(minutes, memory / 1e9, (disk + networks) / 1e9)


def _learner(configs: Sequence[runs.Config]) -> tuple[float, float, float]:
    """Return seconds of an update and of an action of all members, and their networks' bytes."""
    config, members = configs[0], len(configs)
    same = {"seed": 0, "num_steps": 1, "scale": "", "task": config.task and "any"}
    if envs.domain_sizes(config.domain)["observation"] < config.hidden_dim / 8:
        same["domain"] = "walker"  # the first layer costs little
    if isinstance(config, OfflineConfig):
        same |= {"dataset": "", "eval_every": 1}
    elif agent_of(config.objective) is None:
        return 0.0, 0.0, 0.0
    elif agent_of(config.objective) is APT:  # all rewards of distances cost the same
        same |= {"objective": "shannon", "alpha": 0.5, "q": 0.5, "label": ""}
    few = min(members, max(1, _TIMED // (config.batch_size * config.hidden_dim)))
    with runs.fitting_threads(configs):
        update, act, parameters = _timed(replace(config, **same), few, torch.get_num_threads())
    growth = (members / few) ** 0.95
    rows = 1  # actions of a state
    if isinstance(config, OfflineConfig) and config.algorithm == "cql":
        rows = 3 * config.num_action_samples
    width = max(config.hidden_dim, getattr(config, "representation_dim", 0))
    activations = 12 * 4 * members * config.batch_size * rows * width  # 3 per layer, 4 layers
    return growth * update, growth * act, 16 * parameters * members / few + activations


@functools.cache
def _timed(config: runs.Config, members: int, threads: int) -> tuple[float, float, int]:
    """Time an update and an action of equal members, and count their parameters."""
    engine = practice([config] * members)
    obs = torch.zeros(members, getattr(config, "eval_episodes", 1), engine.replay.obs_dim)
    large = members * config.batch_size * config.hidden_dim > _TIMED
    calls = 2 if large and not torch.cuda.is_available() else 10
    update = _seconds(engine.step, calls)
    act = _seconds(lambda: engine.learner.act(obs, explore=True), calls)
    return update, act, sum(tensor.numel() for tensor in engine.learner.parameters())


def practice(
    configs: Sequence[runs.Config], rows: int = 1000, device: torch.device | None = None
) -> Engine:
    """Return an engine that updates the members of a run from random transitions."""
    config, sizes = configs[0], envs.domain_sizes(configs[0].domain)
    if isinstance(config, OfflineConfig):
        agent, skills, n_step = LEARNERS[config.algorithm], 0, 1
    else:
        agent, n_step = agent_of(config.objective), config.n_step
        skills = config.skill_dim if config.objective == "smm" else 0
    assert agent, "the objective random has no agent"
    dims = (sizes["observation"] + skills, sizes["action"])
    replay = Replay(len(configs), rows, *dims, n_step=n_step, discount=config.discount)
    for member in range(len(configs)):
        random = np.random.default_rng(member)
        obs, action, reward = (random.uniform(-1, 1, (rows, size)) for size in (*dims, 1))
        replay.add(member, obs, action, reward, np.ones((rows, 1)), first=True)
    draws = Streams(range(len(configs)), "replay")
    return Engine(agent(*dims, configs), replay, config.batch_size, draws, device)


@functools.cache
def environment_seconds(domain: str) -> tuple[float, float, float]:
    """Time loading an environment, a step of a collection, and a step of an evaluation."""
    load = _seconds(lambda: envs.Environment(envs.primal_task(domain), 0), 1)
    config = PretrainConfig(domain=domain, objective="random")
    with tempfile.TemporaryDirectory() as folder:  # for episodes that end early
        collection = Collection([config], [Path(folder)])
        collect = _seconds(collection.advance, 100)
    env = envs.Environment(envs.primal_task(domain), 0)
    env.reset()
    return load, collect, _seconds(lambda: env.step(np.zeros(env.action_dim)), 100)


def _seconds(call: Callable[[], object], calls: int) -> float:
    """Return the median CPU time of a call, which other processes hardly change."""
    times = []
    for _ in range(calls):
        begin = time.thread_time()
        call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(time.thread_time() - begin)
    return statistics.median_low(times)
