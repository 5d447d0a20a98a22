"""The format on disk; episodes and transitions agree to the row; reading is lazy and bounded."""

import os
import tracemalloc

import numpy as np
import pytest

from belib import datasets
from belib.datasets import DTYPES


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


def test_a_collected_dataset_is_in_exorls_format(walker_data):
    """Names, keys, shapes, types and the reset row, as ExORL's loader and converters want them."""
    folder = walker_data / "walker" / "random-s0"
    files = sorted((folder / "buffer").glob("*.npz"))
    assert [file.name for file in files] == [f"episode_00000{i}_1000.npz" for i in (0, 1)]
    for file in files:
        with np.load(file) as stored:
            episode = dict(stored)
        columns = {"observation": 24, "action": 6, "reward": 1, "discount": 1, "physics": 18}
        assert {key: array.shape[1] for key, array in episode.items()} == columns
        assert {len(array) for array in episode.values()} == {1001}
        assert episode.pop("physics").dtype == np.float64
        assert {array.dtype.name for array in episode.values()} == {"float32"}
        assert not episode["action"][0].any()
        assert (episode["action"][1:] != 0).all()
    assert datasets.validate(folder) == []  # which looks at the reset row, too


def test_a_transition_goes_from_a_row_to_the_next_of_its_episode(folder):
    """The action in row i led from the observation of row i - 1 to that of row i; row 0 is none."""
    for index, (length, discount) in enumerate([(3, 0.0), (5, 1.0), (1, 1.0)]):
        datasets.write_episode(folder, index, numbered(length, 100 * index, discount), {})
    data = datasets.load(folder).transitions()
    assert data._fields == ("obs", "action", "reward", "discount", "next_obs")
    rows = np.array([1, 2, 3, 101, 102, 103, 104, 105, 201])
    assert (data.obs[:, 0] == rows - 1).all()
    for column in (1024 * data.action[:, 0], data.reward, data.next_obs[:, 0]):
        assert (column == rows).all()
    assert data.discount.tolist() == [1, 1, 0, 1, 1, 1, 1, 1, 1]  # a terminal, two time limits
    assert {array.dtype.name for array in data} == {"float32"}


def test_float64_is_cast_skills_are_kept_and_physics_stay_float64_or_may_be_missing(folder):
    episode = {key: array.astype(np.float64) for key, array in numbered(3).items()}
    episode |= {"physics": episode["physics"] + 1e-12, "z": np.eye(4, dtype=np.float32)}
    datasets.write_episode(folder, 0, episode, {})
    (read,) = datasets.load(folder).episodes()
    assert {key: array.dtype for key, array in read.items()} == DTYPES | {"z": np.float32}
    assert all(np.array_equal(read[key], episode[key]) for key in ("physics", "z"))
    del episode["physics"]
    datasets.write_episode(folder, 0, episode, {})
    assert datasets.load(folder).transitions().obs.shape == (3, 1)


def test_opening_is_lazy_and_reading_takes_the_memory_of_the_arrays(folder, monkeypatch):
    """Episodes: about one at a time. Transitions: less than twice the data."""
    episode = numbered(1000) | {"observation": np.zeros((1001, 24), np.float32)}
    first = datasets.write_episode(folder, 0, episode, {})
    for index in range(1, 40):
        os.link(first, first.with_name(f"episode_{index:06d}_1000.npz"))
    with monkeypatch.context() as patch:
        patch.setattr(np, "load", lambda *_, **__: pytest.fail("a file was read"))
        dataset = datasets.load(folder)
        assert dataset.steps == 40_000
    tracemalloc.start()
    for _ in dataset.episodes():
        pass
    walked = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    data = dataset.transitions()
    flat = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert walked < 8 * sum(array.nbytes for array in episode.values())  # of 40
    assert flat < 2 * sum(array.nbytes for array in data)
