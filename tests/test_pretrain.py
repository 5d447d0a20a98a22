"""Collections end in the same bytes, however they are interrupted, alone or beside others."""

import hashlib
import multiprocessing
import os
import signal
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from interrupting import Interrupted, interrupt_at

from belib import datasets, runs
from belib.training import (
    pretrain,
)
from belib.training.collection import Collection


def hashes(folder):
    """SHA-256 of every file but the checkpoint, whose archive carries no promise."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file.name != "checkpoint.pt"
    }


def test_collection_by_hand(small_pretrain, tmp_path, capsys):
    (folder,) = pretrain(small_pretrain(), runs_dir=tmp_path, progress=False)
    assert folder == tmp_path / "datasets" / "walker" / "behavioral-0.5-s0"
    assert datasets.load(folder).steps == 2000
    metrics = pd.read_csv(folder / "metrics.csv")
    assert metrics["step"].tolist() == [1000, 2000]
    assert metrics["intrinsic_reward"].isna().tolist() == [True, False]  # no updates at first
    assert datasets.read_card(folder)["precision"] == "float32"
    stand = datasets.task_rewards(datasets.load(folder), ["walker_stand"])
    assert metrics["return_walker_stand"].tolist() == pytest.approx([e.sum() for e in stand])

    before = hashes(folder)
    assert capsys.readouterr() == ("", "")
    with runs.locked([folder]):  # which a finished run does not need
        pretrain(small_pretrain(), runs_dir=tmp_path)
        assert "1 members finished already" in capsys.readouterr().out
        with pytest.raises(runs.InUseError, match=f"process {os.getpid()} on"):
            pretrain(small_pretrain(num_steps=3000), runs_dir=tmp_path)
    assert hashes(folder) == before


@pytest.mark.usefixtures("frequent_checkpoints")
@pytest.mark.parametrize(
    ("objective", "stop"),
    [
        pytest.param("behavioral", 50, marks=pytest.mark.slow),
        ("behavioral", 1000),
        pytest.param("rnd", 1537, marks=pytest.mark.slow),
        ("smm", 1537),
    ],
)
def test_an_interrupted_collection_ends_in_the_same_bytes(
    small_pretrain, tmp_path, monkeypatch, objective, stop
):
    """Before the first episode's end, exactly at it, and in the second one."""
    config = small_pretrain(random_steps=200, objective=objective)
    (straight,) = pretrain(config, runs_dir=tmp_path / "straight", progress=False)
    options = {"runs_dir": tmp_path / "stopped", "progress": False, "checkpoint_minutes": 2}
    with monkeypatch.context() as patch:
        interrupt_at(patch, Collection, stop)
        with pytest.raises(Interrupted):
            pretrain(config, **options)
    (stopped,) = pretrain(config, **options)
    assert hashes(stopped) == hashes(straight)


@pytest.mark.usefixtures("frequent_checkpoints")
@pytest.mark.parametrize(
    ("objective", "num_steps", "kills"),
    [
        ("behavioral", 2000, 2),
        *(pytest.param(o, 10_000, 20, marks=pytest.mark.slow) for o in ("renyi", "rnd", "smm")),
    ],
)
def test_a_killed_run_ends_in_the_same_bytes(small_pretrain, tmp_path, objective, num_steps, kills):
    """SIGKILL at any moment, as often as it comes."""
    config = small_pretrain(num_steps=num_steps, random_steps=200, objective=objective)
    (straight,) = pretrain(config, runs_dir=tmp_path / "straight", progress=False)
    options = {"runs_dir": tmp_path / "killed", "progress": False, "checkpoint_minutes": 2}
    for delay in np.random.default_rng(0).uniform(0.3, 1.5, kills):
        context = multiprocessing.get_context("fork")
        process = context.Process(target=pretrain, args=(config,), kwargs=options)
        process.start()
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    (killed,) = pretrain(config, **options)
    assert hashes(killed) == hashes(straight)


def test_a_longer_run_continues_a_shorter_one(small_pretrain, tmp_path, capsys):
    short, long = small_pretrain(num_steps=700, random_steps=100), small_pretrain(random_steps=100)
    (straight,) = pretrain(long, runs_dir=tmp_path / "straight", progress=False)
    (folder,) = pretrain(short, runs_dir=tmp_path / "grown", progress=False)
    assert "no full episode was written in 700 steps" in capsys.readouterr().out
    assert not (folder / "buffer").exists()
    pretrain(long, runs_dir=tmp_path / "grown", progress=False)
    assert "continued from step 700" in capsys.readouterr().out
    assert hashes(folder) == hashes(straight)


@pytest.mark.usefixtures("float32_products")
def test_members_collect_as_if_alone(small_pretrain, tmp_path):
    """Equal to the bit while actions are random; the first update, at the last step, to rounding.

    No later: a simulation doubles a difference many times, and how often is the processor's affair.
    """
    sizes = {"num_steps": 1000, "random_steps": 999, "update_every": 3}
    sizes |= {"convention": "corrected"}  # which replays the episode in progress, too
    configs = [
        small_pretrain(**sizes),
        small_pretrain(**sizes, seed=1, objective="renyi"),
        small_pretrain(**sizes, seed=2, alpha=2.0),
    ]
    together = pretrain(configs, runs_dir=tmp_path / "together", progress=False)
    for config, folder in zip(configs, together, strict=True):
        (alone,) = pretrain(config, runs_dir=tmp_path / "alone", progress=False)
        assert folder.name == alone.name
        (found,), (expected,) = (datasets.load(f).episodes() for f in (folder, alone))
        for key in datasets.DTYPES:
            assert np.array_equal(found[key][:1000], expected[key][:1000])
        # A gradient that is rounding alone moves its parameter by the learning rate, 1e-4.
        np.testing.assert_allclose(found["action"][1000], expected["action"][1000], atol=1e-3)
        found, expected = (pd.read_csv(each / "metrics.csv") for each in (folder, alone))
        assert found["critic_loss"].notna().all(), "one update in this episode"
        pd.testing.assert_frame_equal(found, expected, rtol=1e-4)


def test_a_run_of_other_members_or_another_configuration_is_refused(small_pretrain, tmp_path):
    configs = [small_pretrain(seed=seed, num_steps=1100) for seed in (0, 1)]
    pretrain(configs, runs_dir=tmp_path, progress=False)
    before = hashes(tmp_path)
    for config in configs:
        with pytest.raises(ValueError, match="part of a run with other members"):
            pretrain(replace(config, num_steps=3000), runs_dir=tmp_path)
    with pytest.raises(ValueError, match=r"hidden_dim: 16 there, 32 here; tau: 0\.01 there, 0\.1"):
        pretrain(small_pretrain(hidden_dim=32, tau=0.1), runs_dir=tmp_path)
    assert hashes(tmp_path) == before
