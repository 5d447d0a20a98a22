"""One lockstep offline run: a dataset in memory, M learners, their evaluations."""

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
"""Critic values this many times above what the rewards allow are a divergence."""

_LOOK_EVERY = 100
"""Updates between looks for divergence: each waits for all that a GPU has been given to do."""

_LEAST_REWARD = 0.01
"""Floor of max abs(reward) in the divergence bound: a fresh critic outputs about 1 even where a
sparse task's rewards are all 0."""


class Learning:
    """M learners (tasks x seeds) of one algorithm on one dataset; `advance` is one update of each.

    Args:
        configs: one a member, equal in all but `OfflineConfig.MEMBER_FIELDS`.
        folders: the members' folders.
        dataset: whose transitions all members share, each with its own task's rewards.
    """

    def __init__(self, configs: Sequence[OfflineConfig], folders: Sequence[Path], dataset: Dataset):
        self.config, self.configs, self.folders = configs[0], configs, folders
        self.collected, self.data = dataset.config(), identity(dataset)
        seeds, tasks = [c.seed for c in configs], [c.task for c in configs]
        self.evaluator = Evaluator(tasks, seeds, self.config.eval_episodes)
        sizes = (self.evaluator.obs_dim, self.evaluator.action_dim)
        check_sizes(self.config, dataset, sizes)
        held = oldest(dataset, self.config.replay_capacity)
        replay, self.bound = load_replay(configs, held, sizes)
        self.learner = LEARNERS[self.config.algorithm](*sizes, configs)
        draws = Streams(seeds, "replay")
        self.engine = Engine(self.learner, replay, self.config.batch_size, draws)
        self.step = 0
        self.returns: list[list[dict[str, Any]]] = [[] for _ in configs]
        """Of each member, a row an evaluation: `results.row` and the update's metrics."""
        self.diverged: list[int | None] = [None] * len(configs)
        """The update at which a member was stopped."""
        self.revision = paths.git_revision()

    @property
    def name(self) -> str:
        """The learner, its dataset and the number of members."""
        return f"{self.config.variant} on {self.config.dataset}, {len(self.configs)} members"

    def advance(self) -> None:
        """One update of every member; an evaluation every `eval_every` updates and at the end."""
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
        """Clear members whose numbers are not finite or whose values exceed all reason.

        The others go on: members meet in no product, so that NaN does not pass from one to another.
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
        """Write each member's `results.csv` and `metrics.csv`: a row an evaluation.

        What says that a member is finished comes last: its `results.csv`, and the first one's,
        which has the checkpoint, after all others'.
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
        """Return everything but the dataset."""
        plain = {name: getattr(self, name) for name in ("step", "data", "returns", "diverged")}
        return {**plain, "learner": self.learner.state_dict(), "engine": self.engine.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()`, on the same dataset; updates are the same to the bit."""
        self.step, self.returns, self.diverged = state["step"], state["returns"], state["diverged"]
        self.learner.load_state_dict(state["learner"])
        self.engine.restore(state["engine"])


def identity(dataset: Dataset) -> dict[str, Any]:
    """Return a dataset's name, size, and its card's hash of all arrays, if it has a card."""
    card = datasets.read_card(dataset.folder) or {}
    return {"name": dataset.name, "steps": dataset.steps, "sha256": card.get("sha256")}


def check_data(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise DatasetError where the identities of the data before and now differ."""
    if before != now:
        raise DatasetError(
            f"{now['name']} has changed since policies were learnt from it (it had "
            f"{before['steps']} steps and has {now['steps']}): choose another runs_dir"
        )


def check_sizes(config: OfflineConfig, dataset: Dataset, sizes: tuple[int, int]) -> None:
    """Raise DatasetError where a dataset's arrays are not those of the task's environment."""
    first = next(dataset.episodes())
    for key, size in zip(("observation", "action"), sizes, strict=True):
        if first[key].shape[1] != size:
            raise DatasetError(
                f"{dataset.files[0]}: {key!r} must have {size} columns for {config.task}, "
                f"got {first[key].shape[1]}"
            )


def oldest(dataset: Dataset, transitions: int) -> Dataset:
    """Return the first episodes that hold so many transitions, as ExORL's loader does; or all."""
    number = np.searchsorted(np.cumsum(dataset.lengths), transitions) + 1
    return replace(dataset, files=dataset.files[:number])


def load_replay(
    configs: Sequence[OfflineConfig], dataset: Dataset, sizes: tuple[int, int]
) -> tuple[Replay, float]:
    """Return the dataset's transitions in memory once, for all members, a reward column a task.

    `sizes` are obs_dim and action_dim.

    Returns also the largest discounted sum that its rewards allow. Raises DatasetError for episodes
    and rewards that `datasets.validate` finds faults in, and where a batch exceeds the dataset.
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
        members=[(0, tasks.index(each.task)) for each in configs],
    )
    for episode, rewards in zip(dataset.episodes(), labels, strict=True):
        replay.add_episode(0, {**episode, "reward": rewards})
    largest = max(np.abs(rewards).max() for rewards in labels)
    horizon = 1 / (1 - config.discount) if config.discount < 1 else math.inf
    return replay, max(float(largest), _LEAST_REWARD) * horizon
