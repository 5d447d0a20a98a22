"""Rewards from physics states: equal to the live ones, computed once, never from other data."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from belib import datasets, envs
from belib.datasets import DatasetError
from belib.datasets.files import read_arrays


def equal(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("domain", ["walker", "quadruped"])
def test_relabelled_rewards_equal_live_ones_to_the_bit(make_dataset, domain):
    dataset, tasks = make_dataset(domain=domain), envs.domain_tasks(domain)
    recorded = datasets.task_rewards(dataset, tasks)
    for column, task in enumerate(tasks):
        assert equal(datasets.relabel(dataset, task), [rewards[:, column] for rewards in recorded])
    shutil.rmtree(dataset.folder / "rewards")
    assert equal(datasets.task_rewards(dataset, tasks), recorded)


def test_physics_are_computed_once_and_never_for_recorded_rewards(make_dataset, monkeypatch):
    dataset, other = make_dataset(), make_dataset("other")
    datasets.relabel(dataset, "walker_walk")
    monkeypatch.setattr(envs.TaskRewards, "of_states", lambda *_: pytest.fail("computed"))
    for task in envs.domain_tasks("walker"):  # all tasks come from one pass
        recorded = [rewards[:, 0] for rewards in datasets.task_rewards(other, [task])]
        assert equal(datasets.relabel(datasets.load(dataset.folder), task), recorded)
    datasets.write_card(other.folder)
    assert not (other.folder / "relabelled").exists()
    monkeypatch.setattr(datasets.relabelling, "version", lambda name: "99.0")
    with pytest.raises(pytest.fail.Exception, match="computed"):
        datasets.relabel(dataset, "walker_walk")  # by another version


def test_the_cache_is_never_used_for_other_data(make_dataset):
    """Nor is a damaged one; the files of the other episodes stay."""
    dataset, other = make_dataset(), make_dataset("other", seed=1)
    before = datasets.relabel(dataset, "walker_walk")
    cache = [dataset.folder / "relabelled" / file.name for file in dataset.files]
    kept = cache[0].read_bytes()
    shutil.copy(other.files[1], dataset.files[1])
    cache[2].write_bytes(cache[2].read_bytes()[:100])
    after = datasets.relabel(dataset, "walker_walk")
    assert equal(after[::2], before[::2])
    assert not np.array_equal(after[1], before[1])
    assert np.array_equal(after[1], datasets.relabel(other, "walker_walk")[1])
    assert cache[0].read_bytes() == kept
    assert "key" in read_arrays(cache[2])


def test_a_part_is_relabelled_alone_and_a_read_only_folder_without_cache(make_dataset):
    dataset = make_dataset()
    part = replace(dataset, files=dataset.files[1:2])
    (rewards,) = datasets.relabel(part, "walker_run")
    assert len(list((dataset.folder / "relabelled").glob("*.npz"))) == 1
    shutil.rmtree(dataset.folder / "relabelled")
    (dataset.folder / "relabelled").touch()  # no folder can be made there
    again = datasets.relabel(dataset, "walker_run")
    assert len(again) == 3
    assert np.array_equal(again[1], rewards)


def change(dataset, function):
    arrays = read_arrays(dataset.files[0])
    function(arrays)
    np.savez_compressed(dataset.files[0], **arrays)


def test_states_that_do_not_determine_the_rewards_are_refused(make_dataset):
    dataset = make_dataset()
    for task, domain in (("quadruped_run", "walker"), ("jaco_reach", "jaco")):
        with pytest.raises(ValueError, match=r"must be one of .*walker_stand|no domain 'jaco'"):
            datasets.relabel(replace(dataset, domain=domain), task)
    change(dataset, lambda arrays: arrays["reward"].__setitem__(3, 0.7))
    with pytest.raises(DatasetError, match=r"_000000_4.npz: .* stored reward differ by"):
        datasets.relabel(dataset, "walker_walk")
    change(dataset, lambda arrays: arrays.pop("physics"))
    with pytest.raises(DatasetError, match=r"_000000_4.npz has no physics states"):
        datasets.relabel(dataset, "walker_walk")
    dataset = make_dataset(domain="quadruped")  # without its activations
    change(dataset, lambda arrays: arrays.update(physics=arrays["physics"][:, :45]))
    with pytest.raises(DatasetError, match=r"'physics' must be float64 \(5, 57\), got .* \(5, 45"):
        datasets.relabel(dataset, "quadruped_run")
