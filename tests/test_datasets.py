"""The format on disk; episodes and transitions agree to the row; reading is lazy and bounded."""

import os
import tracemalloc

import numpy as np
import pytest

from belib import datasets
from belib.datasets import DTYPES


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
        assert (episode["action"][1:] != 0).all()
    assert datasets.validate(folder) == []  # which looks at the reset row, too


def test_a_transition_goes_from_a_row_to_the_next_of_its_episode(make_dataset):
    """The action in row i led from the observation of row i - 1 to that of row i; row 0 is none."""
    dataset = make_dataset(lengths=(3, 5, 1))
    episodes = list(dataset.episodes())
    episodes[0]["discount"][-1] = 0.0  # a terminal; the others end by time limits
    np.savez(dataset.files[0], **episodes[0])
    data = dataset.transitions()
    assert data._fields == ("obs", "action", "reward", "discount", "next_obs")
    rows = [(e, i) for e in episodes for i in range(1, len(e["action"]))]
    for (obs, *numbers, next_obs), (e, i) in zip(zip(*data, strict=True), rows, strict=True):
        assert np.array_equal([obs, next_obs], e["observation"][i - 1 : i + 1])
        expected = [e[name][i] for name in ("action", "reward", "discount")]
        assert np.array_equal(np.hstack(numbers), np.hstack(expected))
    assert {array.dtype.name for array in data} == {"float32"}


def test_float64_is_cast_skills_are_kept_and_physics_stay_float64_or_may_be_missing(
    make_dataset, tmp_path
):
    folder, (cast,) = tmp_path / "walker" / "cast", make_dataset(lengths=(3,)).episodes()
    episode = {key: array.astype(np.float64) for key, array in cast.items()}
    episode["z"] = np.eye(4, dtype=np.float32)
    datasets.write_episode(folder, 0, episode, {})
    (read,) = datasets.load(folder).episodes()
    assert {key: array.dtype for key, array in read.items()} == DTYPES | {"z": np.float32}
    assert all(np.array_equal(read[key], episode[key]) for key in ("physics", "z"))
    del episode["physics"]
    datasets.write_episode(folder, 0, episode, {})
    assert datasets.load(folder).transitions().obs.shape == (3, 24)


def test_opening_is_lazy_and_reading_takes_the_memory_of_the_arrays(
    walker_data, tmp_path, monkeypatch
):
    """Episodes: about one at a time. Transitions: less than twice the data."""
    buffer = tmp_path / "walker" / "linked" / "buffer"
    buffer.mkdir(parents=True)
    for index in range(40):
        name = f"episode_{index:06d}_1000.npz"
        os.link(walker_data / "walker/random-s0/buffer/episode_000000_1000.npz", buffer / name)
    with monkeypatch.context() as patch:
        patch.setattr(np, "load", lambda *_, **__: pytest.fail("a file was read"))
        dataset = datasets.load(buffer.parent)
        assert dataset.steps == 40_000
    tracemalloc.start()
    sizes = [sum(array.nbytes for array in episode.values()) for episode in dataset.episodes()]
    walked = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    data = dataset.transitions()
    flat = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert walked < 8 * sizes[0]  # of 40
    assert flat < 2 * sum(array.nbytes for array in data)
