"""Datasets made of others: nothing existing is touched, and where they came from is kept."""

import errno
import shutil

import numpy as np
import pytest

from belib import datasets, paths
from belib.datasets import DatasetError
from belib.datasets.episodes import read_arrays


def contents(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def equal(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[key], other[key]) for key in one)


@pytest.fixture
def place(tmp_path):
    """A folder of the domain's name, in which nothing is yet."""
    return tmp_path / "new" / "walker"


def test_merging_keeps_every_row_in_order_and_the_sources(make_dataset, place):
    one, two = make_dataset(), make_dataset("random-s1", lengths=(5, 3), seed=1)
    before = contents(one.folder) | contents(two.folder)
    merged = datasets.merge((each for each in (one, two)), place / "both")
    names = [file.name for file in merged.files]
    assert names == [f"episode_{i:06d}_{n}.npz" for i, n in enumerate((4, 6, 4, 5, 3))]
    sources = [*one.episodes(), *two.episodes()]
    assert all(equal(a, b) for a, b in zip(merged.episodes(), sources, strict=True))
    rewards = [r for each in (one, two) for r in datasets.task_rewards(each, ["walker_run"])]
    found = datasets.task_rewards(merged, ["walker_run"])
    assert all(np.array_equal(a, b) for a, b in zip(found, rewards, strict=True))
    assert contents(one.folder) | contents(two.folder) == before
    assert datasets.validate(merged.folder) == []
    provenance, card = merged.provenance(), datasets.read_card(merged.folder)
    assert provenance["made_by"] == "merge"
    assert [source["name"] for source in provenance["sources"]] == ["random-s0", "random-s1"]
    hashes = [datasets.read_card(each.folder)["sha256"] for each in (one, two)]
    assert [source["sha256"] for source in provenance["sources"]] == hashes
    assert (card["objective"], card["seed"], card["num_steps"]) == ("random", None, 22)
    assert merged.config() is None


def test_subsamples_are_whole_episodes_by_seed(make_dataset, place):
    dataset = make_dataset(lengths=(2, 3, 4, 5, 6, 7))
    by_length = {len(episode["action"]): episode for episode in dataset.episodes()}
    drawn = {}
    for name, options in {
        "a": {"seed": 0, "n_episodes": 3},
        "b": {"seed": np.int64(0), "n_episodes": np.int64(3)},  # JSON has no numpy numbers
        "c": {"seed": 1, "n_episodes": 3},
        "d": {"seed": 0, "steps": 13},
    }.items():
        part = drawn[name] = datasets.subsample(dataset, place / name, **options)
        assert part.lengths == sorted(part.lengths)  # the order of collection
        assert all(equal(each, by_length[len(each["action"])]) for each in part.episodes())
        assert datasets.validate(part.folder) == []
        assert part.config() == dataset.config()
        assert part.provenance()["seed"] == options["seed"]
        assert datasets.read_card(part.folder)["num_steps"] == part.steps
    assert drawn["a"].provenance() == drawn["b"].provenance()
    assert drawn["a"].lengths == drawn["b"].lengths != drawn["c"].lengths
    assert len(drawn["a"].files) == 3
    assert 13 <= drawn["d"].steps < 13 + 7


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "give n_episodes or steps"),
        ({"n_episodes": 2, "steps": 3}, "give n_episodes or steps"),
        ({"n_episodes": 4}, "n_episodes must be between 1 and 3, got 4"),
        ({"n_episodes": 0}, "n_episodes must be between 1 and 3, got 0"),
        ({"n_episodes": 2.0}, "n_episodes must be an integer, got 2.0"),
        ({"steps": 15}, "steps must be between 1 and 14, got 15"),
        ({"steps": 3, "seed": None}, "seed must be an integer, got None"),
        ({"steps": 3, "seed": -1}, "seed must be at least 0, got -1"),
    ],
)
def test_a_subsample_is_a_number_of_what_there_is(make_dataset, place, options, words):
    with pytest.raises(ValueError, match=words):
        datasets.subsample(make_dataset(), place / "part", **{"seed": 0, **options})
    assert not place.exists()


def test_sources_and_folders_that_are_refused(make_dataset, tmp_path, place):
    one, two = make_dataset(), make_dataset("random-s1", seed=1)
    before = contents(two.folder)
    with pytest.raises(DatasetError, match="must be new or empty"):
        datasets.merge([one, two], two.folder)
    with pytest.raises(DatasetError, match="must be new or empty"):
        datasets.import_exorl(one.folder, two.folder)
    assert contents(two.folder) == before
    with pytest.raises(DatasetError, match="must be in a folder named walker"):
        datasets.merge([one, two], tmp_path / "cheetah" / "both")
    with pytest.raises(DatasetError, match="must be of one domain, got none"):
        datasets.merge([], place / "both")
    with pytest.raises(DatasetError, match=r"there is no folder .*nowhere"):
        datasets.import_exorl(tmp_path / "nowhere", place / "apt")
    for file in two.files:
        arrays = read_arrays(file)
        np.savez(file, **{**arrays, "observation": arrays["observation"][:, 1:]})
    with pytest.raises(DatasetError, match=r"random-s1.* must be float32 \(5, 24\), got .* \(5, 2"):
        datasets.merge([one, two], place / "other")
    assert not place.exists()


@pytest.mark.parametrize("make", ["merge", "subsample"])
def test_rewards_of_other_episodes_leave_no_dataset(make_dataset, place, make):
    dataset = make_dataset()
    labels = read_arrays(dataset.folder / "rewards" / dataset.files[1].name)
    labels["walker_stand"][3] += 0.5
    np.savez(dataset.folder / "rewards" / dataset.files[1].name, **labels)
    sources = {"merge": [dataset], "subsample": dataset}[make]
    options = {"merge": {}, "subsample": {"seed": 0, "n_episodes": 3}}[make]
    with pytest.raises(DatasetError, match="'walker_stand' must be the stored reward"):
        getattr(datasets, make)(sources, place / "copy", **options)
    assert not list(place.iterdir())


def test_a_full_disk_half_way_leaves_no_dataset(make_dataset, place, monkeypatch):
    written, write_atomic = [], paths.write_atomic

    def fill(path, write):
        written.append(path)
        if len(written) == 4:
            raise OSError(errno.ENOSPC, f"cannot write {path}: No space left on device")
        write_atomic(path, write)

    dataset = make_dataset()
    monkeypatch.setattr(paths, "write_atomic", fill)
    with pytest.raises(OSError, match="No space left"):
        datasets.subsample(dataset, place / "part", seed=0, n_episodes=3)
    assert not list(place.iterdir())


@pytest.fixture
def download(make_dataset, tmp_path):
    """ExORL's download, `walker/icm_apt/buffer`: episodes alone."""
    dataset = make_dataset(lengths=(4,) * 12)
    (tmp_path / "exorl" / "walker" / "icm_apt").mkdir(parents=True)
    return shutil.move(dataset.folder / "buffer", tmp_path / "exorl/walker/icm_apt/buffer")


@pytest.mark.parametrize(("link", "from_buffer"), [(False, True), (True, False)])
def test_every_episode_of_exorl_is_imported_and_stays(download, place, link, from_buffer):
    before = contents(download)
    source = download if from_buffer else download.parent
    dataset = datasets.import_exorl(source, place / "apt", link=link)
    assert dataset.steps == 48
    assert contents(download) == before
    assert {file.is_symlink() for file in dataset.files} == {link}
    assert datasets.validate(dataset.folder) == []
    assert dataset.provenance()["sources"][0]["name"] == "icm_apt"
    card = datasets.write_card(dataset.folder)
    assert (card["objective"], card["steps"], card["seed"]) == (None, 48, None)
    assert card["mean_reward"]["walker_run"] > 0
    assert datasets.check_card(dataset.folder) == []


def test_urlbs_buffers_are_imported_in_the_order_of_their_indices(download, place):
    expected = [read_arrays(file) for file in sorted(download.glob("*.npz"))]
    for index, file in enumerate(sorted(download.glob("*.npz"))):
        arrays = read_arrays(file)
        del arrays["physics"]
        np.savez_compressed(file, **arrays)
        file.rename(download / f"20240131T120000_{index}_4.npz")
    dataset = datasets.import_exorl(download.parent, place / "apt")
    assert dataset.files[10].name == "episode_000010_4.npz"
    for found, wanted in zip(dataset.episodes(), expected, strict=True):
        assert np.array_equal(found["observation"], wanted["observation"])
    assert datasets.write_card(dataset.folder)["returns"] == {}


def test_data_of_another_domain_are_not_imported(download, tmp_path):
    words = r"'observation' must be float32 \(5, 78\), got float32 \(5, 24\)"
    with pytest.raises(DatasetError, match=words):
        datasets.import_exorl(download, tmp_path / "mine" / "quadruped" / "apt")
    assert not (tmp_path / "mine").exists()
