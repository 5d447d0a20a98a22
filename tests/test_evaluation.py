"""Returns of policies and baselines, and episodes to look at."""

from dataclasses import replace

import numpy as np
import pytest

from belib import results
from belib.envs import PhysicsError
from belib.training import (
    Evaluator,
    evaluate_baselines,
    rollout,
    train_offline,
)


def test_a_learnt_policy_can_be_looked_at(small_offline, runs_dir):
    configs = [small_offline(dataset="random-s0", seed=seed, num_steps=2) for seed in (0, 1)]
    with pytest.raises(ValueError, match="must hold a checkpoint with walker_stand-s1, got none"):
        rollout(configs[1], runs_dir=runs_dir)
    train_offline(configs, runs_dir=runs_dir, progress=False)
    states = [rollout(config, runs_dir=runs_dir) for config in (configs[1], *configs)]
    assert states[0].shape == (1001, 18)
    np.testing.assert_array_equal(states[0], states[2])
    assert not np.array_equal(states[0], states[1])


def test_evaluation_starts_depend_on_seed_and_step_alone():
    evaluator = Evaluator(["walker_stand", "walker_walk"], [0, 0], 2)
    first, again = evaluator(evaluator.zero_policy(), 5), evaluator(evaluator.zero_policy(), 5)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, evaluator(evaluator.zero_policy(), 6))


def test_a_simulation_that_breaks_down_ends_its_episode_and_no_other(monkeypatch):
    """In an evaluation, as in collection; without it a policy could stop all that learn beside."""
    evaluator = Evaluator(["walker_stand"] * 2, [0, 0], 1)
    whole, same = evaluator(evaluator.zero_policy(), 5)
    assert whole == same
    steps = []

    def breaks(action):
        steps.append(action)
        if len(steps) > 10:
            raise PhysicsError("broken")
        return type(env).step(env, action)

    env = evaluator._envs[0][0]
    monkeypatch.setattr(env, "step", breaks)
    broken, other = evaluator(evaluator.zero_policy(), 5)
    assert 0 < broken < whole
    assert other == same
    assert len(steps) == 11


@pytest.mark.parametrize("task", ["quadruped_run", "cheetah_run"])
def test_starts_are_upright_or_not(task):
    """Quadruped's floor of about 500 is the share of starts from which it lands on its feet."""
    evaluator = Evaluator([task], [0], 6)
    returns = evaluator(evaluator.zero_policy(), 0)
    (share,) = evaluator.upright
    if task == "cheetah_run":
        assert np.isnan(share)
    else:
        assert 0 < share < 1
        assert ((returns > 450).mean(), (returns < 50).mean()) == (share, 1 - share)


def test_an_evaluator_takes_seeds_of_any_size_and_refuses_what_makes_no_sense():
    seeds = (3, np.int64(3), 2**63 - 1, 2**70)
    evaluators = [Evaluator(["reacher_easy"], [seed], np.int64(1)) for seed in seeds]
    one, two, *_ = [evaluator(evaluator.random_policy(), 0) for evaluator in evaluators]
    assert one.shape == (1, 1)
    assert one == two
    for tasks, seeds, episodes, message in (
        (["walker_walk"], [0], 0, "episodes must be at least 1, got 0"),
        (["walker_walk"], [0, 1], 1, "tasks must be one or more, each with a seed"),
        ([], [], 1, "tasks must be one or more"),
    ):
        with pytest.raises(ValueError, match=message):
            Evaluator(tasks, seeds, episodes)


def test_baselines_stand_in_the_same_table(small_offline, runs_dir):
    configs = [small_offline(seed=seed, eval_episodes=3) for seed in (0, 1)]
    table = evaluate_baselines(configs, runs_dir=runs_dir)
    assert len(table) == 4
    upright = table.groupby("seed")["upright"].agg(["min", "max", "nunique"])
    assert upright["nunique"].tolist() == [1, 1], "both baselines meet the same starts"
    evaluator = Evaluator(["walker_stand"] * 2, [0, 1], 3)
    as_policies = evaluator(evaluator.zero_policy(), configs[0].num_steps).mean(1)
    zero = table.loc[table["algorithm"] == "zero action", "return"]
    np.testing.assert_array_equal(zero, as_policies, "the starts of policies' last evaluation")
    with pytest.raises(ValueError, match="baselines must have one num_steps, got 20, 40"):
        evaluate_baselines([replace(configs[0], num_steps=n) for n in (40, 20)], runs_dir=runs_dir)
    assert upright["min"].ge(0).all()
    assert upright["max"].le(1).all()
    means = table.groupby("algorithm")["return"].mean()
    # Walker's rewards for lying and for twitching: 99 and 133 over 10 episodes elsewhere.
    assert 50 < means["zero action"] < 180
    assert 90 < means["random policy"] < 170
    assert len(results.collect(runs_dir)) == 4
