"""Maps: one joint fit, made once, kept with a record of how; and a dataset's states on a plane."""

import json

import numpy as np
import pandas as pd
import pytest

from belib import coverage
from belib.coverage import maps
from belib.coverage.maps import find_states, random_states, state_map
from belib.knn import knn_distances


def make_states(features):
    return coverage.States(features, pd.DataFrame({"dataset": ["own"] * len(features)}))


def embed(features, tmp_path, **options):
    return coverage.embed(make_states(features), runs_dir=tmp_path, progress=False, **options)


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(size=(80, 6))


@pytest.fixture
def fits(monkeypatch):
    """A fast method, as "phate", and the list of the features that it maps."""
    asked = []

    def fit(features, *, random_state, n_jobs, n_components, verbose, power=1):
        asked.append(features)
        return features[:, :n_components] ** power + random_state + len(asked) / 10, {}

    monkeypatch.setitem(maps.METHODS, "phate", (fit, "phate", 1.0, {}))
    return asked


@pytest.mark.parametrize("method", ["phate", "tsne"])
def test_one_joint_map_keeps_rows_and_repeats_to_the_bit(method, x, tmp_path, capsys):
    """Some points are equal, and one feature is constant, which must not break a map."""
    x[:3] = x[3]
    rows = pd.DataFrame({"dataset": np.repeat(["a", "b"], 40), "step": np.arange(80)})
    states = coverage.States(np.column_stack([x, np.ones(80)]), rows)
    one, two = (
        coverage.embed(states, method=method, seed=3, runs_dir=tmp_path / str(i)) for i in range(2)
    )
    assert f"{method}: 80 points of 7 features, about" in capsys.readouterr().out
    pd.testing.assert_frame_equal(one.points, two.points, check_exact=True)
    pd.testing.assert_frame_equal(one.points[["dataset", "step"]], rows)
    pd.testing.assert_frame_equal(pd.concat([one["a"], one["b"]]), one.points)
    places = one.points[["x", "y"]].to_numpy()
    assert np.isfinite(places).all()
    assert np.ptp(places, axis=0).min() > 0
    assert (places[:3] == places[3]).all(), "equal points are one point of the map"
    assert (one.record["distinct"], one.record["seed"]) == (77, 3)
    assert one.record["versions"]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "n"), [("phate", 2500), ("tsne", 11_000)])
def test_large_maps_repeat_to_the_bit(method, n, tmp_path):
    """Sizes at which phate takes landmarks, and openTSNE approximate neighbours and a grid."""
    features = np.random.default_rng(0).normal(size=(n, 24)).cumsum(0)
    a, b = (embed(features, tmp_path / str(i), method=method).points for i in range(2))
    pd.testing.assert_frame_equal(a, b, check_exact=True)


@pytest.mark.parametrize(
    ("shape", "distinct", "method", "used", "pca"),
    [
        ((20, 6), 20, "tsne", {"perplexity": 19 / 3, "initialization": "pca"}, None),
        ((200, 2), 200, "tsne", {"perplexity": 30.0, "initialization": "pca"}, None),
        ((60, 1), 60, "tsne", {"perplexity": 59 / 3, "initialization": "pca"}, None),
        ((60, 78), 30, "tsne", {"perplexity": 29 / 3, "initialization": "pca"}, 29),
        ((4, 6), 4, "tsne", {"perplexity": 1.0, "initialization": "pca"}, None),
        ((20, 6), 20, "phate", {"knn": 5, "decay": 40, "n_landmark": None}, None),
        ((60, 1), 60, "phate", {"knn": 5, "decay": 40, "n_landmark": None}, None),
        ((60, 78), 30, "phate", {"knn": 5, "decay": 40, "n_landmark": None}, 29),
        ((5, 60), 5, "phate", {"knn": 3, "decay": 40, "n_landmark": None}, 4),
    ],
)
def test_few_points_have_a_map_and_a_record_of_what_was_used(
    shape, distinct, method, used, pca, tmp_path
):
    states = np.random.default_rng(0).normal(size=(distinct, shape[1]))
    features = states[np.arange(shape[0]) % distinct]
    made = embed(features, tmp_path, method=method)
    places = made.points[["x", "y"]].to_numpy()
    assert np.isfinite(places).all()
    assert len(np.unique(places, axis=0)) == distinct
    record = made.record
    assert record["parameters"].items() >= used.items()
    assert (record["pca"], record["distinct"], record["points"]) == (pca, distinct, shape[0])
    if method == "phate":
        assert record["parameters"]["t"] >= 1, "what auto chose"
    assert embed(features, tmp_path, method=method).record == record
    (file,) = tmp_path.glob("embeddings/*.json")
    assert json.loads(file.read_text()) == record


def test_a_map_is_made_once_and_again_when_anything_changes(fits, x, tmp_path):
    first = embed(x, tmp_path).points
    pd.testing.assert_frame_equal(embed(x, tmp_path).points, first)
    assert len(fits) == 1
    moved = x.copy()
    moved[-1, -1] += 1e-12
    changes = ({"seed": 1}, {"scaling": "robust"}, {"power": 2})
    for number, (features, options) in enumerate(
        [(moved, {}), (x[::-1], {}), *((x, change) for change in changes)]
    ):
        changed = embed(features, tmp_path, **options).points
        assert len(fits) == number + 2, options
        assert not changed[["x", "y"]].equals(first[["x", "y"]])
    assert len(list(tmp_path.glob("embeddings/phate-*.npz"))) == 6


def test_seeds_of_any_size_and_numpys_numbers_make_maps(fits, x, tmp_path):
    asked = [0, 2**32 - 1, 2**32, 2**63, 2**70]
    given = [(embed(x, tmp_path, seed=s).points["x"] - x[:, 0]).mean() // 1 for s in asked]
    assert given[:2] == asked[:2], "the library gets what it takes as it is"
    assert len(set(given)) == 5
    assert max(given) < 2**32
    made = embed(x, tmp_path, seed=np.int64(3), threads=np.int64(1), power=np.float64(2))
    assert [type(made.record[name]) for name in ("seed", "threads")] == [int, int]
    assert embed(x, tmp_path, seed=3, power=2.0).points.equals(made.points)
    assert len(fits) == 6


def test_a_damaged_map_is_named(fits, x, tmp_path):
    embed(x, tmp_path)
    (file,), (record,) = (list(tmp_path.glob(f"embeddings/*.{end}")) for end in ("npz", "json"))
    text = record.read_text()
    for change, message in (
        (lambda: record.write_text("[]"), rf"{record.name} must hold a JSON object, got list"),
        (lambda: record.write_text("{}"), rf"{record.name} must have method"),
        (lambda: np.savez(file, map=np.zeros((3, 2))), rf"{file.name} .* 80 points, got"),
        (lambda: np.savez(file, other=1), rf"{file.name} .* 80 points, got"),
        (lambda: file.write_bytes(b"PK"), rf"{file.name} cannot be read"),
    ):
        change()
        with pytest.raises(ValueError, match=message):
            embed(x, tmp_path)
        record.write_text(text)


def test_an_interrupted_map_leaves_nothing_that_passes_for_one(monkeypatch, x, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setitem(maps.METHODS, "phate", (interrupted, "phate", 1.0, {}))
    with pytest.raises(KeyboardInterrupt):
        embed(x, tmp_path)
    assert not list(tmp_path.glob("embeddings/*"))


def test_many_features_are_projected_first_and_the_record_says_so(fits, tmp_path):
    made = embed(np.random.default_rng(0).normal(size=(80, 78)), tmp_path)
    assert fits[0].shape == (80, 50)
    assert (made.record["features"], made.record["pca"]) == (78, 50)


@pytest.mark.parametrize(("method", "name"), [("phate", "knn"), ("tsne", "perplexity")])
def test_what_has_no_map_is_refused_before_it_is_computed(method, name, tmp_path):
    x = np.random.default_rng(0).normal(size=(30, 3))
    for features, options, message in (
        (np.ones((30, 3)), {}, "states must have 4 distinct points or more, got 1 of 30"),
        (np.ones((30, 3)), {"scaling": "robust"}, "features must vary in a column or more"),
        (x[:3], {}, "states must have 4 distinct points or more, got 3 of 3"),
        (x[:, :0], {}, "states must have 4 distinct points"),
        (1e200 * x, {}, r"features must be 1e-100 to 1e100 apart, got \d"),
        (x, {name: 0}, f"{name} must be at least 1"),
        (x, {name: np.nan}, rf"parameters must be finite numbers, .* got {{'{name}': nan}}"),
        (x, {"initialization": x}, "parameters must be .* got {'initialization': array"),
        (x, {"seed": -1}, "seed must be at least 0, got -1"),
        (x, {"seed": 1.0}, r"seed must be an integer, got 1\.0"),
        (x, {"threads": 0}, "threads must be at least 1, got 0"),
        (x, {"method": "umap"}, "method must be one of phate, tsne, got 'umap'"),
    ):
        with pytest.raises(ValueError, match=message):
            embed(features, tmp_path, **{"method": method} | options)
    for name, rule in (("misspelt", "unexpected"), ("n_components", "multiple values for")):
        with pytest.raises(TypeError, match=f"{rule} keyword argument '{name}'"):
            embed(x, tmp_path, method=method, **{name: 3})
    assert not list(tmp_path.glob("embeddings/*"))


def test_distances_of_a_state_map_are_in_units_of_each_components_spread():
    obs = np.random.default_rng(0).normal(size=(200, 3))
    plain, stretched = (state_map(obs * unit, "x") for unit in ([1, 1, 1], [1000, 1, 1e-3]))
    np.testing.assert_allclose(stretched.distance, plain.distance)
    np.testing.assert_allclose(abs(stretched.position), abs(plain.position), atol=1e-8)
    assert plain.position.shape == (200, 2)
    expected = knn_distances(coverage.scale(obs, "robust"), k=12).mean(-1)
    np.testing.assert_allclose(plain.distance, expected)
    assert np.isfinite(state_map(obs * [1, 1, 0], "x").distance).all(), "one component constant"


def test_random_states_repeat_and_do_not_fill_up_with_one_episode():
    obs = random_states("walker", 120, steps=50)
    assert obs.shape == (120, 24)
    np.testing.assert_array_equal(obs, random_states("walker", 120, steps=50))
    assert len(np.unique(obs, axis=0)) == 120


def test_a_collected_dataset_is_shown_and_otherwise_random_actions(make_dataset, tmp_path):
    assert find_states(tmp_path, n=60).source.startswith(
        "walker, 60 states of random actions; PCA, "
    )
    assert list(tmp_path.iterdir()) == []
    for name in ("random-s0", "behavioral-0.5-s0"):
        make_dataset(name, lengths=(100,))
    shown = find_states(tmp_path, n=50)
    assert shown.source.startswith("walker, 34 states of behavioral-0.5-s0")  # every third row
