import numpy as np
import pytest
from scipy import stats

from belib.statistics import interquartile_mean, rank_correlation


def test_the_interquartile_mean_is_that_of_the_middle_half_and_has_a_bootstrap_interval():
    """rliable: a 25 % trimmed mean, and runs that are drawn again."""
    assert interquartile_mean([0.0, 1, 2, 3, 4, 5, 6, 700]).value == np.mean([2, 3, 4, 5])
    assert interquartile_mean(np.full(5, 10.0))[:3] == (10.0, 10.0, 10.0)
    assert np.isnan(interquartile_mean([3.0]).low)
    assert np.isnan(interquartile_mean([]).value)
    rng = np.random.default_rng(0)
    seeds, draws = rng.normal(300, 100, 20), rng.integers(20, size=(20_000, 20))
    expected = np.quantile(stats.trim_mean(seeds[draws], 0.25, axis=1), [0.025, 0.975])
    assert interquartile_mean(seeds)[1:3] == pytest.approx(expected, abs=8)  # 2,000 draws: 2
    with pytest.raises(ValueError, match="scores must have 1 axes, got shape"):
        interquartile_mean(np.zeros((5, 1)))


def test_rank_correlations_have_exact_p_and_intervals():
    """Of the 24 orders of four values, two have a |rho| of 1."""
    assert rank_correlation(np.arange(4.0), [3.0, 5.0, 9.0, 27.0]).p == pytest.approx(2 / 24)
    x = np.arange(20.0)
    result = rank_correlation(x, x + np.random.default_rng(0).normal(0, 8, 20))
    assert result.low < result.value < result.high
    assert result.value == pytest.approx(stats.spearmanr(x, x).statistic, abs=0.5)
    assert rank_correlation(x, -x).high < -0.9
