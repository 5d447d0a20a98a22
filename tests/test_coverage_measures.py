"""Measures of coverage against what can be computed by hand, and what goes with returns."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr

from belib import coverage, estimators, results
from belib.config import OfflineConfig, PretrainConfig
from belib.coverage.measures import net, random_halves, standard_error


def make_states(features, objectives=("behavioral", "random"), episodes=8):
    """Make a dataset of each array (n, d), cut into episodes of equal length."""
    rows = []
    for name, x in zip(objectives, features, strict=True):
        episode = np.arange(len(x)) * episodes // len(x)
        known = {"dataset": f"{name}-s0", "objective": name, "parameter": np.nan, "seed": 0}
        rows.append(pd.DataFrame({**known, "scale": "test", "episode": episode}))
    return coverage.States(np.concatenate(features), pd.concat(rows, ignore_index=True))


@pytest.fixture(scope="module")
def states():
    random = np.random.default_rng(0)
    return make_states([random.normal(size=(400, 4)), 0.2 * random.normal(size=(400, 4))])


@pytest.fixture(scope="module")
def parts(states):
    """The scaled states of the two datasets."""
    features = coverage.scale(states.features, "robust")
    return [features[states.of(name)] for name in states.names]


@pytest.fixture(scope="module")
def table(states):
    return coverage.measures(states, halves=10)


def test_a_row_a_dataset_and_a_standard_error_a_measure(table):
    assert table.index.tolist() == ["behavioral-s0", "random-s0"]
    assert set(coverage.MEASURES) <= set(table)
    errors = [f"{name}_se" for name in coverage.MEASURES if not name.startswith("radius")]
    assert (table.loc["behavioral-s0", errors] > 0).all()
    assert (table["episodes"] == 8).all()


def test_a_narrow_dataset_visits_fewer_places_and_is_denser(table):
    wide, narrow = table.loc["behavioral-s0"], table.loc["random-s0"]
    assert narrow["net"] < 0.5 * wide["net"]
    assert narrow["radius_robust"] < 0.5 * wide["radius_robust"]
    assert narrow["shannon"] < wide["shannon"]


def test_entropies_are_the_estimators_called_by_hand(parts, table):
    """In another unit of volume: v adds log v to Shannon's and Renyi's, nothing to differences."""
    shannon = [estimators.shannon_entropy_knn(x).value for x in parts]
    renyi = [estimators.renyi_entropy_knn(x, q=0.5).value for x in parts]
    assert np.diff(table["shannon"]) == pytest.approx(np.diff(shannon), rel=1e-9)
    assert np.diff(table["renyi"]) == pytest.approx(np.diff(renyi), rel=1e-9)
    volume = math.exp(shannon[0] - table["shannon"].iloc[0])
    options = {"alpha": 0.5, "reference_volume": volume}
    behavioral = [estimators.behavioral_entropy_knn(x, **options).value for x in parts]
    assert table["behavioral"].tolist() == pytest.approx(np.log(behavioral), rel=1e-9)
    assert np.diff(table["shannon"]) == pytest.approx(4 * math.log(0.2), abs=0.4)


def test_states_without_a_density_have_no_entropy(states):
    """All equal, three places, or one feature that is constant: the other dataset is measured."""
    normal = states.features[:400]
    flat = normal * [1, 1, 1, 0]
    for features in (np.zeros((400, 4)), normal[np.arange(400) % 3], flat):
        table = coverage.measures(make_states([normal, features]), halves=2)
        nothing = table.loc["random-s0", ["shannon", "renyi", "behavioral"]]
        assert nothing.isna().all()
        assert table.loc["behavioral-s0", list(coverage.MEASURES)].notna().all()
        assert np.isnan(table.loc["random-s0", "dimension"]) == (features is not flat)
        others = ["net", "recall", "radius_none", "radius_robust"]
        assert np.isfinite(table.loc["random-s0", others].astype(float)).all()


def test_equal_points_count_once(parts, table):
    doubled = coverage.measures(make_states([np.repeat(x, 2, axis=0) for x in parts]), halves=2)
    assert np.diff(doubled["shannon"]) == pytest.approx(np.diff(table["shannon"]), rel=1e-9)
    x = parts[0]
    assert coverage.intrinsic_dimension(np.repeat(x, 2, axis=0)) == coverage.intrinsic_dimension(x)


def test_intrinsic_dimension_of_a_sheet_in_space_and_of_points_that_have_none():
    random = np.random.default_rng(0)
    sheet = random.uniform(size=(3000, 3)) @ random.normal(size=(3, 24))
    assert coverage.intrinsic_dimension(sheet) == pytest.approx(3, abs=0.2)
    walk = random.normal(size=(2000, 24)).cumsum(0)
    assert coverage.intrinsic_dimension(walk) < 3, "neighbours in time are a line"
    assert coverage.intrinsic_dimension(np.eye(12)) == math.inf, "all distances are equal"
    x = random.normal(size=(12, 2))
    for points, k in ((np.zeros((30, 3)), 10), (x, 1), (x, 12), (x, 5.0), (x[:, 0], 5)):
        with pytest.raises(ValueError, match=r"k must be|points must have 2 axes"):
            coverage.intrinsic_dimension(points, k=k)


def test_a_net_has_cells_by_place_not_by_crowd():
    random = np.random.default_rng(0)
    places = 10.0 * np.arange(5)[:, None]
    sizes = [1, 2, 500, 3, 1]
    points = np.repeat(places, sizes, axis=0) + 0.1 * random.normal(size=(507, 1))
    cell = net(points, 5)
    assert len(np.unique(cell)) == 5
    assert pd.Series(cell).groupby(np.repeat(range(5), sizes)).nunique().eq(1).all()
    assert len(np.unique(net(np.repeat(places, 3, axis=0), 9))) == 5, "equal points share a cell"


def test_shares_of_datasets_far_apart_and_of_equal_ones(states):
    """A dataset far away reaches none of the other's cells and joint states."""
    apart = states.features + 1000.0 * states.of("random-s0")[:, None]
    shares = coverage.measures(coverage.States(apart, states.rows), halves=2)[["net", "recall"]]
    assert shares["net"].sum() == pytest.approx(1), "each cell has a dataset"
    assert shares["recall"].between(0.1, 0.5).all()
    same = np.random.default_rng(1).normal(size=(2, 1200, 4))
    assert coverage.measures(make_states(list(same)), halves=2)["net"].gt(0.5).all()


def test_distance_to_random_is_the_energy_distance(states, parts, table):
    x, y = parts
    squared = 2 * cdist(x, y).mean() - cdist(x, x).mean() - cdist(y, y).mean()
    assert table["from_random"].tolist() == pytest.approx([math.sqrt(squared), 0.0], abs=1e-6)
    assert np.isnan(table.loc["random-s0", "from_random_se"])
    assert "from_random" not in coverage.measures(make_states([x, y], ("behavioral", "shannon")))


def test_halves_of_episodes_see_that_points_of_an_episode_depend():
    """Means of 20 episodes with a common part each: the iid formula is 5 times too small."""
    random, errors, means = np.random.default_rng(0), [], []
    for _ in range(200):
        x = random.normal(size=(20, 1)) + 0.5 * random.normal(size=(20, 50))
        halves = random_halves(20, 40, seed=0)
        errors.append(standard_error([x[keep].mean() for keep in halves], 20))
        means.append(x.mean())
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(means), rel=0.15)


def test_halves_are_halves_and_few_episodes_have_none():
    halves = random_halves(9, 50, seed=0)
    assert (halves.sum(1) == 4).all()
    assert len(np.unique(halves, axis=0)) > 30
    assert len(random_halves(5, 50, seed=0)) == 0
    assert np.isnan(standard_error([], 5))


def test_measures_that_make_no_sense_are_refused(states):
    rows = states.rows[::5].reset_index(drop=True)
    with pytest.raises(ValueError, match="each dataset must have 100 points or more, got 80"):
        coverage.measures(coverage.States(states.features[::5], rows))
    for value, message in (
        (1, "features must vary"),
        (0, "k must be between 1 and 1 for 2 points"),
    ):
        with pytest.raises(ValueError, match=message):
            coverage.measures(make_states([np.ones((200, 3)), np.full((200, 3), value)]))
    for name, values in {
        "k": (0, 5.0, 1000),
        "alpha": (0, -1.0, np.nan),
        "q": (0, np.inf),
        "halves": (-1, 2.0),
        "seed": (-1, 0.5),
    }.items():
        for value in values:
            with pytest.raises(ValueError, match=f"{name} must be"):
                coverage.measures(states, **{name: value})
    measured = coverage.measures(states, k=np.int64(5), halves=np.int64(2), seed=2**64)
    assert (measured["points"] == 400).all()


@pytest.fixture
def returns():
    names = [f"d{i}" for i in range(8)]
    return pd.DataFrame(
        {"task": "walker_walk", "algorithm": "td3", "dataset": names, "return": np.arange(8) ** 2}
    )


def test_rank_correlations_find_what_is_planted(returns):
    noise = [3, 1, 4, 1, 5, 9, 2, 6]
    planted = {"shannon": np.exp(np.arange(8)), "net": -np.arange(8), "dimension": noise}
    measured = pd.DataFrame({**planted, "recall": 1.0, "seed": 0}, index=returns["dataset"])
    rows = coverage.rank_correlations(measured, returns).set_index("measure")
    assert rows["rho"].to_dict() == {
        "shannon": pytest.approx(1),
        "net": pytest.approx(-1),
        "dimension": pytest.approx(spearmanr(noise, np.arange(8)).statistic),
    }
    low, rho, high = rows.loc["dimension", ["low", "rho", "high"]]
    assert low < rho < high
    assert 0.5 < high - low < 2
    assert rows.loc["shannon", ["low", "high"]].gt(0.95).all()


def test_datasets_of_one_recipe_are_one_point(returns):
    """Eight datasets of four recipes are too few; a second one of each, as good, adds nothing."""
    names, seeds = [f"rnd-{i // 2}-s{i % 2}" for i in range(8)], [0, 1] * 4
    measured = pd.DataFrame({"shannon": np.arange(8.0), "seed": seeds}, index=names)
    assert coverage.rank_correlations(measured, returns.assign(dataset=names)).empty
    tables = []
    for count in (1, 2):
        names = [f"rnd-{i}-s{seed}" for seed in range(count) for i in range(8)]
        columns = {"shannon": [3, 1, 4, 1, 5, 9, 2, 6] * count, "seed": np.repeat(range(count), 8)}
        repeated = pd.concat([returns] * count, ignore_index=True).assign(dataset=names)
        tables.append(coverage.rank_correlations(pd.DataFrame(columns, index=names), repeated))
    pd.testing.assert_frame_equal(*tables)


def test_too_few_datasets_say_nothing(returns, tmp_path):
    measured = pd.DataFrame({"shannon": np.arange(8.0), "seed": 0}, index=returns["dataset"])
    assert coverage.rank_correlations(measured, returns[:4]).empty
    assert len(coverage.rank_correlations(measured, returns[:5])) == 1
    assert coverage.rank_correlations(measured, coverage.offline_returns(tmp_path, "walker")).empty


def test_returns_are_final_means_over_seeds_without_baselines(tmp_path):
    rows = []
    for seed, value in ((0, 100.0), (1, 200.0)):
        config = OfflineConfig(seed=seed)
        for step, extra in ((10, 7.0), (20, 0.0)):
            values = np.array([value + extra])
            rows.append(results.row(config, PretrainConfig(), step, values, "a"))
        changes = {"algorithm": "zero action", "dataset": "none"}
        rows.append(results.row(config, None, 0, np.array([1.0]), "a", **changes))
    folder = tmp_path / "offline" / "walker"
    folder.mkdir(parents=True)
    results.write(folder / "results.csv", pd.DataFrame(rows))
    other = pd.DataFrame(rows).assign(scale="another")  # of another runs_dir below this one
    (tmp_path / "quickstart").mkdir()
    results.write(tmp_path / "quickstart" / "results.csv", other)
    (row,) = coverage.offline_returns(tmp_path, "walker").to_dict("records")
    names = {"task": "walker_stand", "algorithm": "td3", "dataset": "behavioral-0.5-s0"}
    assert row == names | {"return": 150.0}
    assert coverage.offline_returns(tmp_path, "quadruped").empty
