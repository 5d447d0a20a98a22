"""Finished runs become the tables of a study, and unfinished ones are named."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import synthetic

from belib import datasets, gather, results
from belib.config import OfflineConfig
from belib.paths import ROOT

EXAMPLE = ROOT / "tests" / "data" / "study" / "synthetic"


def test_tables_are_read_as_they_were_written(tmp_path):
    made = synthetic.example()
    synthetic.write(made, tmp_path)
    read = gather.load(tmp_path)
    pd.testing.assert_frame_equal(
        read.offline, made.offline.reset_index(drop=True), check_dtype=False
    )
    pd.testing.assert_frame_equal(read.coverage, made.coverage, check_dtype=False)
    for file in tmp_path.iterdir():
        assert file.read_text() == (EXAMPLE / file.name).read_text(), file.name
    (tmp_path / "coverage.csv").unlink()
    with pytest.raises(ValueError, match=r"coverage.csv is missing"):
        gather.load(tmp_path)


def test_learners_stand_in_the_order_of_how_many_datasets_they_learnt_from():
    assert synthetic.example().learners == ["td3", "crr"]
    assert synthetic.tables(learners=("cql", "td3")).learners == ["td3", "cql"]


@pytest.fixture
def runs(tmp_path, make_dataset):
    """Two finished datasets, a policy on each, one policy that is not finished, and baselines."""
    for name in ("random-s0", "random-s1"):
        made = make_dataset(name, lengths=(60, 60), seed=int(name[-1]))
        steps = {"step": np.arange(1, 3) * 60, "intrinsic_reward": [1.0, 3.0]}
        pd.DataFrame(steps).to_csv(made.folder / "metrics.csv", index=False)
        learn(tmp_path, OfflineConfig(dataset=name, num_steps=10, scale="test"), made, 10)
        later = OfflineConfig(dataset=name, num_steps=10, scale="test", seed=1)
        learn(tmp_path, later, made, 5 if name == "random-s1" else 10)
    floor(tmp_path, results.BASELINES)
    return tmp_path


def floor(runs_dir, names):
    for name in names:
        folder = (
            runs_dir / "offline" / "walker" / "none" / name.replace(" ", "-") / "walker_stand-s0"
        )
        folder.mkdir(parents=True)
        changes = {"algorithm": name, "dataset": "none"}
        row = results.row(OfflineConfig(scale="test"), None, 0, np.array([1.0]), "abc", **changes)
        results.write(folder / "results.csv", pd.DataFrame([row]))


def learn(runs_dir, config, dataset, steps):
    parts = (config.domain, config.dataset, config.variant, f"{config.task}-s{config.seed}")
    folder = runs_dir.joinpath("offline", *parts)
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(config.to_yaml())
    rows = [
        results.row(config, dataset.config(), step, np.array([step / 3]), "abc")
        for step in range(5, steps + 1, 5)
    ]
    results.write(folder / "results.csv", pd.DataFrame(rows))


def test_finished_runs_become_tables_and_unfinished_ones_are_named(runs, tmp_path):
    to = gather.gather(runs, tmp_path / "tables" / "test", size=100)
    assert sorted(file.name for file in to.iterdir()) == sorted(gather.FILES)
    found = gather.load(to)
    kept = found.offline.groupby("dataset")["seed"].unique()
    assert found.baselines["return"].tolist() == [1.0, 1.0]
    assert (len(kept["random-s0"]), len(kept["random-s1"])) == (2, 1)
    assert found.offline["return"].max() == 3.33, "two decimals"
    waiting = found.provenance["not finished"]["policies"]
    assert waiting == ["walker/td3/random-s1/walker_stand/1"]
    described = found.datasets.set_index("dataset")
    assert described["intrinsic_reward"].tolist() == [2.0, 2.0]
    assert described["steps"].tolist() == [120, 120]
    assert described["variant"].tolist() == ["", ""]
    assert (
        described[["num_steps", "versions_torch", "returns_walker_stand_mean"]]
        .notna()
        .all(axis=None)
    )
    assert found.coverage["volumetric"].max() == 1
    assert found.provenance["learning"]["td3"]["num_steps"] == 10
    assert found.provenance["processor"]
    assert "NaN" not in (to / "provenance.json").read_text(), "JSON has no such number"


def test_what_is_extended_or_made_of_others_is_left_out(runs, tmp_path):
    whole = datasets.load(runs / "datasets" / "walker" / "random-s0")
    datasets.subsample(whole, whole.folder.with_name("part"), n_episodes=1, seed=0)
    extended = runs / "datasets" / "walker" / "random-s1" / "buffer"
    shutil.copy(next(extended.glob("*_60.npz")), extended / "episode_000009_60.npz")
    found = gather.load(gather.gather(runs, tmp_path / "tables", size=100))
    assert found.datasets["dataset"].tolist() == ["random-s0"]
    assert found.provenance["not finished"]["datasets"] == ["walker/random-s1"]


def test_scales_are_not_mixed(runs, tmp_path):
    to = tmp_path / "tables"
    to.mkdir()
    (to / "provenance.json").write_text(json.dumps({"scale": "paper"}))
    with pytest.raises(ValueError, match=r"scales must not be mixed in .*, got paper, test"):
        gather.gather(runs, to, size=100)
    assert [file.name for file in to.iterdir()] == ["provenance.json"]
    file = next(runs.glob("offline/*/*/*/*/results.csv"))
    rows = pd.read_csv(file).assign(scale="laptop")
    results.write(file, rows)
    with pytest.raises(ValueError, match=r"must not be mixed in .*, got laptop, test"):
        gather.gather(runs, tmp_path / "other", size=100)


@pytest.mark.parametrize(
    ("config", "line", "message"),
    [
        ("offline/*/random-s1/*/*", "batch_size: 1024", "td3 must have the same batch_size"),
        ("datasets/*/random-s1", "num_steps: 120", r"equal num_steps, got \[120, 500\]"),
    ],
)
def test_runs_of_different_settings_are_not_compared(runs, tmp_path, config, line, message):
    file = next(runs.glob(f"{config}/config.yaml"))
    file.write_text(file.read_text().replace(line, line.partition(" ")[0] + " 500"))
    with pytest.raises(ValueError, match=message):
        gather.gather(runs, tmp_path / "tables", size=100)


def test_tasks_without_baselines_are_refused(runs, tmp_path):
    shutil.rmtree(runs / "offline" / "walker" / "none" / "random-policy")
    with pytest.raises(ValueError, match="baseline 'random policy', got none for walker_stand"):
        gather.gather(runs, tmp_path / "tables", size=100)


def test_the_command_line_says_what_it_wrote_or_why_not(runs, tmp_path, monkeypatch, capsys):
    to = tmp_path / "tables"
    monkeypatch.setattr("sys.argv", ["gather", str(runs), str(to), "--size", "100"])
    assert gather.main() == 0
    assert capsys.readouterr().out == f"{to}\n"
    monkeypatch.setattr("sys.argv", ["gather", str(tmp_path / "nothing"), str(to)])
    assert gather.main() == 1
    assert "must hold a finished dataset" in capsys.readouterr().err
