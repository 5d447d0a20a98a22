"""Gymnasium's environments in dm_control's form: the domain `gymnasium-HalfCheetah-v5`.

Slashes in an id are written as hyphens; `gymnasium-my_module:Mine-v0` imports a module first.
"""

import importlib
from types import SimpleNamespace as Record
from typing import Any

import mujoco
import numpy as np
import torch
from dm_control.rl.control import PhysicsError
from dm_env import StepType, TimeStep

PREFIX = "gymnasium-"


class Adapter:
    """A Gymnasium environment with the attributes that `belib.envs` uses of dm_control's.

    Each reset draws a seed from `random`. Without MuJoCo the physics state is empty.
    """

    def __init__(self, domain: str, random: Any, environment_kwargs: Any):
        try:
            gym: Any = importlib.import_module("gymnasium")
            module, _, hyphened = domain.removeprefix(PREFIX).rpartition(":")
            if module:
                importlib.import_module(module)
            ids = {name.replace("/", "-"): name for name in gym.registry}
            made = gym.make(ids.get(hyphened, hyphened), disable_env_checker=True)
        except Exception as error:  # of the import, of Gymnasium, of the environment
            advice = "; install belib's extra gymnasium" * isinstance(error, ImportError)
            raise ValueError(f"{domain} cannot be made, {error}{advice}") from error
        space, action = made.observation_space, made.action_space
        boxes = [action, *(space.values() if isinstance(space, gym.spaces.Dict) else [space])]
        if not (all(isinstance(box, gym.spaces.Box) for box in boxes) and action.is_bounded()):
            rule = "must have Box observations, or a Dict of them, and bounded Box actions"
            raise ValueError(f"{domain} {rule}, got {space} and {action}")
        env = gym.wrappers.RescaleAction(made, np.float32(-1), np.float32(1))
        env = gym.wrappers.FlattenObservation(env)
        self._env = env if made.spec.max_episode_steps else gym.wrappers.TimeLimit(env, 1000)
        self.observation_spec = lambda: {"observations": env.observation_space}
        self.action_spec = lambda: Record(shape=(action.low.size,), minimum=-1.0, maximum=1.0)
        model, data = (getattr(env.unwrapped, name, None) for name in ("model", "data"))
        if not isinstance(model, mujoco.MjModel):
            data = mujoco.MjData(model := mujoco.MjModel.from_xml_string("<mujoco/>"))
        self.physics = Record(model=Record(ptr=model), data=Record(ptr=data), reward=0.0)
        self.task = Record(random=random, get_reward=lambda physics: physics.reward)

    def reset(self) -> TimeStep:
        self._actions: list[np.ndarray] = []
        obs, _ = self._env.reset(seed=self.task.random.randint(2**31 - 1))
        return self._time_step(StepType.FIRST, obs, 0.0, 1.0)

    def step(self, action: np.ndarray) -> TimeStep:
        self._actions.append(action)
        box = self._env.action_space
        result = self._env.step(action.astype(box.dtype).reshape(box.shape))
        obs, reward, terminated, truncated, _ = result
        kind = StepType.LAST if terminated or truncated else StepType.MID
        return self._time_step(kind, obs, float(reward), 0.0 if terminated else 1.0)

    def _time_step(self, kind: StepType, obs: Any, reward: float, discount: float) -> TimeStep:
        self._step_count, self._obs, self.physics.reward = len(self._actions), obs, reward
        if not (np.isfinite(obs.astype(np.float32)).all() and np.isfinite(reward)):
            raise PhysicsError(f"{self._env.spec.id} gave a number that is not finite")
        return TimeStep(kind, reward, discount, {"observations": obs})

    def state(self) -> dict[str, torch.Tensor]:
        return {"actions": torch.tensor(np.array(self._actions)), "obs": torch.tensor(self._obs)}

    def repeat(self, state: dict[str, torch.Tensor]) -> None:
        """Take the actions of a `state()` again; ValueError if they lead to another observation."""
        for action in state["actions"].numpy():
            self.step(action)
        if not np.array_equal(self._obs, state["obs"].numpy()):
            raise ValueError(f"{self._env.spec.id} does not repeat itself, so it cannot be resumed")

    def rewards(self, states: np.ndarray, actions: Any) -> np.ndarray:
        """Repeat an episode, each step from its stored state; return its rewards (rows,)."""
        model, data, rewards = self.physics.model.ptr, self.physics.data.ptr, np.zeros(len(states))
        self.reset()
        mujoco.mj_resetData(model, data)
        for row, action in enumerate(actions[1:], 1):
            parts = np.split(states[row - 1], [model.nq, model.nq + model.nv])
            data.qpos[:], data.qvel[:], data.act[:] = parts
            if row == 1:  # later steps go on from what the one before left in MuJoCo
                mujoco.mj_forward(model, data)
            rewards[row] = self.step(action).reward
        return rewards
