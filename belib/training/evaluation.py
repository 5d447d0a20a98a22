"""Evaluation: episode returns of policies' mean actions, from seeded starting states."""

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
"""Maps observations (M, E, obs_dim) to actions (M, E, action_dim) in [-1, 1]."""

ONLINE_EPISODES = 10
"""Episodes in the evaluation of a policy learnt online: as many as offline (ExORL)."""

# A Quadruped that starts within 60 degrees of upright lands on its feet, and gets a return of about
# 500 without moving; otherwise about 5. This is the cosine of 60 degrees.
_UPRIGHT = 0.5


class Evaluator:
    """Episode returns of M policies, each on its task, over E episodes stepped in lockstep.

    Starting states depend only on the member's seed, the training step and the episode's number. So
    evaluation does not affect training, and policies of equal seeds have equal starting states.
    """

    def __init__(self, tasks: Sequence[str], seeds: Sequence[int], episodes: int):
        self.seeds, self.episodes = seeds, whole_number("episodes", episodes, least=1)
        if not tasks or len(tasks) != len(seeds):
            raise ValueError(f"tasks must be one or more, each with a seed, got {tasks}, {seeds}")
        keys = [(task, tasks[:m].count(task)) for m, task in enumerate(tasks)]
        self._envs = [[_environment(*key, e) for e in range(episodes)] for key in keys]
        self.obs_dim, self.action_dim = self._envs[0][0].obs_dim, self._envs[0][0].action_dim
        self.upright = np.full(len(tasks), np.nan)
        """Share (M,) of upright starting states in the last evaluation; NaN without a torso."""

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
        """Return the policy whose actions are 0."""
        return lambda obs: torch.zeros(*obs.shape[:-1], self.action_dim)

    def random_policy(self) -> Policy:
        """Return a policy of uniform actions."""
        streams = Streams(self.seeds, "random policy")
        return lambda obs: streams.uniform(obs.shape[1], self.action_dim)


@functools.cache
def _environment(task: str, member: int, episode: int) -> Environment:
    """Return an environment, shared by all evaluators, which seed and reset it."""
    return Environment(task, 0)


def _step(env: Environment, action: np.ndarray, before: TimeStep) -> TimeStep:
    """Step; a physics error ends the episode, with a reward of 0."""
    try:
        return env.step(action)
    except PhysicsError:
        return before._replace(reward=0.0, last=True)


def _is_upright(env: Environment) -> float:
    """Return 1 if the torso is upright, 0 if not, NaN without a torso."""
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
    """Evaluate zero actions and uniform actions for the tasks and seeds of `configs`.

    They are needed to judge a policy: a Quadruped that lands on its feet gets about 500 without
    moving. Starting states are those of policies with the same seeds after `num_steps` updates.

    Raise ValueError for tasks of other domains, and for configs that differ in `num_steps` or
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
    """Return a member's policy (its mean action), and the checkpoint that holds it.

    Args:
        config, folder: of the member.
        learner: class of the run's learner.
        sizes: obs_dim, action_dim.

    Raise ValueError if no checkpoint has this member.
    """
    state = next(runs.checkpoints([folder]), None)
    if state is None:
        raise ValueError(f"{folder.parent} must hold a checkpoint with {folder.name}, got none")
    members = state["members"]
    configs = [type(config).from_yaml(folder.parent / name / runs.CONFIG) for name in members]
    restored, index = learner(*sizes, configs), members.index(folder.name)
    with runs.restoring(folder):
        restored.load_state_dict(state["learner"])

    def policy(obs: Tensor) -> Tensor:
        return restored.act(obs.expand(len(members), -1, -1), explore=False)[index : index + 1]

    return policy, state


def evaluate_online(config: PretrainConfig, folder: Path) -> None:
    """Evaluate the policy of a dataset of the objective `task`; write one row into its folder.

    This policy, learnt online, is the reference for offline learning.
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
    """Return the physics states (steps + 1, nq + nv + na) of one episode of mean actions.

    A physics error ends the episode.

    Args:
        config: of a policy that `train_offline` has trained.
        runs_dir: folder of the runs.

    Raise ValueError if no checkpoint has this policy.
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
