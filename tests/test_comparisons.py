"""Statistics on simulated studies: level, power, coverage and agreement with closed forms."""

import numpy as np
import pytest
from scipy import stats

from belib import statistics
from belib.statistics import best_of, compare, detectable, interquartile_mean, permutation_p

STUDIES = 2000


def arms(effect=0.0, blocks=20, sds=(1.0, 1.0), block_sd=0.0):
    """Two arms of many studies, (STUDIES, blocks) each."""
    random = np.random.default_rng(0)
    common = block_sd * random.normal(size=(STUDIES, blocks))
    one = effect + sds[0] * random.normal(size=(STUDIES, blocks)) + common
    return one, sds[1] * random.normal(size=(STUDIES, blocks)) + common


def within_error(share, expected):
    """Return whether a share of the studies is within 3 standard errors."""
    return abs(share - expected) < 3 * np.sqrt(expected * (1 - expected) / STUDIES)


@pytest.mark.parametrize("sds", [(1.0, 1.0), (1.0, 4.0)])
def test_welchs_test_keeps_its_level_and_its_intervals_cover(sds):
    one, other = arms(sds=sds)
    test = stats.ttest_ind(one, other, axis=1, equal_var=False)
    low, high = test.confidence_interval()
    assert within_error((test.pvalue < 0.05).mean(), 0.05)
    assert within_error(((low < 0) & (high > 0)).mean(), 0.95)
    ours = [compare(x, y) for x, y in zip(one[:30], other[:30], strict=True)]
    numbers = np.c_[test.pvalue, low, *test.confidence_interval(0.9)][:30]
    np.testing.assert_allclose([(r.p, r.low, r.low_90, r.high_90) for r in ours], numbers)


def test_a_comparison_by_hand():
    """Means 4 and 2, variances 4 and 2/3: Welch's error is sqrt(4/3 + 1/6), with 2.5 degrees."""
    result = compare([2.0, 4.0, 6.0], [1.0, 2.0, 2.0, 3.0])
    sd, error, df = np.sqrt((4 + 2 / 3) / 2), np.sqrt(1.5), 1.5**2 / ((4 / 3) ** 2 / 2 + 1 / 108)
    assert (result.value, result.sd, result.effect) == pytest.approx((2, sd, 2 / sd))
    assert result.p == pytest.approx(2 * stats.t.sf(2 / error, df))
    assert result.p_equivalence == pytest.approx(stats.t.cdf((2 - sd / 2) / error, df))


def test_permutations_by_hand_and_their_level_where_blocks_differ():
    """Of the 8 ways to exchange within three blocks, two are as extreme as three gains of 1."""
    assert permutation_p([2.0, 3.0, 4.0], [1.0, 2.0, 3.0]) == 2 / 8
    assert permutation_p([2.0, 3.0, 4.0], [2.0, 3.0, 4.0]) == 1
    one, other = arms(blocks=8, block_sd=5.0)
    p = [permutation_p(x, y, draws=2**8) for x, y in zip(one[:400], other[:400], strict=True)]
    assert 0.02 < np.mean(np.array(p) < 0.05) < 0.08


def test_simulated_studies_have_the_computed_power():
    test = stats.ttest_ind(*arms(effect=detectable(20)), axis=1, equal_var=False)
    assert within_error((test.pvalue < 0.05).mean(), 0.8)
    assert detectable(40, level=0.05 / 4) == pytest.approx(0.77, abs=0.01)


def test_equivalence_is_seen_in_5_of_100_studies_whose_arms_differ_by_the_margin():
    """Margin and unit are estimated from the same arms, which costs a little."""

    def equivalent(one, other):
        pairs = zip(one[:300], other[:300], strict=True)
        return np.mean([compare(x, y).p_equivalence < 0.05 for x, y in pairs])

    assert 0.02 < equivalent(*arms(effect=0.5, blocks=60)) < 0.09
    assert equivalent(*arms(blocks=100)) > 0.85


def test_holm_and_verdicts_by_hand():
    adjusted = statistics.holm([0.01, 0.04, 0.03, 0.005])
    assert adjusted == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert statistics.holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert statistics.verdict(0.01, 0.9, 2.0) == "better"
    assert statistics.verdict(0.01, 0.01, -2.0) == "worse", "a difference is one, however small"
    assert statistics.verdict(0.3, 0.01, 0.1) == "equivalent"
    assert statistics.verdict(0.3, 0.3, 0.1) == "undecided"


@pytest.mark.parametrize("sides", [([0] * 8, [0]), ([0] * 4, [0] * 4), ([0, -9, -9], [0] * 5)])
def test_intervals_of_a_chosen_best_keep_their_level(sides):
    """Of 100 studies with equal best means, 2.5 % a side (+ 3 standard errors) miss 0."""
    random, misses = np.random.default_rng(0), np.zeros(3)
    for _ in range(100):
        result = best_of(*([random.normal(mean, 1, 4) for mean in side] for side in sides))
        misses += result.high < 0, result.low > 0, result.p < 0.025
        assert result.low <= result.value <= result.high
    assert misses.max() / 100 < 0.025 + 3 * np.sqrt(0.025 / 100)


def test_the_best_is_ahead_where_it_is_and_of_two_arms_it_is_welchs_test():
    random = np.random.default_rng(0)
    one, two, other = random.normal(0, 1, 9), random.normal(4, 1, 9), random.normal(0, 1, 7)
    assert best_of([one, two], [other, one]).low > 0
    assert best_of([one], [two, other]).high < 0
    welch = compare(two, other)
    assert best_of([two], [other]) == pytest.approx((*welch[:3], welch.p / 2))


def test_the_ratio_of_variances_has_the_f_tests_interval():
    random = np.random.default_rng(0)
    arrays = 2 * random.normal(size=(STUDIES, 8)), random.normal(size=(STUDIES, 5))
    ratios = [statistics.spread_ratio(x, y) for x, y in zip(*arrays, strict=True)]
    assert within_error(np.mean([r.low < 4 < r.high for r in ratios]), 0.95)
    assert np.median([r.value for r in ratios]) == pytest.approx(4, rel=0.15)
    equal = [statistics.spread_ratio(x / 2, y).p for x, y in zip(*arrays, strict=True)]
    assert within_error(np.mean(np.array(equal) < 0.05), 0.05)


def test_single_datasets_missing_values_and_unequal_lengths_are_refused():
    with pytest.raises(ValueError, match="2 datasets or more, got 2 and 1"):
        compare([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="finite"):
        compare([1, np.nan], [2, 1])
    with pytest.raises(ValueError, match="equal lengths, got 2 and 3"):
        permutation_p([1.0, 2.0], [1.0, 2.0, 3.0])


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
    assert statistics.rank_correlation(np.arange(4.0), [3, 5, 9, 27]).p == pytest.approx(2 / 24)
    x = np.arange(20.0)
    result = statistics.rank_correlation(x, x + np.random.default_rng(0).normal(0, 8, 20))
    assert result.low < result.value < result.high
    assert result.value == pytest.approx(stats.spearmanr(x, x).statistic, abs=0.5)
    assert statistics.rank_correlation(x, -x).high < -0.9
    random = np.random.default_rng(0)
    pairs = random.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], size=(200, 20))
    ends = np.array([statistics.rank_correlation(*pair.T)[1:3] for pair in pairs])
    truth = 6 / np.pi * np.arcsin(0.9 / 2)  # Spearman's rho of normal pairs
    assert ((ends[:, 0] < truth) & (truth < ends[:, 1])).mean() == pytest.approx(0.95, abs=0.04)
