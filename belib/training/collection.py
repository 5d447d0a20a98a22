"""Lockstep collection: environments, agent, replay memory, and the episodes written to disk."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from belib import datasets, paths, results, runs
from belib.agents import SMM, agent_of
from belib.config import OfflineConfig, PretrainConfig
from belib.datasets.files import parse_name
from belib.engine import Engine
from belib.envs import Environment, PhysicsError, TaskRewards, TimeStep, primal_task
from belib.replay import Replay
from belib.streams import Streams, derive_seed
from belib.training.evaluation import Evaluator

Arrays = dict[str, np.ndarray]


def lockstep(configs: Sequence[runs.Config], most: int | None = None) -> list[list[Any]]:
    """Group datasets by agent class and by whether they have a task; policies are one group.

    `most` is the largest number of members of a group.
    """
    groups: dict[Any, list[runs.Config]] = {}
    for config in configs:
        collects = isinstance(config, PretrainConfig)
        key = collects and (agent_of(config.objective), bool(config.task))
        groups.setdefault(key, []).append(config)
    return [g[i:][:most] for g in groups.values() for i in range(0, len(g), most or len(g))]


class Collection(runs.Work):
    """M members in lockstep; `advance` is one environment step of every member.

    `configs` are equal in all but `PretrainConfig.MEMBER_FIELDS`; `folders` are the datasets'.
    """

    SAVED = ("step", "learner", "engine", "skill_draws", "skills", "physics_errors", "history")

    def __init__(self, configs: Sequence[PretrainConfig], folders: Sequence[Path]):
        self.configs, self.config, self.folders = configs, configs[0], folders
        self.name = ", ".join(folder.name for folder in folders)
        config, seeds = self.config, [config.seed for config in configs]
        task, agent = primal_task(config.domain), agent_of(config.objective)
        self.envs = [Environment(task, derive_seed(seed, "environment")) for seed in seeds]
        self.skill_dim = config.skill_dim if agent is SMM else 0
        sizes = (self.envs[0].obs_dim + self.skill_dim, self.envs[0].action_dim)
        random, self.skill_draws = Streams(seeds, "exploration"), Streams(seeds, "skill")
        steps = min(config.random_steps, config.num_steps) if agent else config.num_steps
        self.random_actions = random.uniform(steps, sizes[1]).numpy()  # (M, steps, action_dim)
        self.learner, self.engine = None, None
        if agent:
            capacity = min(config.replay_capacity, 2 * config.num_steps + 2)  # with rows of resets
            options = {"n_step": config.n_step, "discount": config.discount}
            self.replay = Replay(len(configs), capacity, *sizes, **options)
            self.learner = agent(*sizes, configs)
            self.engine = Engine(self.learner, self.replay)
        self.task_rewards = TaskRewards(config.domain)
        self.primal = self.task_rewards.tasks.index(task)
        self.paid_tasks = [config.task or task for config in configs]
        # rows of the present episodes: obs, action, reward, discount, physics, all rewards
        self.rows: list[list[tuple[np.ndarray, ...]]] = [[] for _ in configs]
        self.skills = torch.zeros(len(configs), self.skill_dim)
        self.step, self.physics_errors = 0, [0] * len(configs)
        # for every member, one row per episode: returns, and mean metrics of its updates
        self.history: list[list[dict[str, float]]] = [[] for _ in configs]
        for member in range(len(configs)):
            self._reset(member)

    def advance(self) -> None:
        """Choose actions, update the agent if it is due, step the environments, record.

        On a GPU the update runs at the same time as the environments, which step one by one.
        """
        config, actions = self.config, self._actions()
        learning = self.step >= config.random_steps and self.step % config.update_every == 0
        if self.engine and learning and self.replay.count.all():
            self.engine.step()
        self.step += 1
        for member, action in enumerate(actions):
            self._step(member, action)

    def _actions(self) -> np.ndarray:
        """Return actions (M, action_dim): uniform for `random_steps`, then the agent's."""
        if self.learner is None or self.step < self.random_actions.shape[1]:
            return self.random_actions[:, self.step]
        obs = torch.from_numpy(np.array([rows[-1][0] for rows in self.rows]))
        obs = torch.cat([obs, self.skills], -1)[:, None]
        actions = self.learner.act(obs, explore=True)[:, 0].numpy()
        for folder in np.array(self.folders)[~np.isfinite(actions).all(1)]:
            raise ValueError(f"actions must be finite, got NaN of {folder.name}, step {self.step}")
        return actions

    def _step(self, member: int, action: np.ndarray) -> None:
        """Step one environment. A physics error ends the episode before this step."""
        try:
            step = self.envs[member].step(action)
            rewards = self.task_rewards(self.envs[member].physics)
            rewards[self.primal] = step.reward  # equal, but for tasks with a state of their own
            self._record(member, action, step, rewards)
            ended = step.last
        except PhysicsError as error:
            name = self.folders[member].name
            tqdm.write(f"{name}, step {self.step}: the episode ends here, {error}")
            self.physics_errors[member] += 1
            ended = True
        if ended:
            if len(self.rows[member]) > 1:
                self._write_episode(member)
            self._reset(member)

    def _reset(self, member: int) -> None:
        """Start a member's episode, with a skill for SMM."""
        step = self.envs[member].reset()
        if self.skill_dim:
            generator = self.skill_draws.generators[member]
            skill = torch.randint(self.skill_dim, (), generator=generator)
            self.skills[member] = torch.eye(self.skill_dim)[skill]
        self.rows[member] = []
        action = np.zeros(self.envs[member].action_dim, np.float32)
        self._record(member, action, step, np.zeros(len(self.task_rewards.tasks)))

    def _record(self, member: int, action: np.ndarray, step: TimeStep, rewards: np.ndarray) -> None:
        """Append a row to the episode, and with the convention `corrected` to the replay memory.

        The convention `urlb` replays finished episodes. At a reset, action and rewards are zeros.
        """
        reward, discount = np.array([step.reward]), np.array([step.discount])
        self.rows[member].append((step.obs, action, reward, discount, step.physics, rewards))
        if self.engine and self.config.convention == "corrected":
            obs = np.concatenate([step.obs, self.skills[member].numpy()])
            paid = rewards[[self.task_rewards.tasks.index(self.paid_tasks[member])]]
            first = len(self.rows[member]) == 1
            self.replay.add(member, obs, action, paid, discount, first=first)

    def _write_episode(self, member: int) -> None:
        """Write the finished episode to disk; append its returns and metrics to the history."""
        episode, rewards = self._present_episode(member)
        number = len(self.history[member])
        file = datasets.write_episode(self.folders[member], number, episode, rewards)
        file.with_name(f".{file.name}.old").unlink(missing_ok=True)  # made before a kill
        if self.engine and self.config.convention == "urlb":
            self._replay(member, episode, rewards[self.paid_tasks[member]])
        returns = {f"return_{task}": float(values.sum()) for task, values in rewards.items()}
        row = {"step": self.step, "episode": number, **returns}
        row |= self.engine.take_means(member) if self.engine else {}
        self.history[member].append({**row, "physics_errors": self.physics_errors[member]})
        self.physics_errors[member] = 0

    def _present_episode(self, member: int) -> tuple[Arrays, Arrays]:
        """Return the episode's arrays (no physics without MuJoCo), skill `z`, and task rewards."""
        *columns, rewards = (np.array(column) for column in zip(*self.rows[member], strict=True))
        pairs = zip(datasets.DTYPES.items(), columns, strict=True)
        episode = {key: column.astype(dtype) for (key, dtype), column in pairs if column.size}
        if self.skill_dim:
            episode["z"] = np.tile(self.skills[member].numpy(), (len(rewards), 1))
        return episode, dict(zip(self.task_rewards.tasks, rewards.T, strict=True))

    def _replay(self, member: int, episode: Arrays, reward: np.ndarray) -> None:
        """Add an episode to the replay memory, with the rewards (rows,) of the task."""
        skill = episode.get("z", np.empty((len(reward), 0), np.float32))
        obs, discount = np.concatenate([episode["observation"], skill], -1), episode["discount"]
        if self.config.convention == "urlb":  # without terminals: see `belib.agents.ddpg`
            discount = np.where(discount == 0, 1, discount)
        self.replay.add(member, obs, episode["action"], reward.reshape(-1, 1), discount, first=True)

    def write_tables(self) -> None:
        """Write each member's `metrics.csv`, one row per episode."""
        for folder, rows in zip(self.folders, self.history, strict=True):
            paths.write_text(folder / "metrics.csv", pd.DataFrame(rows).to_csv(index=False))

    def finish(self) -> None:
        """Evaluate policies that learnt a task; write cards, the first member's last.

        The last episode's row has also the errors after it.
        """
        for rows, errors in zip(self.history, self.physics_errors, strict=True):
            if rows:
                rows[-1]["physics_errors"] += errors
        self.write_tables()
        if self.learner and self.config.task:
            names = ("domain", "dataset", "task", "seed", "scale")
            same = [OfflineConfig(**{n: getattr(c, n) for n in names}) for c in self.configs]
            changes = {"algorithm": "ddpg", "precision": self.learner.precision}
            rows = Evaluator(same)(self.learner.act, self.step, self.configs, **changes)
            for folder, row in zip(self.folders, rows, strict=True):
                paths.write_text(folder / results.ONLINE, pd.DataFrame([row]).to_csv(index=False))
        for folder, rows in reversed(list(zip(self.folders, self.history, strict=True))):
            if rows:
                options = {"precision": self.learner and self.learner.precision}
                datasets.write_card(folder, num_steps=self.config.num_steps, **options)
            else:
                print(f"{folder.name}: no full episode yet, a larger num_steps continues this one")

    def state(self) -> dict[str, Any]:
        """Return the state without the replay memory, which `restore` fills from the episodes."""
        columns = ([np.array(x) for x in zip(*rows, strict=True)] for rows in self.rows)
        rows = [[torch.from_numpy(x) for x in member] for member in columns]
        return {**super().state(), "envs": [env.state() for env in self.envs], "rows": rows}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()`; an agent's replay memory holds the episodes on disk again.

        Later episodes are hidden: where numbers round differently they are not those made now.
        """
        super().restore(state)
        for member, env in enumerate(self.envs):
            for file in self.folders[member].glob("buffer/[!.]*.npz"):
                if parse_name(file)[0] >= len(self.history[member]):
                    file.replace(file.with_name(f".{file.name}.old"))
            env.restore(state["envs"][member])
            self.rows[member] = list(zip(*(x.numpy() for x in state["rows"][member]), strict=True))
            task = self.paid_tasks[member]
            if self.engine and self.history[member]:
                dataset = datasets.load(self.folders[member])
                paid = datasets.task_rewards(dataset, [task])
                for episode, reward in zip(dataset.episodes(), paid, strict=True):
                    self._replay(member, episode, reward)
            if self.engine and self.config.convention == "corrected":
                episode, rewards = self._present_episode(member)
                self._replay(member, episode, rewards[task])
