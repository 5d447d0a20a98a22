"""Finished runs become the tables of a study, and unfinished ones are named."""

import runpy
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
import synthetic

from belib import datasets, gather, results
from belib.config import OfflineConfig


def test_tables_are_read_as_they_were_written(tmp_path):
    made = synthetic.example()
    synthetic.write(made, tmp_path)
    read = gather.load(tmp_path)
    written = results.evaluations(made.offline)
    pd.testing.assert_frame_equal(read.offline, written, check_dtype=False)
    pd.testing.assert_frame_equal(read.coverage, made.coverage, check_dtype=False)
    assert read.learners == made.learners == ["td3", "crr"], "crr learnt from fewer datasets"
    (tmp_path / "coverage.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"coverage\.csv"):
        gather.load(tmp_path)


@pytest.fixture
def runs(tmp_path, make_dataset):
    """Two finished datasets, a policy on each, one policy that is not finished, and baselines."""
    for i, name in enumerate(("random-s0", "random-s1")):
        made = make_dataset(name, lengths=(60, 60), seed=i)
        steps = {"step": np.arange(1, 3) * 60, "intrinsic_reward": [1.0, 3.0]}
        pd.DataFrame(steps).to_csv(made.folder / "metrics.csv", index=False)
        for seed in range(2):
            config = OfflineConfig(dataset=name, num_steps=10, scale="test", seed=seed)
            last = 5 if i and seed else 10
            folder = learnt(tmp_path, config, made.config(), range(5, last + 1, 5))
            (folder / "config.yaml").write_text(config.to_yaml())
    for name in results.BASELINES:
        changes = {"algorithm": name, "dataset": "none"}
        learnt(tmp_path / "offline" / name, OfflineConfig(scale="test"), None, [3], **changes)
    return tmp_path


def learnt(runs_dir, config, collected, steps, **changes):
    """Write a policy's evaluations, a third of the step each; return its folder."""
    parts = (config.domain, config.dataset, config.variant, f"{config.task}-s{config.seed}")
    folder = runs_dir.joinpath("offline", *parts)
    folder.mkdir(parents=True)
    values = ((step, np.array([step / 3])) for step in steps)
    rows = [results.row(config, collected, *value, "abc", **changes) for value in values]
    pd.DataFrame(rows).to_csv(folder / "results.csv", index=False)
    return folder


def test_finished_runs_become_tables_and_others_are_named(runs, tmp_path):
    whole = datasets.load(runs / "datasets" / "walker" / "random-s0")
    datasets.subsample(whole, whole.folder.with_name("part"), n_episodes=1, seed=0)
    read = gather.load(gather.gather(runs, tmp_path / "tables" / "test"))
    kept = read.offline.groupby("dataset")["seed"].unique()
    assert read.baselines["return"].tolist() == [1.0, 1.0]
    assert (len(kept["random-s0"]), len(kept["random-s1"])) == (2, 1)
    assert read.offline["return"].max() == 3.33, "two decimals"
    unfinished = {"datasets": [], "policies": ["walker/td3/random-s1/walker_stand/1"]}
    assert read.provenance["not finished"] == unfinished
    described = read.datasets.set_index("dataset")
    assert described["intrinsic_reward"].to_dict() == {"random-s0": 2, "random-s1": 2}
    assert described["steps"].tolist() == [120, 120]
    assert described["variant"].tolist() == ["", ""]
    columns = ["num_steps", "versions_torch", "returns_walker_stand_mean", "git_revision"]
    assert described[columns].notna().all(axis=None)
    assert read.coverage["volumetric"].max() == 1
    assert read.provenance["learning"]["td3"]["num_steps"] == 10
    assert read.provenance["processor"]


def test_a_dataset_that_is_being_extended_is_left_out(runs, tmp_path):
    extended = runs / "datasets" / "walker" / "random-s1" / "buffer"
    shutil.copy(next(extended.glob("*_60.npz")), extended / "episode_000009_60.npz")
    read = gather.load(gather.gather(runs, tmp_path / "tables"))
    assert read.datasets["dataset"].tolist() == ["random-s0"]
    assert read.provenance["not finished"]["datasets"] == ["walker/random-s1"]


@pytest.mark.parametrize(
    ("file", "line", "other", "message"),
    [
        ("offline/*/random-s1/*/*/config.yaml", "batch_size: 1024", "batch_size: 500", "settings"),
        ("datasets/*/random-s1/card.json", '"num_steps": 120', '"num_steps": 500', r"\[120, 500\]"),
        ("offline/*/random-s1/*/*/results.csv", ",test,", ",laptop,", r"\['laptop', 'test'\]"),
    ],
)
def test_runs_of_different_settings_are_not_compared(runs, tmp_path, file, line, other, message):
    path = sorted(runs.glob(file))[0]
    path.write_text(path.read_text().replace(line, other))
    with pytest.raises(ValueError, match=message):
        gather.gather(runs, tmp_path / "tables")


def test_tables_of_several_folders_are_read_together(tmp_path):
    """Baselines are in both; settings must be the same."""
    made = synthetic.example()
    first = made.datasets["seed"] == 0
    for name, mine in (("one", first), ("two", ~first)):
        chosen = {*made.datasets.loc[mine, "dataset"], "none"}
        parts = [table[table["dataset"].isin(chosen)] for table in made[:3]]
        synthetic.write(gather.Tables(*parts, made.provenance), tmp_path / name)
        explored = made.coverage.loc[mine, ["dataset", "seed"]].assign(ball=1.5)
        explored.to_csv(tmp_path / name / "exploration.csv", index=False)
    synthetic.write(made, tmp_path / "whole")
    together, whole = (gather.load(tmp_path / name) for name in ("[ot][nw][eo]", "whole"))
    pd.testing.assert_frame_equal(together.offline, whole.offline)
    assert [len(table) for table in together[1:3]] == [len(table) for table in whole[1:3]]
    assert together.coverage["volumetric"].max() == 1, "over the largest of both folders"
    assert sorted(together.exploration["dataset"]) == sorted(made.datasets["dataset"])
    assert whole.exploration.empty
    changed = made._replace(provenance={**made.provenance, "scale": "paper"})
    synthetic.write(changed, tmp_path / "two")
    with pytest.raises(ValueError, match="must share scale and settings"):
        gather.load(tmp_path / "[ot][nw][eo]")
    explored.assign(ball=1.6).to_csv(tmp_path / "one" / "exploration.csv", index=False)
    with pytest.raises(ValueError, match="one value for dataset"):
        gather.load(tmp_path / "[ot][nw][eo]")


def test_tables_of_one_scale_are_not_replaced_by_those_of_another(runs, tmp_path):
    synthetic.write(synthetic.example(), tmp_path / "tables")
    with pytest.raises(ValueError, match=r"scale must be .* got \['synthetic', 'test'\]"):
        gather.gather(runs, tmp_path / "tables")
    assert gather.load(tmp_path / "tables").provenance["scale"] == "synthetic"


def test_the_command_line_says_what_it_wrote(runs, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["gather", str(runs), str(tmp_path / "tables")])
    for _ in range(2):  # again into the same folder
        monkeypatch.delitem(sys.modules, "belib.gather", raising=False)
        runpy.run_module("belib.gather", run_name="__main__")
        assert capsys.readouterr().out == f"{tmp_path / 'tables'}\n"
    shutil.rmtree(runs / "offline" / "walker")  # leaves datasets and baselines
    for place in (runs, tmp_path / "nothing"):
        with pytest.raises(ValueError, match="must hold"):
            gather.gather(place, tmp_path / "tables")
