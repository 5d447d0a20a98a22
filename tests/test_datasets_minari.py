"""Minari reads back the same transitions; skipped where the extra is not installed."""

import numpy as np
import pytest

from belib import datasets
from belib.datasets.__main__ import main
from belib.datasets.files import read_arrays


@pytest.fixture
def minari(monkeypatch, tmp_path):
    module = pytest.importorskip("minari", reason="needs pip install 'belib[minari]'")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return module


def test_minari_loads_equal_transitions(minari, make_dataset, capsys):
    """Also the ends: a time limit truncates, a terminal terminates."""
    dataset = make_dataset()
    arrays = read_arrays(dataset.files[1])
    arrays["discount"][-1] = 0.0
    np.savez_compressed(dataset.files[1], **arrays)
    assert main(["export", str(dataset.folder)]) == 0
    assert "14 transitions in belib/walker/random-s0-v0" in capsys.readouterr().out
    stored = minari.load_dataset("belib/walker/random-s0-v0").iterate_episodes()
    datasets.export_minari(make_dataset("shannon-0.5-s0"))  # Minari refuses the dot
    assert minari.load_dataset("belib/walker/shannon-0_5-s0-v0").total_steps == 14
    datasets.export_minari(dataset, "run-v0", task="walker_run", author="nobody")
    run = minari.load_dataset("run-v0").iterate_episodes()
    rewards = datasets.task_rewards(dataset, ["walker_run"])
    for episode, other, reward, ours in zip(stored, run, rewards, dataset.episodes(), strict=True):
        assert np.array_equal(episode.observations, ours["observation"])
        assert np.array_equal(episode.actions, ours["action"][1:])
        assert np.array_equal(episode.rewards, ours["reward"][1:, 0])
        assert np.array_equal(other.rewards, reward[1:, 0])
        assert episode.observations.dtype == episode.actions.dtype == np.float32
        assert np.array_equal(episode.infos["physics"], ours["physics"])
        ends = [False] * (len(episode.actions) - 1)
        assert episode.terminations.tolist() == [*ends, len(ends) == 5]
        assert episode.truncations.tolist() == [*ends, len(ends) != 5]


def test_what_cannot_be_exported_leaves_nothing_and_takes_no_name(minari, make_dataset, tmp_path):
    dataset = make_dataset()
    with pytest.raises(ValueError, match="end in a version, as -v0, got 'mine'"):
        datasets.export_minari(dataset, "mine")
    with pytest.raises(datasets.DatasetError, match=r"must be one of .*, got 'walker_fly'"):
        datasets.export_minari(dataset, "one-v0", task="walker_fly")
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
