"""Datasets made of others, or for Minari: sources stay as they are, and what is made names them."""

import shutil

import numpy as np
import pytest

from belib import datasets, paths
from belib.datasets import DatasetError
from belib.datasets.__main__ import main
from belib.datasets.files import read_arrays


def contents(*folders):
    return {f: f.read_bytes() for folder in folders for f in folder.rglob("*") if f.is_file()}


def equal(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[key], other[key]) for key in one)


@pytest.fixture
def place(tmp_path):
    """A folder of the domain's name, in which nothing is yet."""
    return tmp_path / "new" / "walker"


def test_merging_keeps_every_row_in_order_and_the_sources(make_dataset, place):
    one, two = pair = [make_dataset(), make_dataset("random-s1", lengths=(5, 3), seed=1)]
    before = contents(one.folder, two.folder)
    merged = datasets.merge(pair, place / "both")
    assert contents(one.folder, two.folder) == before
    names = [file.name for file in merged.files]
    assert names == [f"episode_{i:06d}_{n}.npz" for i, n in enumerate((4, 6, 4, 5, 3))]
    sources = [*one.episodes(), *two.episodes()]
    assert all(equal(a, b) for a, b in zip(merged.episodes(), sources, strict=True))
    assert len(list(merged.folder.glob("rewards/*.npz"))) == 5
    assert datasets.validate(merged.folder) == []
    provenance, card = merged.provenance(), datasets.read_card(merged.folder)
    assert provenance["made_by"] == "merge"
    for dataset, source in zip(pair, provenance["sources"], strict=True):
        assert source["name"] == dataset.name
        assert source["sha256"] == datasets.read_card(dataset.folder)["sha256"]
    assert (card["objective"], card["seed"], card["num_steps"]) == ("random", None, 22)
    assert merged.config() is None


def test_subsamples_are_whole_episodes_by_seed(make_dataset, place):
    dataset = make_dataset(lengths=(2, 3, 4, 5, 6, 7))
    by_length = {len(episode["action"]): episode for episode in dataset.episodes()}
    drawn = []
    for seed in (0, np.int64(0), 1):  # JSON has no numpy numbers
        part = datasets.subsample(dataset, place / f"{len(drawn)}", seed=seed, n_episodes=3)
        drawn.append(part.lengths)
        assert part.lengths == sorted(part.lengths)  # the order of collection
        assert all(equal(e, by_length[len(e["action"])]) for e in part.episodes())
        assert datasets.validate(part.folder) == []
        assert part.config() == dataset.config()
        assert part.provenance()["seed"] == seed
        assert datasets.read_card(part.folder)["num_steps"] == part.steps
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0]) == 3
    for count in (0, 7, 2.0):
        with pytest.raises(ValueError, match="n_episodes must be"):
            datasets.subsample(dataset, place / "d", seed=0, n_episodes=count)


def test_sources_and_folders_that_are_refused(make_dataset, tmp_path, place):
    one, two = make_dataset(), make_dataset("random-s1", seed=1)
    before, merge, convert = contents(two.folder), datasets.merge, datasets.import_exorl
    for make, source, folder, message in (
        (merge, [one, two], two.folder, "must be new or empty"),
        (convert, one.folder, two.folder, "must be new or empty"),
        (merge, [one], tmp_path / "cheetah" / "one", "cheetah/one must be in .*, got walker"),
        (merge, [], place / "none", "must be in .*, got no sources"),
        (convert, tmp_path, place / "apt", "buffer must hold at least one episode, got none"),
        (convert, one.folder, tmp_path / "quadruped" / "one", r"must be float32 \(5, 78\), got"),
    ):
        with pytest.raises(DatasetError, match=message):
            make(source, folder)
    assert contents(two.folder) == before
    assert not place.exists()


@pytest.fixture
def download(make_dataset, tmp_path):
    """ExORL's download, `walker/icm_apt/buffer`: episodes alone."""
    dataset = make_dataset(lengths=(4,) * 12)
    (tmp_path / "exorl" / "walker" / "icm_apt").mkdir(parents=True)
    return shutil.move(dataset.folder / "buffer", tmp_path / "exorl/walker/icm_apt/buffer")


def test_every_episode_of_exorl_is_imported_and_stays(download, place):
    before = contents(download)
    for name, source in (("one", download), ("two", download.parent)):
        dataset = datasets.import_exorl(source, place / name)
        assert dataset.steps == 48
        assert contents(download) == before
        assert datasets.validate(dataset.folder) == []
        assert dataset.provenance()["sources"][0]["name"] == "icm_apt"
        card = datasets.read_card(dataset.folder)
        assert (card["objective"], card["steps"], card["seed"]) == (None, 48, None)
        assert card["mean_reward"]["walker_run"] > 0


def test_urlbs_buffers_are_imported_in_the_order_of_their_indices(download, place):
    files = sorted(download.glob("*.npz"))
    originals = [read_arrays(file) for file in files]
    for index, (file, arrays) in enumerate(zip(files, originals, strict=True)):
        del arrays["physics"]
        np.savez_compressed(file, **arrays)
        file.rename(download / f"20240131T120000_{index}_4.npz")
    (download / ".episode_000012_4.npz.tmp").write_bytes(b"half")  # no episode yet
    dataset = datasets.import_exorl(download.parent, place / "apt")
    assert dataset.files[10].name == "episode_000010_4.npz"
    assert all(equal(*pair) for pair in zip(dataset.episodes(), originals, strict=True))
    assert datasets.read_card(dataset.folder)["returns"] == {}


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
    with pytest.raises(DatasetError, match=r"must be one of .*, got 'walker_fly'"):
        datasets.export_minari(dataset, "one-v0", task="walker_fly")
    good = dataset.files[1].read_bytes()
    dataset.files[1].write_bytes(b"")
    with pytest.raises(DatasetError, match="cannot be read"):
        datasets.export_minari(dataset, "one-v0")
    assert not list((tmp_path / "minari").rglob("*"))
    dataset.files[1].write_bytes(good)
    datasets.export_minari(dataset, "one-v0")
    with pytest.raises(ValueError, match=r"must be new and end .*, got 'one-v0'"):
        datasets.export_minari(dataset, "one-v0")
    assert minari.load_dataset("one-v0").total_steps == 14


def test_relative_folders_are_the_projects(make_dataset, tmp_path, monkeypatch):
    dataset, place = make_dataset(), "datasets/walker/random-s0"
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    assert datasets.write_card(place) == datasets.read_card(dataset.folder)
    assert datasets.read_card(place)["steps"] == dataset.steps
    again = datasets.import_exorl(place, "imported/walker/again")
    assert (again.steps, again.folder) == (dataset.steps, tmp_path / "imported/walker/again")
