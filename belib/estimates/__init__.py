"""Minutes, memory and disk of a run, before it begins.

An update is counted by running the real algorithm hollow (`counting`), and the machine is measured
for a second (`rates`): time = sum over operators of work / rate + overhead. Nothing is timed at the
run's own size, so that a whole grid's estimate takes seconds, and a GPU's can be made without one.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

import torch

from belib import envs, machine, runs
from belib.agents import agent_of
from belib.config import OfflineConfig, PretrainConfig, scales
from belib.estimates.cards import ASSUMED as ASSUMED
from belib.estimates.cards import card_rates as card_rates
from belib.estimates.rates import Rates, step_seconds
from belib.estimates.rates import calibrate as calibrate
from belib.estimates.shapes import Counted
from belib.estimates.shapes import count as count
from belib.estimates.shapes import small_replay as small_replay
from belib.training.collection import lockstep
from belib.training.loop import CHECKPOINT_SHARE, fitting_threads

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


def estimate(
    configs: runs.Config | Sequence[runs.Config],
    *,
    rates: Rates | None = None,
    dataset_steps: int | None = None,
) -> Estimate:
    """What a call of `pretrain` or `train_offline` with these configs is expected to take.

    It is meant for a machine that is otherwise idle, and mostly right within a factor of 1.5 there.

    Args:
        configs: one config, or the members of one call.
        rates: of the machine that it will run on; None measures this one, or takes `card_rates`
            where torch finds a card.
        dataset_steps: of the dataset that is learnt from; None takes what the scale collects.

    Raises ValueError for configs that do not go together.
    """
    configs = [configs] if isinstance(configs, runs.Config) else list(configs)
    runs.check_members(configs)
    rates = rates or _rates(configs)
    learning = [config for config in configs if isinstance(config, OfflineConfig)]
    if learning:
        return _learning(learning, rates, dataset_steps or _collected_steps(learning[0]))
    collecting = [config for config in configs if isinstance(config, PretrainConfig)]
    parts = [_collection(group, rates) for group in lockstep(collecting)]
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
        processes: at a time; None takes one a core, or one on a card, as `train_groups` does.
        dataset_steps: as for `estimate`.
    """
    cores = 1 if torch.cuda.is_available() else os.cpu_count() or 1
    processes = min(len(groups), processes or cores)
    with machine.threads(machine.threads_each(processes)):
        parts = [estimate(group, dataset_steps=dataset_steps) for group in groups]
    minutes, memory, disk, sources = zip(*parts, strict=True)
    total = max(max(minutes), sum(minutes) / processes)
    return Estimate(total, sum(sorted(memory)[-processes:]), sum(disk), sources[0])


def update_seconds(
    configs: runs.Config | Sequence[runs.Config], *, rates: Rates | None = None
) -> float:
    """Seconds of one update of all members, the drawing of its batch included."""
    configs = [configs] if isinstance(configs, runs.Config) else list(configs)
    return (rates or _rates(configs)).seconds(count(configs).update)


def _rates(configs: Sequence[runs.Config]) -> Rates:
    """Of what a run of these configs would use here: a card, or the threads that fit it."""
    if torch.cuda.is_available():
        return card_rates()
    with fitting_threads(configs):
        precision = configs[0].precision
        return calibrate(machine.fastest_precision() if precision == "auto" else precision)


def _collection(configs: Sequence[PretrainConfig], rates: Rates) -> Estimate:
    """Of one lockstep run of `pretrain`."""
    config, members = configs[0], len(configs)
    sizes, cost = envs.domain_sizes(config.domain), step_seconds(config.domain)
    tasks = len(envs.domain_tasks(config.domain))
    seconds = members * (cost.load + config.num_steps * cost.collect)
    counted = Counted((), (), 0, 0)
    if agent_of(config.objective):
        counted = count(configs)
        learnt, update = config.num_steps - config.random_steps, rates.seconds(counted.update)
        update -= min(update, members * cost.collect) if rates.overlaps else 0.0
        seconds += max(0, learnt) * (rates.seconds(counted.act) + update / config.update_every)
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
    seconds += min(
        checkpoints * state / rates.write, 2 * state / rates.write + CHECKPOINT_SHARE * seconds
    )
    return Estimate(seconds / 60, (memory + _PROCESS) / 1e9, (disk + state) / 1e9, rates.source)


def _collected_steps(config: OfflineConfig) -> int:
    """Steps of a collection at the scale of an offline run, the paper's for an unknown one."""
    known = config.scale in scales(PretrainConfig.STAGE)
    return (PretrainConfig.at_scale(config.scale) if known else PretrainConfig()).num_steps
