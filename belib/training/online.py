"""The evaluation of a policy that learnt a task online: what offline learning is held against."""

from pathlib import Path

import pandas as pd
import torch

from belib import paths, results, runs
from belib.agents.ddpg import DDPG
from belib.config import OfflineConfig, PretrainConfig
from belib.training.evaluation import Evaluator

EPISODES = 10
"""Of an evaluation, as offline (table 3; ExORL)."""


def evaluate_online(config: PretrainConfig, folder: Path) -> pd.DataFrame:
    """Evaluate the mean action of the agent in a run's checkpoint; one row, kept beside the data.

    Args:
        config: of the objective `task`.
        folder: its dataset's.
    """
    state = runs.checkpoint(folder)
    members = state["members"]
    files = [folder.parent / name / runs.CONFIG for name in members]
    evaluator = Evaluator([config.task], [config.seed], EPISODES)
    agent = DDPG(
        evaluator.obs_dim, evaluator.action_dim, [PretrainConfig.from_yaml(file) for file in files]
    )
    agent.restore(state["agent"])
    own = members.index(folder.name)

    def policy(obs: torch.Tensor) -> torch.Tensor:
        return agent.act(obs.expand(len(members), -1, -1), explore=False)[own : own + 1]

    returns = evaluator(policy, state["step"])
    named = {"domain": config.domain, "dataset": config.dataset, "task": config.task}
    as_learner = OfflineConfig(**named, seed=config.seed, scale=config.scale)
    found = {"algorithm": "ddpg", "upright": float(evaluator.upright[0])}
    row = results.row(as_learner, config, state["step"], returns[0], paths.git_revision(), **found)
    table = pd.DataFrame([row])
    results.write(folder / results.ONLINE, table)
    return table
