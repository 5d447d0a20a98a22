"""Evaluation: episode returns of policies' mean actions, from seeded starting states."""

import functools
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from belib import paths, results, runs
from belib.config import OfflineConfig, PretrainConfig
from belib.envs import Environment, PhysicsError, domain_tasks
from belib.offline import LEARNERS
from belib.streams import Streams, derive_seed

Policy = Callable[[Tensor], Tensor]
"""Maps observations (M, E, obs_dim) to actions (M, E, action_dim) in [-1, 1]."""


class Evaluator:
    """Episode returns of M policies, one per config, over E episodes, stepped in lockstep.

    Starting states depend only on the member's seed, the training step and the episode's number. So
    evaluation does not affect training, and policies of equal seeds have equal starting states.
    """

    def __init__(self, configs: Sequence[OfflineConfig]):
        self.configs, self.revision = configs, paths.git_revision()
        self._envs = [
            [_environment(config.task, member, e) for e in range(config.eval_episodes)]
            for member, config in enumerate(configs)
        ]
        self.obs_dim, self.action_dim = self._envs[0][0].obs_dim, self._envs[0][0].action_dim

    def __call__(
        self, policy: Policy, step: int, data: Sequence[PretrainConfig | None] = (), **changes: Any
    ) -> list[dict[str, Any]]:
        """Return a `results.row` with `changes` of every policy, after `step` updates.

        A physics error ends an episode, with a reward of 0. `data` are the configs of the policies'
        datasets.
        """
        steps = [
            [env.reset(derive_seed(c.seed, "evaluation", step, e)) for e, env in enumerate(row)]
            for c, row in zip(self.configs, self._envs, strict=True)
        ]
        upright = [float(np.mean([_is_upright(env) for env in row])) for row in self._envs]
        returns = np.zeros((len(steps), len(steps[0])))
        while not all(step.last for row in steps for step in row):
            obs = np.array([[step.obs for step in row] for row in steps])
            actions = policy(torch.from_numpy(obs)).numpy()
            for m, e in np.ndindex(returns.shape):
                if not steps[m][e].last:
                    try:
                        steps[m][e] = self._envs[m][e].step(actions[m, e])
                    except PhysicsError:
                        steps[m][e] = steps[m][e]._replace(reward=0.0, last=True)
                    returns[m, e] += steps[m][e].reward
        evaluated = zip(self.configs, data or [None] * len(steps), returns, upright, strict=True)
        return [
            results.row(config, collected, step, member, self.revision, upright=share, **changes)
            for config, collected, member, share in evaluated
        ]


@functools.cache
def _environment(task: str, member: int, episode: int) -> Environment:
    """Return an environment, shared by all evaluators, which seed and reset it."""
    return Environment(task, 0)


def _is_upright(env: Environment) -> float:
    """Return 1 if the torso is within 60 degrees of upright, 0 if not, NaN without a torso.

    From there a Quadruped lands on its feet, and gets a return of about 500 without moving;
    otherwise about 5.
    """
    torso_upright = getattr(env.physics, "torso_upright", lambda: np.nan)()
    return np.nan if np.isnan(torso_upright) else float(torso_upright > 0.5)


def check_tasks(configs: Sequence[OfflineConfig | PretrainConfig]) -> None:
    """Raise ValueError for an unknown domain, or a task that is not one of the domain's."""
    for config in configs:
        tasks = domain_tasks(config.domain)
        if config.task and config.task not in tasks:
            raise ValueError(f"task must be one of {', '.join(tasks)}, got {config.task!r}")


def evaluate_baselines(
    configs: OfflineConfig | Sequence[OfflineConfig], *, runs_dir: str | Path = "runs"
) -> pd.DataFrame:
    """Evaluate zero actions and uniform actions, from the starts of policies' last evaluation.

    Raise ValueError for tasks of other domains, and for configs that cannot be members of one run.
    """
    configs = [replace(config, dataset="none") for config in runs.members(configs)]
    check_tasks(configs)
    evaluator, streams = Evaluator(configs), Streams([c.seed for c in configs], "random policy")
    size = evaluator.action_dim
    policies: tuple[Policy, Policy] = (
        lambda obs: torch.zeros(*obs.shape[:-1], size),
        lambda obs: streams.uniform(obs.shape[1], size),
    )
    table = []
    for algorithm, policy in zip(results.BASELINES, policies, strict=True):
        rows = evaluator(policy, configs[0].num_steps, algorithm=algorithm)
        for config, row in zip(configs, rows, strict=True):
            folder = paths.make_folder(config.folder(runs_dir, algorithm))
            paths.write_text(folder / "results.csv", pd.DataFrame([row]).to_csv(index=False))
        table += rows
    return pd.DataFrame(table)


def rollout(config: OfflineConfig, *, runs_dir: str | Path = "runs") -> np.ndarray:
    """Return the physics states (steps + 1, nq + nv + na) of one episode of mean actions.

    `config` is that of a policy in a checkpoint below `runs_dir`; raise ValueError if it is in
    none. A physics error ends the episode.
    """
    folder = config.folder(runs_dir)
    checkpoints = map(runs.checkpoint_in, sorted(folder.parent.glob("*")))
    state = next((one for one in checkpoints if one and folder.name in one["members"]), None)
    if state is None:
        raise ValueError(f"{folder.parent} must hold a checkpoint with {folder.name}, got none")
    env, members = Environment(config.task, derive_seed(config.seed, "rollout")), state["members"]
    learner = LEARNERS[config.algorithm](env.obs_dim, env.action_dim, [config] * len(members))
    learner.load_state_dict(state["learner"])
    step = env.reset()
    states = [step.physics]
    with suppress(PhysicsError):
        while not step.last:
            obs = torch.from_numpy(step.obs).expand(len(members), 1, -1)
            actions = learner.act(obs)[:, 0].numpy()
            step = env.step(actions[members.index(folder.name)])
            states.append(step.physics)
    return np.array(states)
