"""What the members of a run do in an update and in an action, counted once a shape."""

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from belib import envs, runs
from belib.actor_critic import ActorCritic
from belib.agents import agent_of
from belib.config import OfflineConfig
from belib.estimates.counting import Counting
from belib.estimates.rates import Operators
from belib.offline import LEARNERS
from belib.replay import Replay
from belib.streams import Streams


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


def count(configs: Sequence[runs.Config]) -> Counted:
    """What one lockstep run's members do in an update and in an action."""
    return _count(_shape(configs[0]), len(configs))


def _shape(config: runs.Config) -> runs.Config:
    """The config with all that makes no difference to an update's cost at its default."""
    cost = {"seed": 0, "num_steps": 1, "scale": "", "learning_rate": 1e-4, "discount": 0.99}
    if isinstance(config, OfflineConfig):
        task = envs.primal_task(config.domain)
        return replace(config, **cost, task=task, dataset="", eval_every=1)
    apt = agent_of(config.objective) is agent_of("shannon")  # whatever it is paid for
    objective = "shannon" if apt else config.objective
    return replace(config, **cost, objective=objective, alpha=0.5, q=0.5, label="", random_steps=0)


@functools.cache
def _count(config: runs.Config, members: int) -> Counted:
    """Run a shape's algorithm for one update and one action, hollow."""
    configs, sizes = [config] * members, envs.domain_sizes(config.domain)
    offline = isinstance(config, OfflineConfig)
    agent = LEARNERS[config.algorithm] if offline else agent_of(config.objective)
    assert agent, "random actions are nobody's"
    skills = 0 if offline or agent is not agent_of("smm") else config.skill_dim
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


def small_replay(config: runs.Config, members: int, dims: tuple[int, int], rows: int = 8) -> Replay:
    """A memory of one episode of zeros, as that of a run but for its size."""
    offline = isinstance(config, OfflineConfig)
    n_step = 1 if offline else config.n_step
    own = [(0, 0)] * members if offline else None
    sources, rows = 1 if offline else members, n_step + rows
    replay = Replay(sources, rows, *dims, n_step=n_step, discount=config.discount, members=own)
    parts = [np.zeros((rows, size), np.float32) for size in (*dims, 1, 1)]
    for source in range(sources):
        replay.add(source, *parts, first=True)
    return replay
