"""Datasets made of others: nothing existing is touched, and where they came from is kept."""

import shutil

import numpy as np
import pytest

from belib import datasets
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
    one, two = pair = [make_dataset(), make_dataset("random-s1", lengths=(5, 3), seed=1)]
    before = contents(one.folder) | contents(two.folder)
    merged = datasets.merge(pair, place / "both")
    assert contents(one.folder) | contents(two.folder) == before
    names = [file.name for file in merged.files]
    assert names == [f"episode_{i:06d}_{n}.npz" for i, n in enumerate((4, 6, 4, 5, 3))]
    sources = [*one.episodes(), *two.episodes()]
    assert all(equal(a, b) for a, b in zip(merged.episodes(), sources, strict=True))
    recorded = [r for dataset in pair for r in datasets.task_rewards(dataset, ["walker_run"])]
    rewards = datasets.task_rewards(merged, ["walker_run"])
    assert all(np.array_equal(a, b) for a, b in zip(rewards, recorded, strict=True))
    assert not list(merged.folder.glob("relabelled"))  # they were copied, not computed
    assert datasets.validate(merged.folder) == []
    provenance, card = merged.provenance(), datasets.read_card(merged.folder)
    assert provenance["made_by"] == "merge"
    assert [source["name"] for source in provenance["sources"]] == ["random-s0", "random-s1"]
    hashes = [datasets.read_card(dataset.folder)["sha256"] for dataset in pair]
    assert [source["sha256"] for source in provenance["sources"]] == hashes
    assert (card["objective"], card["seed"], card["num_steps"]) == ("random", None, 22)
    assert merged.config() is None


def test_subsamples_are_whole_episodes_by_seed(make_dataset, place):
    dataset = make_dataset(lengths=(2, 3, 4, 5, 6, 7))
    by_length = {len(episode["action"]): episode for episode in dataset.episodes()}
    drawn = {}
    for name, seed in {"a": 0, "b": np.int64(0), "c": 1}.items():  # JSON has no numpy numbers
        part = datasets.subsample(dataset, place / name, seed=seed, n_episodes=3)
        drawn[name] = part.lengths
        assert part.lengths == sorted(part.lengths)  # the order of collection
        assert all(equal(e, by_length[len(e["action"])]) for e in part.episodes())
        assert datasets.validate(part.folder) == []
        assert part.config() == dataset.config()
        assert part.provenance()["seed"] == seed
        assert datasets.read_card(part.folder)["num_steps"] == part.steps
    assert drawn["a"] == drawn["b"] != drawn["c"]
    assert len(drawn["a"]) == 3
    for wrong in ({"n_episodes": 0}, {"n_episodes": 7}, {"n_episodes": 2.0}, {"seed": -1}):
        (name,) = wrong
        with pytest.raises(ValueError, match=f"{name} must be"):
            datasets.subsample(dataset, place / "d", **{"seed": 0, "n_episodes": 3, **wrong})


def test_sources_and_folders_that_are_refused(make_dataset, tmp_path, place):
    one, two = make_dataset(), make_dataset("random-s1", seed=1)
    before = contents(two.folder)
    for make in (lambda *a: datasets.merge([one, two], *a), datasets.import_exorl):
        arguments = (two.folder,) if make is not datasets.import_exorl else (one.folder, two.folder)
        with pytest.raises(DatasetError, match="must be new or empty"):
            make(*arguments)
    assert contents(two.folder) == before
    with pytest.raises(DatasetError, match=r"cheetah/both must be in a folder .* got walker"):
        datasets.merge([one, two], tmp_path / "cheetah" / "both")
    with pytest.raises(DatasetError, match="got no sources"):
        datasets.merge([], place / "both")
    with pytest.raises(DatasetError, match="nowhere/buffer must hold at least one episode"):
        datasets.import_exorl(tmp_path / "nowhere", place / "apt")
    assert not place.exists()


def spoil(dataset, kind, key):
    """Change an array of the second episode."""
    file = dataset.folder / kind / dataset.files[1].name
    arrays = read_arrays(file)
    arrays[key] = arrays[key][:, 1:] if key == "observation" else arrays[key] + 0.5
    np.savez(file, **arrays)


@pytest.mark.parametrize(
    ("kind", "key", "rule"),
    [
        ("rewards", "walker_stand", "must be the stored reward"),
        ("buffer", "observation", r"must be float32 \(7, 24\), got float32 \(7, 23\)"),
    ],
)
def test_sources_that_are_spoilt_leave_no_dataset(make_dataset, place, kind, key, rule):
    dataset = make_dataset()
    spoil(dataset, kind, key)
    with pytest.raises(DatasetError, match=rf"'{key}' {rule}"):
        datasets.merge([dataset], place / "copy")
    with pytest.raises(DatasetError, match=rf"'{key}' {rule}"):
        datasets.subsample(dataset, place / "copy", seed=0, n_episodes=3)
    assert not list(place.glob("*"))


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
    originals = [read_arrays(file) for file in sorted(download.glob("*.npz"))]
    for index, file in enumerate(sorted(download.glob("*.npz"))):
        arrays = read_arrays(file)
        del arrays["physics"]
        np.savez_compressed(file, **arrays)
        file.rename(download / f"20240131T120000_{index}_4.npz")
    dataset = datasets.import_exorl(download.parent, place / "apt")
    assert dataset.files[10].name == "episode_000010_4.npz"
    for episode, original in zip(dataset.episodes(), originals, strict=True):
        assert np.array_equal(episode["observation"], original["observation"])
    assert datasets.read_card(dataset.folder)["returns"] == {}


def test_data_of_another_domain_are_not_imported(download, tmp_path):
    rule = r"'observation' must be float32 \(5, 78\), got float32 \(5, 24\)"
    with pytest.raises(DatasetError, match=rule):
        datasets.import_exorl(download, tmp_path / "mine" / "quadruped" / "apt")
    assert not (tmp_path / "mine").exists()
