"""Runs end in the same bytes, however they are killed, alone or beside others."""

import multiprocessing
import os
import signal
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from belib import datasets, runs
from belib.training import pretrain, train_offline
from belib.training.collection import Collection
from belib.training.learning import Learning


def contents(folder):
    """Every file but the checkpoint, whose archive carries no promise."""
    files = [file for file in folder.rglob("*") if file.is_file() and file.name != "checkpoint.pt"]
    return {file.relative_to(folder): file.read_bytes() for file in files}


def test_collection_by_hand(small_pretrain, tmp_path, capsys):
    (folder,) = pretrain(small_pretrain(), runs_dir=tmp_path, progress=False)
    assert folder == tmp_path / "datasets" / "walker" / "behavioral-0.5-s0"
    assert datasets.load(folder).steps == 200
    metrics = pd.read_csv(folder / "metrics.csv")
    assert metrics["step"].tolist() == [100, 200]
    assert metrics["intrinsic_reward"].isna().tolist() == [True, False]  # no updates at first
    assert datasets.read_card(folder)["precision"] == "float32"
    stand = datasets.task_rewards(datasets.load(folder), ["walker_stand"])
    assert metrics["return_walker_stand"].tolist() == pytest.approx([e.sum() for e in stand])
    before = contents(folder)
    assert capsys.readouterr() == ("", "")
    with runs.locked([folder]):  # which a finished run does not need
        pretrain(small_pretrain(), runs_dir=tmp_path)
        with pytest.raises(BlockingIOError, match=f"process {os.getpid()} on"):
            pretrain(small_pretrain(num_steps=300), runs_dir=tmp_path)
    assert contents(folder) == before
    assert (folder / ".lock").read_text() == ""


def run_killed(steps, work, stage, configs, **options):
    """Run a stage in processes that are killed as they are about to do these steps, then here."""

    def run(step):
        advance = work.advance

        def die_or_advance(self):
            if self.step == step:
                os.kill(os.getpid(), signal.SIGKILL)
            advance(self)

        work.advance = die_or_advance
        stage(configs, progress=False, **options)

    for step in steps:
        process = multiprocessing.get_context("fork").Process(target=run, args=(step,))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    return stage(configs, progress=False, **options)


@pytest.mark.usefixtures("frequent_checkpoints")
@pytest.mark.parametrize(
    ("objective", "convention", "kills"),
    [
        ("behavioral", "urlb", (100,)),
        ("behavioral", "corrected", (30, 101)),
        ("smm", "corrected", (99,)),
        ("rnd", "urlb", (199,)),
    ],
)
def test_a_killed_collection_ends_in_the_same_bytes(
    small_pretrain, tmp_path, objective, convention, kills
):
    """SIGKILL before the first episode's end, exactly at it, and in the second; locks end, too."""
    config = small_pretrain(random_steps=20, objective=objective, convention=convention)
    pretrain(config, runs_dir=tmp_path / "straight", progress=False)
    options = {"runs_dir": tmp_path / "killed", "checkpoint_minutes": 0.2}
    run_killed(kills, Collection, pretrain, config, **options)
    assert contents(tmp_path / "killed") == contents(tmp_path / "straight")


@pytest.mark.usefixtures("frequent_checkpoints")
def test_killed_learning_ends_in_the_same_bytes(small_offline, runs_dir, monkeypatch):
    """Also where a member has diverged."""
    stop = Learning._stop_the_diverged

    def poisoned(self, metrics):
        self.learner.critic.head[0].weight.data[0] = torch.inf
        stop(self, {**metrics, "value": torch.tensor([torch.inf, 0.0])})

    monkeypatch.setattr(Learning, "_stop_the_diverged", poisoned)
    configs = [small_offline(dataset="random-s0", seed=s, eval_every=10) for s in (0, 1)]
    train_offline(configs, runs_dir=runs_dir, progress=False)
    (runs_dir / "offline").rename(runs_dir / "straight")
    options = {"runs_dir": runs_dir, "checkpoint_minutes": 0}
    table = run_killed((5, 25), Learning, train_offline, configs, **options)
    assert table["status"].tolist() == ["diverged"] * 3 + ["ok"] * 3
    assert contents(runs_dir / "offline") == contents(runs_dir / "straight")


def test_a_longer_run_continues_a_shorter_one(small_pretrain, tmp_path, capsys):
    short, long = small_pretrain(num_steps=70, random_steps=10), small_pretrain(random_steps=10)
    (straight,) = pretrain(long, runs_dir=tmp_path / "straight", progress=False)
    (folder,) = pretrain(short, runs_dir=tmp_path / "grown", progress=False)
    assert "no full episode yet, a larger num_steps continues this one" in capsys.readouterr().out
    assert not (folder / "buffer").exists()
    with pytest.raises(ValueError, match=r"num_steps must be at least 70, which .*-s0 has"):
        pretrain(replace(short, num_steps=60), runs_dir=tmp_path / "grown")
    pretrain(long, runs_dir=tmp_path / "grown", progress=False)
    assert "continued from step 70" in capsys.readouterr().out
    assert contents(folder) == contents(straight)


@pytest.mark.usefixtures("float32_products")
def test_members_collect_as_if_alone(small_pretrain, tmp_path):
    """Equal to the bit while actions are random; the first update, at the last step, to rounding.

    No later: a simulation doubles a difference many times, and how often is the processor's affair.
    """
    sizes = {"num_steps": 100, "random_steps": 99, "update_every": 3}
    sizes |= {"convention": "corrected"}  # which replays the episode in progress, too
    configs = [
        small_pretrain(**sizes),
        small_pretrain(**sizes, seed=1, objective="renyi"),
        small_pretrain(**sizes, seed=2, alpha=2.0),
    ]
    together = pretrain(configs, runs_dir=tmp_path / "together", progress=False)
    for config, folder in zip(configs, together, strict=True):
        (alone,) = pretrain(config, runs_dir=tmp_path / "alone", progress=False)
        (one,), (two,) = (datasets.load(f).episodes() for f in (folder, alone))
        assert all(np.array_equal(one[key][:100], two[key][:100]) for key in datasets.DTYPES)
        # A gradient that is rounding alone moves its parameter by the learning rate, 1e-4.
        np.testing.assert_allclose(one["action"][100], two["action"][100], atol=1e-3)
        one, two = (pd.read_csv(f / "metrics.csv") for f in (folder, alone))
        assert one["critic_loss"].notna().all(), "one update in this episode"
        pd.testing.assert_frame_equal(one, two, rtol=1e-4)
