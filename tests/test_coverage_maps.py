"""Maps of few and of degenerate points: a map and what it was made with, or a refusal in words."""

import json

import numpy as np
import pandas as pd
import pytest

from belib import coverage


def embed(features, tmp_path, **options):
    sample = coverage.Sample(features, pd.DataFrame({"dataset": ["own"] * len(features)}))
    return coverage.embed(sample, runs_dir=tmp_path, progress=False, **options)


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
    found = embed(features, tmp_path, method=method)
    places = found.points[["x", "y"]].to_numpy()
    assert np.isfinite(places).all()
    assert len(np.unique(places, axis=0)) == distinct
    record = found.record
    assert record["parameters"].items() >= used.items()
    assert (record["pca"], record["distinct"], record["points"]) == (pca, distinct, shape[0])
    if method == "phate":
        assert record["parameters"]["t"] >= 1, "what auto chose"
    assert embed(features, tmp_path, method=method).record == record
    (file,) = tmp_path.glob("embeddings/*.json")
    assert json.loads(file.read_text()) == record


@pytest.mark.parametrize(("method", "name"), [("phate", "knn"), ("tsne", "perplexity")])
def test_what_has_no_map_is_refused_before_it_is_computed(method, name, tmp_path):
    x = np.random.default_rng(0).normal(size=(30, 3))
    for features, options, message in (
        (np.ones((30, 3)), {}, "sample must have 4 distinct points or more, got 1 among 30"),
        (np.ones((30, 3)), {"scaling": "robust"}, "features must vary in a column or more"),
        (x[:3], {}, "sample must have 4 distinct points or more, got 3 among 3"),
        (x[:, :0], {}, "sample must have 4 distinct points"),
        (1e200 * x, {}, r"features must be 1e-100 to 1e100 apart, got \d"),
        (x, {name: 0}, f"{name} must be at least 1"),
        (x, {name: np.nan}, f"{name} must be a finite number"),
        (x, {"n_components": 3}, "n_components must be left to embed"),
        (x, {"initialization": x}, "initialization must be a finite number, text, or"),
        (x, {"seed": -1}, "seed must be at least 0, got -1"),
        (x, {"seed": 1.0}, r"seed must be an integer, got 1\.0"),
        (x, {"threads": 0}, "threads must be at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            embed(features, tmp_path, method=method, **options)
    with pytest.raises(TypeError, match="unexpected keyword argument 'misspelt'"):
        embed(x, tmp_path, method=method, misspelt=1)
    assert not list(tmp_path.glob("embeddings/*"))
