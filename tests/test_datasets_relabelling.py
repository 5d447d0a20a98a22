"""Rewards from physics states: equal to the live ones, computed once, never from other data."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from belib import datasets, envs
from belib.datasets import DatasetError
from belib.datasets.episodes import read_arrays


def equal(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.fixture
def no_physics(monkeypatch):
    """From when it is called, simulating is an error."""

    def fail(self, states):
        raise AssertionError("physics were computed")

    return lambda: monkeypatch.setattr(envs.TaskRewards, "of_states", fail)


@pytest.mark.parametrize("domain", ["walker", "quadruped"])
def test_relabelled_rewards_equal_live_ones_to_the_bit(make_dataset, domain):
    dataset, tasks = make_dataset(domain=domain), envs.domain_tasks(domain)
    recorded = datasets.task_rewards(dataset, tasks)
    for column, task in enumerate(tasks):
        assert equal(datasets.relabel(dataset, task), [rewards[:, column] for rewards in recorded])
    for rewards, episode in zip(recorded, dataset.episodes(), strict=True):
        assert rewards.dtype == np.float64
        assert np.array_equal(rewards[:, :1].astype(np.float32), episode["reward"])
    shutil.rmtree(dataset.folder / "rewards")
    assert equal(datasets.task_rewards(dataset, tasks), recorded)


def test_a_second_run_does_no_physics(make_dataset, no_physics):
    dataset = make_dataset()
    datasets.relabel(dataset, "walker_walk")
    assert not (dataset.folder / "relabelled" / ".lock").exists()
    no_physics()
    for task in envs.domain_tasks("walker"):  # all tasks come from one pass
        recorded = [rewards[:, 0] for rewards in datasets.task_rewards(dataset, [task])]
        assert equal(datasets.relabel(datasets.load(dataset.folder), task), recorded)


def test_recorded_rewards_cost_nothing(make_dataset, no_physics):
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
    assert equal(datasets.relabel(dataset, "walker_walk"), expected)
    assert "key" in read_arrays(cached)


def test_a_part_relabels_its_own_episodes_and_the_rest_follows(make_dataset):
    dataset = make_dataset()
    part = replace(dataset, files=dataset.files[1:2])
    assert part.steps == 6
    datasets.relabel(part, "walker_run")
    assert len(list((dataset.folder / "relabelled").glob("*.npz"))) == 1
    assert len(datasets.relabel(dataset, "walker_run")) == 3


def test_data_in_a_folder_that_cannot_be_written_are_relabelled_all_the_same(make_dataset):
    dataset = make_dataset()
    expected = datasets.relabel(dataset, "walker_run")
    shutil.rmtree(dataset.folder / "relabelled")
    (dataset.folder / "relabelled").touch()  # no folder can be made there
    with pytest.warns(UserWarning, match="rewards are not cached"):
        assert equal(datasets.relabel(dataset, "walker_run"), expected)


def test_states_that_do_not_reproduce_the_reward_are_refused(make_dataset):
    dataset = make_dataset()
    arrays = read_arrays(dataset.files[0])
    arrays["reward"][3] += 0.1
    np.savez_compressed(dataset.files[0], **arrays)
    with pytest.raises(DatasetError, match=r"_000000_4.npz: .* reward only to 1.0e-01"):
        datasets.relabel(dataset, "walker_walk")


def test_states_without_their_activations_are_refused_with_the_expected_size(make_dataset):
    dataset = make_dataset(domain="quadruped")
    shutil.rmtree(dataset.folder / "rewards")
    arrays = read_arrays(dataset.files[0])
    assert arrays["physics"].shape == (5, 23 + 22 + 12)
    arrays["physics"] = arrays["physics"][:, :45]
    np.savez_compressed(dataset.files[0], **arrays)
    with pytest.raises(DatasetError, match=r"_4.npz: physics states must have 57 numbers, got 45"):
        datasets.relabel(dataset, "quadruped_run")


def test_tasks_and_domains_that_the_states_do_not_know(make_dataset):
    dataset = make_dataset()
    with pytest.raises(DatasetError, match=r"must be one of .*walker_stand.*, got 'quadruped_run'"):
        datasets.relabel(dataset, "quadruped_run")
    with pytest.raises(ValueError, match="no domain 'jaco'"):
        datasets.relabel(replace(dataset, domain="jaco"), "jaco_reach")
