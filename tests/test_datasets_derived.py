"""Datasets made of others: nothing existing is touched, and where they came from is kept."""

import errno
import hashlib
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


def test_the_cards_hash_is_of_the_arrays_and_not_of_the_files(make_dataset):
    dataset = make_dataset()
    card = datasets.read_card(dataset.folder)
    digest = hashlib.sha256()
    for episode in dataset.episodes():
        for key, array in sorted(episode.items()):
            digest.update(f"{key} {array.dtype.str} {array.shape}".encode() + array.tobytes())
    assert card["sha256"] == digest.hexdigest()
    for file, episode in zip(dataset.files, list(dataset.episodes()), strict=True):
        np.savez(file, **episode)  # without compression
    assert datasets.check_card(dataset.folder) == []


def test_a_card_says_what_the_data_are(make_dataset):
    dataset = make_dataset()
    card = datasets.read_card(dataset.folder)
    assert (card["obs_dim"], card["action_dim"], card["random_actions"]) == (24, 6, 1.0)
    run = np.array([rows.sum() for rows in datasets.task_rewards(dataset, ["walker_run"])])
    found = card["returns"]["walker_run"]
    assert found == {"mean": run.mean(), "min": run.min(), "max": run.max()}
    assert card["physics_errors"] is None  # nothing counted them
    (dataset.folder / "metrics.csv").write_text("step,episode\n4,0\n10,1\n14,2\n")
    assert datasets.write_card(dataset.folder)["physics_errors"] == 0
    (dataset.folder / "metrics.csv").write_text("step,physics_errors\n4,1\n10,0\n14,2\n")
    assert datasets.write_card(dataset.folder)["physics_errors"] == 3


def test_the_share_of_random_actions(make_dataset):
    dataset = make_dataset()
    config = dataset.folder / "config.yaml"
    text = config.read_text().replace("objective: random", "objective: behavioral")
    config.write_text(text.replace("random_steps: 4000", "random_steps: 7"))
    assert datasets.write_card(dataset.folder)["random_actions"] == 0.5
    config.unlink()
    assert datasets.write_card(dataset.folder)["random_actions"] is None


def test_merging_keeps_every_row_in_order(make_dataset, tmp_path):
    one, two = make_dataset(), make_dataset("random-s1", lengths=(5, 3), seed=1)
    before = contents(one.folder) | contents(two.folder)
    merged = datasets.merge([one, two], tmp_path / "more" / "walker" / "both")
    names = [file.name for file in merged.files]
    assert names == [f"episode_{i:06d}_{n}.npz" for i, n in enumerate((4, 6, 4, 5, 3))]
    sources = [*one.episodes(), *two.episodes()]
    assert all(equal(a, b) for a, b in zip(merged.episodes(), sources, strict=True))
    labels = datasets.task_rewards(merged, ["walker_run"])
    expected = [rows for each in (one, two) for rows in datasets.task_rewards(each, ["walker_run"])]
    assert all(np.array_equal(a, b) for a, b in zip(labels, expected, strict=True))
    assert contents(one.folder) | contents(two.folder) == before
    assert datasets.validate(merged.folder) == []


def test_a_merged_dataset_says_what_it_was_made_of(make_dataset, tmp_path):
    one, two = make_dataset(), make_dataset("random-s1", seed=1)
    merged = datasets.merge([one, two], tmp_path / "more" / "walker" / "both")
    provenance, card = merged.provenance(), datasets.read_card(merged.folder)
    assert provenance["made_by"] == "merge"
    assert [source["name"] for source in provenance["sources"]] == ["random-s0", "random-s1"]
    hashes = [datasets.read_card(each.folder)["sha256"] for each in (one, two)]
    assert [source["sha256"] for source in provenance["sources"]] == hashes
    assert (card["objective"], card["seed"], card["num_steps"]) == ("random", None, 28)
    assert merged.config() is None


def test_subsamples_are_whole_episodes_by_seed(make_dataset, tmp_path):
    dataset = make_dataset(lengths=(2, 3, 4, 5, 6, 7))
    drawn = {}
    for name, options in {
        "a": {"seed": 0, "n_episodes": 3},
        "b": {"seed": 0, "n_episodes": 3},
        "c": {"seed": 1, "n_episodes": 3},
        "d": {"seed": 0, "steps": 13},
    }.items():
        part = datasets.subsample(dataset, tmp_path / "parts" / "walker" / name, **options)
        drawn[name] = part.lengths
        assert part.lengths == sorted(part.lengths)  # the order of collection
        by_length = {len(episode["action"]): episode for episode in dataset.episodes()}
        for episode in part.episodes():
            assert equal(episode, by_length[len(episode["action"])])
        assert datasets.validate(part.folder) == []
        assert part.config() == dataset.config()
    assert drawn["a"] == drawn["b"] != drawn["c"]
    assert len(drawn["a"]) == 3
    assert 13 <= sum(drawn["d"]) < 13 + 7
    part = datasets.load(tmp_path / "parts" / "walker" / "d")
    assert part.provenance()["seed"] == 0
    assert datasets.read_card(part.folder)["num_steps"] == part.steps


@pytest.mark.parametrize("sizes", [{}, {"n_episodes": 2, "steps": 3}])
def test_a_subsample_has_one_size(make_dataset, tmp_path, sizes):
    with pytest.raises(ValueError, match="give n_episodes or steps"):
        datasets.subsample(make_dataset(), tmp_path / "walker" / "part", seed=0, **sizes)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_episodes": 4}, "n_episodes must be between 1 and 3, got 4"),
        ({"n_episodes": 0}, "n_episodes must be between 1 and 3, got 0"),
        ({"n_episodes": 2.0}, "n_episodes must be an integer, got 2.0"),
        ({"n_episodes": True}, "n_episodes must be an integer, got True"),
        ({"steps": 15}, "steps must be between 1 and 14, got 15"),
        ({"steps": -3}, "steps must be between 1 and 14, got -3"),
        ({"steps": 3, "seed": None}, "seed must be an integer, got None"),
        ({"steps": 3, "seed": -1}, "seed must be at least 0, got -1"),
    ],
)
def test_a_subsample_is_a_number_of_what_there_is(make_dataset, tmp_path, options, words):
    with pytest.raises(ValueError, match=words):
        datasets.subsample(make_dataset(), tmp_path / "walker" / "part", **{"seed": 0, **options})
    assert not (tmp_path / "walker").exists()


def test_numbers_of_numpy_are_numbers(make_dataset, tmp_path):
    """They come from arrays and tables, and JSON does not know them."""
    dataset, places = make_dataset(), iter(tmp_path / "parts" / "walker" / c for c in "abcd")
    for options in ({"n_episodes": 2, "seed": 1}, {"steps": 9, "seed": 1}):
        numpy = {name: np.int64(value) for name, value in options.items()}
        plain, same = (datasets.subsample(dataset, next(places), **o) for o in (options, numpy))
        assert plain.provenance() == same.provenance()
        assert plain.lengths == same.lengths


def test_nothing_is_written_into_a_folder_that_holds_something(make_dataset, tmp_path):
    dataset, other = make_dataset(), make_dataset("random-s1", seed=1)
    before = contents(other.folder)
    with pytest.raises(DatasetError, match="must be new or empty"):
        datasets.merge([dataset, other], other.folder)
    with pytest.raises(DatasetError, match="must be new or empty"):
        datasets.import_exorl(dataset.folder, other.folder)
    assert contents(other.folder) == before
    with pytest.raises(DatasetError, match="must be in a folder named walker"):
        datasets.merge([dataset, other], tmp_path / "cheetah" / "both")
    with pytest.raises(DatasetError, match="must be of one domain, got none"):
        datasets.merge([], tmp_path / "walker" / "both")


def test_an_error_half_way_leaves_no_dataset(make_dataset, tmp_path):
    dataset = make_dataset()
    dataset.files[2].write_bytes(b"")
    place = tmp_path / "new" / "walker"
    with pytest.raises(DatasetError, match=r"episode_000002_4.npz cannot be read"):
        datasets.import_exorl(dataset.folder, place / "copy")
    with pytest.raises(DatasetError, match=r"episode_000002_4.npz cannot be read"):
        datasets.merge([dataset, dataset], place / "twice")
    assert not place.exists()


@pytest.mark.parametrize("make", ["merge", "subsample"])
def test_rewards_of_other_episodes_leave_no_dataset(make_dataset, tmp_path, make):
    dataset, place = make_dataset(), tmp_path / "new" / "walker"
    labels = read_arrays(dataset.folder / "rewards" / dataset.files[1].name)
    labels["walker_stand"][3] += 0.5
    np.savez(dataset.folder / "rewards" / dataset.files[1].name, **labels)
    sources = {"merge": [dataset], "subsample": dataset}[make]
    options = {"merge": {}, "subsample": {"seed": 0, "n_episodes": 3}}[make]
    with pytest.raises(DatasetError, match="'walker_stand' must be the stored reward"):
        getattr(datasets, make)(sources, place / "copy", **options)
    assert not list(place.iterdir())


def test_sources_may_be_a_generator_and_have_one_size(make_dataset, tmp_path):
    one, two = make_dataset(), make_dataset("random-s1", seed=1)
    merged = datasets.merge((each for each in (one, two)), tmp_path / "new" / "walker" / "both")
    assert len(merged.files) == 6
    for file in two.files:
        arrays = read_arrays(file)
        np.savez(file, **{**arrays, "observation": arrays["observation"][:, 1:]})
    with pytest.raises(
        DatasetError, match=r"random-s1.* must be float32 \(5, 24\), got float32 \(5, 23\)"
    ):
        datasets.merge([one, two], tmp_path / "new" / "walker" / "other")


def test_a_source_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DatasetError, match=r"there is no folder .*nowhere"):
        datasets.import_exorl(tmp_path / "nowhere", tmp_path / "walker" / "apt")


def test_a_full_disk_half_way_leaves_no_dataset(make_dataset, tmp_path, monkeypatch):
    dataset, written = make_dataset(), []
    write_atomic = paths.write_atomic

    def fill(path, write):
        written.append(path)
        if len(written) == 4:
            raise OSError(errno.ENOSPC, f"cannot write {path}: No space left on device")
        write_atomic(path, write)

    monkeypatch.setattr(paths, "write_atomic", fill)
    with pytest.raises(OSError, match="No space left"):
        datasets.subsample(dataset, tmp_path / "new" / "walker" / "part", seed=0, n_episodes=3)
    assert not list((tmp_path / "new" / "walker").iterdir())


@pytest.fixture
def download(make_dataset, tmp_path):
    """ExORL's download, `walker/icm_apt/buffer`: episodes alone, some more than its cap."""
    dataset = make_dataset(lengths=(4,) * 12)
    (tmp_path / "exorl" / "walker" / "icm_apt").mkdir(parents=True)
    return shutil.move(dataset.folder / "buffer", tmp_path / "exorl/walker/icm_apt/buffer")


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize("from_buffer", [False, True])
def test_every_episode_of_exorl_is_imported_and_stays(download, tmp_path, link, from_buffer):
    before = contents(download)
    source = download if from_buffer else download.parent
    dataset = datasets.import_exorl(source, tmp_path / "mine" / "walker" / "apt", link=link)
    assert dataset.steps == 48
    assert contents(download) == before
    assert {file.is_symlink() for file in dataset.files} == {link}
    assert datasets.validate(dataset.folder) == []
    assert dataset.provenance()["sources"][0]["name"] == "icm_apt"
    card = datasets.write_card(dataset.folder)
    assert (card["objective"], card["steps"], card["seed"]) == (None, 48, None)
    assert card["mean_reward"]["walker_run"] > 0
    assert datasets.check_card(dataset.folder) == []


def test_urlbs_buffers_are_imported_in_the_order_of_their_indices(download, tmp_path):
    expected = [read_arrays(file) for file in sorted(download.glob("*.npz"))]
    for index, file in enumerate(sorted(download.glob("*.npz"))):
        arrays = read_arrays(file)
        del arrays["physics"]
        np.savez_compressed(file, **arrays)
        file.rename(download / f"20240131T120000_{index}_4.npz")
    dataset = datasets.import_exorl(download.parent, tmp_path / "mine" / "walker" / "apt")
    assert dataset.files[10].name == "episode_000010_4.npz"
    for found, wanted in zip(dataset.episodes(), expected, strict=True):
        assert np.array_equal(found["observation"], wanted["observation"])
    assert datasets.write_card(dataset.folder)["returns"] == {}


def test_data_of_another_domain_are_not_imported(download, tmp_path):
    with pytest.raises(
        DatasetError, match=r"'observation' must be float32 \(5, 78\), got float32 \(5, 24\)"
    ):
        datasets.import_exorl(download, tmp_path / "mine" / "quadruped" / "apt")
    assert not (tmp_path / "mine").exists()
