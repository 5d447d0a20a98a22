"""An episode of a policy that was learnt, for looking at it."""

from pathlib import Path

import numpy as np
import torch

from belib.config import OfflineConfig
from belib.envs import Environment, PhysicsError
from belib.offline import LEARNERS
from belib.streams import derive_seed
from belib.training.evaluation import kept_policy
from belib.training.learning import offline_folder


def rollout(config: OfflineConfig, *, runs_dir: str | Path = "runs") -> np.ndarray:
    """The physics states (steps + 1, nq + nv + na) of one episode of a policy's mean action.

    It ends where the simulation breaks down, as an evaluation does.

    Args:
        config: of a member that `train_offline` has trained.
        runs_dir: where it was trained.

    Raises ValueError where no checkpoint has this member.
    """
    folder = offline_folder(runs_dir, config, config.dataset, config.variant)
    env = Environment(config.task, derive_seed(config.seed, "rollout"))
    learner, sizes = LEARNERS[config.algorithm], (env.obs_dim, env.action_dim)
    policy, _ = kept_policy(folder, learner, OfflineConfig, "learner", sizes)
    found = env.reset()
    states = [found.physics]
    while not found.last:
        action = policy(torch.from_numpy(found.obs)[None, None])[0, 0]
        try:
            found = env.step(action.numpy())
        except PhysicsError:
            break
        states.append(found.physics)
    return np.array(states)
