import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from belib import datasets
from belib.config import PretrainConfig
from belib.datasets import DatasetError
from belib.training import pretrain


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """Two episodes of random Walker data, for reading only."""
    config = PretrainConfig(objective="random", num_steps=2000, scale="test")
    (folder,) = pretrain(config, runs_dir=tmp_path_factory.mktemp("runs"), progress=False)
    return folder


@pytest.fixture
def copied(collected, tmp_path):
    """A copy to spoil, in a folder of its domain's name."""
    return shutil.copytree(collected, tmp_path / "walker" / collected.name)


def test_files_are_in_exorls_format(collected):
    """Names, keys, shapes, types and the dummy row, as ExORL's loader and converters want them."""
    files = sorted((collected / "buffer").glob("*.npz"))
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
        assert not action[0].any()
        assert reward[0] == 0
        assert (discount == 1).all()
        assert (action[1:] != 0).all()


def test_a_collected_dataset_keeps_every_rule(collected):
    assert datasets.validate(collected) == []
    assert datasets.check_card(collected) == []


def test_exorls_way_of_reading(collected):
    """The steps of ExORL's OfflineReplayBuffer: sorted names, three-part stems, rows - 1."""
    for file in sorted((collected / "buffer").glob("*.npz")):
        index, length = (int(part) for part in file.stem.split("_")[1:])
        with file.open("rb") as opened:
            loaded = np.load(opened)
            episode = {key: loaded[key] for key in loaded}
        assert next(iter(episode.values())).shape[0] - 1 == length
        assert index in (0, 1)


def test_recorded_rewards_equal_relabelled_ones_to_the_bit(collected):
    dataset = datasets.load(collected)
    tasks = ("walker_stand", "walker_walk", "walker_run")
    recorded = datasets.task_rewards(dataset, tasks)
    for column, task in enumerate(tasks):
        again = datasets.relabel(dataset, task)
        for episode in range(2):
            assert np.array_equal(recorded[episode][:, column], again[episode])
            assert again[episode].dtype == np.float64
    stored = datasets.read_episode(dataset.files[0])["reward"][:, 0]
    assert np.array_equal(recorded[0][:, 0].astype(np.float32), stored)


def test_data_without_recorded_rewards_is_relabelled(copied):
    expected = datasets.task_rewards(datasets.load(copied), ["walker_run"])
    shutil.rmtree(copied / "rewards")
    found = datasets.task_rewards(datasets.load(copied), ["walker_run"])
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_relabelling_notices_states_that_do_not_reproduce_the_reward(copied):
    dataset = datasets.load(copied)
    episode = datasets.read_episode(dataset.files[0])
    episode["reward"][500] += 0.1
    np.savez_compressed(dataset.files[0], **episode)
    with pytest.raises(DatasetError, match=r"_000000_1000.npz: .* reward only to 1.0e-01"):
        datasets.relabel(dataset, "walker_walk")


def test_the_card_says_what_the_files_hold(collected):
    card = json.loads((collected / "card.json").read_text())
    assert (card["domain"], card["objective"], card["seed"]) == ("walker", "random", 0)
    assert (card["steps"], card["episodes"]) == (2000, 2)
    episodes = datasets.load(collected).episodes()
    mean = np.mean([episode["reward"][1:].mean() for episode in episodes])
    assert card["mean_reward"]["walker_stand"] == pytest.approx(mean, rel=1e-6)
    assert card["versions"]["mujoco"]
    assert card["git_revision"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
        lambda file: file.write_bytes(b""),
        lambda file: file.write_text("<html>Not Found</html>"),
    ],
    ids=["truncated", "empty", "a web page"],
)
def test_a_file_that_is_no_episode_is_named(copied, spoil):
    dataset = datasets.load(copied)
    spoil(dataset.files[1])
    with pytest.raises(DatasetError, match=r"episode_000001_1000.npz cannot be read"):
        list(dataset.episodes())


def test_a_number_that_is_not_finite_is_found_by_file_array_and_row(copied):
    dataset = datasets.load(copied)
    episode = datasets.read_episode(dataset.files[0])
    episode["observation"][500, 3] = np.nan
    np.savez_compressed(dataset.files[0], **episode)
    with pytest.raises(
        DatasetError, match=r"array 'observation' must be finite, got nan in row 500, column 3"
    ):
        list(dataset.episodes())


def test_arrays_of_the_wrong_type_or_length_are_refused(copied):
    file = datasets.load(copied).files[0]
    episode = datasets.read_episode(file)
    np.savez_compressed(file, **{**episode, "physics": episode["physics"].astype(np.float32)})
    with pytest.raises(
        DatasetError, match=r"'physics' must be float64 \(1001, size\), got float32"
    ):
        datasets.read_episode(file)
    np.savez_compressed(file, **{**episode, "action": episode["action"][1:]})
    with pytest.raises(DatasetError, match=r"'action' must be .*, got float32 \(1000, 6\)"):
        datasets.read_episode(file)


def test_pickled_arrays_are_refused(copied):
    file = datasets.load(copied).files[0]
    np.savez(file, observation=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DatasetError, match="cannot be read"):
        datasets.read_episode(file)


def test_folders_that_hold_no_dataset(collected, tmp_path):
    with pytest.raises(DatasetError, match="must hold at least one episode, got none"):
        datasets.load(tmp_path)
    (tmp_path / "buffer").mkdir()
    (tmp_path / "buffer" / "notes.npz").touch()
    with pytest.raises(DatasetError, match=r"notes.npz must be named episode_<index>_<length>.npz"):
        datasets.load(tmp_path)


def test_tasks_of_other_domains(collected):
    with pytest.raises(DatasetError, match=r"must be one of .*walker_stand.*, got 'quadruped_run'"):
        datasets.relabel(datasets.load(collected), "quadruped_run")


def test_a_part_of_a_dataset_is_a_dataset(collected):
    dataset = datasets.load(collected)
    part = replace(dataset, files=dataset.files[1:])
    assert part.steps == 1000
    assert len(datasets.task_rewards(part, ["walker_walk"])) == 1
