"""One lockstep collection: environments, agent, replay and the episodes on their way to disk."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from belib import datasets, paths
from belib.agents.apt import APT
from belib.config import PretrainConfig
from belib.envs import Environment, TaskRewards, TimeStep, primal_task
from belib.replay import Replay
from belib.streams import Streams, derive_seed


class Recorder:
    """The rows of a member's episode in progress."""

    def __init__(self, tasks: Sequence[str]):
        self.tasks = tasks
        self.rows: list[tuple[np.ndarray, ...]] = []

    def add(self, action: np.ndarray, found: TimeStep, rewards: np.ndarray) -> None:
        """Append what an action led to; at a reset, action and rewards are zeros."""
        reward, discount = np.array([found.reward]), np.array([found.discount])
        self.rows.append((found.obs, action, reward, discount, found.physics, rewards))

    def arrays(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """The episode file's arrays, and the rewards of each task."""
        *columns, rewards = (np.array(column) for column in zip(*self.rows, strict=True))
        pairs = zip(datasets.DTYPES.items(), columns, strict=True)
        episode = {key: column.astype(dtype) for (key, dtype), column in pairs}
        return episode, dict(zip(self.tasks, rewards.T, strict=True))

    def state(self) -> list[torch.Tensor]:
        """The columns so far, as tensors."""
        return [torch.from_numpy(np.array(column)) for column in zip(*self.rows, strict=True)]

    def restore(self, state: Sequence[torch.Tensor]) -> None:
        """Continue from `state()`."""
        self.rows = list(zip(*(list(column.numpy()) for column in state), strict=True))


class Collection:
    """M members that step, learn and record together; `advance` is one environment step.

    Args:
        configs: one a member, equal in all but `PretrainConfig.MEMBER_FIELDS`.
        folders: the members' dataset folders.
    """

    def __init__(self, configs: Sequence[PretrainConfig], folders: Sequence[Path]):
        self.config, self.folders = configs[0], folders
        seeds, task = [config.seed for config in configs], primal_task(self.config.domain)
        self.envs = [Environment(task, derive_seed(seed, "environment")) for seed in seeds]
        sizes = (self.envs[0].obs_dim, self.envs[0].action_dim)
        self.agent = None if self.config.objective == "random" else APT(*sizes, configs)
        self.exploration = Streams(seeds, "exploration")
        self.draws = Streams(seeds, "replay")
        config = self.config
        capacity = min(config.replay_capacity, 2 * config.num_steps + 2)  # with rows of resets
        self.replay = Replay(
            len(configs), capacity, *sizes, n_step=config.n_step, discount=config.discount
        )
        self.task_rewards = TaskRewards(config.domain)
        self.recorders: list[Recorder] = [None] * len(configs)
        self.step = 0
        self.episodes = [0] * len(configs)
        self.history: list[list[dict[str, float]]] = [[] for _ in configs]
        self._sums: dict[str, torch.Tensor] = {}
        self._updates = torch.zeros(len(configs))
        self.obs = [self._reset(member) for member in range(len(configs))]

    def advance(self) -> None:
        """Act, update every `update_every` steps once `random_steps` are over, step, record."""
        config, actions = self.config, self._actions()
        learning = self.step >= config.random_steps and self.step % config.update_every == 0
        if self.agent and learning and self.replay.count.all():
            self._count(self.agent.update(self.replay.sample(config.batch_size, self.draws)))
        self.step += 1
        for member, env in enumerate(self.envs):
            found = env.step(actions[member])
            self._record(member, actions[member], found, self.task_rewards(env.physics))
            if found.last:
                self._write_episode(member)
            self.obs[member] = self._reset(member) if found.last else found.obs

    def _actions(self) -> np.ndarray:
        """(M, action_dim): uniform at first, then the agent's with noise."""
        if self.agent is None or self.step < self.config.random_steps:
            return self.exploration.uniform(self.envs[0].action_dim).numpy()
        obs = torch.from_numpy(np.array(self.obs))[:, None]
        return self.agent.act(obs, explore=True)[:, 0].numpy()

    def _reset(self, member: int) -> np.ndarray:
        """Start a member's episode; its first observation."""
        found = self.envs[member].reset()
        self.recorders[member] = Recorder(self.task_rewards.tasks)
        no_action = np.zeros(self.envs[member].action_dim, np.float32)
        self._record(member, no_action, found, np.zeros(len(self.task_rewards.tasks)), first=True)
        return found.obs

    def _record(
        self,
        member: int,
        action: np.ndarray,
        found: TimeStep,
        rewards: np.ndarray,
        *,
        first: bool = False,
    ) -> None:
        self.recorders[member].add(action, found, rewards)
        row = (found.obs, action, np.array([found.reward]), np.array([found.discount]))
        self.replay.add(member, *row, first=first)

    def _count(self, metrics: dict[str, torch.Tensor]) -> None:
        """Sum an update's metrics without waiting for their values."""
        self._updates += 1
        for key, value in metrics.items():
            self._sums[key] = self._sums.get(key, 0) + value

    def _write_episode(self, member: int) -> None:
        """Put the finished episode on disk, and its returns and mean metrics in the history."""
        episode, rewards = self.recorders[member].arrays()
        datasets.write_episode(self.folders[member], self.episodes[member], episode, rewards)
        self.episodes[member] += 1
        row: dict[str, float] = {"step": self.step, "episode": self.episodes[member] - 1}
        row |= {f"return_{task}": float(values.sum()) for task, values in rewards.items()}
        if self._updates[member] > 0:
            means = {
                key: total[member] / self._updates[member] for key, total in self._sums.items()
            }
            row |= {key: float(value) for key, value in means.items()}
            for total in (*self._sums.values(), self._updates):
                total[member] = 0
        self.history[member].append(row)

    def write_tables(self) -> None:
        """Write each member's `metrics.csv`: a row an episode."""
        for folder, rows in zip(self.folders, self.history, strict=True):
            paths.write_text(folder / "metrics.csv", pd.DataFrame(rows).to_csv(index=False))

    def state(self) -> dict[str, Any]:
        """Everything but the finished episodes, which `restore` reads back from disk."""
        return {
            "step": self.step,
            "agent": self.agent.state() if self.agent else {},
            "exploration": self.exploration.state(),
            "draws": self.draws.state(),
            "envs": [env.state() for env in self.envs],
            "recorders": [recorder.state() for recorder in self.recorders],
            "episodes": self.episodes,
            "history": self.history,
            "sums": self._sums,
            "updates": self._updates,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()`: the next steps are the same to the bit."""
        self.step, self.episodes = state["step"], state["episodes"]
        self.history, self._sums, self._updates = state["history"], state["sums"], state["updates"]
        if self.agent:
            self.agent.restore(state["agent"])
        self.exploration.restore(state["exploration"])
        self.draws.restore(state["draws"])
        for member, env in enumerate(self.envs):
            env.restore(state["envs"][member])
            self.recorders[member].restore(state["recorders"][member])
            self.obs[member] = self.recorders[member].rows[-1][0]
            self._restore_replay(member)

    def _restore_replay(self, member: int) -> None:
        """Fill the replay memory from the episodes on disk and the one in progress."""
        self.replay.clear(member)
        files = datasets.load(self.folders[member]).files if self.episodes[member] else ()
        for file in files[: self.episodes[member]]:
            self.replay.add_episode(member, datasets.read_episode(file))
        self.replay.add_episode(member, self.recorders[member].arrays()[0])

    def postfix(self) -> dict[str, float]:
        """The latest episode's intrinsic reward and return, averaged over members."""
        latest = [rows[-1] for rows in self.history if rows]
        keys = ("intrinsic_reward", f"return_{primal_task(self.config.domain)}")
        known = {key: [row[key] for row in latest if key in row] for key in keys}
        return {key: round(float(np.mean(found)), 3) for key, found in known.items() if found}
