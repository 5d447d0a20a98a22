"""Lockstep offline learning: a dataset in memory, M learners, their evaluations."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from belib import datasets, paths, results, runs
from belib.actor_critic import Metrics
from belib.config import OfflineConfig
from belib.datasets import Dataset, DatasetError
from belib.engine import Engine
from belib.offline import LEARNERS
from belib.replay import Replay
from belib.training.evaluation import Evaluator

DATA = "data.json"  # name, steps and SHA-256 of the dataset that a policy was learnt from
_DIVERGED = 100  # a critic has diverged if it predicts so many times the largest possible return
_LOOK_EVERY = 100  # updates between checks for divergence, for which a GPU must finish its work
# Floor of abs(reward) in the bound: an untrained critic outputs about 1 even if all rewards are 0.
_LEAST_REWARD = 0.01


class Learning(runs.Work):
    """M learners (tasks x seeds) of one algorithm on one dataset; `advance` updates each once.

    `configs` are equal in all but `OfflineConfig.MEMBER_FIELDS`. Members share the transitions;
    rewards are those of each member's task. Raise DatasetError for arrays that do not fit the tasks
    or that `datasets.validate` rejects.
    """

    SAVED = ("step", "learner", "engine", "data", "returns", "diverged")

    def __init__(self, configs: Sequence[OfflineConfig], folders: Sequence[Path], dataset: Dataset):
        self.config, self.configs, self.folders = configs[0], configs, folders
        self.name = f"{self.config.variant} on {dataset.name}, {len(configs)} members"
        collected, card = dataset.config(), datasets.read_card(dataset.folder) or {}
        if collected is not None and card.get("steps") != dataset.steps:
            raise DatasetError(
                f"{dataset.folder} has no card of all its {dataset.steps} steps: finish its "
                f"collection, or write one: python -m belib.datasets card {dataset.folder}"
            )
        self.collected = [collected] * len(configs)
        self.data = {"name": dataset.name, "steps": dataset.steps, "sha256": card.get("sha256")}
        self.evaluator = Evaluator(configs)
        sizes = (self.evaluator.obs_dim, self.evaluator.action_dim)
        replay, self.bound = load_replay(configs, dataset, sizes)
        self.learner = LEARNERS[self.config.algorithm](*sizes, configs)
        self.engine = Engine(self.learner, replay)
        self.step = 0
        # for every member, one row per evaluation: `results.row` and the update's metrics
        self.returns: list[list[dict[str, Any]]] = [[] for _ in configs]
        self.diverged: list[int | None] = [None] * len(configs)  # the update at which it was seen

    def advance(self) -> None:
        """Update every member once; evaluate every `eval_every` updates and at the end."""
        if self.step == 0 and self.config.eval_first:
            self._evaluate({})
        self.engine.step()
        self.step += 1
        evaluated = self.step % self.config.eval_every == 0 or self.step == self.config.num_steps
        if evaluated or self.step % _LOOK_EVERY == 0:
            metrics = self.engine.latest()
            self._stop_the_diverged(metrics)
            if evaluated:
                self._evaluate(metrics)

    def _stop_the_diverged(self, metrics: Metrics) -> None:
        """Set the weights of members to 0 whose critic diverged or whose metrics are not finite."""
        finite = torch.stack(list(metrics.values())).isfinite().all(0)  # (M,)
        values = metrics.get("value", torch.zeros_like(finite, dtype=torch.float32)).abs()
        for member in (~finite | (values > _DIVERGED * self.bound)).nonzero()[:, 0].tolist():
            self.learner.clear(member)
            if self.diverged[member] is None:
                self.diverged[member], c = self.step, self.configs[member]
                shown = ", ".join(f"{key} {value[member]:.3g}" for key, value in metrics.items())
                print(
                    f"{c.variant} on {c.dataset}, {c.task}, seed {c.seed}: diverged by update "
                    f"{self.step} ({shown}; returns are at most {self.bound[member]:.3g})"
                )

    def _evaluate(self, metrics: Metrics) -> None:
        learner = self.learner
        rows = self.evaluator(learner.act, self.step, self.collected, precision=learner.precision)
        for member, row in enumerate(rows):
            numbers = {key: float(value[member]) for key, value in metrics.items()}
            if self.diverged[member] is not None:
                row |= {"status": "diverged", "return": math.nan}
                numbers = dict.fromkeys(numbers, math.nan)
            self.returns[member].append(row | numbers)

    def write_tables(self) -> None:
        """Write each member's `metrics.csv` and `results.csv`, one row per evaluation.

        `results.csv` with the last step marks a finished member, with the contents of its dataset
        in `data.json`. The first member is written last.
        """
        for folder, rows in reversed(list(zip(self.folders, self.returns, strict=True))):
            table = pd.DataFrame(rows, columns=None if rows else results.COLUMNS)
            metrics = table.drop(columns=[c for c in results.COLUMNS if c != "step"])
            paths.write_text(folder / DATA, json.dumps(self.data) + "\n")
            paths.write_text(folder / "metrics.csv", metrics.to_csv(index=False))
            paths.write_text(folder / "results.csv", table[[*results.COLUMNS]].to_csv(index=False))

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()`; DatasetError if the dataset has changed since."""
        if (had := state["data"]) != self.data:
            raise DatasetError(
                f"{self.data['name']} has other contents than when this run began ({had['steps']} "
                f"steps then, {self.data['steps']} now): restore them, or choose another runs_dir"
            )
        super().restore(state)


def load_replay(
    configs: Sequence[OfflineConfig], dataset: Dataset, sizes: tuple[int, int]
) -> tuple[Replay, torch.Tensor]:
    """Return a memory shared by all members, and their largest possible discounted returns (M,).

    The memory holds the first episodes that together have `replay_capacity` transitions or more, as
    in ExORL, and one reward column per task. `sizes` are obs_dim and action_dim.
    """
    config, tasks = configs[0], sorted({config.task for config in configs})
    number = np.searchsorted(np.cumsum(dataset.lengths), config.replay_capacity) + 1
    dataset = replace(dataset, files=dataset.files[:number])
    labels = datasets.task_rewards(dataset, tasks)
    columns = [(0, tasks.index(member.task)) for member in configs]
    options = {"discount": config.discount, "rewards": len(tasks), "members": columns}
    replay = Replay(1, dataset.steps + len(dataset.files), *sizes, n_step=1, **options)
    episodes = dataset.episodes(observation=sizes[0], action=sizes[1])
    for episode, rewards in zip(episodes, labels, strict=True):
        obs, action, discount = (episode[key] for key in ("observation", "action", "discount"))
        replay.add(0, obs, action, rewards, discount, first=True)
    largest = np.max([np.abs(rewards).max(0) for rewards in labels], 0)  # (tasks,)
    largest = torch.from_numpy(largest)[[column for _, column in columns]]
    horizon = 1 / (1 - config.discount) if config.discount < 1 else math.inf
    return replay, largest.clamp(min=_LEAST_REWARD) * horizon
