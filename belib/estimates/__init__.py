"""Minutes, memory and disk of a run, before it begins.

An update is counted by running the real algorithm hollow (`counting`), and the machine is measured
for a second (`rates`): time = sum over operators of work / rate + overhead. Nothing is timed at the
run's own size, so that a whole grid's estimate takes seconds, and a GPU's can be made without one.
"""

import functools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from belib import envs, runs
from belib.actor_critic import ActorCritic
from belib.config import LearnerConfig, OfflineConfig, PretrainConfig, scales
from belib.estimates.counting import Counting
from belib.estimates.rates import ASSUMED as ASSUMED
from belib.estimates.rates import Operators, Rates, step_seconds
from belib.estimates.rates import calibrate as calibrate
from belib.offline import LEARNERS
from belib.replay import Replay
from belib.streams import Streams
from belib.training.collection import AGENTS
from belib.training.loop import fitting_threads

EPISODE = 1000
"""Steps of an episode of dm_control's suite."""

_PROCESS = 0.7e9  # bytes of a process that has imported everything and loaded a domain's tasks
_ENVIRONMENT = 13e6  # bytes of an environment (Walker and Quadruped, measured)
_MINUTES_BETWEEN_CHECKPOINTS = 5.0


class Estimate(NamedTuple):
    """What a run is expected to take; 0 minutes of it are spent yet."""

    minutes: float
    memory_gb: float
    """The most at any time."""
    disk_gb: float
    """Datasets, results and checkpoints; not what was there before."""
    source: str = "measured"
    """`measured`: from rates of this machine, measured now; otherwise what is assumed."""

    def __str__(self) -> str:
        how = "estimated on this machine" if self.source == "measured" else self.source
        units = (("h", 60.0), ("min", 1.0), ("s", 1 / 60))
        unit, length = next((u for u in units if self.minutes >= 2 * u[1]), units[-1])
        return f"about {self.minutes / length:.0f} {unit}, {self.memory_gb:.1f} GB ({how})"


class Counted(NamedTuple):
    """What the members of a run do, counted once a shape."""

    update: Operators
    """Of drawing a batch and learning from it."""
    act: Operators
    """Of one call of the policy."""
    peak: int
    """Bytes of the networks, their optimisers, and all that is alive during an update."""
    state: int
    """Bytes of a checkpoint."""


def estimate(
    configs: LearnerConfig | Sequence[LearnerConfig],
    *,
    rates: Rates | None = None,
    dataset_steps: int | None = None,
) -> Estimate:
    """What a call of `pretrain` or `train_offline` with these configs is expected to take.

    Args:
        configs: one config, or the members of one call.
        rates: of the machine that it will run on; None measures this one.
        dataset_steps: of the dataset that is learnt from; None takes what the scale collects.

    Raises ValueError for configs that do not go together.
    """
    configs = [configs] if isinstance(configs, LearnerConfig) else list(configs)
    runs.check_members(configs)
    with fitting_threads(configs):
        rates = rates or calibrate(configs[0].precision)
    if isinstance(configs[0], OfflineConfig):
        return _learning(configs, rates, dataset_steps or _collected_steps(configs[0]))
    agents = [AGENTS[config.objective] for config in configs]
    parts = [
        _collection([c for c, own in zip(configs, agents, strict=True) if own is agent], rates)
        for agent in dict.fromkeys(agents)
    ]
    minutes, memory, disk, sources = zip(*parts, strict=True)
    return Estimate(sum(minutes), max(memory), sum(disk), sources[0])


def estimate_groups(
    groups: Sequence[Sequence[OfflineConfig]],
    *,
    processes: int | None = None,
    dataset_steps: int | None = None,
) -> Estimate:
    """What a call of `train_groups` with these groups is expected to take here.

    Args:
        groups: of members, which run side by side in processes.
        processes: at a time; None takes one a core, as `train_groups` does.
        dataset_steps: as for `estimate`.
    """
    processes = min(len(groups), processes or os.cpu_count() or 1)
    with _threads(max(1, torch.get_num_threads() // processes)):
        parts = [estimate(group, dataset_steps=dataset_steps) for group in groups]
    minutes, memory, disk, sources = zip(*parts, strict=True)
    total = max(max(minutes), sum(minutes) / processes)
    return Estimate(total, sum(sorted(memory)[-processes:]), sum(disk), sources[0])


@contextmanager
def _threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def update_seconds(
    configs: LearnerConfig | Sequence[LearnerConfig], *, rates: Rates | None = None
) -> float:
    """Seconds of one update of all members, the drawing of its batch included."""
    configs = [configs] if isinstance(configs, LearnerConfig) else list(configs)
    with fitting_threads(configs):
        rates = rates or calibrate(configs[0].precision)
    return rates.seconds(count(configs).update)


def count(configs: Sequence[LearnerConfig]) -> Counted:
    """What one lockstep run's members do in an update and in an action."""
    return _count(_shape(configs[0]), len(configs))


def _collection(configs: Sequence[PretrainConfig], rates: Rates) -> Estimate:
    """Of one lockstep run of `pretrain`."""
    config, members = configs[0], len(configs)
    sizes, cost = envs.domain_sizes(config.domain), step_seconds(config.domain)
    tasks = len(envs.domain_tasks(config.domain))
    seconds = members * (cost.load + config.num_steps * cost.collect)
    counted = Counted((), (), 0, 0)
    if AGENTS[config.objective]:
        counted = count(configs)
        learnt = max(0, config.num_steps - config.random_steps)
        seconds += learnt / config.update_every * rates.seconds(counted.update)
        seconds += learnt * rates.seconds(counted.act)
    if config.objective == "task":
        seconds += members * 10 * EPISODE * cost.step
    row = 4 * (sizes["observation"] + sizes["action"] + 2)
    rows = min(config.replay_capacity, config.num_steps * (1 + 1 / EPISODE))
    memory = members * (rows * (row + 8) + _ENVIRONMENT) + counted.peak
    disk = members * config.num_steps * (row + 8 * sizes["physics"] + 8 * tasks)
    return _total(seconds, memory, disk, counted.state, rates)


def _learning(configs: Sequence[OfflineConfig], rates: Rates, dataset_steps: int) -> Estimate:
    """Of one lockstep run of `train_offline`."""
    config, members, counted = configs[0], len(configs), count(configs)
    sizes, cost = envs.domain_sizes(config.domain), step_seconds(config.domain)
    episodes = members * config.eval_episodes
    evaluations = -(-config.num_steps // config.eval_every)
    played = EPISODE * (rates.seconds(counted.act) + episodes * cost.step)
    seconds = config.num_steps * rates.seconds(counted.update)
    seconds += evaluations * played + episodes * cost.load
    columns = len({each.task for each in configs}) + 1
    row = 4 * (sizes["observation"] + sizes["action"] + columns)
    memory = dataset_steps * (row + 8) + episodes * _ENVIRONMENT + counted.peak
    return _total(seconds, memory, 0.0, counted.state, rates)


def _total(seconds: float, memory: float, disk: float, state: int, rates: Rates) -> Estimate:
    """With what every run has: its process, and checkpoints at both ends and between."""
    checkpoints = 2 + seconds / 60 / _MINUTES_BETWEEN_CHECKPOINTS
    seconds += min(checkpoints * state / rates.write, 2 * state / rates.write + 0.02 * seconds)
    return Estimate(seconds / 60, (memory + _PROCESS) / 1e9, (disk + state) / 1e9, rates.source)


def _collected_steps(config: OfflineConfig) -> int:
    """Steps of a collection at the scale of an offline run, the paper's for an unknown one."""
    known = config.scale in scales(PretrainConfig.STAGE)
    return (PretrainConfig.at_scale(config.scale) if known else PretrainConfig()).num_steps


def _shape(config: LearnerConfig) -> LearnerConfig:
    """The config with all that makes no difference to an update's cost at its default."""
    cost = {"seed": 0, "num_steps": 1, "scale": "", "learning_rate": 1e-4, "discount": 0.99}
    if isinstance(config, OfflineConfig):
        task = envs.primal_task(config.domain)
        return replace(config, **cost, task=task, dataset="", eval_every=1)
    agent = AGENTS[config.objective]
    objective = next(name for name, other in AGENTS.items() if other is agent)
    return replace(config, **cost, objective=objective, alpha=0.5, q=0.5, label="", random_steps=0)


@functools.cache
def _count(config: LearnerConfig, members: int) -> Counted:
    """Run a shape's algorithm for one update and one action, hollow."""
    configs, sizes = [config] * members, envs.domain_sizes(config.domain)
    offline = isinstance(config, OfflineConfig)
    agent = LEARNERS[config.algorithm] if offline else AGENTS[config.objective]
    skills = config.skill_dim if agent is AGENTS["smm"] else 0
    dims = sizes["observation"] + skills, sizes["action"]
    with Counting() as counting:
        learner: ActorCritic = agent(*dims, configs)
        state, draws = counting.live, Streams(range(members), "replay")
        replay = small_replay(config, members, dims)
        counting.operators.clear()
        learner.update(replay.sample(config.batch_size, draws))
        update = tuple(counting.operators.items())
        counting.operators.clear()
        obs = torch.empty(members, config.eval_episodes if offline else 1, dims[0])
        learner.act(obs, explore=not offline)
    return Counted(update, tuple(counting.operators.items()), counting.peak, state)


def small_replay(
    config: LearnerConfig, members: int, dims: tuple[int, int], rows: int = 8
) -> Replay:
    """A memory of one episode of zeros, as that of a run but for its size."""
    offline = isinstance(config, OfflineConfig)
    n_step = 1 if offline else config.n_step
    own = {"members": [(0, 0)] * members} if offline else {}
    sources, rows = 1 if offline else members, n_step + rows
    replay = Replay(sources, rows, *dims, n_step=n_step, discount=config.discount, **own)
    parts = [np.zeros((rows, size), np.float32) for size in (*dims, 1, 1)]
    for source in range(sources):
        replay.add(source, *parts, first=True)
    return replay
