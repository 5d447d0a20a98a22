"""Rewards from physics states: equal to the live ones, computed once, never from other data."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from belib import datasets, envs
from belib.datasets import DatasetError
from belib.datasets.episodes import read_arrays


@pytest.fixture
def no_physics(monkeypatch):
    """From when it is called, simulating is an error."""

    def forbid():
        def fail(self, states):
            raise AssertionError("physics were computed")

        monkeypatch.setattr(envs.TaskRewards, "of_states", fail)

    return forbid


@pytest.mark.parametrize("domain", ["walker", "quadruped"])
def test_relabelled_rewards_equal_live_ones_to_the_bit(make_dataset, domain):
    dataset = make_dataset(domain=domain)
    for task in envs.domain_tasks(domain):
        live = [labels[:, 0] for labels in datasets.task_rewards(dataset, [task])]
        for found, expected in zip(datasets.relabel(dataset, task), live, strict=True):
            assert np.abs(found - expected).max() == 0.0


def test_a_second_run_does_no_physics(make_dataset, no_physics):
    dataset = make_dataset()
    first = {task: datasets.relabel(dataset, task) for task in ["walker_walk"]}
    no_physics()
    for task in envs.domain_tasks("walker"):  # all tasks come from one pass
        found = datasets.relabel(datasets.load(dataset.folder), task)
        recorded = datasets.task_rewards(dataset, [task])
        for episode, expected in zip(found, recorded, strict=True):
            assert np.array_equal(episode, expected[:, 0])
    assert np.array_equal(first["walker_walk"][1], datasets.relabel(dataset, "walker_walk")[1])


def test_recorded_labels_cost_nothing(make_dataset, no_physics):
    no_physics()
    dataset = make_dataset()
    datasets.task_rewards(dataset, envs.domain_tasks("walker"))
    datasets.write_card(dataset.folder)
    assert not (dataset.folder / "relabelled").exists()


def test_the_cache_is_never_used_for_other_data(make_dataset):
    dataset, other = make_dataset(), make_dataset("other", seed=1)
    before = datasets.relabel(dataset, "walker_walk")
    kept = (dataset.folder / "relabelled" / dataset.files[0].name).read_bytes()
    shutil.copy(other.files[1], dataset.files[1])
    after = datasets.relabel(dataset, "walker_walk")
    assert np.array_equal(before[0], after[0])
    assert not np.array_equal(before[1], after[1])
    assert np.array_equal(after[1], datasets.relabel(other, "walker_walk")[1])
    assert (dataset.folder / "relabelled" / dataset.files[0].name).read_bytes() == kept


def test_the_cache_is_of_the_versions_that_computed_it(make_dataset, monkeypatch, no_physics):
    dataset = make_dataset()
    datasets.relabel(dataset, "walker_walk")
    monkeypatch.setattr(datasets.relabelling, "version", lambda name: "99.0")
    no_physics()
    with pytest.raises(AssertionError, match="physics were computed"):
        datasets.relabel(dataset, "walker_walk")


def test_a_spoilt_cache_is_computed_again(make_dataset):
    dataset = make_dataset()
    expected = datasets.relabel(dataset, "walker_walk")
    cached = dataset.folder / "relabelled" / dataset.files[1].name
    cached.write_bytes(cached.read_bytes()[:100])
    found = datasets.relabel(dataset, "walker_walk")
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    assert "key" in read_arrays(cached)


def test_a_part_relabels_its_own_episodes_and_the_rest_follows(make_dataset):
    dataset = make_dataset()
    datasets.relabel(replace(dataset, files=dataset.files[1:2]), "walker_run")
    assert len(list((dataset.folder / "relabelled").glob("*.npz"))) == 1
    assert len(datasets.relabel(dataset, "walker_run")) == 3


def test_data_in_a_folder_that_cannot_be_written_are_relabelled_all_the_same(make_dataset):
    dataset = make_dataset()
    expected = datasets.relabel(dataset, "walker_run")
    shutil.rmtree(dataset.folder / "relabelled")
    (dataset.folder / "relabelled").touch()  # no folder can be made there
    with pytest.warns(UserWarning, match="rewards are not cached"):
        found = datasets.relabel(dataset, "walker_run")
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_states_without_their_activations_are_refused_with_the_expected_size(make_dataset):
    dataset = make_dataset(domain="quadruped")
    shutil.rmtree(dataset.folder / "rewards")
    arrays = read_arrays(dataset.files[0])
    assert arrays["physics"].shape == (5, 23 + 22 + 12)
    arrays["physics"] = arrays["physics"][:, :45]
    np.savez_compressed(dataset.files[0], **arrays)
    with pytest.raises(DatasetError, match=r"_4.npz: physics states must have 57 numbers, got 45"):
        datasets.relabel(dataset, "quadruped_run")


def test_domains_that_dm_control_lacks(make_dataset):
    dataset = replace(make_dataset(), domain="jaco")
    with pytest.raises(ValueError, match="no domain 'jaco'"):
        datasets.relabel(dataset, "jaco_reach")
