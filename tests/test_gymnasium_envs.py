"""Environments of Gymnasium are collected, relabelled, learnt from, exported and resumed."""

import sys

import numpy as np
import pytest
from test_pretrain import contents, run_killed

from belib import coverage, datasets, envs, figures, training
from belib.envs import Environment, PhysicsError, TaskRewards
from belib.training.collection import Collection

pytest.importorskip("imageio", reason="needs pip install 'belib[gymnasium]'")  # by its MuJoCo
gymnasium = pytest.importorskip("gymnasium", reason="needs pip install 'belib[gymnasium]'")
Box, Dict = gymnasium.spaces.Box, gymnasium.spaces.Dict

MUJOCO = ["HalfCheetah-v5", "Hopper-v5", "Ant-v5"]  # Ant's reward reads what a step before left
OTHERS = [f"{n}-v5" for n in ("Humanoid", "Pusher", "Reacher", "Swimmer", "Walker2d")]


class Tiny(gymnasium.Env):
    """Pays the action; ends at random. It has no limit of time."""

    observation_space = Dict(place=Box(-9, 9, (2, 2)), way=Box(-np.inf, np.inf, (1,), np.float64))
    action_space = Box(np.array([-1, 0]), np.array([1, 3]), dtype=np.float32)
    ends, noise = 0.05, 0.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observe(), {}

    def observe(self):
        place = self.np_random.random((2, 2), np.float32) + self.noise
        return {"place": place, "way": np.zeros(1)}

    def step(self, action):
        ended = self.np_random.random() < self.ends
        return self.observe(), action.sum(), ended, False, {}


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Registers `mine/Tiny-v0`; other tests see no domain of Gymnasium."""
    monkeypatch.setattr(envs, "DOMAINS", envs.DOMAINS.new_child())
    gymnasium.register("mine/Tiny-v0", Tiny)
    yield "gymnasium-mine-Tiny-v0"
    del gymnasium.registry["mine/Tiny-v0"]


def test_actions_terminations_and_truncations_by_hand(tiny, monkeypatch):
    env = Environment(f"{tiny}_reward", 3)
    assert (env.obs_dim, env.action_dim, env.physics_dim) == (5, 2, 0)
    assert envs.domain_tasks("gymnasium-test_extending:mine-Tiny-v0")  # imports a module first
    assert envs.observation_names(tiny)[:2] == ["observations 0", "observations 1"]
    step = env.reset()
    assert (step.obs.dtype, step.reward, step.discount, step.last) == (np.float32, 0, 1, False)
    assert env.step(np.array([1.0, 1.0])).reward == 1 + 3
    assert env.step(np.array([-1.0, 0.0])).reward == -1 + 1.5
    while not (step := env.step(np.zeros(2))).last:
        pass
    assert step.discount == 0
    monkeypatch.setattr(Tiny, "ends", 0.0)
    env.reset()
    steps = [env.step(np.zeros(2)) for _ in range(1000)]
    assert ([step.last for step in steps].index(True), steps[-1].discount) == (999, 1)
    monkeypatch.setattr(Tiny, "noise", np.nan)
    with pytest.raises(PhysicsError, match=r"mine/Tiny-v0 gave a number that is not finite"):
        env.step(np.zeros(2))


@pytest.mark.parametrize("name", ["Pendulum-v1", "HalfCheetah-v5"])
def test_an_environment_is_gymnasiums_to_the_bit(name):
    env, random = Environment(f"gymnasium-{name}_reward", 3), np.random.RandomState(3)
    plain, draw = gymnasium.make(name), np.random.RandomState(0)
    half_range = plain.action_space.high.astype(np.float64)
    for _ in range(2):  # each reset has a seed of the member's stream
        obs, _ = plain.reset(seed=random.randint(2**31 - 1))
        assert np.array_equal(env.reset().obs, obs.astype(np.float32))
        for _ in range(30):
            action = draw.uniform(-1, 1, env.action_dim).astype(np.float32)
            step, expected = env.step(action), plain.step((half_range * action).astype(np.float32))
            assert np.array_equal(step.obs, expected[0].astype(np.float32))
            assert step.reward == expected[1]


@pytest.mark.parametrize("name", MUJOCO + [pytest.param(n, marks=pytest.mark.slow) for n in OTHERS])
def test_rewards_of_states_and_actions_are_live_rewards_to_the_bit(name):
    rewards, random = TaskRewards(f"gymnasium-{name}"), np.random.RandomState(0)
    env = Environment(*rewards.tasks, 7)
    steps, actions = [env.reset()], np.zeros((41, env.action_dim), np.float32)
    actions[1:] = random.uniform(-1, 1, (40, env.action_dim))
    for action in actions[1:]:
        steps.append(env.step(action))
        assert rewards(env.physics) == steps[-1].reward
    states = np.array([step.physics for step in steps])
    assert np.array_equal(rewards.of_states(states, actions)[:, 0], [s.reward for s in steps])


@pytest.mark.parametrize("name", ["Pendulum-v1", "Hopper-v5", "mine/Tiny-v0"])
def test_a_domain_is_collected_relabelled_learnt_and_exported(
    name, small_pretrain, small_offline, tmp_path, monkeypatch
):
    config = small_pretrain(domain=f"gymnasium/{name}", num_steps=300)
    (folder,) = training.pretrain(config, runs_dir=tmp_path, progress=False)
    assert datasets.validate(folder) == []
    dataset, (task,) = datasets.load(folder), envs.domain_tasks(config.domain)
    assert dataset.domain == config.domain == f"gymnasium-{name.replace('/', '-')}"
    assert datasets.read_card(folder)["versions"]["gymnasium"] == gymnasium.__version__
    ends = np.concatenate([episode["discount"][-1] for episode in dataset.episodes()])
    assert set(ends) == {1.0} if name == "Pendulum-v1" else 0.0 in ends
    if name == "Hopper-v5":
        again, recorded = datasets.relabel(dataset, task), datasets.task_rewards(dataset, [task])
        assert np.array_equal(np.concatenate(again)[:, None], np.concatenate(recorded))
    else:
        with pytest.raises(datasets.DatasetError, match="has no physics states"):
            datasets.relabel(dataset, task)
    learner = small_offline(domain=config.domain, task=f"gymnasium/{name}_reward")
    (table,) = training.in_parallel(training.train_offline, [[learner]], runs_dir=tmp_path)
    assert set(table["task"]) == {task}
    assert np.isfinite(table["return"]).all()
    assert len(training.evaluate_baselines(learner, runs_dir=tmp_path)) == 2
    both = [dataset, *training.random_like([dataset], scale="smoke", runs_dir=tmp_path)]
    assert len(coverage.measures(coverage.draw_states(both, size=100), halves=0)) == 2
    assert [ax.get_title() for ax in figures.collection.torso(*both)] == [d.name for d in both]
    minari = pytest.importorskip("minari", reason="needs pip install 'belib[minari]'")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    datasets.export_minari(dataset)
    stored = minari.load_dataset(f"belib/{dataset.domain}/behavioral-0_5-s0-v0")
    terminated = [episode.terminations[-1] for episode in stored.iterate_episodes()]
    assert terminated == [end == 0 for end in ends]


@pytest.mark.usefixtures("frequent_checkpoints")
@pytest.mark.parametrize("name", ["Hopper-v5", "Pendulum-v1", "mine-Tiny-v0"])
def test_a_killed_collection_ends_in_the_same_bytes(name, small_pretrain, tmp_path):
    sizes = {"random_steps": 20, "num_steps": 120, "convention": "corrected"}
    configs = [small_pretrain(domain=f"gymnasium/{name}", seed=seed, **sizes) for seed in (0, 1)]
    training.pretrain(configs, runs_dir=tmp_path / "straight", progress=False)
    options = {"runs_dir": tmp_path / "killed", "checkpoint_minutes": 0.2}
    run_killed((15, 75), Collection, training.pretrain, configs, **options)
    assert contents(tmp_path / "killed") == contents(tmp_path / "straight")


def test_what_does_not_repeat_itself_is_not_resumed(tiny, monkeypatch):
    env = Environment(f"{tiny}_reward", 0)
    env.reset()
    state = env.state()
    monkeypatch.setattr(Tiny, "noise", 0.5)
    with pytest.raises(ValueError, match="mine/Tiny-v0 does not repeat itself"):
        env.restore(state)


def test_environments_that_cannot_be_had_are_refused_in_words(monkeypatch):
    monkeypatch.setattr(Tiny, "action_space", Box(-np.inf, 1, (2,)))
    for name, message in (
        ("Pendulm-v1", "Did you mean: `Pendulum`"),
        ("Pendulum-v7", r"It provides versioned environments: \[ `v1` \]"),
        ("CartPole-v1", r"bounded Box actions, got Box.* and Discrete\(2\)"),
        ("FrozenLake-v1", r"Box observations, .* got Discrete\(16\)"),
        ("mine-Tiny-v0", r"bounded Box actions, got Dict.* and Box\(-inf"),
        ("no_module:Mine-v0", "No module named 'no_module'"),
    ):
        with pytest.raises(ValueError, match=message):
            Environment(f"gymnasium-{name}_reward", 0)
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ValueError, match="install belib's extra gymnasium"):
        Environment("gymnasium-Pendulum-v1_reward", 0)
