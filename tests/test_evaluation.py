"""Returns of policies and baselines, and episodes to look at."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from belib import results
from belib.config import OfflineConfig
from belib.envs import PhysicsError
from belib.training import evaluate_baselines, rollout, train_offline
from belib.training.evaluation import Evaluator


def rest(obs):
    """Zero actions of Walker and Cheetah."""
    return torch.zeros(*obs.shape[:-1], 6)


def returns(evaluator, step):
    return [row["return"] for row in evaluator(rest, step)]


def test_a_learnt_policy_can_be_looked_at(small_offline, runs_dir):
    configs = [small_offline(dataset="random-s0", seed=seed, num_steps=2) for seed in (0, 1)]
    with pytest.raises(ValueError, match="must hold a checkpoint with walker_stand-s1, got none"):
        rollout(configs[1], runs_dir=runs_dir)
    train_offline(configs, runs_dir=runs_dir, progress=False)
    states = [rollout(config, runs_dir=runs_dir) for config in (configs[1], *configs)]
    assert states[0].shape == (101, 18)
    np.testing.assert_array_equal(states[0], states[2])
    assert not np.array_equal(states[0], states[1])


def test_starts_depend_on_seed_and_step_and_a_breakdown_ends_alone(small_offline, monkeypatch):
    evaluator = Evaluator([small_offline(seed=2**63 - 1), small_offline(seed=2**63 - 1)])
    whole, same = returns(evaluator, 5)
    assert whole == same
    assert returns(evaluator, 6) != [whole, same]
    env, steps = evaluator._envs[0][0], []

    def breaks(action):
        steps.append(action)
        if len(steps) > 10:
            raise PhysicsError("broken")
        return type(env).step(env, action)

    monkeypatch.setattr(env, "step", breaks)
    broken, other = returns(evaluator, 5)
    assert 0 < broken < whole
    assert other == same
    assert len(steps) == 11


def test_starts_are_upright_or_not_and_cheetahs_neither():
    """Quadruped's floor of about 500 is the share of starts from which it lands on its feet."""
    config = OfflineConfig(domain="quadruped", task="quadruped_run", eval_episodes=1)
    evaluator = Evaluator([replace(config, seed=seed) for seed in (0, 3)])
    table = pd.DataFrame(evaluator(lambda obs: torch.zeros(*obs.shape[:-1], 12), 0))
    assert set(table["upright"]) == {0, 1}
    assert ((table["return"] > 450) == table["upright"]).all()
    assert ((table["return"] < 50) != table["upright"]).all()
    (row,) = Evaluator([replace(config, domain="cheetah", task="cheetah_run")])(rest, 0)
    assert np.isnan(row["upright"]), "it has no torso that could be"


def test_baselines_stand_in_the_same_table(small_offline, runs_dir):
    configs = [small_offline(seed=seed, eval_episodes=3) for seed in (0, 1)]
    table = evaluate_baselines(configs, runs_dir=runs_dir)
    assert len(table) == len(results.collect(runs_dir)) == 4
    upright = table.groupby("seed")["upright"].nunique()
    assert upright.tolist() == [1, 1], "both baselines meet the same starts"
    assert table["upright"].between(0, 1).all()
    as_policies = returns(Evaluator(configs), configs[0].num_steps)
    zero = table.loc[table["algorithm"] == "zero action", "return"]
    np.testing.assert_array_equal(zero, as_policies, "the starts of policies' last evaluation")
    with pytest.raises(ValueError, match="must have the same num_steps, got \\['20', '40'\\]"):
        evaluate_baselines([small_offline(num_steps=n) for n in (40, 20)], runs_dir=runs_dir)
