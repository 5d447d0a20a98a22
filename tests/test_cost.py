"""Estimates before a run: arithmetic with known speeds, and the real speeds of this machine."""

import time
from dataclasses import replace

import pytest

from belib import cost, training
from belib.config import OfflineConfig, PretrainConfig
from belib.cost import Cost, estimate


@pytest.fixture
def known_speeds(monkeypatch):
    """An update takes 10 ms, an action and a step 1 ms; a network has 10 million parameters."""
    monkeypatch.setattr(cost, "_timed", lambda *_: (0.001, 0.01, 0.001, 1e7))
    monkeypatch.setattr(cost.os, "cpu_count", lambda: 2)


def test_a_collection_by_hand(known_speeds):
    """Two members: 2 x 10,000 environment steps; 8,000 actions and 4,000 updates, of both."""
    sizes = {"objective": "shannon", "num_steps": 10_000, "random_steps": 2_000}
    one = PretrainConfig(**sizes, batch_size=256, hidden_dim=256)
    minutes, memory = estimate([one, replace(one, seed=1)])
    assert minutes == pytest.approx((2 * 10 + 8 + 40) / 60)
    activations = 48 * 2 * 256 * 256 / 1e9
    rows = 2 * (10_000 * (4 * (24 + 6 + 2) + 8) + 13e6) / 1e9
    assert memory == pytest.approx(0.7 + 0.16 + activations + rows)


def test_learning_by_hand(known_speeds):
    """1,000 updates; 3 evaluations of 1,000 steps in 2 x 5 environments."""
    sizes = {"num_steps": 1_000, "eval_every": 400, "eval_episodes": 5}
    members = [OfflineConfig(seed=s, **sizes, batch_size=256, hidden_dim=256) for s in range(2)]
    assert estimate(members).minutes == pytest.approx((10 + 3 * (1 + 10)) / 60)
    sizes = (500_000, 1_000_000, 1_500_000)  # of which a million are learnt from
    half, one, more = (estimate(members, dataset_steps=steps).memory_gb for steps in sizes)
    assert more == one == pytest.approx(half + 5e5 * (4 * (24 + 6 + 2) + 8) / 1e9)
    assert str(Cost(12.2, 1.34)) == "about 12.2 min, 1.3 GB"
    assert str(Cost(150.0, 1.34)) == "about 2.5 h, 1.3 GB"


def test_calls_share_the_cores_and_groups_of_members_follow_each_other(known_speeds):
    one, four = estimate([OfflineConfig()]), estimate(*[[OfflineConfig()]] * 4)
    assert four.minutes == pytest.approx(2 * one.minutes)
    assert four.memory_gb == pytest.approx(2 * one.memory_gb)
    members = [PretrainConfig(objective=name) for name in ("shannon", "rnd")]
    both, parts = estimate(members), [estimate(member) for member in members]
    assert both.minutes == pytest.approx(sum(part.minutes for part in parts))
    assert both.memory_gb == max(part.memory_gb for part in parts)
    with pytest.raises(ValueError, match="must have the same hidden_dim"):
        estimate([PretrainConfig(), PretrainConfig(hidden_dim=8)])


@pytest.mark.slow
@pytest.mark.parametrize("run", [training.pretrain, training.train_offline])
def test_a_run_takes_what_is_estimated(run, tmp_path):
    """Within a factor of 1.5, in time of this thread, in which other processes count little."""
    options = {"runs_dir": tmp_path, "progress": False}
    sizes = {"hidden_dim": 128, "batch_size": 128}
    one = PretrainConfig(num_steps=2_500, random_steps=1_000, representation_dim=128, **sizes)
    members = [replace(one, seed=seed) for seed in range(2)]
    if run is training.train_offline:
        training.pretrain(replace(one, objective="random"), **options)
        data = {"dataset": "random-s0", "num_steps": 100, "eval_every": 100, "eval_episodes": 1}
        members = [OfflineConfig(seed=seed, **data, **sizes) for seed in range(20)]
    expected, begin = 60 * estimate(members).minutes, time.thread_time()
    run(members, **options)
    seconds = time.thread_time() - begin
    print(f"estimated {expected:.1f} s, took {seconds:.1f}: {expected / seconds:.2f}")
    assert 1 / 1.5 < expected / seconds < 1.5
