import numpy as np
import pytest

from belib import datasets
from belib.coverage import scale
from belib.knn import knn_distances
from belib.statemap import find_states, random_states, state_map


def test_distances_are_in_units_of_each_components_spread():
    obs = np.random.default_rng(0).normal(size=(200, 3))
    plain, stretched = (state_map(obs * unit, "x") for unit in ([1, 1, 1], [1000, 1, 1e-3]))
    np.testing.assert_allclose(stretched.distance, plain.distance)
    np.testing.assert_allclose(abs(stretched.position), abs(plain.position), atol=1e-8)
    assert plain.position.shape == (200, 2)
    expected = knn_distances(scale(obs, "robust"), k=12).mean(-1)
    np.testing.assert_allclose(plain.distance, expected)


def test_a_constant_component_does_no_harm():
    obs = np.random.default_rng(0).normal(size=(50, 3)) * [1, 1, 0]
    assert np.isfinite(state_map(obs, "x").distance).all()


def test_random_states_repeat_and_do_not_fill_up_with_one_episode():
    obs = random_states("walker", 120, steps=50)
    assert obs.shape == (120, 24)
    np.testing.assert_array_equal(obs, random_states("walker", 120, steps=50))
    assert len(np.unique(obs, axis=0)) == 120


def test_a_collected_dataset_is_shown_and_otherwise_random_actions(tmp_path):
    shown = find_states(tmp_path, n=60)
    assert shown.source.startswith("walker, 60 states of random actions; PCA, ")
    assert list(tmp_path.iterdir()) == []
    rng = np.random.default_rng(0)
    for name in ("random-s0", "behavioral-0.5-s0"):
        sizes = {"observation": 24, "action": 6, "reward": 1, "discount": 1, "physics": 18}
        episode = {
            key: rng.uniform(size=(101, size)).astype(datasets.DTYPES[key])
            for key, size in sizes.items()
        }
        datasets.write_episode(tmp_path / "datasets" / "walker" / name, 0, episode, {})
    found = find_states(tmp_path, n=50)
    assert found.source.startswith("walker, 34 states of behavioral-0.5-s0")  # every third row
    assert found.distance.min() == pytest.approx(find_states(tmp_path, n=50).distance.min())
