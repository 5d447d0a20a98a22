"""Episodes and transitions agree to the row; reading is lazy, bounded, and changes nothing."""

import multiprocessing
import os
import tracemalloc

import numpy as np
import pytest

from belib import datasets
from belib.datasets import DTYPES, DatasetError


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
    dataset = datasets.load(folder)
    found = dataset.transitions()
    assert found._fields[:5] == ("obs", "action", "reward", "discount", "next_obs")
    assert found.episode.tolist() == [0] * 3 + [1] * 5 + [2]
    assert found.row.tolist() == [1, 2, 3, 1, 2, 3, 4, 5, 1]
    assert (found.next_obs - found.obs == 1).all()
    for i, (episode, row) in enumerate(zip(found.episode, found.row, strict=True)):
        arrays = datasets.read_episode(dataset.files[episode])
        assert np.array_equal(found.obs[i], arrays["observation"][row - 1])
        assert np.array_equal(found.action[i], arrays["action"][row])
        assert found.reward[i] == arrays["reward"][row, 0]
        assert found.discount[i] == arrays["discount"][row, 0]
        assert np.array_equal(found.next_obs[i], arrays["observation"][row])
    assert {array.dtype.name for array in found} == {"float32", "int64"}


def test_a_terminal_is_kept_apart_from_a_time_limit(folder):
    datasets.write_episode(folder, 0, numbered(3, last_discount=0.0), {})
    datasets.write_episode(folder, 1, numbered(3, last_discount=1.0), {})
    assert datasets.load(folder).transitions().discount.tolist() == [1, 1, 0, 1, 1, 1]


def test_steps_by_name_by_shape_and_by_card(make_dataset):
    dataset = make_dataset()
    by_shape = sum(len(episode["action"]) - 1 for episode in dataset.episodes())
    assert dataset.steps == by_shape == len(dataset.transitions().obs) == 14
    assert datasets.read_card(dataset.folder)["steps"] == 14
    assert dataset.lengths == [4, 6, 4]


def test_episodes_of_other_sizes_are_refused_by_name(folder):
    datasets.write_episode(folder, 0, numbered(3), {})
    other = numbered(4)
    other["action"] = np.zeros((5, 2), np.float32)
    datasets.write_episode(folder, 1, other, {})
    with pytest.raises(
        DatasetError, match=r"_000001_4.npz: .*'action' must be float32 \(5, 1\), got .* \(5, 2\)"
    ):
        datasets.load(folder).transitions()


def test_urlbs_names_are_ordered_by_index_and_not_by_text(folder):
    buffer = folder / "buffer"
    for index in (0, 2, 9, 10):
        file = datasets.write_episode(folder, index, numbered(2, offset=index), {})
        file.rename(buffer / f"20240131T120000_{index}_2.npz")
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


def test_five_hundred_episodes_open_at_once(folder, monkeypatch):
    """Nothing is read: of half a million steps only the names."""
    first = datasets.write_episode(folder, 0, numbered(1000), {})
    for index in range(1, 500):
        os.link(first, first.with_name(f"episode_{index:06d}_1000.npz"))
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("a file was read"))
    dataset = datasets.load(folder)
    assert dataset.steps == 500_000
    monkeypatch.undo()
    assert next(dataset.episodes())["observation"].shape == (1001, 1)


def test_memory_is_bounded_by_the_arrays_asked_for(folder):
    """Episodes: about one at a time. Transitions: less than twice the data."""
    episode = numbered(1000)
    episode["observation"] = np.zeros((1001, 24), np.float32)
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
    assert sum(array.nbytes for array in found[:5]) < 2 * 40 * one


def test_reading_leaves_every_file_as_it_was(make_dataset):
    dataset = make_dataset()
    before = {f: f.read_bytes() for f in dataset.folder.rglob("*") if f.is_file()}
    list(dataset.episodes())
    dataset.transitions()
    datasets.task_rewards(dataset, ["walker_run"])
    datasets.validate(dataset.folder)
    datasets.relabel(dataset, "walker_run")
    assert all(file.read_bytes() == content for file, content in before.items())
    new = {f.parent.name for f in dataset.folder.rglob("*") if f.is_file() and f not in before}
    assert new == {"relabelled"}


def read_often(file):
    for _ in range(100):
        datasets.read_episode(file)


def test_two_processes_read_the_same_file(make_dataset):
    """Arrays are read at once and the file is closed: nothing is shared over a fork."""
    file = make_dataset().files[0]
    datasets.read_episode(file)
    context = multiprocessing.get_context("fork")
    readers = [context.Process(target=read_often, args=(file,)) for _ in range(2)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert [reader.exitcode for reader in readers] == [0, 0]


def test_files_of_an_interrupted_write_are_no_episodes(make_dataset):
    dataset = make_dataset()
    (dataset.folder / "buffer" / ".episode_000003_4.npz.tmp").write_bytes(b"half")
    assert datasets.load(dataset.folder).files == dataset.files
