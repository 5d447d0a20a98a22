"""The format on disk; episodes and transitions agree to the row; reading is lazy and bounded."""

import os
import tracemalloc

import numpy as np
import pytest

from belib import datasets
from belib.config import PretrainConfig
from belib.datasets import DTYPES, DatasetError
from belib.training import pretrain


def numbered(length, offset=0, last_discount=1.0):
    """An episode whose row i holds the number i, plus an offset, in every array.

    Actions hold a 1024th of it, and the reset's action and reward are 0, as the format wants.
    """
    rows = offset + np.arange(length + 1.0)[:, None]
    episode = {key: rows.astype(dtype) for key, dtype in DTYPES.items()}
    episode["action"] /= 1024
    episode["action"][0] = episode["reward"][0] = 0.0
    episode["discount"][:] = 1.0
    episode["discount"][-1] = last_discount
    return episode


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "walker" / "numbered"


def test_a_collected_dataset_is_in_exorls_format(tmp_path):
    """Names, keys, shapes, types and the reset row, as ExORL's loader and converters want them."""
    config = PretrainConfig(objective="random", num_steps=2000, scale="test")
    (folder,) = pretrain(config, runs_dir=tmp_path, progress=False)
    files = sorted((folder / "buffer").glob("*.npz"))
    assert [file.name for file in files] == [f"episode_00000{i}_1000.npz" for i in (0, 1)]
    for file in files:
        with np.load(file) as episode:
            assert episode.files == ["observation", "action", "reward", "discount", "physics"]
            shapes = {key: (episode[key].shape, str(episode[key].dtype)) for key in episode.files}
            action, reward, discount = (episode[k] for k in ("action", "reward", "discount"))
        assert shapes == {
            "observation": ((1001, 24), "float32"),
            "action": ((1001, 6), "float32"),
            "reward": ((1001, 1), "float32"),
            "discount": ((1001, 1), "float32"),
            "physics": ((1001, 18), "float64"),
        }
        assert reward[0] == 0
        assert (discount == 1).all()
        assert not action[0].any()
        assert (action[1:] != 0).all()
    assert datasets.validate(folder) == []
    card = datasets.read_card(folder)
    assert (card["num_steps"], card["random_actions"], card["physics_errors"]) == (2000, 1.0, 0)


def test_a_transition_goes_from_a_row_to_the_next(folder):
    """The action in row i led from the observation of row i - 1 to that of row i; row 0 is none."""
    datasets.write_episode(folder, 0, numbered(10), {})
    found = datasets.load(folder).transitions()
    np.testing.assert_array_equal(found.obs[:, 0], np.arange(10))
    for column in (1024 * found.action[:, 0], found.reward, found.next_obs[:, 0], found.row):
        np.testing.assert_array_equal(column, np.arange(1, 11))


def test_no_transition_leads_from_one_episode_to_the_next(folder):
    for index, length in enumerate((3, 5, 1)):
        datasets.write_episode(folder, index, numbered(length, offset=100 * index), {})
    found = datasets.load(folder).transitions()
    assert found._fields[:5] == ("obs", "action", "reward", "discount", "next_obs")
    assert found.episode.tolist() == [0] * 3 + [1] * 5 + [2]
    assert found.row.tolist() == [1, 2, 3, 1, 2, 3, 4, 5, 1]
    assert (found.next_obs[:, 0] == 100 * found.episode + found.row).all()
    assert (found.next_obs - found.obs == 1).all()
    assert {array.dtype.name for array in found} == {"float32", "int64"}


def test_a_terminal_is_kept_apart_from_a_time_limit(folder):
    datasets.write_episode(folder, 0, numbered(3, last_discount=0.0), {})
    datasets.write_episode(folder, 1, numbered(3, last_discount=1.0), {})
    assert datasets.load(folder).transitions().discount.tolist() == [1, 1, 0, 1, 1, 1]


def test_episodes_of_other_sizes_are_refused_by_name(folder):
    datasets.write_episode(folder, 0, numbered(3), {})
    other = numbered(4) | {"action": np.zeros((5, 2), np.float32)}
    datasets.write_episode(folder, 1, other, {})
    with pytest.raises(DatasetError, match=r"_000001_4.npz: .*'action' must be float32 \(5, 1\)"):
        datasets.load(folder).transitions()


def test_urlbs_names_are_ordered_by_index_and_not_by_text(folder):
    for index in (0, 2, 9, 10):
        file = datasets.write_episode(folder, index, numbered(2, offset=index), {})
        file.rename(file.with_name(f"20240131T120000_{index}_2.npz"))
    (folder / "buffer" / ".episode_000011_2.npz.tmp").write_bytes(b"half")  # no episode yet
    dataset = datasets.load(folder)
    assert [file.stem.split("_")[1] for file in dataset.files] == ["0", "2", "9", "10"]
    assert dataset.transitions().obs[::2, 0].tolist() == [0, 2, 9, 10]


def test_float64_observations_are_cast_and_physics_stay_float64(folder):
    episode = {key: array.astype(np.float64) for key, array in numbered(3).items()}
    episode["physics"] += 1e-12
    datasets.write_episode(folder, 0, episode, {})
    (found,) = datasets.load(folder).episodes()
    assert {key: array.dtype for key, array in found.items()} == DTYPES
    assert np.array_equal(found["physics"], episode["physics"])
    episode["observation"][2] = 1e300
    datasets.write_episode(folder, 0, episode, {})
    with pytest.raises(DatasetError, match="'observation' must be finite, got inf in row 2"):
        list(datasets.load(folder).episodes())


def test_skills_are_kept_and_physics_may_be_missing(folder):
    episode = numbered(3)
    del episode["physics"]
    episode["z"] = np.eye(4, dtype=np.float32)
    datasets.write_episode(folder, 0, episode, {})
    dataset = datasets.load(folder)
    (found,) = dataset.episodes()
    assert list(found) == ["observation", "action", "reward", "discount", "z"]
    assert np.array_equal(found["z"], np.eye(4))
    assert dataset.transitions().obs.shape == (3, 1)
    for read in (datasets.relabel, lambda d, task: datasets.task_rewards(d, [task])):
        with pytest.raises(DatasetError, match=r"3.npz has no physics states, from which rewards"):
            read(dataset, "walker_walk")


def test_opening_five_hundred_episodes_reads_only_their_names(folder, monkeypatch):
    first = datasets.write_episode(folder, 0, numbered(1000), {})
    for index in range(1, 500):
        os.link(first, first.with_name(f"episode_{index:06d}_1000.npz"))
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("a file was read"))
    assert datasets.load(folder).steps == 500_000


def test_memory_is_bounded_by_the_arrays_asked_for(folder):
    """Episodes: about one at a time. Transitions: less than twice the data."""
    episode = numbered(1000) | {"observation": np.zeros((1001, 24), np.float32)}
    first = datasets.write_episode(folder, 0, episode, {})
    for index in range(1, 40):
        os.link(first, first.with_name(f"episode_{index:06d}_1000.npz"))
    dataset = datasets.load(folder)
    one = sum(array.nbytes for array in episode.values())
    tracemalloc.start()
    for _ in dataset.episodes():
        pass
    walked = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    found = dataset.transitions()
    flat = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert walked < 8 * one  # of 40
    assert flat < sum(array.nbytes for array in found) + 4 * one + 1e6


def test_reading_leaves_every_file_as_it_was(make_dataset):
    dataset = make_dataset()
    before = {f: f.read_bytes() for f in dataset.folder.rglob("*") if f.is_file()}
    dataset.transitions()
    datasets.task_rewards(dataset, ["walker_run"])
    datasets.validate(dataset.folder)
    datasets.relabel(dataset, "walker_run")
    assert all(file.read_bytes() == content for file, content in before.items())
    new = {f.parent.name for f in dataset.folder.rglob("*") if f.is_file() and f not in before}
    assert new == {"relabelled"}


def test_folders_that_hold_no_dataset(tmp_path):
    for folder, words in ((tmp_path / "none", "there is no folder"), (tmp_path, "got none")):
        with pytest.raises(DatasetError, match=words):
            datasets.load(folder)
    (tmp_path / "buffer").mkdir()
    (tmp_path / "buffer" / "notes.npz").touch()
    with pytest.raises(DatasetError, match=r"notes.npz must be named episode_<index>_<length>.npz"):
        datasets.load(tmp_path)
