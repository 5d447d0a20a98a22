"""Evaluation: mean-action returns of policies, from starting states that depend on seeds alone."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from belib import paths, results, runs
from belib.actor_critic import ActorCritic
from belib.agents import DDPG
from belib.arrays import whole_number
from belib.config import LearnerConfig, OfflineConfig, PretrainConfig
from belib.envs import Environment, PhysicsError, TimeStep, primal_task, split_task
from belib.offline import LEARNERS
from belib.streams import Streams, derive_seed

Policy = Callable[[Tensor], Tensor]
"""Observations (M, E, obs_dim) to actions (M, E, action_dim) in [-1, 1]."""

ONLINE_EPISODES = 10
"""Of an evaluation of a task that was learnt online, as offline (table 3; ExORL)."""

# A Quadruped whose torso is within 60 degrees of upright lands on its feet, and is then paid about
# 500 for doing nothing; any other is paid about 5.
_UPRIGHT = 0.5


class Evaluator:
    """Episode returns of M policies, each for its own task, over E episodes stepped in lockstep.

    Starting states depend on a member's seed, the step of training and the episode's number alone,
    so evaluating changes nothing in training, and policies of equal seeds meet equal starts.
    """

    def __init__(self, tasks: Sequence[str], seeds: Sequence[int], episodes: int):
        self.seeds, self.episodes = seeds, whole_number("episodes", episodes, least=1)
        if not tasks or len(tasks) != len(seeds):
            raise ValueError(f"tasks must be one or more, each with a seed, got {tasks}, {seeds}")
        places = [(task, tasks[:m].count(task)) for m, task in enumerate(tasks)]
        self._envs = [[_environment(*place, e) for e in range(episodes)] for place in places]
        self.obs_dim, self.action_dim = self._envs[0][0].obs_dim, self._envs[0][0].action_dim
        self.upright = np.full(len(tasks), np.nan)
        """Share (M,) of the last evaluation's starts with an upright torso, NaN without a torso."""

    def __call__(self, policy: Policy, step: int) -> np.ndarray:
        """Return the undiscounted episode returns (M, E) of a policy after `step` updates."""
        for seed, row in zip(self.seeds, self._envs, strict=True):
            for episode, env in enumerate(row):
                env.seed(derive_seed(seed, "evaluation", step, episode))
        steps = [[env.reset() for env in row] for row in self._envs]
        self.upright = np.array([np.mean([_is_upright(env) for env in row]) for row in self._envs])
        returns = np.zeros((len(self._envs), self.episodes))
        while not all(step.last for row in steps for step in row):
            obs = np.array([[step.obs for step in row] for row in steps])
            actions = policy(torch.from_numpy(obs)).numpy()
            for m, row in enumerate(self._envs):
                for e, env in enumerate(row):
                    if not steps[m][e].last:
                        steps[m][e] = _step(env, actions[m, e], steps[m][e])
                        returns[m, e] += steps[m][e].reward
        return returns

    def zero_policy(self) -> Policy:
        """Return the policy that does nothing."""
        return lambda obs: torch.zeros(*obs.shape[:-1], self.action_dim)

    def random_policy(self) -> Policy:
        """Return a policy of uniform actions."""
        streams = Streams(self.seeds, "random policy")
        return lambda obs: streams.uniform(obs.shape[1], self.action_dim)


@functools.cache
def _environment(task: str, member: int, episode: int) -> Environment:
    """Return an environment that all evaluators share: each evaluation seeds and resets it."""
    return Environment(task, 0)


def _step(env: Environment, action: np.ndarray, before: TimeStep) -> TimeStep:
    """Step; where the simulation breaks down the episode ends, and that step pays nothing."""
    try:
        return env.step(action)
    except PhysicsError:
        return before._replace(reward=0.0, last=True)


def _is_upright(env: Environment) -> float:
    """Return 1 or 0, NaN for a body without a torso."""
    torso_upright = getattr(env.physics, "torso_upright", None)
    return np.nan if torso_upright is None else float(torso_upright() > _UPRIGHT)


def check_tasks(configs: Sequence[OfflineConfig]) -> None:
    """Raise ValueError for an unknown domain or task, or a task of another domain."""
    for config in configs:
        primal_task(config.domain)
        domain, _ = split_task(config.task)
        if domain != config.domain:
            raise ValueError(f"task must be one of the domain {config.domain}, got {config.task!r}")


def evaluate_baselines(
    configs: OfflineConfig | Sequence[OfflineConfig], *, runs_dir: str | Path = "runs"
) -> pd.DataFrame:
    """Return the returns of zero actions and of uniform actions, for `configs`' tasks and seeds.

    A policy's return means little without them: Quadruped pays about 500 for lying still if it
    lands on its feet. They begin in the same states as policies of the same seeds after `num_steps`
    updates.

    Raises ValueError for tasks of other domains, and for configs that differ in `num_steps` or
    `eval_episodes`.
    """
    configs = runs.listed(configs)
    check_tasks(configs)
    for name in ("num_steps", "eval_episodes"):
        values = sorted({getattr(config, name) for config in configs})
        if len(values) > 1:
            raise ValueError(f"baselines must have one {name}, got {', '.join(map(str, values))}")
    steps, revision, tables = configs[0].num_steps, paths.git_revision(), []
    seeds = [config.seed for config in configs]
    evaluator = Evaluator([c.task for c in configs], seeds, configs[0].eval_episodes)
    policies = (evaluator.zero_policy(), evaluator.random_policy())
    for algorithm, policy in zip(results.BASELINES, policies, strict=True):
        returns = evaluator(policy, steps)
        for config, member, upright in zip(configs, returns, evaluator.upright, strict=True):
            config = replace(config, dataset="none")
            changes = {"algorithm": algorithm, "upright": float(upright)}
            row = results.row(config, None, steps, member, revision, **changes)
            folder = paths.writable_folder(config.folder(runs_dir, algorithm.replace(" ", "-")))
            tables.append(pd.DataFrame([row]))
            results.write(folder / "results.csv", tables[-1])
    return pd.concat(tables, ignore_index=True)


def kept_policy(
    config: LearnerConfig, folder: Path, learner: type[ActorCritic], sizes: tuple[int, int]
) -> tuple[Policy, dict[str, Any]]:
    """Return the mean action of one member of a run, and the run's checkpoint that it is from.

    Args:
        config, folder: the member's.
        learner: class of the run's members.
        sizes: obs_dim, action_dim.

    Raises ValueError where no checkpoint has this member.
    """
    state = next(runs.checkpoints([folder]), None)
    if state is None:
        raise ValueError(f"{folder.parent} must hold a checkpoint with {folder.name}, got none")
    members = state["members"]
    configs = [type(config).from_yaml(folder.parent / name / runs.CONFIG) for name in members]
    kept, place = learner(*sizes, configs), members.index(folder.name)
    with runs.restoring(folder):
        kept.load_state_dict(state["learner"])

    def policy(obs: Tensor) -> Tensor:
        return kept.act(obs.expand(len(members), -1, -1), explore=False)[place : place + 1]

    return policy, state


def evaluate_online(config: PretrainConfig, folder: Path) -> None:
    """Evaluate the policy that learnt a task online; write one row beside the data.

    Offline learning is compared with it.

    Args:
        config: of the objective `task`.
        folder: the dataset's.
    """
    evaluator = Evaluator([config.task], [config.seed], ONLINE_EPISODES)
    sizes = (evaluator.obs_dim, evaluator.action_dim)
    policy, state = kept_policy(config, folder, DDPG, sizes)
    (returns,) = evaluator(policy, state["step"])
    names = ("domain", "dataset", "task", "seed", "scale")
    as_learner = OfflineConfig(**{name: getattr(config, name) for name in names})
    changes: dict[str, Any] = {"algorithm": "ddpg", "upright": float(evaluator.upright[0])}
    changes["precision"] = state["learner"]["_extra_state"]["precision"]
    row = results.row(as_learner, config, state["step"], returns, paths.git_revision(), **changes)
    results.write(folder / results.ONLINE, pd.DataFrame([row]))


def rollout(config: OfflineConfig, *, runs_dir: str | Path = "runs") -> np.ndarray:
    """Return the physics states (steps + 1, nq + nv + na) of one episode of a policy's mean action.

    It ends where the simulation breaks down, as an evaluation does.

    Args:
        config: of a member that `train_offline` has trained.
        runs_dir: where it was trained.

    Raises ValueError where no checkpoint has this member.
    """
    env = Environment(config.task, derive_seed(config.seed, "rollout"))
    learner, sizes = LEARNERS[config.algorithm], (env.obs_dim, env.action_dim)
    policy, _ = kept_policy(config, config.folder(runs_dir), learner, sizes)
    step = env.reset()
    states = [step.physics]
    while not step.last:
        action = policy(torch.from_numpy(step.obs)[None, None])[0, 0]
        try:
            step = env.step(action.numpy())
        except PhysicsError:
            break
        states.append(step.physics)
    return np.array(states)
