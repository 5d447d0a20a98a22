"""Evaluation: mean-action returns of policies, from starting states of a stream of their own."""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from belib import runs
from belib.actor_critic import ActorCritic
from belib.arrays import whole_number
from belib.config import LearnerConfig
from belib.envs import Environment, PhysicsError, TimeStep
from belib.streams import Streams, derive_seed


@functools.cache
def _environment(task: str, member: int, episode: int) -> Environment:
    """Environments are seeded and reset at each evaluation, so all evaluators may share them."""
    return Environment(task, 0)


# A Quadruped whose torso is within 60 degrees of upright lands on its feet, and is then paid about
# 500 for doing nothing; any other is paid about 5.
_UPRIGHT = 0.5

Policy = Callable[[Tensor], Tensor]
"""Observations (M, E, obs_dim) to actions (M, E, action_dim) in [-1, 1]."""


class Evaluator:
    """Episode returns of M policies, each for its own task, over E episodes stepped in lockstep.

    Starting states depend on a member's seed, the step of training and the episode's number alone,
    so evaluating changes nothing in training, and policies of equal seeds meet equal starts.
    """

    def __init__(self, tasks: Sequence[str], seeds: Sequence[int], episodes: int):
        self.seeds, self.episodes = seeds, whole_number("episodes", episodes, least=1)
        if not tasks or len(tasks) != len(seeds):
            raise ValueError(f"tasks must be one or more, each with a seed, got {tasks}, {seeds}")
        numbered = [(task, tasks[:m].count(task)) for m, task in enumerate(tasks)]
        self._envs = [[_environment(*each, e) for e in range(episodes)] for each in numbered]
        self.obs_dim, self.action_dim = self._envs[0][0].obs_dim, self._envs[0][0].action_dim
        self.upright = np.full(len(tasks), np.nan)
        """The share (M,) of the last evaluation's starts with an upright torso, NaN without one."""

    def __call__(self, policy: Policy, step: int) -> np.ndarray:
        """The returns (M, E) after `step` updates: sums of an episode's rewards, undiscounted."""
        for seed, row in zip(self.seeds, self._envs, strict=True):
            for episode, env in enumerate(row):
                env.seed(derive_seed(seed, "evaluation", step, episode))
        steps = [[env.reset() for env in row] for row in self._envs]
        self.upright = np.array([np.mean([_is_upright(env) for env in row]) for row in self._envs])
        returns = np.zeros((len(self._envs), self.episodes))
        while not all(found.last for row in steps for found in row):
            obs = np.array([[found.obs for found in row] for row in steps])
            actions = policy(torch.from_numpy(obs)).numpy()
            for m, row in enumerate(self._envs):
                for e, env in enumerate(row):
                    if not steps[m][e].last:
                        steps[m][e] = _step(env, actions[m, e], steps[m][e])
                        returns[m, e] += steps[m][e].reward
        return returns

    def zero_policy(self) -> Policy:
        """Doing nothing."""
        return lambda obs: torch.zeros(*obs.shape[:-1], self.action_dim)

    def random_policy(self) -> Policy:
        """Uniform actions."""
        streams = Streams(self.seeds, "random policy")
        return lambda obs: streams.uniform(obs.shape[1], self.action_dim)


def kept_policy(
    folder: Path,
    learner: type[ActorCritic],
    config: type[LearnerConfig],
    part: str,
    sizes: tuple[int, int],
) -> tuple[Policy, dict[str, Any]]:
    """Return the mean action of one member of a run, and the run's checkpoint that it is from.

    Args:
        folder: the member's.
        learner, config: classes of the run's members.
        part: of the checkpoint that holds them.
        sizes: obs_dim, action_dim.

    Raises ValueError where no checkpoint has this member.
    """
    state = runs.checkpoint(folder)
    members = state["members"]
    configs = [config.from_yaml(folder.parent / name / runs.CONFIG) for name in members]
    kept, own = learner(*sizes, configs), members.index(folder.name)
    with runs.restoring(folder):
        kept.load_state_dict(state[part])

    def policy(obs: Tensor) -> Tensor:
        return kept.act(obs.expand(len(members), -1, -1), explore=False)[own : own + 1]

    return policy, state


def _step(env: Environment, action: np.ndarray, before: TimeStep) -> TimeStep:
    """A step; where the simulation breaks down the episode ends, and that step pays nothing."""
    try:
        return env.step(action)
    except PhysicsError:
        return before._replace(reward=0.0, last=True)


def _is_upright(env: Environment) -> float:
    """1 or 0, NaN for a body without a torso."""
    torso_upright = getattr(env.physics, "torso_upright", None)
    return np.nan if torso_upright is None else float(torso_upright() > _UPRIGHT)
