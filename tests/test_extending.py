"""An objective and an environment of the user's are collected, relabelled, learnt and shown."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from dm_control.rl import control
from dm_control.suite import cartpole

from belib import datasets, envs, figures, training
from belib.agents.apt import APT
from belib.rewards import OBJECTIVES, Objective, facts


class Reach(cartpole.Balance):
    """Paid for being at a place on the rail."""

    def __init__(self, place, random):
        super().__init__(swing_up=False, sparse=False, random=random)
        self.place = place

    def get_reward(self, physics):
        return float(np.exp(-4 * (physics.cart_position() - self.place) ** 2))


def reach(place, random=None, environment_kwargs=None):
    physics = cartpole.Physics.from_xml_string(*cartpole.get_model_and_assets())
    return control.Environment(physics, Reach(place, random), time_limit=1.0, **environment_kwargs)


@pytest.fixture
def rail(monkeypatch):
    """A registered domain, which the other tests do not see."""
    monkeypatch.setattr(envs, "DOMAINS", envs.DOMAINS.new_child())
    envs.register("rail", {"left": partial(reach, -0.5), "right": partial(reach, 0.5)})
    yield "rail"
    caches = envs.domain_tasks, envs.domain_sizes, envs._model_and_reward, envs._targets
    for remembered in (*caches, datasets.relabelling._task_rewards):
        remembered.cache_clear()


def test_a_domain_and_an_objective_are_collected_relabelled_and_learnt(
    rail, small_pretrain, small_offline, tmp_path, monkeypatch
):
    """The objective pays roots of distances, of order q."""
    root = lambda distance, *, q: distance ** (1 / q)  # noqa: E731
    monkeypatch.setitem(OBJECTIVES, "power", Objective(lambda c: partial(root, q=c.q), "q"))
    sizes = {"domain": rail, "num_steps": 400, "random_steps": 200}
    config = small_pretrain(objective="power", q=3.0, **sizes)
    assert (config.dataset, config.parameter) == ("power-3-s0", 3.0)
    assert config.unused_fields == ("alpha", "renyi_form")
    assert facts(config, obs_dim=24) == {"q": 3.0}
    assert APT(5, 2, [config]).rewards[0](torch.tensor(8.0)) == pytest.approx(2.0)
    assert figures.style.objective_label("power", 3.0) == "power 3"
    both = [config, small_pretrain(**sizes)]
    folders = training.pretrain(both, runs_dir=tmp_path, progress=False)
    assert [folder.name for folder in folders] == ["power-3-s0", "behavioral-0.5-s0"]
    assert datasets.read_card(folders[0])["parameter"] == 3.0
    assert [datasets.validate(folder) for folder in folders] == [[], []]
    dataset = datasets.load(folders[0])
    assert [dataset.lengths, dataset.domain] == [[100] * 4, rail]
    again = np.concatenate(datasets.relabel(dataset, "rail_right"))
    assert (again == np.concatenate(datasets.task_rewards(dataset, ["rail_right"]))[:, 0]).all()
    assert not (dataset.folder / "relabelled").exists()  # its rewards may change
    pairs = [("power-3-s0", "rail_left"), ("behavioral-0.5-s0", "rail_right")]
    configs = [small_offline(domain=rail, dataset=name, task=task) for name, task in pairs]
    groups = [[config] for config in configs]
    table = pd.concat(training.in_parallel(training.train_offline, groups, runs_dir=tmp_path))
    assert {*zip(table["dataset"], table["task"], strict=True)} == {*pairs}
    assert set(table["objective"]) == {"power", "behavioral"}
    alone = [small_offline(domain=rail, task=task) for _, task in pairs]
    assert len(training.evaluate_baselines(alone, runs_dir=tmp_path)) == 4
    assert envs.observation_names(rail)[2:4] == ["position 2", "velocity 0"]
    assert envs.domain_sizes(rail) == {"observation": 5, "action": 1, "physics": 4}


def test_a_reward_that_remembers_is_recorded_as_it_was_paid(
    rail, small_pretrain, tmp_path, monkeypatch
):
    monkeypatch.setattr(Reach, "get_reward", lambda self, _: float(self.random.uniform()))
    config = small_pretrain(domain=rail, objective="random", num_steps=200)
    (folder,) = training.pretrain(config, runs_dir=tmp_path, progress=False)
    stored = np.concatenate([e["reward"][:, 0] for e in datasets.load(folder).episodes()])
    (recorded,) = np.concatenate(datasets.task_rewards(datasets.load(folder), ["rail_left"])).T
    np.testing.assert_array_equal(recorded.astype(np.float32), stored)


def test_names_that_cannot_be_registered():
    for domain, tasks, message in (
        ("walker", {"fly": reach}, "must be new, got walker"),
        ("a/b", {"fly": reach}, r"must have identifiers as names, got \['a/b'"),
    ):
        with pytest.raises(ValueError, match=message):
            envs.register(domain, tasks)
