"""Lockstep offline learning: a dataset in memory, M learners, their evaluations."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from belib import datasets, paths, results
from belib.actor_critic import Metrics
from belib.config import OfflineConfig
from belib.datasets import Dataset, DatasetError
from belib.engine import Engine
from belib.offline import LEARNERS
from belib.replay import Replay
from belib.streams import Streams
from belib.training.evaluation import Evaluator

_DIVERGED = 100
"""A critic diverges if its values exceed the largest possible return by this factor."""

_LOOK_EVERY = 100
"""Updates between checks for divergence, which wait for a GPU to finish its work."""

_LEAST_REWARD = 0.01
"""Floor of max abs(reward) in the divergence bound: an untrained critic outputs about 1 even if all
rewards of a sparse task are 0."""


class Learning:
    """M learners (tasks x seeds) of one algorithm on one dataset; `advance` updates each once.

    Args:
        configs: one a member, equal in all but `OfflineConfig.MEMBER_FIELDS`.
        folders: the members' folders.
        dataset: its transitions are shared; rewards are those of each member's task.
    """

    def __init__(self, configs: Sequence[OfflineConfig], folders: Sequence[Path], dataset: Dataset):
        self.config, self.configs, self.folders = configs[0], configs, folders
        self.collected, self.data = dataset.config(), identity(dataset)
        seeds, tasks = [c.seed for c in configs], [c.task for c in configs]
        self.evaluator = Evaluator(tasks, seeds, self.config.eval_episodes)
        sizes = (self.evaluator.obs_dim, self.evaluator.action_dim)
        check_sizes(self.config, dataset, sizes)
        subset = oldest(dataset, self.config.replay_capacity)
        replay, self.bound = load_replay(configs, subset, sizes)
        self.learner = LEARNERS[self.config.algorithm](*sizes, configs)
        draws = Streams(seeds, "replay")
        self.engine = Engine(self.learner, replay, self.config.batch_size, draws)
        self.step = 0
        self.returns: list[list[dict[str, Any]]] = [[] for _ in configs]
        """For every member, one row per evaluation: `results.row` and the update's metrics."""
        self.diverged: list[int | None] = [None] * len(configs)
        """The update at which a member was stopped, or None."""
        self.revision = paths.git_revision()

    @property
    def name(self) -> str:
        """The learner, the dataset and the number of members."""
        return f"{self.config.variant} on {self.config.dataset}, {len(self.configs)} members"

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
        """Clear members with metrics that are not finite or values beyond the bound.

        The others continue: no operation mixes members, so NaN does not spread between them.
        """
        numbers = torch.stack(list(metrics.values()))  # (metrics, M)
        values = metrics.get("value", numbers[0]).abs()
        limit = _DIVERGED * self.bound if "value" in metrics else math.inf
        for member in torch.nonzero(~numbers.isfinite().all(0) | (values > limit))[:, 0].tolist():
            self.learner.clear(member)
            if self.diverged[member] is None:
                self.diverged[member] = self.step
                config = self.configs[member]
                print(
                    f"{config.variant} on {config.dataset}, {config.task}, seed {config.seed}: "
                    f"diverged by update {self.step} (value {values[member]:.3g}, at most "
                    f"{self.bound:.3g} can be earned) and is stopped; its later rows say so"
                )

    def _evaluate(self, metrics: Metrics) -> None:
        def policy(obs: torch.Tensor) -> torch.Tensor:
            return self.learner.act(obs, explore=False)

        returns = self.evaluator(policy, self.step)
        for member, config in enumerate(self.configs):
            changes: dict[str, Any] = {"upright": float(self.evaluator.upright[member])}
            changes["precision"] = self.learner.precision
            numbers = {key: float(value[member]) for key, value in metrics.items()}
            if self.diverged[member] is not None:
                changes |= {"status": "diverged", "return": math.nan}
                numbers = dict.fromkeys(numbers, math.nan)
            facts = (self.collected, self.step, returns[member], self.revision)
            self.returns[member].append(results.row(config, *facts, **changes) | numbers)

    def write_tables(self) -> None:
        """Write each member's `results.csv` and `metrics.csv`, one row per evaluation.

        `results.csv` marks a member as finished, so it is written after `metrics.csv`, and that of
        the first member, which has the checkpoint, last of all.
        """
        for folder, rows in reversed(list(zip(self.folders, self.returns, strict=True))):
            table = pd.DataFrame(rows, columns=results.COLUMNS if not rows else None)
            metrics = table.drop(columns=[c for c in results.COLUMNS if c != "step"])
            paths.write_text(folder / "metrics.csv", metrics.to_csv(index=False))
            results.write(folder / "results.csv", table[list(results.COLUMNS)])

    def postfix(self) -> dict[str, float]:
        """Return the latest return, averaged over members."""
        latest = [rows[-1]["return"] for rows in self.returns if rows]
        latest = [value for value in latest if math.isfinite(value)]
        return {"return": round(float(np.mean(latest)), 1)} if latest else {}

    def state(self) -> dict[str, Any]:
        """Return the state without the dataset."""
        plain = {name: getattr(self, name) for name in ("step", "data", "returns", "diverged")}
        return {**plain, "learner": self.learner.state_dict(), "engine": self.engine.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()` on the same dataset; updates are identical to the bit."""
        self.step, self.returns, self.diverged = state["step"], state["returns"], state["diverged"]
        self.learner.load_state_dict(state["learner"])
        self.engine.restore(state["engine"])


def identity(dataset: Dataset) -> dict[str, Any]:
    """Return a dataset's name, size, and the hash of all arrays from its card, if any."""
    card = datasets.read_card(dataset.folder) or {}
    return {"name": dataset.name, "steps": dataset.steps, "sha256": card.get("sha256")}


def check_data(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise DatasetError if the identity of the data has changed."""
    if before != now:
        raise DatasetError(
            f"{now['name']} has changed since policies were learnt from it (it had "
            f"{before['steps']} steps and has {now['steps']}): choose another runs_dir"
        )


def check_sizes(config: OfflineConfig, dataset: Dataset, sizes: tuple[int, int]) -> None:
    """Raise DatasetError if a dataset's arrays do not fit the task's environment."""
    first = next(dataset.episodes())
    for key, size in zip(("observation", "action"), sizes, strict=True):
        if first[key].shape[1] != size:
            raise DatasetError(
                f"{dataset.files[0]}: {key!r} must have {size} columns for {config.task}, "
                f"got {first[key].shape[1]}"
            )


def oldest(dataset: Dataset, transitions: int) -> Dataset:
    """Return the first episodes, with at least so many transitions, as in ExORL; or all."""
    number = np.searchsorted(np.cumsum(dataset.lengths), transitions) + 1
    return replace(dataset, files=dataset.files[:number])


def load_replay(
    configs: Sequence[OfflineConfig], dataset: Dataset, sizes: tuple[int, int]
) -> tuple[Replay, float]:
    """Return a memory of the dataset's transitions, shared by all members, and a bound of returns.

    The memory has one reward column per task. The bound is the largest discounted return that the
    rewards allow. `sizes` are obs_dim and action_dim. Raise DatasetError for episodes and rewards
    that `datasets.validate` rejects, and if a batch exceeds the dataset.
    """
    config, tasks = configs[0], sorted({config.task for config in configs})
    if dataset.steps < config.batch_size:
        raise DatasetError(
            f"{dataset.folder} must hold at least batch_size = {config.batch_size} transitions, "
            f"got {dataset.steps}"
        )
    labels = datasets.task_rewards(dataset, tasks)
    replay = Replay(
        1,
        dataset.steps + len(dataset.files),
        *sizes,
        n_step=1,
        discount=config.discount,
        rewards=len(tasks),
        members=[(0, tasks.index(member.task)) for member in configs],
    )
    for episode, rewards in zip(dataset.episodes(), labels, strict=True):
        obs, action, discount = (episode[key] for key in ("observation", "action", "discount"))
        replay.add(0, obs, action, rewards, discount, first=True)
    largest = max(np.abs(rewards).max() for rewards in labels)
    horizon = 1 / (1 - config.discount) if config.discount < 1 else math.inf
    return replay, max(float(largest), _LEAST_REWARD) * horizon
