"""dm_control environments: flat float32 observations, physics states, the rewards of all tasks."""

import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import mujoco
import numpy as np
import torch

from belib.arrays import real_array, whole_number
from belib.config import unknown_name

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # glfw warns where there is no display; nothing here renders
    from dm_control import suite
    from dm_control.rl import control

    from belib.fast_rewards import fast_rewards

PhysicsError = control.PhysicsError
"""What `Environment.step` raises where the simulation breaks down."""

# The pretraining task whose reward stands in the episode files (URLB's choice).
PRIMAL_TASKS = {"walker": "walker_stand", "quadruped": "quadruped_walk"}

DOMAINS: dict[str, Mapping[str, Callable[..., Any]]] = {
    domain: getattr(suite, domain).SUITE for domain in suite.TASKS_BY_DOMAIN
}
"""The tasks of each domain, by functions that make dm_control's environments: see `register`."""

# What URLB's custom environments have and dm_control's suite does not.
_ONLY_IN_URLB = (
    *("jaco", "walker_flip", "quadruped_stand", "quadruped_jump", "quadruped_roll"),
    *("cheetah_flip", "cheetah_flip_backward", "cheetah_run_backward"),
    *("hopper_flip", "hopper_flip_backward", "hopper_hop_backward"),
)

# Everything that determines the rest of a simulation, warm starts of the solver included.
_FULL_STATE = mujoco.mjtState.mjSTATE_INTEGRATION

# What an episode file keeps: dm_control's `physics.get_state()`, in one call.
_PHYSICS = mujoco.mjtState.mjSTATE_QPOS | mujoco.mjtState.mjSTATE_QVEL | mujoco.mjtState.mjSTATE_ACT

# What rewards read of a state: places, velocities and their sensors; no contacts and no forces.
_STAGES = (
    mujoco.mj_kinematics,
    mujoco.mj_comPos,
    mujoco.mj_camlight,
    mujoco.mj_tendon,
    mujoco.mj_transmission,
    mujoco.mj_sensorPos,
    mujoco.mj_fwdVelocity,
    mujoco.mj_sensorVel,
)


class TimeStep(NamedTuple):
    """What a reset or a step yields. `last` ends the episode; discount 0 is a true terminal."""

    obs: np.ndarray
    """(obs_dim,) float32."""
    reward: float
    """The task's reward of the state reached; 0.0 at a reset."""
    discount: float
    physics: np.ndarray
    """(nq + nv + na,) float64: [qpos, qvel, act]."""
    last: bool


def register(domain: str, tasks: Mapping[str, Callable[..., Any]]) -> None:
    """Make a domain of your own known, for as long as this process lives.

    Args:
        domain: its name, in datasets' folders and, before `_`, in its tasks' names.
        tasks: the environments by their tasks' names, the primal task first. Each is a function as
            in dm_control's suite, `make(random=None, environment_kwargs=None)`, that returns a
            `dm_control.rl.control.Environment` whose task keeps its random numbers in `random`
            (as `dm_control.suite.base.Task` does) and has bounded actions. A module in the suite's
            manner has them in its `SUITE`.

    Raises ValueError for a name that is taken (restart Python to change a domain), or is no name.
    """
    for name in (domain, *tasks):
        if not name.isidentifier():
            raise ValueError(f"names of domains and tasks must be identifiers, got {name!r}")
    if not tasks:
        raise ValueError(f"tasks of {domain} must be at least one, got none")
    full = (f"{domain}_{task}" for task in tasks)
    taken = {domain} & set(DOMAINS) or set(full) & set(_tasks())
    if taken:
        raise ValueError(f"names of domain and tasks must be new, got {', '.join(taken)}")
    DOMAINS[domain] = dict(tasks)


def is_registered(domain: str) -> bool:
    """Whether a domain is this process's own, of which other processes know nothing."""
    return domain not in suite.TASKS_BY_DOMAIN


def _tasks() -> dict[str, tuple[str, str]]:
    return {f"{domain}_{name}": (domain, name) for domain in DOMAINS for name in DOMAINS[domain]}


def split_task(task: str) -> tuple[str, str]:
    """`walker_stand` -> (`walker`, `stand`); ValueError for a task that is not known."""
    names = _tasks()
    if task not in names:
        raise ValueError(f"dm_control's suite has no task {_not_there(task, names)}")
    return names[task]


def _not_there(name: str, known: Iterable[str]) -> str:
    if name in _ONLY_IN_URLB or name.startswith("jaco"):
        return f"{name!r}: it is one of URLB's own, which are not part of dm_control"
    return unknown_name(name, known)


def primal_task(domain: str) -> str:
    """The task whose reward is stored at collection; ValueError for an unknown domain."""
    if domain not in DOMAINS:
        near = _not_there(domain, DOMAINS)
        raise ValueError(f"dm_control's suite has no domain {near}, and none was registered")
    return PRIMAL_TASKS.get(domain, f"{domain}_{next(iter(DOMAINS[domain]))}")


@functools.cache
def domain_tasks(domain: str) -> tuple[str, ...]:
    """The tasks that share the model of the domain's primal task, so that its states have rewards.

    Quadruped's `escape` and `fetch` have a terrain and a ball that its `walk` and `run` lack.
    """
    signature = _signature(_model_and_reward(primal_task(domain)))
    tasks = (f"{domain}_{name}" for name in DOMAINS[domain])
    return tuple(task for task in tasks if _signature(_model_and_reward(task)) == signature)


@functools.cache
def domain_sizes(domain: str) -> dict[str, int]:
    """Numbers in a row of a domain's `observation`, `action` and `physics`."""
    env = Environment(primal_task(domain), 0)
    return {"observation": env.obs_dim, "action": env.action_dim, "physics": env.physics_dim}


def observation_names(domain: str) -> list[str]:
    """A name for each of the numbers of an observation: `height`, `velocity 3`."""
    env = _load(primal_task(domain), 0, flat=False)
    names = []
    for name, spec in env.observation_spec().items():
        size = int(np.prod(spec.shape))
        names += [name] if size == 1 else [f"{name} {i}" for i in range(size)]
    return names


class Environment:
    """One task of dm_control's suite or of a registered domain, seeded, with actions in [-1, 1].

    Args:
        task: `walker_stand`, `quadruped_run`, any task of the suite or of a registered domain.
        seed: of the starting states.
    """

    def __init__(self, task: str, seed: int):
        self._env = _load(task, seed)
        spec = self._env.action_spec()
        self._middle = (spec.maximum + spec.minimum) / 2
        self._half_range = (spec.maximum - spec.minimum) / 2
        self.action_dim: int = spec.shape[0]
        self.obs_dim: int = self._env.observation_spec()["observations"].shape[0]
        self.physics_dim: int = self._env.physics.get_state().size

    @property
    def physics(self) -> Any:
        """dm_control's physics, for rendering and rewards."""
        return self._env.physics

    def seed(self, seed: int) -> None:
        """Start the stream of starting states anew."""
        self._env.task.random.seed(_seed(seed))

    def reset(self) -> TimeStep:
        """Start an episode."""
        self._before_reset = self._random_state()
        return self._time_step(self._env.reset())

    def step(self, action: np.ndarray) -> TimeStep:
        """Apply an action (action_dim,) in [-1, 1]."""
        action = np.asarray(action, np.float64)
        if action.shape != (self.action_dim,):
            raise ValueError(f"action must have shape ({self.action_dim},), got {action.shape}")
        return self._time_step(self._env.step(self._middle + self._half_range * action))

    def _time_step(self, found: Any) -> TimeStep:
        return TimeStep(
            found.observation["observations"].astype(np.float32),
            0.0 if found.reward is None else found.reward,
            1.0 if found.discount is None else found.discount,
            self._state(_PHYSICS),
            found.last(),
        )

    def _state(self, parts: int) -> np.ndarray:
        """Parts of the simulation's state, by MuJoCo's flags."""
        model, data = self.physics.model.ptr, self.physics.data.ptr
        found = np.empty(mujoco.mj_stateSize(model, parts))
        mujoco.mj_getState(model, data, found, parts)
        return found

    def state(self) -> dict[str, Any]:
        """The simulation and the stream of starting states, in tensors and plain numbers."""
        return {
            "simulation": torch.from_numpy(self._state(_FULL_STATE)),
            "steps": int(self._env._step_count),
            "before_reset": self._before_reset,
            "random": self._random_state(),
        }

    def _random_state(self) -> list[Any]:
        _, key, *rest = self._env.task.random.get_state()
        return [torch.from_numpy(key.astype(np.int64)), *rest]

    def _set_random_state(self, state: list[Any]) -> None:
        key, *rest = state
        self._env.task.random.set_state(("MT19937", key.numpy().astype(np.uint32), *rest))

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()`: the next steps are the same to the bit.

        The episode's reset is drawn again first: some tasks (reacher, swimmer) put their targets
        into the model itself, which no state of the simulation holds.
        """
        self._set_random_state(state["before_reset"])
        self._before_reset = state["before_reset"]
        self._env.reset()
        model, data = self.physics.model.ptr, self.physics.data.ptr
        mujoco.mj_setState(model, data, state["simulation"].numpy(), _FULL_STATE)
        mujoco.mj_step1(model, data)  # what dm_control leaves computed after a step
        self._env._step_count = state["steps"]
        self._set_random_state(state["random"])


class TaskRewards:
    """The rewards that all tasks of a domain pay for one state.

    Only rewards that the physics state determines are meant: `relabel` checks that they are.
    """

    def __init__(self, domain: str):
        self.tasks = domain_tasks(domain)
        environments = [_model_and_reward(task) for task in self.tasks]
        for each in environments:
            each.reset()  # some rewards (dog's) need what it sets
        self._tasks = [each.task for each in environments]
        self._physics = _load(primal_task(domain), 0).physics

    def __call__(self, physics: Any) -> np.ndarray:
        """(T,) float64 rewards of the state that a physics is in, in the order of `tasks`."""
        with fast_rewards():
            return np.array([task.get_reward(physics) for task in self._tasks])

    def of_states(self, states: np.ndarray) -> np.ndarray:
        """(n, T) rewards of physics states (n, nq + nv + na) float64.

        Only the stages of the simulation that rewards read are computed (`_STAGES`).
        """
        model, data = self._physics.model.ptr, self._physics.data.ptr
        size = mujoco.mj_stateSize(model, _PHYSICS)
        states = real_array("states", states, ndim=2, finite=False)
        if states.shape[-1] != size:
            raise ValueError(f"physics states must have {size} numbers, got {states.shape[-1]}")
        rewards = []
        with fast_rewards():
            for state in states:
                mujoco.mj_setState(model, data, state, _PHYSICS)
                for stage in _STAGES:
                    stage(model, data)
                rewards.append([task.get_reward(self._physics) for task in self._tasks])
        return np.array(rewards).reshape(-1, len(self.tasks))


def _seed(seed: int) -> int:
    """Of the 32 bits that dm_control's random numbers take."""
    return whole_number("seed", seed) % 2**32


def _load(task: str, seed: int, *, flat: bool = True) -> Any:
    domain, name = split_task(task)
    random = np.random.RandomState(_seed(seed))
    return DOMAINS[domain][name](random=random, environment_kwargs={"flat_observation": flat})


@functools.cache
def _model_and_reward(task: str) -> Any:
    """An environment of the task that is never stepped."""
    return _load(task, 0)


def _signature(env: Any) -> tuple:
    """What two tasks must have in common for a state of one to be a state of the other."""
    model = env.physics.model.ptr
    return model.nq, model.nv, model.na, model.nu, bytes(model.names)


def render(domain: str, states: np.ndarray, size: int = 240) -> list[np.ndarray]:
    """Pictures (size, size, 3) of physics states (n, nq + nv + na), none where OpenGL is missing.

    dm_control chooses its renderer as it is imported: on a machine without a display, set
    `MUJOCO_GL=egl` before Python starts.
    """
    named = any(os.environ.get(key) for key in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"))
    if sys.platform == "linux" and not named:
        return []
    physics = _load(primal_task(domain), 0).physics
    frames = []
    try:
        for state in states:
            with physics.reset_context():
                physics.set_state(state)
            frames.append(physics.render(size, size, camera_id=0))
    except (RuntimeError, AttributeError, mujoco.FatalError):
        return []
    return frames
