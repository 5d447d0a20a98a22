"""One lockstep collection: environments, agent, replay and the episodes on their way to disk."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from belib import datasets, paths
from belib.agents import SMM, agent_of
from belib.agents.ddpg import DDPG
from belib.config import PretrainConfig
from belib.engine import Engine
from belib.envs import Environment, PhysicsError, TaskRewards, TimeStep, primal_task
from belib.replay import Replay
from belib.streams import Streams, derive_seed


def lockstep(configs: Sequence[PretrainConfig]) -> list[list[PretrainConfig]]:
    """The groups of members that train together: those whose agents have the same networks."""
    groups: dict[type[DDPG] | None, list[PretrainConfig]] = {}
    for config in configs:
        groups.setdefault(agent_of(config.objective), []).append(config)
    return list(groups.values())


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
        config, seeds = self.config, [config.seed for config in configs]
        task, agent = primal_task(config.domain), agent_of(config.objective)
        self.envs = [Environment(task, derive_seed(seed, "environment")) for seed in seeds]
        self.skill_dim = config.skill_dim if agent is SMM else 0
        sizes = (self.envs[0].obs_dim + self.skill_dim, self.envs[0].action_dim)
        self.exploration = Streams(seeds, "exploration")
        self.skill_draws = Streams(seeds, "skill")
        capacity = min(config.replay_capacity, 2 * config.num_steps + 2)  # with rows of resets
        self.replay = Replay(
            len(configs), capacity, *sizes, n_step=config.n_step, discount=config.discount
        )
        self.agent, self.engine = None, None
        if agent:
            self.agent = agent(*sizes, configs)
            draws = Streams(seeds, "replay")
            self.engine = Engine(self.agent, self.replay, config.batch_size, draws)
        self.task_rewards = TaskRewards(config.domain)
        self.paid_tasks = [own.task or task for own in configs]
        self.recorders = [Recorder(self.task_rewards.tasks) for _ in configs]
        self.skills = [np.zeros(self.skill_dim, np.float32) for _ in configs]
        self._resets: list[tuple[np.ndarray, ...]] = [()] * len(configs)
        self.step = 0
        self.episodes = [0] * len(configs)
        self.physics_errors = [0] * len(configs)
        self.history: list[list[dict[str, float]]] = [[] for _ in configs]
        self.obs = [self._reset(member) for member in range(len(configs))]

    def advance(self) -> None:
        """Act, update every `update_every` steps once `random_steps` are over, step, record.

        On a card the update runs while the environments step: nothing waits for it before the next
        action. Environments step one after another: on a CPU, eight of them take 2 % of the time.
        """
        config, actions = self.config, self._actions()
        learning = self.step >= config.random_steps and self.step % config.update_every == 0
        if self.engine and learning and self.replay.count.all():
            self.engine.step()
        self.step += 1
        for member, action in enumerate(actions):
            self._step(member, action)

    def _step(self, member: int, action: np.ndarray) -> None:
        """One environment step. A simulation that breaks down ends its episode before that step."""
        try:
            found = self.envs[member].step(action)
        except PhysicsError as error:
            name = self.folders[member].name
            tqdm.write(f"{name}, step {self.step}: the episode ends here, {error}")
            found, broken = None, 1
        else:
            self._record(member, action, found, self.task_rewards(self.envs[member].physics))
            broken = 0
        ended = found is None or found.last
        self.physics_errors[member] += broken
        if ended and len(self.recorders[member].rows) > 1:
            self._write_episode(member)
        elif broken and self.history[member]:  # at a first step there is no episode to count it
            self.history[member][-1]["physics_errors"] += self.physics_errors[member]
            self.physics_errors[member] = 0
        self.obs[member] = (
            self._reset(member) if found is None or found.last else self._seen(member, found.obs)
        )

    def _actions(self) -> np.ndarray:
        """(M, action_dim): uniform at first, then the agent's with noise."""
        if self.agent is None or self.step < self.config.random_steps:
            return self.exploration.uniform(self.envs[0].action_dim).numpy()
        obs = torch.from_numpy(np.array(self.obs))[:, None]
        return self.agent.act(obs, explore=True)[:, 0].numpy()

    def _reset(self, member: int) -> np.ndarray:
        """Start a member's episode, with a skill for SMM; what the agent sees first."""
        found = self.envs[member].reset()
        if self.skill_dim:
            drawn = self.skill_draws.generators[member]
            skill = torch.randint(self.skill_dim, (), generator=drawn)
            self.skills[member] = np.eye(self.skill_dim, dtype=np.float32)[skill]
        self.recorders[member] = Recorder(self.task_rewards.tasks)
        no_action = np.zeros(self.envs[member].action_dim, np.float32)
        self._record(member, no_action, found, np.zeros(len(self.task_rewards.tasks)), first=True)
        return self._seen(member, found.obs)

    def _seen(self, member: int, obs: np.ndarray) -> np.ndarray:
        """Observations (obs_dim,) as the agent sees them: with its skill, if it has one."""
        return np.concatenate([obs, self.skills[member]]) if self.skill_dim else obs

    def _known_discount(self, discount: np.ndarray) -> np.ndarray:
        """The environment's discounts as the agent learns them: see `belib.agents.ddpg`."""
        return (
            np.where(discount == 0, 1, discount) if self.config.convention == "urlb" else discount
        )

    def _record(
        self,
        member: int,
        action: np.ndarray,
        found: TimeStep,
        rewards: np.ndarray,
        *,
        first: bool = False,
    ) -> None:
        """Append a row to the episode and to the replay memory, where a reset joins its step.

        By URLB's convention an episode is replayed once it is finished.
        """
        self.recorders[member].add(action, found, rewards)
        if self.config.convention == "urlb":
            return
        paid = self.task_rewards.tasks.index(self.paid_tasks[member])
        reward, discount = rewards[paid : paid + 1], np.array([found.discount])
        row = (self._seen(member, found.obs), action, reward, self._known_discount(discount))
        if first:
            self._resets[member] = row
            return
        begins = len(self.recorders[member].rows) == 2
        rows = zip(self._resets[member], row, strict=True) if begins else row
        self.replay.add(member, *map(np.array, rows), first=begins)

    def _write_episode(self, member: int) -> None:
        """Put the finished episode on disk, and its returns and mean metrics in the history."""
        episode, rewards = self._present_episode(member)
        datasets.write_episode(self.folders[member], self.episodes[member], episode, rewards)
        if self.config.convention == "urlb":
            self._replay(member, episode, rewards[self.paid_tasks[member]][:, None])
        self.episodes[member] += 1
        row: dict[str, float] = {"step": self.step, "episode": self.episodes[member] - 1}
        row |= {f"return_{task}": float(values.sum()) for task, values in rewards.items()}
        row |= self.engine.take_means(member) if self.engine else {}
        row["physics_errors"] = self.physics_errors[member]
        self.physics_errors[member] = 0
        self.history[member].append(row)

    def write_tables(self) -> None:
        """Write each member's `metrics.csv`: a row an episode."""
        for folder, rows in zip(self.folders, self.history, strict=True):
            paths.write_text(folder / "metrics.csv", pd.DataFrame(rows).to_csv(index=False))

    def state(self) -> dict[str, Any]:
        """Everything but the finished episodes, which `restore` reads back from disk."""
        return {
            "step": self.step,
            "agent": self.agent.state_dict() if self.agent else {},
            "exploration": self.exploration.state_dict(),
            "engine": self.engine.state() if self.engine else {},
            "skill_draws": self.skill_draws.state_dict(),
            "skills": torch.from_numpy(np.array(self.skills)),
            "physics_errors": self.physics_errors,
            "envs": [env.state() for env in self.envs],
            "recorders": [recorder.state() for recorder in self.recorders],
            "episodes": self.episodes,
            "history": self.history,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()`: the next steps are the same to the bit."""
        self.step, self.episodes = state["step"], state["episodes"]
        self.history = state["history"]
        if self.agent and self.engine:
            self.agent.load_state_dict(state["agent"])
            self.engine.restore(state["engine"])
        self.exploration.load_state_dict(state["exploration"])
        self.skill_draws.load_state_dict(state["skill_draws"])
        self.skills = list(state["skills"].numpy())
        self.physics_errors = state["physics_errors"]
        for member, env in enumerate(self.envs):
            env.restore(state["envs"][member])
            self.recorders[member].restore(state["recorders"][member])
            self.obs[member] = self._seen(member, self.recorders[member].rows[-1][0])
            self._restore_replay(member)

    def _restore_replay(self, member: int) -> None:
        """Fill the replay memory from the episodes on disk, the last that fit, and the present."""
        self.replay.clear(member)
        for episode, reward in self._stored_episodes(member):
            self._replay(member, episode, reward)
        if self.config.convention == "corrected":
            present, rewards = self._present_episode(member)
            rows = self._replay(member, present, rewards[self.paid_tasks[member]][:, None])
            self._resets[member] = tuple(column[0] for column in rows)

    def _replay(
        self, member: int, episode: dict[str, np.ndarray], reward: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Put an episode of more than its reset into the replay memory, with the rewards (rows, 1)
        that are paid; returns its rows."""
        skill = episode.get("z", np.empty((len(reward), 0), np.float32))
        obs = np.concatenate([episode["observation"], skill], -1)
        rows = obs, episode["action"], reward, self._known_discount(episode["discount"])
        if len(obs) > 1:
            self.replay.add(member, *rows, first=True)
        return rows

    def _stored_episodes(self, member: int) -> list[tuple[dict[str, np.ndarray], np.ndarray]]:
        """The last episodes on disk that fill the memory, each with the rewards (rows, 1) paid."""
        if not self.episodes[member]:
            return []
        dataset, rows, count = datasets.load(self.folders[member]), 0, self.episodes[member]
        lengths = dataset.lengths
        while count and rows < self.replay.capacity:
            count -= 1
            rows += lengths[count] + 1
        needed = replace(dataset, files=dataset.files[count : self.episodes[member]])
        paid = datasets.task_rewards(needed, [self.paid_tasks[member]])
        return list(zip(needed.episodes(), paid, strict=True))

    def _present_episode(self, member: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """The arrays of the episode so far, its skill `z` among them, and its task rewards."""
        episode, rewards = self.recorders[member].arrays()
        if self.skill_dim:
            episode["z"] = np.tile(self.skills[member], (len(episode["action"]), 1))
        return episode, rewards

    def postfix(self) -> dict[str, float]:
        """The latest episode's intrinsic reward and return, averaged over members."""
        latest = [rows[-1] for rows in self.history if rows]
        keys = ("intrinsic_reward", f"return_{primal_task(self.config.domain)}")
        known = {key: [row[key] for row in latest if key in row] for key in keys}
        return {key: round(float(np.mean(found)), 3) for key, found in known.items() if found}
