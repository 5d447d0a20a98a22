import itertools

import numpy as np
import pytest
from scipy import stats

from belib.statistics import bootstrap, interquartile_mean, probability_of_improvement

RNG = np.random.default_rng(0)


def test_the_interquartile_mean_is_that_of_the_middle_half():
    """rliable: 25 % trimmed mean over runs and tasks together."""
    runs = [np.array([0.0, 1, 2, 3]), np.array([4.0, 5, 6, 700])]
    assert interquartile_mean(runs) == np.mean([2, 3, 4, 5])
    scores = RNG.normal(size=(5, 4))  # rliable's layout: runs x tasks
    expected = stats.trim_mean(scores, 0.25, axis=None)
    assert interquartile_mean(list(scores.T)) == pytest.approx(expected)
    assert np.isnan(interquartile_mean([np.array([])]))


def test_the_probability_of_improvement_counts_pairs():
    """rliable: Mann-Whitney's U over the number of pairs, averaged over tasks."""
    runs = [RNG.normal(size=5), RNG.integers(0, 3, 6).astype(float)]
    others = [RNG.normal(size=4), RNG.integers(0, 3, 5).astype(float)]
    by_hand, by_scipy = [], []
    for x, y in zip(runs, others, strict=True):
        pairs = [1.0 * (a > b) + 0.5 * (a == b) for a, b in itertools.product(x, y)]
        by_hand.append(np.mean(pairs))
        by_scipy.append(stats.mannwhitneyu(x, y).statistic / (len(x) * len(y)))
    assert probability_of_improvement(runs, others) == pytest.approx(np.mean(by_hand))
    assert probability_of_improvement(runs, others) == pytest.approx(np.mean(by_scipy))
    assert probability_of_improvement(runs, runs) == 0.5


def test_the_bootstrap_draws_runs_within_a_task():
    """Tasks of very different size and no spread of their own leave no interval: nothing mixes."""
    runs = [np.full(5, 10.0), np.full(5, 900.0)]
    assert bootstrap(runs, interquartile_mean) == (455.0, 455.0)


def test_the_bootstrap_of_one_task_is_one_over_seeds():
    """5 seeds x 1 task, sd 100: an interval over the wrong axis would have no width."""
    seeds = np.array([100.0, 200, 300, 400, 350])
    mean = lambda runs: np.concatenate(runs, -1).mean(-1)  # noqa: E731
    low, high = bootstrap([seeds], mean, repetitions=20_000)
    options = {"method": "percentile", "n_resamples": 20_000, "rng": np.random.default_rng(1)}
    expected = stats.bootstrap((seeds,), np.mean, **options).confidence_interval
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=3)
    assert high - low > 100
    assert bootstrap([seeds], mean) == bootstrap([seeds], mean), "seeded"


def test_the_interval_covers_what_it_should():
    """Of 200 samples of 10 runs in 3 tasks, about 95 % of the intervals hold the true mean."""
    mean = lambda runs: np.concatenate(runs, -1).mean(-1)  # noqa: E731
    covered = []
    for _ in range(200):
        runs = [RNG.normal(level, 1, 10) for level in (0, 5, 10)]
        low, high = bootstrap(runs, mean, repetitions=500)
        covered.append(low < 5 < high)
    assert 0.88 < np.mean(covered) < 0.99


def test_a_matrix_is_refused_since_its_axes_say_nothing():
    for wrong in (np.zeros((5, 1)), [np.zeros((5, 1))]):
        with pytest.raises(ValueError, match=r"one array \(R,\) a task, got shape"):
            bootstrap(wrong, interquartile_mean)
    assert np.isnan(bootstrap([np.array([3.0])], interquartile_mean)).all()
