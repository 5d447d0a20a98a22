"""Maps: one joint fit, made once, kept with a record of how; and a dataset's states on a plane."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from belib import coverage
from belib.knn import knn_distances


def embed(features, runs_dir, **options):
    states = coverage.States(features, pd.DataFrame({"dataset": ["walk"] * len(features)}))
    return coverage.embed(states, runs_dir=runs_dir, **options)


def places(embedding):
    return embedding.points[["x", "y"]].to_numpy()


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(size=(80, 6))


@pytest.mark.parametrize("method", ["phate", "tsne"])
def test_one_joint_map_keeps_rows_and_repeats_to_the_bit(method, x, tmp_path, capsys):
    """Some points are equal, and one feature is constant, which must not break a map."""
    x[:3] = x[3]
    rows = pd.DataFrame({"dataset": np.repeat(["a", "b"], 40), "step": np.arange(80)})
    states = coverage.States(np.column_stack([x, np.ones(80)]), rows)
    options = {"method": method, "seed": 3}
    one, two = (coverage.embed(states, runs_dir=tmp_path / name, **options) for name in "ab")
    assert f"{method}: 80 points of 7 features, about" in capsys.readouterr().out
    pd.testing.assert_frame_equal(one.points, two.points, check_exact=True)
    pd.testing.assert_frame_equal(one.points[["dataset", "step"]], rows)
    assert np.isfinite(places(one)).all()
    assert np.ptp(places(one), axis=0).min() > 0
    assert (places(one)[:3] == places(one)[3]).all(), "equal points are one point of the map"
    assert (one.record["distinct"], one.record["seed"], one.record["scaling"]) == (77, 3, "none")
    assert one.record["versions"].keys() == {"numpy", {"tsne": "openTSNE"}.get(method, method)}
    assert one.description.startswith(f"7 features, scaling 'none'; {method} {{")


@pytest.mark.slow
@pytest.mark.parametrize(("method", "n"), [("phate", 2500), ("tsne", 11_000)])
def test_large_maps_repeat_to_the_bit(method, n, tmp_path):
    """Sizes at which phate takes landmarks, and openTSNE approximate neighbours and a grid."""
    features = np.random.default_rng(0).normal(size=(n, 24)).cumsum(0)
    a, b = (places(embed(features, tmp_path / str(i), method=method)) for i in range(2))
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("method", ["phate", "tsne"])
def test_few_points_have_a_map_and_a_record_of_what_was_used(method, tmp_path):
    for n, d, knn, perplexity in ((4, 6, 2, 1), (5, 60, 3, 4 / 3), (200, 2, 5, 30)):
        made = embed(np.random.default_rng(0).normal(size=(n, d)), tmp_path, method=method)
        assert len(np.unique(places(made), axis=0)) == n
        used = {"phate": {"knn": knn, "decay": 40}, "tsne": {"perplexity": perplexity}}[method]
        assert made.record["parameters"].items() >= used.items()
        assert made.record["parameters"].get("t", 1) >= 1, "what auto chose"


def test_a_map_is_made_once_and_again_when_anything_changes(x, tmp_path, monkeypatch):
    fits = []

    class Fast(SimpleNamespace):
        def fit_transform(self, features):
            fits.append(self)
            return features[:, :2] * len(fits)

    monkeypatch.setattr("phate.PHATE", Fast)
    monkeypatch.setitem(coverage.states.METHODS, "phate", ("phate", "PHATE", 1.0, {}))
    changes = [(x, {"seed": 1}), (x, {"scaling": "robust"}), (x, {"power": 2}), (x[::-1], {})]
    for features, options in [(x, {}), *changes, (np.nextafter(x, 9), {})]:
        made, again = (places(embed(features, tmp_path, **options)) for _ in range(2))
        np.testing.assert_array_equal(made, again)
    assert len(fits) == 6


def test_what_has_no_map_is_refused(x, tmp_path):
    for features, options, message in (
        (np.ones((30, 3)), {}, "states must have 4 distinct points or more, got 1 of 30"),
        (x, {"knn": 0}, "knn"),
        (x, {"method": "tsne", "perplexity": 0}, "erplexity"),
        (x, {"seed": 2**32}, "seed must be between 0 and 4294967295, got"),
        (x, {"threads": 0}, "threads must be at least 1, got 0"),
        (x, {"method": "umap"}, "method must be one of phate, tsne, got 'umap'"),
    ):
        with pytest.raises(ValueError, match=message):
            embed(features, tmp_path, **options)
    with pytest.raises(TypeError, match="unexpected keyword argument 'misspelt'"):
        embed(x, tmp_path, misspelt=3)


def test_a_collected_dataset_is_shown_in_units_of_each_components_spread(make_dataset, tmp_path):
    for name in ("random-s0", "behavioral-0.5-s0"):
        dataset = make_dataset(name, lengths=(100,))
    states = coverage.find_states(tmp_path, k=3)
    assert states.source.startswith("walker, 101 states of behavioral-0.5-s0; PCA, ")
    (episode,) = dataset.episodes()
    scaled = coverage.scale(episode["observation"], "robust")
    np.testing.assert_array_equal(states.distance, knn_distances(scaled, k=3).mean(-1))
    assert states.position.shape == (101, 2)
    (tmp_path / "datasets").rename(tmp_path / "moved")
    states = coverage.find_states(tmp_path)
    assert states.source.startswith("walker, 1,500 states of random actions; PCA, ")
    assert states.distance.min() > 0, "no state twice"
