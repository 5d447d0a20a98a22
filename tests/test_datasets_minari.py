"""Minari reads back the same transitions; skipped where the extra is not installed."""

import sys

import numpy as np
import pytest

from belib import datasets
from belib.datasets.__main__ import main
from belib.datasets.episodes import read_arrays


@pytest.fixture
def minari(monkeypatch, tmp_path):
    module = pytest.importorskip("minari", reason="needs pip install 'belib[minari]'")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return module


def test_minari_loads_equal_transitions(minari, make_dataset):
    dataset = make_dataset()
    datasets.export_minari(dataset, author="nobody")
    loaded = minari.load_dataset("belib/walker/random-s0-v0")
    assert (loaded.total_episodes, loaded.total_steps) == (3, 14)
    ours = dataset.transitions()
    for index, episode in enumerate(loaded.iterate_episodes()):
        rows = ours.episode == index
        assert np.array_equal(episode.observations[:-1], ours.obs[rows])
        assert np.array_equal(episode.observations[1:], ours.next_obs[rows])
        assert np.array_equal(episode.actions, ours.action[rows])
        assert np.array_equal(episode.rewards, ours.reward[rows])
        assert episode.observations.dtype == episode.actions.dtype == np.float32
        physics = read_arrays(dataset.files[index])["physics"]
        assert np.array_equal(episode.infos["physics"], physics)


def test_a_time_limit_truncates_and_a_terminal_terminates(minari, make_dataset):
    dataset = make_dataset()
    arrays = read_arrays(dataset.files[1])
    arrays["discount"][-1] = 0.0
    np.savez_compressed(dataset.files[1], **arrays)
    datasets.export_minari(dataset, "ends-v0")
    limit, terminal, _ = minari.load_dataset("ends-v0").iterate_episodes()
    assert limit.truncations.tolist() == [False] * 3 + [True]
    assert terminal.terminations.tolist() == [False] * 5 + [True]
    assert not [*limit.terminations, *terminal.truncations].count(True)


def test_rewards_of_another_task(minari, make_dataset, capsys):
    dataset = make_dataset()
    command = ["export", str(dataset.folder), "--id", "run-v0", "--task", "walker_run"]
    assert main(command) == 0
    assert "14 transitions in run-v0" in capsys.readouterr().out
    expected = datasets.task_rewards(dataset, ["walker_run"])
    loaded = minari.load_dataset("run-v0").iterate_episodes()
    for episode, rewards in zip(loaded, expected, strict=True):
        assert np.array_equal(episode.rewards, rewards[1:, 0])


def test_what_cannot_be_exported_leaves_nothing_and_takes_no_name(minari, make_dataset, tmp_path):
    dataset = make_dataset()
    with pytest.raises(ValueError, match="end in a version, as -v0, got 'mine'"):
        datasets.export_minari(dataset, "mine")
    with pytest.raises(datasets.DatasetError, match=r"must be one of .*, got 'walker_fly'"):
        datasets.export_minari(dataset, task="walker_fly")
    good = dataset.files[1].read_bytes()
    dataset.files[1].write_bytes(b"")
    with pytest.raises(datasets.DatasetError, match="cannot be read"):
        datasets.export_minari(dataset, "one-v0")
    assert not list((tmp_path / "minari").rglob("*"))
    dataset.files[1].write_bytes(good)
    datasets.export_minari(dataset, "one-v0")
    with pytest.raises(ValueError, match=r"must be new and end .*, got 'one-v0'"):
        datasets.export_minari(dataset, "one-v0")
    assert minari.load_dataset("one-v0").total_steps == 14


def test_the_missing_extra_is_named(make_dataset, monkeypatch, capsys):
    dataset = make_dataset()
    monkeypatch.setitem(sys.modules, "minari", None)
    assert main(["export", str(dataset.folder)]) == 1
    assert "pip install 'belib[minari]'" in capsys.readouterr().err
