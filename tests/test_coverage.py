"""States drawn from datasets, their scaling, and the balls that they need as they grow."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from belib import coverage, datasets, paths
from belib.config import PretrainConfig
from belib.coverage.states import draw_increments

TASKS = ("run", "stand", "walk")


def write_dataset(runs_dir, states, **config):
    """Write episodes (steps, d) of states; row 0 is 99 everywhere."""
    config = PretrainConfig(scale="test", **config)
    folder = config.folder(runs_dir)
    for index, steps in enumerate(states):
        rows = len(steps) + 1
        zeros = np.zeros((rows, 1), dtype=np.float32)
        obs = np.vstack([np.full((1, steps.shape[1]), 99.0), steps]).astype(np.float32)
        tasks = {
            f"walker_{t}": np.r_[0, np.arange(1, rows) / rows + i] for i, t in enumerate(TASKS)
        }
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
    assert states.names == ["behavioral-0.5-s0", "random-s0"]
    assert states.rows["objective"].tolist() == ["behavioral"] * 100 + ["random"] * 100
    assert states.rows["parameter"].isna().tolist() == [False] * 100 + [True] * 100
    for dataset in pair:
        mine = states.of(dataset.name)
        rows, episodes = states.rows[mine], list(dataset.episodes())
        assert rows["step"].is_monotonic_increasing
        assert rows["step"].is_unique
        assert (rows["step"] == 50 * rows["episode"] + rows["row"]).all()
        for features, (_, row) in zip(states.features[mine], rows.iterrows(), strict=True):
            assert (features == episodes[row["episode"]]["observation"][row["row"]]).all()
            assert row["walker_stand"] == row["row"] / 51 + 1
    assert states.features.max() < 99, "first states of episodes are not drawn"


def test_merged_data_are_described_by_what_their_sources_share(pair, tmp_path):
    again = write_dataset(tmp_path / "again", [np.ones((20, 6))], seed=1)
    merged = datasets.merge([pair[0], again], tmp_path / "more" / "walker" / "both")
    rows = coverage.draw_states([merged, pair[0]], size=10).rows
    described = rows[["objective", "parameter", "seed"]].drop_duplicates().to_numpy().tolist()
    assert described == [["behavioral", 0.5, None], ["behavioral", 0.5, 0]]


def test_a_draw_depends_on_the_dataset_and_the_seed_alone(pair):
    alone = coverage.draw_states(pair[1:], size=100)
    beside, again, other = (coverage.draw_states(pair, size=100, seed=s) for s in (0, 0, 1))
    assert (beside.features[100:] == alone.features).all()
    assert (again.features == beside.features).all()
    assert not (other.rows["step"] == beside.rows["step"]).all()
    everything = coverage.draw_states(pair, size=400)
    assert everything.rows["step"].tolist() == [*range(1, 401)] * 2


def test_increments_have_their_share_also_where_they_do_not_divide(pair, make_dataset):
    states = draw_increments(pair, 10, 0.2, 0)
    assert states.rows.groupby(["dataset", "increment"]).size().tolist() == [8] * 20  # of 40
    assert (states.rows["increment"] == np.ceil(states.rows["step"] / 40)).all()
    rows = draw_increments([make_dataset(lengths=[101, 100, 2])], 10, 1.0, 0).rows
    assert rows["step"].tolist() == list(range(1, 204))
    for number, steps in rows.groupby("increment")["step"]:
        assert round(20.3 * (number - 1)) < steps.min() <= steps.max() == round(20.3 * number)


def test_draws_that_make_no_sense_are_refused(pair):
    draw = coverage.draw_states
    for function, given, options, message in (
        (draw, pair, {"size": 401}, "size must be between 1 and the 400 steps of behavioral"),
        (draw, pair, {"size": 5.0}, "size must be an integer, got 5.0"),
        (draw, pair, {"size": 5, "seed": -1}, "seed must be at least 0, got -1"),
        (draw, [], {"size": 5}, "datasets must be at least one"),
        (draw, [pair[0], pair[0]], {"size": 5}, "each with its own name"),
        (draw, [pair[0], replace(pair[1], domain="quadruped")], {"size": 5}, "one domain"),
        (coverage.volumetric_coverage, pair, {"increments": 401}, "between 1 and the 400 steps"),
        (coverage.volumetric_coverage, pair, {"share": 2}, "above 0, at most 1 .* got 2.0"),
    ):
        with pytest.raises(ValueError, match=message):
            function(given, **options)
    assert len(draw(pair, size=np.int64(5), seed=2**64).rows) == 10


def test_robust_scaling_forgets_units_and_keeps_what_varies():
    random = np.random.default_rng(0)
    x = random.normal(size=(4000, 3))
    scaled = coverage.scale(x, "robust")
    assert scaled.std(0) == pytest.approx(np.ones(3), abs=0.05)
    assert coverage.scale(1e4 * x - 7, "robust") == pytest.approx(scaled, abs=1e-9)
    rarely = np.zeros(4000)
    rarely[:9] = 5.0
    more = np.column_stack([x, np.full(4000, 2.0), rarely])
    scaled = coverage.scale(more, "robust")
    assert scaled.shape == (4000, 4), "the constant column is dropped"
    assert scaled[:, 3].std() == pytest.approx(1)
    assert coverage.scale(more, "none") is more
    for unit in (2.0**-900, 2.0**900):  # whose squares floats cannot hold
        assert (coverage.scale(unit * more, "robust") == scaled).all()
    for wrong, scaling, message in (
        (x, "zscore", "scaling must be one of none, robust, got 'zscore'"),
        (np.ones((5, 2)), "robust", "features must vary in a column or more, got 5 equal rows"),
        (np.full((5, 2), np.nan), "none", r"features must be finite, got nan at index \[0, 0\]"),
    ):
        with pytest.raises(ValueError, match=message):
            coverage.scale(wrong, scaling)


def test_volumetric_coverage_is_the_ball_of_the_points_so_far(pair):
    table = coverage.volumetric_coverage(pair, increments=4, share=0.5)
    states = draw_increments(pair, 4, 0.5, 0)
    assert len(table) == 2 * 2 * 4
    for (name, scaling), curve in table.groupby(["dataset", "scaling"]):
        assert curve["step"].tolist() == [100, 200, 300, 400]
        assert curve["points"].tolist() == [50, 100, 150, 200]
        assert curve["radius"].is_monotonic_increasing
        points = coverage.scale(states.features, scaling)[states.of(name)]
        for size, radius in zip(curve["points"], curve["radius"], strict=True):
            assert radius == pytest.approx(coverage.smallest_ball(points[:size]).radius, rel=1e-12)
    largest = table.groupby("scaling")["radius"].transform("max")
    assert (table["coverage"] == table["radius"] / largest).all()
    last = table.groupby(["scaling", "dataset"])["coverage"].last().unstack()
    assert (last["random-s0"] < 0.75 * last["behavioral-0.5-s0"]).all(), "made half as wide"


def test_in_raw_units_one_sensor_can_decide(tmp_path):
    random = np.random.default_rng(0)
    states = [random.normal(size=(50, 6)) * [1000, 1, 1, 1, 1, 1] for _ in range(4)]
    table = coverage.volumetric_coverage([write_dataset(tmp_path, states)], increments=2)
    share = table.groupby("scaling")["leading_share"].last()
    assert share["none"] > 0.99
    assert share["robust"] < 0.6


def test_datasets_are_found_by_domain_name_or_pattern(pair, monkeypatch):
    behavioral, random = pair
    folder, runs_dir = random.folder.parent, random.folder.parents[2]
    merging = folder / ".merged.99.tmp" / "buffer"  # of a merge that was killed
    merging.mkdir(parents=True)
    (merging / "episode_000000_1.npz").touch()
    monkeypatch.setattr(paths, "ROOT", random.folder.parents[3])  # which relative paths mean
    ask = partial(datasets.find_datasets, runs_dir.name, "walker")
    assert ask() == ask(["*"]) == ask(["random-s0", "beh*", "*"])[::-1] == [behavioral, random]
    assert datasets.find_datasets(runs_dir, "quadruped") == []
    assert ask(["random-s0"]) == ask(["r*"]) == [random]
    for name in ("", ".", "..", "none", "none*", "[", f"{folder}/random-s0"):
        with pytest.raises(datasets.DatasetError, match=re.escape(str(folder))):
            ask([name])
