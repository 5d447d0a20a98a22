"""Measures of coverage against what can be computed by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist

from belib import coverage, estimators, figures
from belib.coverage.measures import net, random_halves
from belib.knn import knn_distances
from belib.streams import derive_seed


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
    return np.split(coverage.scale(states.features, "robust"), 2)


@pytest.fixture(scope="module")
def table(states):
    return coverage.measures(states, halves=10)


def test_distances_agree_with_other_spaces_as_far_as_they_have_their_order():
    x = np.random.default_rng(0).normal(size=(100, 3))
    spaces = {"twice": 2 * x, "direction": x / np.linalg.norm(x, axis=1, keepdims=True)}
    reward = knn_distances(x, k=11).mean(1)
    table = coverage.agreement(x, spaces, {"reward": reward, "crowd": -reward})
    value = table.set_index(["measure", "of"])["value"]
    assert value.xs("twice", level="of").tolist() == pytest.approx([1, 1, 1])
    assert (value.xs("direction", level="of") < 0.8).all()
    assert value["rewards"][["reward", "crowd"]].tolist() == pytest.approx([1, -1])
    assert value["dimensions", "points"] == pytest.approx(3, abs=0.2)
    line = x[:, :1] * [1.0, -2.0]
    assert coverage.agreement(line, {"line": line}, {})["value"].tolist() == pytest.approx([1] * 4)


def test_a_narrow_dataset_visits_fewer_places_and_is_denser(table):
    wide, narrow = table.loc["behavioral-s0"], table.loc["random-s0"]
    assert set(coverage.MEASURES) <= set(table)
    errors = [f"{name}_se" for name in coverage.MEASURES if not name.startswith("radius")]
    assert (wide[errors] > 0).all()
    assert (wide["points"], wide["episodes"]) == (400, 8)
    for measure in ("net", "radius_none", "radius_robust"):
        assert narrow[measure] < 0.5 * wide[measure], measure
    assert narrow["shannon"] - wide["shannon"] == pytest.approx(4 * math.log(0.2), abs=0.4)


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
    doubled = coverage.measures(make_states([np.repeat(x, 2, axis=0) for x in parts]), halves=0)
    assert np.diff(doubled["shannon"]) == pytest.approx(np.diff(shannon), rel=1e-9)


def test_standard_errors_are_the_spread_of_random_halves_of_the_episodes(parts):
    """Of 7 episodes a half has 3, drawn without replacement: sqrt(3 / 4) of the spread is left."""
    table = coverage.measures(make_states(parts, episodes=7), halves=6)
    _, *halves = random_halves(np.arange(400) * 7 // 400, 6, derive_seed(0, "halves", "random-s0"))
    entropies = [estimators.shannon_entropy_knn(parts[1][half]).value for half in halves]
    error = np.std(entropies, ddof=1) * math.sqrt(3 / 4)
    assert table.loc["random-s0", "shannon_se"] == pytest.approx(error, rel=1e-9)


def test_states_without_a_density_have_no_entropy(states):
    """All equal, three places, or one feature that is constant: the other dataset is measured."""
    normal = states.features[:400]
    for features in (np.zeros((400, 4)), normal[np.arange(400) % 3], normal * [1, 1, 1, 0]):
        table = coverage.measures(make_states([normal, features]), halves=0)
        finite = table[list(coverage.MEASURES)].notna().T
        assert finite["behavioral-s0"].all()
        entropies = finite.index.isin(["shannon", "renyi", "behavioral"])
        assert (finite["random-s0"] == ~entropies).all()


def test_a_net_has_cells_by_place_not_by_crowd():
    places, sizes = 10.0 * np.arange(5)[:, None], [1, 2, 500, 3, 1]
    points = np.repeat(places, sizes, axis=0)
    moved = points + 0.1 * np.random.default_rng(0).normal(size=points.shape)
    for cell in (net(moved, 5), net(points, 9)):
        of_place = pd.Series(cell).groupby(np.repeat(range(5), sizes))
        assert of_place.nunique().eq(1).all()
        assert of_place.first().nunique() == 5


def test_a_dataset_far_away_shares_no_cells_and_joint_states(states):
    apart = states.features + 1000.0 * states.of("random-s0")[:, None]
    shares = coverage.measures(coverage.States(apart, states.rows), halves=0)
    assert shares["net"].sum() == pytest.approx(1)
    assert shares["recall"].between(0.1, 0.5).all()


def test_distance_to_random_is_the_energy_distance(parts, table):
    x, y = parts
    squared = 2 * cdist(x, y).mean() - cdist(x, x).mean() - cdist(y, y).mean()
    assert table["from_random"].tolist() == [pytest.approx(math.sqrt(squared), abs=1e-6), 0]
    without = coverage.measures(make_states([x, y], ("behavioral", "shannon"), episodes=5))
    assert "from_random" not in without
    assert without.filter(like="_se").isna().all(axis=None), "too few episodes"


def test_halves_of_episodes_see_that_points_of_an_episode_depend():
    """Means of 20 episodes with a common part each: the iid formula is 5 times too small."""
    random, errors, means = np.random.default_rng(0), [], []
    _, *halves = random_halves(np.repeat(np.arange(20), 50), 40, seed=0)
    assert (np.sum(halves, axis=1) == 500).all()
    for _ in range(200):
        x = (random.normal(size=(20, 1)) + 0.5 * random.normal(size=(20, 50))).ravel()
        errors.append(np.std([x[keep].mean() for keep in halves], ddof=1))
        means.append(x.mean())
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(means), rel=0.15)


def test_measures_that_make_no_sense_are_refused(states):
    with pytest.raises(ValueError, match="k must be between 1 and 3"):
        coverage.measures(coverage.States(states.features[::40], states.rows[::40]))
    for name, value in (("alpha", 0), ("alpha", np.nan), ("q", 0), ("q", np.inf), ("seed", -1)):
        with pytest.raises(ValueError, match=f"{name} must be"):
            coverage.measures(states, **{name: value})


def test_two_values_of_one_dataset_are_refused(table):
    both = pd.concat([table, table.assign(shannon=0.0)]).rename_axis("dataset")
    with pytest.raises(ValueError, match="one value for dataset behavioral-s0, got"):
        figures.collection.measures(both)
