"""The evaluation of a policy that learnt a task online: what offline learning is held against."""

from pathlib import Path
from typing import Any

import pandas as pd

from belib import paths, results
from belib.agents.ddpg import DDPG
from belib.config import OfflineConfig, PretrainConfig
from belib.training.evaluation import Evaluator, kept_policy

EPISODES = 10
"""Of an evaluation, as offline (table 3; ExORL)."""


def evaluate_online(config: PretrainConfig, folder: Path) -> pd.DataFrame:
    """Evaluate the mean action of the agent in a run's checkpoint; one row, kept beside the data.

    Args:
        config: of the objective `task`.
        folder: its dataset's.
    """
    evaluator = Evaluator([config.task], [config.seed], EPISODES)
    sizes = (evaluator.obs_dim, evaluator.action_dim)
    policy, state = kept_policy(folder, DDPG, PretrainConfig, "agent", sizes)
    returns = evaluator(policy, state["step"])
    named: dict[str, Any] = {
        "domain": config.domain,
        "dataset": config.dataset,
        "task": config.task,
    }
    as_learner = OfflineConfig(**named, seed=config.seed, scale=config.scale)
    found = {"algorithm": "ddpg", "upright": float(evaluator.upright[0])}
    found["precision"] = state["agent"]["_extra_state"]["precision"]
    revision = paths.git_revision()
    row = results.row(as_learner, config, state["step"], returns[0], revision, **found)
    table = pd.DataFrame([row])
    results.write(folder / results.ONLINE, table)
    return table
