"""Environments: flat float32 observations, physics states, the rewards of all tasks."""

import functools
import warnings
from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import mujoco
import numpy as np
import torch

from belib.arrays import real_array, whole_number
from belib.config.checks import unknown_name

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # glfw warns on machines without a display
    from dm_control import suite
    from dm_control.rl import control

    from belib import gymnasium_envs
    from belib.fast_rewards import fast_rewards

PhysicsError = control.PhysicsError
"""Raised by `Environment.step` when the simulation breaks down."""

PRIMAL_TASKS = {"walker": "walker_stand", "quadruped": "quadruped_walk"}
"""The task whose reward is in the episode files, as in URLB. Other domains use their first."""

_SUITE = {domain: getattr(suite, domain).SUITE for domain in suite.TASKS_BY_DOMAIN}
DOMAINS: ChainMap[str, Mapping[str, Callable[..., Any]]] = ChainMap({}, _SUITE)
"""Functions that make the environments, by domain and task; first those of `register`."""

# all that determines the rest of a simulation, including the solver's warm start
_FULL_STATE = mujoco.mjtState.mjSTATE_INTEGRATION
# the state in an episode file: dm_control's `physics.get_state()`
_PHYSICS = mujoco.mjtState.mjSTATE_QPOS | mujoco.mjtState.mjSTATE_QVEL | mujoco.mjtState.mjSTATE_ACT
# stages of a simulation step that rewards need: positions, velocities and their sensors
_STAGES = (
    *(mujoco.mj_kinematics, mujoco.mj_comPos, mujoco.mj_camlight, mujoco.mj_tendon),
    *(mujoco.mj_transmission, mujoco.mj_sensorPos, mujoco.mj_fwdVelocity, mujoco.mj_sensorVel),
)


class TimeStep(NamedTuple):
    """The result of a reset (reward 0) or a step.

    `obs` is (obs_dim,) float32, `physics` (nq + nv + na,) float64: [qpos, qvel, act]. `last` ends
    the episode; `discount` is 0 at a true terminal, else 1.
    """

    obs: np.ndarray
    reward: float
    discount: float
    physics: np.ndarray
    last: bool


def register(domain: str, tasks: Mapping[str, Callable[..., Any]]) -> None:
    """Add a domain to this process; worker processes do not have it.

    Args:
        domain: the name of its datasets' folder; its tasks are named `<domain>_<task>`.
        tasks: functions by name of task, the primal task first. As in dm_control's suite,
            `make(random=None, environment_kwargs=None)` returns a `control.Environment` with
            bounded actions, whose task keeps its random numbers in `random`. What else it keeps
            from step to step is not resumed.

    Raise ValueError for a name that is taken (restart Python to change a domain) or invalid.
    """
    names = [domain, *tasks]
    if not tasks or not all(name.isidentifier() for name in names):
        raise ValueError(f"a domain and its tasks must have identifiers as names, got {names}")
    taken = {domain} & set(DOMAINS) or {f"{domain}_{task}" for task in tasks} & set(_tasks())
    if taken:
        raise ValueError(f"names of domain and tasks must be new, got {', '.join(taken)}")
    DOMAINS[domain] = dict(tasks)


def _tasks() -> dict[str, Callable[..., Any]]:
    return {f"{d}_{name}": make for d in DOMAINS for name, make in DOMAINS[d].items()}


def _add_gymnasium(domain: str) -> None:
    """Add `gymnasium-<id>`, when it is first named; its task `reward` is its own reward."""
    if domain.startswith(gymnasium_envs.PREFIX) and domain not in DOMAINS:
        DOMAINS[domain] = {"reward": functools.partial(gymnasium_envs.Adapter, domain)}


def primal_task(domain: str) -> str:
    """Return the task whose reward is in the episode files; ValueError for an unknown domain."""
    _add_gymnasium(domain)
    if domain not in DOMAINS:
        raise ValueError(f"there is no domain {unknown_name(domain, DOMAINS)}")
    return PRIMAL_TASKS.get(domain, f"{domain}_{next(iter(DOMAINS[domain]))}")


@functools.cache
def domain_tasks(domain: str) -> tuple[str, ...]:
    """Return the tasks whose model and observations are the primal task's: they share states.

    Quadruped's `escape` and `fetch` have a terrain and a ball that its `walk` and `run` lack;
    reacher's `hard` has a smaller target than its `easy`.
    """
    shape, targets = _shape(primal := primal_task(domain)), _targets(primal)
    tasks = (f"{domain}_{name}" for name in DOMAINS[domain])
    return tuple(task for task in tasks if _shape(task) == shape and _targets(task) == targets)


@functools.cache
def domain_sizes(domain: str) -> dict[str, int]:
    """Return the sizes of a domain's `observation`, `action` and `physics`."""
    env = Environment(primal_task(domain), 0)
    return {"observation": env.obs_dim, "action": env.action_dim, "physics": env.physics_dim}


def observation_names(domain: str) -> list[str]:
    """Return a name for each number of an observation: `height`, `velocity 3`."""
    specs = _load(primal_task(domain), 0, flat=False).observation_spec()
    sizes = {name: int(np.prod(spec.shape)) for name, spec in specs.items()}
    return [name if n == 1 else f"{name} {i}" for name, n in sizes.items() for i in range(n)]


class Environment:
    """One task of dm_control's suite, a registered domain or Gymnasium, with actions in [-1, 1].

    Args:
        task: `walker_stand`, `quadruped_run`, ...; ValueError for an unknown one.
        seed: of the initial states.
    """

    def __init__(self, task: str, seed: int):
        self._env = _load(task, seed)
        self.physics: Any = self._env.physics
        spec = self._env.action_spec()
        self._middle = (spec.maximum + spec.minimum) / 2
        self._half_range = (spec.maximum - spec.minimum) / 2
        self.action_dim: int = spec.shape[0]
        self.obs_dim: int = self._env.observation_spec()["observations"].shape[0]
        self.physics_dim: int = self._state(_PHYSICS).size

    def reset(self, seed: int | None = None) -> TimeStep:
        """Start an episode; a seed restarts the stream of initial states."""
        if seed is not None:
            self._env.task.random.seed(whole_number("seed", seed) % 2**32)
        self._before_reset = self._random_state()
        return self._time_step(self._env.reset())

    def step(self, action: np.ndarray) -> TimeStep:
        """Apply an action (action_dim,) in [-1, 1]."""
        action = np.asarray(action, np.float64)
        if action.shape != (self.action_dim,):
            raise ValueError(f"action must have shape ({self.action_dim},), got {action.shape}")
        with fast_rewards():
            return self._time_step(self._env.step(self._middle + self._half_range * action))

    def _time_step(self, step: Any) -> TimeStep:
        return TimeStep(
            step.observation["observations"].astype(np.float32),
            0.0 if step.reward is None else step.reward,
            1.0 if step.discount is None else step.discount,
            self._state(_PHYSICS),
            step.last(),
        )

    def _state(self, parts: int) -> np.ndarray:
        """Return parts of the simulation's state, chosen by MuJoCo's flags."""
        model, data = self.physics.model.ptr, self.physics.data.ptr
        state = np.empty(mujoco.mj_stateSize(model, parts))
        mujoco.mj_getState(model, data, state, parts)
        return state

    def _random_state(self) -> list[Any]:
        name, key, *rest = self._env.task.random.get_state()
        return [name, key.tolist(), *rest]

    def state(self) -> dict[str, Any]:
        """Return the simulation and the stream of initial states, as tensors and numbers."""
        adapted = isinstance(self._env, gymnasium_envs.Adapter)
        simulation = self._env.state() if adapted else torch.from_numpy(self._state(_FULL_STATE))
        episode = {"steps": int(self._env._step_count), "before_reset": self._before_reset}
        return episode | {"simulation": simulation, "random": self._random_state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()`: the next steps are the same to the bit.

        The episode's reset is repeated first, because some tasks (reacher, swimmer) put their
        targets into the model, which `state` does not contain. Gymnasium's repeat the actions, too.
        """
        self._env.task.random.set_state(tuple(state["before_reset"]))
        self.reset()
        if isinstance(self._env, gymnasium_envs.Adapter):
            self._env.repeat(state["simulation"])
        else:
            model, data = self.physics.model.ptr, self.physics.data.ptr
            mujoco.mj_setState(model, data, state["simulation"].numpy(), _FULL_STATE)
            mujoco.mj_step1(model, data)  # as dm_control does after a step
            self._env._step_count = state["steps"]
        self._env.task.random.set_state(tuple(state["random"]))


class TaskRewards:
    """The rewards of all tasks of a domain for one state.

    `of_states` needs rewards that follow from the physics state; Gymnasium's follow from a step.
    """

    def __init__(self, domain: str):
        self.tasks = domain_tasks(domain)
        self._tasks = [_model_and_reward(task).task for task in self.tasks]
        self._env = _load(primal_task(domain), 0)
        self._physics = self._env.physics

    def __call__(self, physics: Any) -> np.ndarray:
        """Return (T,) float64 rewards of a physics' current state, in the order of `tasks`."""
        with fast_rewards():
            return np.array([task.get_reward(physics) for task in self._tasks])

    def of_states(self, states: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray:
        """Return rewards (n, T) of states (n, nq + nv + na) float64; Gymnasium's need actions."""
        model, data = self._physics.model.ptr, self._physics.data.ptr
        size = mujoco.mj_stateSize(model, _PHYSICS)
        states = real_array("states", states, ndim=2, finite=False)
        if states.shape[-1] != size:
            raise ValueError(f"physics states must have {size} numbers, got {states.shape[-1]}")
        if isinstance(self._env, gymnasium_envs.Adapter):
            return self._env.rewards(states, actions)[:, None]
        rewards = []
        with fast_rewards():
            for state in states:
                mujoco.mj_setState(model, data, state, _PHYSICS)
                for stage in _STAGES:
                    stage(model, data)
                rewards.append([task.get_reward(self._physics) for task in self._tasks])
        return np.array(rewards).reshape(-1, len(self.tasks))


def _load(task: str, seed: int, *, flat: bool = True) -> Any:
    _add_gymnasium(task.rpartition("_")[0])
    tasks = _tasks()
    if task not in tasks:
        raise ValueError(f"there is no task {unknown_name(task, tasks)}")
    random = np.random.RandomState(whole_number("seed", seed) % 2**32)  # it takes 32 bits
    return tasks[task](random=random, environment_kwargs={"flat_observation": flat})


# environments by task that are never stepped, for their models and rewards
_model_and_reward = functools.cache(functools.partial(_load, seed=0))


def _shape(task: str) -> tuple:
    """Return the sizes of a task's observations and states, and the names in its model."""
    env = _model_and_reward(task)
    model = env.physics.model.ptr
    sizes = model.nq, model.nv, model.na, model.nu
    return *env.observation_spec()["observations"].shape, *sizes, bytes(model.names)


@functools.cache
def _targets(task: str) -> tuple:
    """Return what tasks of one shape may change in the model at a reset, such as their target."""
    env = _model_and_reward(task)
    env.reset()  # some rewards (dog's) need it, too
    model = env.physics.model.ptr
    solid = model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE  # floors may differ in size
    names = "geom_size", "geom_pos", "geom_quat", "site_size", "site_pos", "site_quat"
    names += "body_pos", "body_quat", "dof_damping", "wrap_prm"
    arrays = ((name, getattr(model, name)) for name in names)
    return tuple(x[solid if name[:4] == "geom" else ...].tobytes() for name, x in arrays)


def model(domain: str) -> mujoco.MjModel:
    """Return the MuJoCo model of a domain's primal task, whose states the episode files hold."""
    return _model_and_reward(primal_task(domain)).physics.model.ptr
