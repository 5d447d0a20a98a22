"""One lockstep offline run: a dataset in memory, M learners, their evaluations."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from belib import datasets, paths, results
from belib.config import OfflineConfig
from belib.datasets import Dataset
from belib.offline import LEARNERS
from belib.replay import Replay
from belib.streams import Streams
from belib.training.evaluation import Evaluator


class Learning:
    """M learners (tasks x seeds) of one algorithm on one dataset; `advance` is one update of each.

    Args:
        configs: one a member, equal in all but `OfflineConfig.MEMBER_FIELDS`.
        folders: the members' folders.
        dataset: whose transitions all members share, each with its own task's rewards.
    """

    def __init__(self, configs: Sequence[OfflineConfig], folders: Sequence[Path], dataset: Dataset):
        self.config, self.configs, self.folders = configs[0], configs, folders
        self.collected = dataset.config()
        self.replay = load_replay(configs, dataset)
        seeds = [config.seed for config in configs]
        tasks = [config.task for config in configs]
        self.evaluator = Evaluator(tasks, seeds, self.config.eval_episodes)
        sizes = (self.evaluator.obs_dim, self.evaluator.action_dim)
        self.learner = LEARNERS[self.config.algorithm](*sizes, configs)
        self.draws = Streams(seeds, "replay")
        self.step = 0
        self.metrics: dict[str, torch.Tensor] = {}
        self.returns: list[list[dict[str, Any]]] = [[] for _ in configs]
        self.revision = paths.git_revision()

    def advance(self) -> None:
        """One update of every member; an evaluation every `eval_every` updates and at the end."""
        batch = self.replay.sample(self.config.batch_size, self.draws)
        self.metrics = self.learner.update(batch)
        self.step += 1
        if self.step % self.config.eval_every == 0 or self.step == self.config.num_steps:
            self._evaluate()

    def _evaluate(self) -> None:
        policy = lambda obs: self.learner.act(obs, explore=False)  # noqa: E731
        returns = self.evaluator(policy, self.step)
        for member, config in enumerate(self.configs):
            row = results.row(config, self.collected, self.step, returns[member], self.revision)
            row |= {key: float(value[member]) for key, value in self.metrics.items()}
            self.returns[member].append(row)

    def write_tables(self) -> None:
        """Write each member's `results.csv` and `metrics.csv`: a row an evaluation."""
        for folder, rows in zip(self.folders, self.returns, strict=True):
            table = pd.DataFrame(rows, columns=results.COLUMNS if not rows else None)
            metrics = table.drop(columns=[c for c in results.COLUMNS if c != "step"])
            results.write(folder / "results.csv", table[list(results.COLUMNS)])
            paths.write_text(folder / "metrics.csv", metrics.to_csv(index=False))

    def postfix(self) -> dict[str, float]:
        """The latest return, averaged over members."""
        latest = [rows[-1]["return"] for rows in self.returns if rows]
        return {"return": round(float(np.mean(latest)), 1)} if latest else {}

    def state(self) -> dict[str, Any]:
        """Everything but the dataset."""
        return {
            "step": self.step,
            "learner": self.learner.state(),
            "draws": self.draws.state(),
            "metrics": self.metrics,
            "returns": self.returns,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()`: the next updates are the same to the bit."""
        self.step, self.metrics, self.returns = state["step"], state["metrics"], state["returns"]
        self.learner.restore(state["learner"])
        self.draws.restore(state["draws"])


def load_replay(configs: Sequence[OfflineConfig], dataset: Dataset) -> Replay:
    """The dataset's transitions in memory once, with a reward column a task, for all members."""
    tasks = sorted({config.task for config in configs})
    labels = datasets.task_rewards(dataset, tasks)
    episodes = dataset.episodes()
    first = next(episodes)
    replay = Replay(
        1,
        dataset.steps + len(dataset.files),
        first["observation"].shape[1],
        first["action"].shape[1],
        n_step=1,
        discount=configs[0].discount,
        rewards=len(tasks),
        members=[(0, tasks.index(config.task)) for config in configs],
    )
    for episode, rewards in zip(dataset.episodes(), labels, strict=True):
        replay.add_episode(0, {**episode, "reward": rewards})
    return replay
