"""States drawn from datasets, their scaling, and the balls around them as they grow."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from belib import coverage, datasets, paths
from belib.config import PretrainConfig


def write_dataset(runs_dir, states, **config):
    """Write episodes (steps, d) of states; row 0 is 99 everywhere."""
    config = PretrainConfig(scale="test", **config)
    folder = config.folder(runs_dir)
    for index, steps in enumerate(states):
        rows = len(steps) + 1
        zeros = np.zeros((rows, 1), dtype=np.float32)
        obs = np.pad(steps, ((1, 0), (0, 0)), constant_values=99).astype(np.float32)
        rewards = np.r_[0, np.arange(1, rows) / rows + 1]
        tasks = {f"walker_{task}": rewards * i for i, task in enumerate(("run", "stand", "walk"))}
        episode = {"observation": obs, "action": zeros, "discount": zeros + 1}
        episode["reward"] = tasks["walker_stand"][:, None].astype(np.float32)
        datasets.write_episode(folder, index, episode | {"physics": np.zeros((rows, 18))}, tasks)
    (folder / "config.yaml").write_text(config.to_yaml())
    return datasets.load(folder)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Eight episodes of 50 steps of normal states, d = 6, the random ones half as wide."""
    random = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("runs")
    wide = write_dataset(folder, [random.normal(size=(50, 6)) for _ in range(8)])
    narrow = [0.5 * random.normal(size=(50, 6)) for _ in range(8)]
    return [wide, write_dataset(folder, narrow, objective="random")]


def test_each_state_has_its_dataset_episode_step_and_rewards(pair):
    states = coverage.draw_states(pair, size=100, tasks=["walker_stand"])
    assert states.features.shape == (200, 6)
    assert states.origins["parameter"].dropna().to_dict() == {"behavioral-0.5-s0": 0.5}
    for dataset in pair:
        mine = states.of(dataset.name)
        rows = states.rows[mine]
        obs = np.concatenate([episode["observation"][1:] for episode in dataset.episodes()])
        assert (states.features[mine] == obs[rows["step"] - 1]).all(), "no first states of episodes"
        assert (np.diff(rows["step"]) > 0).all()
        assert (rows["episode"] == (rows["step"] - 1) // 50).all()
        place = (rows["step"] - 1) % 50 + 1
        assert rows["walker_stand"].to_numpy() == pytest.approx(place / 51 + 1)


def test_a_draw_depends_on_the_dataset_and_the_seed_alone(pair):
    alone = coverage.draw_states(pair[1:], size=100)
    beside, other = (coverage.draw_states(pair, size=100, seed=seed) for seed in (0, 2**64))
    assert (beside.features[100:] == alone.features).all()
    assert not (other.rows["step"] == beside.rows["step"]).all()
    everything = coverage.draw_states(pair, size=400)
    assert everything.rows["step"].tolist() == [*range(1, 401)] * 2
    for given, options, message in (
        (pair, {"size": 401}, "size must be between 1 and 400, got 401"),
        (pair, {"size": 5, "seed": -1}, "seed must be at least 0, got -1"),
        ([], {}, "datasets must share one domain"),
        (pair[:1] * 2, {"size": 5}, "and differ in their names"),
        ([pair[0], replace(pair[1], domain="hopper")], {"size": 5}, "one domain"),
    ):
        with pytest.raises(ValueError, match=message):
            coverage.draw_states(given, **options)


def test_robust_scaling_forgets_units_and_keeps_what_varies():
    random = np.random.default_rng(0)
    x = random.normal(size=(4000, 3))
    scaled = coverage.scale(x, "robust")
    assert scaled.std(0) == pytest.approx(np.ones(3), abs=0.05)
    assert coverage.scale(1e4 * x - 7, "robust") == pytest.approx(scaled, abs=1e-9)
    more = np.column_stack([x, np.full(4000, 2.0), 5.0 * (np.arange(4000) < 9)])
    scaled = coverage.scale(more, "robust")
    assert scaled.shape == (4000, 4), "the constant column is dropped"
    assert scaled[:, 3].std() == pytest.approx(1)
    assert coverage.scale(more, "none") is more
    for wrong, scaling, message in (
        (x, "zscore", "scaling must be one of none, robust, got 'zscore'"),
        (np.ones((5, 2)), "robust", "features must vary in a column or more, got 5 equal rows"),
        (np.full((5, 2), np.nan), "none", r"features must be finite, got nan at index \[0, 0\]"),
    ):
        with pytest.raises(ValueError, match=message):
            coverage.scale(wrong, scaling)


def test_volumetric_coverage_is_the_ball_of_states_so_far(pair, tmp_path):
    table = coverage.volumetric_coverage(pair)
    assert len(table) == 2 * 2 * 10
    for (name, scaling), curve in table.groupby(["dataset", "scaling"]):
        assert (curve["step"] == 5 * curve["points"]).all(), (name, scaling)
        assert curve["points"].tolist() == [*range(8, 81, 8)]
        assert curve["radius"].diff().min() >= -1e-12, "a ball of more states is not smaller"
    largest = table.groupby("scaling")["radius"].transform("max")
    assert (table["coverage"] == table["radius"] / largest).all()
    last = table.groupby(["scaling", "dataset"])["coverage"].last().unstack()
    assert (last["random-s0"] < 0.75 * last["behavioral-0.5-s0"]).all(), "made half as wide"
    x = (np.random.default_rng(0).normal(size=(10, 6)) * [1e3, 1, 1, 1, 1, 1]).astype(np.float32)
    table = coverage.volumetric_coverage([write_dataset(tmp_path, [x])]).set_index("scaling")
    for scaling in coverage.SCALINGS:  # one state is drawn of each of ten steps: all
        ball, last = coverage.smallest_ball(coverage.scale(x, scaling)), table.loc[scaling].iloc[-1]
        assert last["radius"] == pytest.approx(ball.radius, rel=1e-12)
        assert last["leading_share"] > 0.99 or scaling == "robust", "one raw sensor decides"


def test_datasets_are_found_by_domain_name_or_pattern(pair, monkeypatch):
    folder, runs_dir = pair[0].folder.parent, pair[0].folder.parents[2]
    monkeypatch.setattr(paths, "ROOT", runs_dir.parent)  # which relative paths mean
    ask = partial(datasets.find_datasets, runs_dir.name, "walker")
    assert ask() == ask(["*"]) == ask(["random-s0", "beh*", "*"])[::-1] == pair
    assert datasets.find_datasets(runs_dir, "quadruped") == []
    assert ask(["random-s0"]) == ask(["r*"]) == pair[1:]
    for name in ("", ".", "..", "none", "none*", "[", f"{folder}/random-s0"):
        with pytest.raises(datasets.DatasetError, match=re.escape(str(folder))):
            ask([name])
