"""Samples, maps and volumes of datasets whose states are written by hand."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from belib import coverage, datasets, paths
from belib.config import PretrainConfig
from belib.coverage import embedding


def write_dataset(runs_dir, states, **config):
    """A dataset of the given episodes' states, a list of (steps, d); row 0 is 99 everywhere."""
    config = PretrainConfig(scale="test", **config)
    folder = datasets.dataset_folder(runs_dir, "walker", config.dataset)
    for index, steps in enumerate(states):
        rows = len(steps) + 1
        zeros = np.zeros((rows, 1), dtype=np.float32)
        obs = np.vstack([np.full((1, steps.shape[1]), 99.0), steps]).astype(np.float32)
        episode = {"observation": obs, "action": zeros, "reward": zeros, "discount": zeros + 1}
        episode["physics"] = np.zeros((rows, 18))
        tasks = {f"walker_{t}": np.arange(rows) / rows + i for i, t in enumerate(TASKS)}
        for reward in tasks.values():
            reward[0] = 0.0
        episode["reward"] = tasks["walker_stand"][:, None].astype(np.float32)
        datasets.write_episode(folder, index, episode, tasks)
    (folder / "config.yaml").write_text(config.to_yaml())
    return datasets.load(folder)


TASKS = ("run", "stand", "walk")


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Eight episodes of 50 steps of normal states, d = 6, the random ones half as wide."""
    random = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("runs")
    wide = write_dataset(folder, [random.normal(size=(50, 6)) for _ in range(8)])
    narrow = [0.5 * random.normal(size=(50, 6)) for _ in range(8)]
    return [wide, write_dataset(folder, narrow, objective="random")]


def test_a_sample_knows_where_each_point_came_from(pair):
    sample = coverage.subsample(pair, size=100, tasks=["walker_stand"])
    assert sample.features.shape == (200, 6)
    assert sample.names == ["behavioral-0.5-s0", "random-s0"]
    assert sample.rows["objective"].tolist() == ["behavioral"] * 100 + ["random"] * 100
    assert sample.rows["parameter"].isna().tolist() == [False] * 100 + [True] * 100
    for dataset in pair:
        mine = sample.of(dataset.name)
        rows, episodes = sample.rows[mine], list(dataset.episodes())
        assert rows["step"].is_monotonic_increasing
        assert rows["step"].is_unique
        assert (rows["step"] == 50 * rows["episode"] + rows["row"]).all()
        for features, (_, row) in zip(sample.features[mine], rows.iterrows(), strict=True):
            assert (features == episodes[row["episode"]]["observation"][row["row"]]).all()
            assert row["walker_stand"] == row["row"] / 51 + 1
    assert sample.features.max() < 99, "first states of episodes are not drawn"


def test_merged_data_are_described_by_what_their_sources_share(pair, tmp_path):
    again = write_dataset(tmp_path / "again", [np.ones((20, 6))], seed=1)
    merged = datasets.merge([pair[0], again], tmp_path / "more" / "walker" / "both")
    rows = coverage.subsample([merged, pair[0]], size=10).rows
    described = rows[["objective", "parameter", "seed"]].drop_duplicates().to_numpy().tolist()
    assert described == [["behavioral", 0.5, None], ["behavioral", 0.5, 0]]


def test_a_sample_is_its_datasets_own(pair):
    alone = coverage.subsample(pair[1:], size=100)
    beside = coverage.subsample(pair, size=100)
    assert (beside.features[100:] == alone.features).all()
    again, other = (coverage.subsample(pair, size=100, seed=s) for s in (0, 1))
    assert (again.features == beside.features).all()
    assert not (other.rows["step"] == beside.rows["step"]).all()
    everything = coverage.subsample(pair, size=400)
    assert everything.rows["step"].tolist() == [*range(1, 401)] * 2


def test_datasets_are_found_by_domain_or_name(pair):
    runs_dir = pair[0].folder.parents[2]
    (runs_dir / "datasets" / "walker" / ".merged.99.tmp" / "buffer").mkdir(parents=True)
    half = runs_dir / "datasets" / "walker" / ".merged.99.tmp" / "buffer" / "episode_000000_1.npz"
    half.touch()  # of a merge that was killed
    found = datasets.find_datasets(runs_dir, "walker")
    assert [dataset.name for dataset in found] == ["behavioral-0.5-s0", "random-s0"]
    (named,) = datasets.find_datasets(runs_dir, "walker", ["random-s0"])
    assert named == pair[1]
    assert datasets.find_datasets(runs_dir, "quadruped") == []
    with pytest.raises(datasets.DatasetError, match="there is no folder"):
        datasets.find_datasets(runs_dir, "walker", ["shannon-s0"])


def test_datasets_are_asked_for_by_name_pattern_or_folder(pair, monkeypatch):
    behavioral, random = pair
    folder, runs_dir = random.folder.parent, random.folder.parents[2].name
    monkeypatch.setattr(paths, "ROOT", random.folder.parents[3])  # which relative paths mean
    ask = partial(datasets.find_datasets, runs_dir, "walker")
    assert ask(["*"]) == ask(["random-s0", "beh*", "*"])[::-1] == [behavioral, random]
    own = f"{runs_dir}/datasets/walker/random-s0"
    for name in (
        "random-s0",
        "random-s0/",
        "./random-s0",
        f"{random.folder}",
        f"{folder}/r*/",
        own,
    ):
        assert ask([name]) == [random], name
    for name in ("", ".", "..", "/", "none", "none*", "[", f"{folder}/none", f"{folder}"):
        with pytest.raises(datasets.DatasetError, match=re.escape(str(folder))):
            ask([name])
    for name in ("/tmp/random-s0", "random-s0/buffer", f"{folder}/../quadruped/random-s0"):
        with pytest.raises(datasets.DatasetError, match="choose its runs_dir and domain"):
            ask([name])


def test_samples_that_make_no_sense_are_refused(pair):
    with pytest.raises(ValueError, match="size must be between 1 and the 400 steps of behavioral"):
        coverage.subsample(pair, size=401)
    with pytest.raises(ValueError, match="each with its own name"):
        coverage.subsample([pair[0], pair[0]], size=10)
    with pytest.raises(ValueError, match="one domain"):
        coverage.subsample([pair[0], replace(pair[1], domain="quadruped")], size=10)
    with pytest.raises(ValueError, match="increments must be between 1 and the 400 steps"):
        coverage.growing_subsample(pair, increments=401)
    for function, values, message in (
        (coverage.subsample, {"size": 5.0}, "size must be an integer, got 5.0"),
        (coverage.subsample, {"size": 5, "seed": -1}, "seed must be at least 0, got -1"),
        (coverage.growing_subsample, {"share": 2}, "share must be above 0, at most 1 .* got 2.0"),
        (
            coverage.volumetric_coverage,
            {"scalings": []},
            "scalings must be of none, robust, got",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            function(pair, **values)
    rows = coverage.subsample(pair, size=np.int64(5), seed=2**64).rows
    for features in (np.ones((9, 2)), np.ones(10), np.full((10, 1), np.nan), np.ones((10, 1)) * 1j):
        with pytest.raises(ValueError, match="features must"):
            coverage.Sample(features, rows)


def test_increments_are_those_drawn_from_where_they_do_not_divide(make_dataset):
    lengths = [101, 100, 2]
    dataset = make_dataset(lengths=lengths)
    sample = coverage.growing_subsample([dataset], increments=10, share=1.0)
    ends = np.linspace(0, sum(lengths), 11).round()
    for number, rows in sample.rows.groupby("increment"):
        assert (rows["step"] > ends[number - 1]).all()
        assert (rows["step"] <= ends[number]).all()
    assert len(sample.rows) == sum(lengths)


def test_a_growing_sample_takes_its_share_of_every_increment(pair):
    sample = coverage.growing_subsample(pair)
    counts = sample.rows.groupby(["dataset", "increment"]).size()
    assert counts.tolist() == [8] * 20  # a fifth of 40
    assert (sample.rows["increment"] == np.ceil(sample.rows["step"] / 40)).all()


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
    assert scaled.shape == (4000, 4), "the constant column has no spread to be measured in"
    assert scaled[:, 3].std() == pytest.approx(1)
    assert coverage.scale(more, "none") is more
    for unit in (2.0**-900, 2.0**900):  # whose squares floats cannot hold
        assert (coverage.scale(unit * more, "robust") == scaled).all()
    with pytest.raises(ValueError, match="scaling must be one of none, robust, got 'zscore'"):
        coverage.scale(x, "zscore")
    for wrong, message in (
        (np.ones((5, 2)), "features must vary in a column or more, got 5 equal rows"),
        (np.full((5, 2), np.nan), r"features must be finite, got nan at index \[0, 0\]"),
    ):
        with pytest.raises(ValueError, match=message):
            coverage.scale(wrong, "robust")


@pytest.mark.parametrize("method", ["phate", "tsne"])
def test_one_joint_map_keeps_rows_and_repeats_to_the_bit(method, pair, tmp_path, capsys):
    """Some points are equal, and one feature is constant, which must not break a map."""
    sample = coverage.subsample(pair, size=40)
    features = np.column_stack([sample.features, np.ones(80)])
    features[:3] = features[3]
    sample = coverage.Sample(features, sample.rows)
    found = [
        coverage.embed(sample, method=method, seed=3, runs_dir=tmp_path / str(i)) for i in range(2)
    ]
    assert f"{method}: 80 points of 7 features, about" in capsys.readouterr().out
    a, b = (each.points[["x", "y"]].to_numpy() for each in found)
    assert np.array_equal(a, b)
    assert np.isfinite(a).all()
    assert np.ptp(a, axis=0).min() > 0
    assert (a[:3] == a[3]).all(), "equal points are one point of the map"
    assert found[0].record["distinct"] == 77
    pd.testing.assert_frame_equal(found[0].points.drop(columns=["x", "y"]), sample.rows)
    split = pd.concat([found[0][name] for name in sample.names])
    pd.testing.assert_frame_equal(split, found[0].points)
    assert found[0].record["seed"] == 3
    assert found[0].record["versions"]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "n"), [("phate", 2500), ("tsne", 11_000)])
def test_large_maps_repeat_to_the_bit(method, n, tmp_path):
    """Sizes at which phate takes landmarks, and openTSNE approximate neighbours and a grid."""
    features = np.random.default_rng(0).normal(size=(n, 24)).cumsum(0)
    sample = coverage.Sample(features, pd.DataFrame({"dataset": ["walk"] * n}))
    a, b = (
        coverage.embed(sample, method=method, runs_dir=tmp_path / str(i), progress=False).points
        for i in range(2)
    )
    pd.testing.assert_frame_equal(a, b, check_exact=True)


@pytest.fixture
def fits(monkeypatch):
    """A method that is fast, and a list of the arrays that it was asked to map."""
    asked = []

    def fit(features, progress, *, random_state, n_jobs, power=1):
        asked.append(features)
        return features[:, :2] ** power + random_state + len(asked) / 10, {}

    method = embedding._Method("phate", fit, (0.0, 0.0), {})
    monkeypatch.setitem(embedding.METHODS, "phate", method)
    return asked


def test_a_map_is_computed_once_and_again_when_anything_changes(fits, pair, tmp_path):
    sample = coverage.subsample(pair, size=40)

    def embed(sample, **options):
        return coverage.embed(sample, runs_dir=tmp_path, progress=False, **options).points

    first = embed(sample)
    pd.testing.assert_frame_equal(embed(sample), first)
    assert len(fits) == 1
    moved = sample.features.copy()
    moved[-1, -1] += 1e-12
    for number, (data, options) in enumerate(
        [
            (coverage.Sample(moved, sample.rows), {}),
            (coverage.Sample(sample.features[::-1], sample.rows), {}),
            (sample, {"seed": 1}),
            (sample, {"scaling": "robust"}),
            (sample, {"power": 2}),
        ]
    ):
        changed = embed(data, **options)
        assert len(fits) == number + 2, options
        assert not changed[["x", "y"]].equals(first[["x", "y"]])
    assert len(list(tmp_path.glob("embeddings/phate-*.npz"))) == 6


def test_seeds_of_any_size_and_numbers_of_numpys_make_maps(fits, pair, tmp_path):
    sample = coverage.subsample(pair, size=40)

    def embed(**options):
        return coverage.embed(sample, runs_dir=tmp_path, progress=False, **options)

    asked = [0, 2**32 - 1, 2**32, 2**63, 2**70]
    given = [(embed(seed=s).points["x"] - sample.features[:, 0]).mean() // 1 for s in asked]
    assert given[:2] == asked[:2], "what the library takes is given to it as it is"
    assert len(set(given)) == 5
    assert max(given) < 2**32
    found = embed(seed=np.int64(3), threads=np.int64(1), power=np.float64(2))
    assert [type(found.record[name]) for name in ("seed", "threads")] == [int, int]
    assert embed(seed=3, power=2.0).points.equals(found.points)
    assert len(fits) == 6


def test_a_damaged_map_is_named(fits, pair, tmp_path):
    sample = coverage.subsample(pair, size=40)

    def embed():
        return coverage.embed(sample, runs_dir=tmp_path, progress=False)

    embed()
    (map_file,), (record,) = (list(tmp_path.glob(f"embeddings/*.{end}")) for end in ("npz", "json"))
    text = record.read_text()
    for change, words in (
        (lambda: record.write_text("[]"), rf"{record.name} must hold a JSON object, got list"),
        (lambda: record.write_text("{}"), rf"{record.name} must have method"),
        (lambda: np.savez(map_file, map=np.zeros((3, 2))), rf"{map_file.name} .* 80 points, got"),
        (lambda: np.savez(map_file, other=1), rf"{map_file.name} .* 80 points, got"),
        (lambda: map_file.write_bytes(b"PK"), rf"{map_file.name} cannot be read"),
    ):
        change()
        with pytest.raises(ValueError, match=words):
            embed()
        record.write_text(text)


def test_an_interrupted_map_leaves_nothing_that_passes_for_one(monkeypatch, pair, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    method = embedding._Method("phate", interrupted, (0.0, 0.0), {})
    monkeypatch.setitem(embedding.METHODS, "phate", method)
    with pytest.raises(KeyboardInterrupt):
        coverage.embed(coverage.subsample(pair, size=40), runs_dir=tmp_path, progress=False)
    assert not list(tmp_path.glob("embeddings/*"))


def test_many_features_are_projected_first_and_the_record_says_so(fits, pair, tmp_path):
    sample = coverage.subsample(pair, size=40)
    wide = np.random.default_rng(0).normal(size=(80, 78))
    found = coverage.embed(coverage.Sample(wide, sample.rows), runs_dir=tmp_path, progress=False)
    assert fits[0].shape == (80, 50)
    assert (found.record["features"], found.record["pca"]) == (78, 50)
    with pytest.raises(ValueError, match="method must be one of phate, tsne, got 'umap'"):
        coverage.embed(sample, method="umap")


def test_volumetric_coverage_is_the_ball_of_the_points_so_far(pair):
    table = coverage.volumetric_coverage(pair, increments=4, share=0.5)
    sample = coverage.growing_subsample(pair, increments=4, share=0.5)
    assert len(table) == 2 * 2 * 4
    for (name, scaling), curve in table.groupby(["dataset", "scaling"]):
        assert curve["step"].tolist() == [100, 200, 300, 400]
        assert curve["points"].tolist() == [50, 100, 150, 200]
        assert curve["radius"].is_monotonic_increasing
        points = coverage.scale(sample.features, scaling)[sample.of(name)]
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
