import numpy as np
import pytest
from scipy import stats

from belib.statistics import interquartile_mean, probability_of_improvement, rank_correlation


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_the_interquartile_mean_is_that_of_the_middle_half(rng):
    """rliable: 25 % trimmed mean over runs and tasks together."""
    runs = [np.array([0.0, 1, 2, 3]), np.array([4.0, 5, 6, 700])]
    assert interquartile_mean(runs).value == np.mean([2, 3, 4, 5])
    scores = rng.normal(size=(5, 4))  # rliable's layout: runs x tasks
    expected = stats.trim_mean(scores, 0.25, axis=None)
    assert interquartile_mean(list(scores.T)).value == pytest.approx(expected)
    assert np.isnan(interquartile_mean([np.array([])]).value)


def test_the_probability_of_improvement_counts_pairs(rng):
    """rliable: Mann-Whitney's U over the number of pairs, averaged over tasks."""
    runs = [rng.normal(size=5), rng.integers(0, 3, 6).astype(float)]
    others = [rng.normal(size=4), rng.integers(0, 3, 5).astype(float)]
    u = [stats.mannwhitneyu(x, y).statistic for x, y in zip(runs, others, strict=True)]
    expected = np.mean([u[0] / (5 * 4), u[1] / (6 * 5)])
    assert probability_of_improvement(runs, others) == pytest.approx(expected)
    assert probability_of_improvement(runs, runs) == 0.5


def test_the_interval_draws_runs_within_tasks_and_refuses_a_matrix(rng):
    """Two tasks far apart, without spread within them, have an interval of no width."""
    assert interquartile_mean([np.full(5, 10.0), np.full(5, 900.0)])[:3] == (455.0, 455.0, 455.0)
    assert np.isnan(interquartile_mean([np.array([3.0])]).low)
    seeds, draws = rng.normal(300, 100, 20), rng.integers(20, size=(20_000, 20))
    expected = np.quantile(stats.trim_mean(seeds[draws], 0.25, axis=1), [0.025, 0.975])
    assert interquartile_mean([seeds])[1:3] == pytest.approx(expected, abs=8)  # 2,000 draws: 2
    for wrong, message in ((np.zeros((5, 1)), r"one array \(R,\)"), ([np.zeros((5, 1))], "1 axes")):
        with pytest.raises(ValueError, match=f"runs must .*{message}.*got shape"):
            interquartile_mean(wrong)


def test_rank_correlations_have_exact_p_and_intervals(rng):
    """Of the 24 orders of four values, two have a |rho| of 1."""
    assert rank_correlation(np.arange(4.0), [3.0, 5.0, 9.0, 27.0]).p == pytest.approx(2 / 24)
    x = np.arange(20.0)
    result = rank_correlation(x, x + rng.normal(0, 8, 20))
    assert result.low < result.value < result.high
    assert result.value == pytest.approx(stats.spearmanr(x, x).statistic, abs=0.5)
    assert rank_correlation(x, -x).high < -0.9
