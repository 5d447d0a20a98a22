import itertools

import dm_env
import numpy as np
import pytest
import torch
from dm_control import suite
from dm_control.utils import rewards as dm_rewards

from belib import envs, fast_rewards
from belib.envs import Environment, TaskRewards
from belib.streams import derive_seed


@pytest.mark.parametrize(
    ("task", "sizes"),
    [("walker_walk", (24, 6, 18)), ("quadruped_run", (78, 12, 57)), ("ball_in_cup_catch", None)],
)
def test_an_environment_is_dm_controls_to_the_bit(task, sizes):
    env, random = Environment(task, 3), np.random.RandomState(0)
    assert sizes in ((env.obs_dim, env.action_dim, env.physics_dim), None)
    flat = {"environment_kwargs": {"flat_observation": True}}
    reference = suite.load(*task.rsplit("_", 1), task_kwargs={"random": 3}, **flat)
    spec = reference.action_spec()
    step, expected = env.reset(), reference.reset()
    assert (step.reward, step.discount, step.last) == (0.0, 1.0, False)
    for _ in range(50):
        observation = expected.observation["observations"].astype(np.float32)
        assert np.array_equal(step.obs, observation)
        assert np.array_equal(step.physics, reference.physics.get_state())
        action = random.uniform(-1, 1, env.action_dim)
        scaled = (spec.maximum + spec.minimum) / 2 + (spec.maximum - spec.minimum) / 2 * action
        step, expected = env.step(action), reference.step(scaled)
        assert step.reward == expected.reward
    assert (step.obs.dtype, step.physics.dtype) == (np.float32, np.float64)


def test_a_time_limit_is_no_terminal_and_a_terminal_stays_one(monkeypatch):
    env, steps = Environment("cartpole_balance", 0), 1
    env.reset()
    while not (step := env.step(np.zeros(1))).last:
        steps += 1
    assert (steps, step.discount) == (1000, 1.0)
    ended = dm_env.termination(1.0, {"observations": np.zeros(5)})
    monkeypatch.setattr(env._env, "step", lambda action: ended)
    step = env.step(np.zeros(1))
    assert (step.last, step.discount) == (True, 0.0)


@pytest.mark.parametrize("task", ["walker_stand", "quadruped_walk", "reacher_easy"])
def test_a_restored_simulation_continues_to_the_bit(task, tmp_path):
    env, random = Environment(task, 3), np.random.RandomState(0)
    for _ in range(3):  # reacher puts its target into the model, at each reset
        env.reset()
    actions = random.uniform(-1, 1, (60, env.action_dim))
    for action in actions[:30]:
        env.step(action)
    torch.save(env.state(), tmp_path / "state.pt")
    straight = [env.step(action) for action in actions[30:]]
    other = Environment(task, 99)
    other.restore(torch.load(tmp_path / "state.pt", weights_only=True))
    for action, expected in zip(actions[30:], straight, strict=True):
        step = other.step(action)
        assert np.array_equal(step.obs, expected.obs)
        assert np.array_equal(step.physics, expected.physics)
        assert step.reward == expected.reward
    assert np.array_equal(env.reset().obs, other.reset().obs)


def test_actions_and_states_of_the_wrong_size_are_refused():
    with pytest.raises(ValueError, match="must have 57 numbers, got 45"):
        TaskRewards("quadruped").of_states(np.zeros((2, 45)))  # without the 12 activations
    env = Environment("walker_run", 0)
    for action in (0.5, np.zeros(7), np.zeros((1, 6))):
        with pytest.raises(ValueError, match=r"action must have shape \(6,\), got"):
            env.step(action)


def test_seeds_are_whole_numbers_that_decide_the_initial_states():
    starts = [Environment("walker_run", s).reset().obs for s in (3, np.int64(3), 3 + 2**32, 4)]
    same = [np.array_equal(starts[0], start) for start in starts]
    assert same == [True, True, True, False], "dm_control takes 32 bits"
    for seed in (-1, 1.0, True, "1"):
        with pytest.raises(ValueError, match="seed must be"):
            Environment("walker_run", seed)
    assert derive_seed(np.int64(3), "a") == derive_seed(3, "a") != derive_seed(3 + 2**64, "a")


def test_tasks_of_a_domain_share_a_model_and_unknown_names_are_refused():
    assert envs.domain_tasks("walker") == ("walker_stand", "walker_walk", "walker_run")
    assert [envs.primal_task(d) for d in ("walker", "cheetah")] == ["walker_stand", "cheetah_run"]
    assert envs.domain_tasks("reacher") == ("reacher_easy",)  # `hard` has another target
    assert len(envs.domain_tasks("humanoid")) == 3  # one of four has other observations
    with pytest.raises(ValueError, match=r"no task 'walker_fly' \(nearest: 'walker_walk'\)"):
        Environment("walker_fly", 0)
    with pytest.raises(ValueError, match=r"no domain 'waker' \(nearest: 'walker'\)"):
        envs.primal_task("waker")


FEW = ("walker", "quadruped", "humanoid", "reacher", "fish")
OTHERS = set(suite.TASKS_BY_DOMAIN) - {*FEW, "dog"}  # of dog they read forces; it is refused
SLOW = [pytest.param(domain, marks=pytest.mark.slow) for domain in sorted(OTHERS)]


@pytest.mark.parametrize("domain", [*FEW, *SLOW])
def test_rewards_of_states_are_live_rewards_and_exorls_to_the_bit(domain):
    """Against the full forward pass and dm_control's own functions, a task at a time."""
    rewards, random = TaskRewards(domain), np.random.RandomState(2)
    env = Environment(envs.primal_task(domain), 0)
    env.reset()
    states, live = [], []
    for _ in range(30):
        states.append(env.step(random.uniform(-1, 1, env.action_dim)).physics)
        live.append(rewards(env.physics))
    relabelled = rewards.of_states(np.array(states))
    if domain in {"walker", "quadruped"}:  # others have targets that are no part of the states
        assert np.array_equal(relabelled, live)
    for column, name in enumerate(rewards.tasks):
        reference = suite.load(domain, name.removeprefix(f"{domain}_"), task_kwargs={"random": 0})
        reference.reset()
        physics = rewards._physics
        for row, state in enumerate(states):
            with physics.reset_context():
                physics.set_state(state)
            assert relabelled[row, column] == reference.task.get_reward(physics), (name, row)
    assert dm_rewards.tolerance is fast_rewards._TOLERANCE
    assert fast_rewards.FieldIndexer._convert_key is fast_rewards._CONVERT_KEY


@np.errstate(invalid="ignore")  # of infinities
def test_tolerance_of_a_number_is_dm_controls_to_the_bit():
    kinds = "gaussian", "hyperbolic", "long_tail", "reciprocal", "cosine", "linear", "quadratic"
    numbers = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, *np.random.RandomState(0).uniform(-5, 5, 99)]
    bounds = ((0.0, 0.0), (-1.0, 1.0), (1.0, np.inf))
    for kind, x, bound, margin in itertools.product(kinds, numbers, bounds, (0, 0.7)):
        options = {"bounds": bound, "margin": margin, "sigmoid": kind}
        expected = dm_rewards.tolerance(np.float64(x), **options)
        for number in (np.float64(x), np.array(x)):
            assert fast_rewards._tolerance(number, **options) == expected, (x, options)
