import numpy as np
import pytest
from scipy import stats

from belib.statistics import (
    Means,
    Noise,
    best_against_best,
    bootstrap,
    interquartile_mean,
    jumps,
    mean_against_mean,
    order_test,
    pooled_noise,
    probability_of_improvement,
    rank_correlation,
    sd_interval,
    spread_ratio,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_the_interquartile_mean_is_that_of_the_middle_half(rng):
    """rliable: 25 % trimmed mean over runs and tasks together."""
    runs = [np.array([0.0, 1, 2, 3]), np.array([4.0, 5, 6, 700])]
    assert interquartile_mean(runs) == np.mean([2, 3, 4, 5])
    scores = rng.normal(size=(5, 4))  # rliable's layout: runs x tasks
    expected = stats.trim_mean(scores, 0.25, axis=None)
    assert interquartile_mean(list(scores.T)) == pytest.approx(expected)
    assert np.isnan(interquartile_mean([np.array([])]))


def test_the_probability_of_improvement_counts_pairs(rng):
    """rliable: Mann-Whitney's U over the number of pairs, averaged over tasks."""
    runs = [rng.normal(size=5), rng.integers(0, 3, 6).astype(float)]
    others = [rng.normal(size=4), rng.integers(0, 3, 5).astype(float)]
    u = [stats.mannwhitneyu(x, y).statistic for x, y in zip(runs, others, strict=True)]
    expected = np.mean([u[0] / (5 * 4), u[1] / (6 * 5)])
    assert probability_of_improvement(runs, others) == pytest.approx(expected)
    assert probability_of_improvement(runs, runs) == 0.5


def mean(runs):
    return np.concatenate(runs, -1).mean(-1)


def test_the_bootstrap_of_one_task_is_scipys():
    """5 seeds of 1 task: an interval over the wrong axis would have no width."""
    seeds = np.array([100.0, 200, 300, 400, 350])
    low, high = bootstrap([seeds], mean, repetitions=20_000)
    options = {"method": "percentile", "n_resamples": 20_000, "rng": np.random.default_rng(1)}
    expected = stats.bootstrap((seeds,), np.mean, **options).confidence_interval
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=3)


def test_the_bootstrap_draws_within_tasks_and_refuses_a_matrix():
    """Two tasks far apart, without spread within them, have an interval of no width."""
    runs = [np.full(5, 10.0), np.full(5, 900.0)]
    assert bootstrap(runs, interquartile_mean) == (455.0, 455.0)
    assert np.isnan(bootstrap([np.array([3.0])], interquartile_mean)).all()
    for wrong, message in ((np.zeros((5, 1)), r"one array \(R,\)"), ([np.zeros((5, 1))], "1 axes")):
        with pytest.raises(ValueError, match=f"runs must .*{message}.*got shape"):
            bootstrap(wrong, interquartile_mean)


def groups(*arrays):
    """Means of groups given by their repetitions, and their pooled noise."""
    means, counts = zip(*((np.mean(values), len(values)) for values in arrays), strict=True)
    return Means(np.array(means), np.array(counts)), pooled_noise(map(np.array, arrays))


def test_noise_is_pooled_within_groups_and_single_repetitions_tell_nothing():
    noise = pooled_noise([np.array([1.0, 3.0]), np.array([10.0]), np.array([5.0, 5.0, 8.0])])
    assert (noise.sd, noise.df) == (pytest.approx(np.sqrt((2 + 6) / 3)), 3)
    low, high = sd_interval(noise)
    assert low < noise.sd < high
    nothing = pooled_noise([np.array([1.0])])
    assert (np.isnan(nothing.sd), nothing.df) == (True, 0)
    assert np.isnan(sd_interval(nothing)).all()


def test_the_difference_of_two_groups_is_that_of_the_t_test(rng):
    one, two = rng.normal(1, 1, 4), rng.normal(0, 1, 6)
    noise = groups(one, two)[1]
    difference = mean_against_mean(groups(one)[0], groups(two)[0], noise)
    expected = stats.ttest_ind(one, two)
    assert difference.p == pytest.approx(expected.pvalue)
    assert difference[1:3] == pytest.approx(expected.confidence_interval())
    alone = mean_against_mean(groups(one)[0], groups(two)[0], Noise(1.0, 0))
    assert alone.value == difference.value
    assert np.isnan(alone[1:]).all()


def test_one_other_group_gives_dunnetts_lower_end_and_students_upper_end(rng):
    """3 % are the errors of our simulation and of scipy's integration."""
    arrays = [rng.normal(level, 1, 5) for level in (0.0, 0.3, 1.5, 0.2)]
    control = rng.normal(0, 1, 5)
    means, noise = groups(*arrays)[0], groups(*arrays, control)[1]
    result = best_against_best(means, groups(control)[0], noise)
    options = {"alternative": "greater", "rng": np.random.default_rng(0)}
    expected = stats.dunnett(*arrays, control=control, **options).confidence_interval(0.975)
    assert result.value == pytest.approx(max(means.values) - control.mean())
    assert result.value - result.low == pytest.approx(result.value - max(expected.low), rel=0.03)
    student = stats.t.ppf(0.975, noise.df) * noise.sd * np.sqrt(2 / 5)
    assert result.high - result.value == pytest.approx(student, rel=0.03)


def test_the_best_of_eight_equal_groups_is_above_one_eight_times_in_nine():
    eight, one = (Means(np.zeros(n), np.ones(n, int)) for n in (8, 1))
    assert best_against_best(eight, one, Noise(1.0, 6)).p == pytest.approx(8 / 9, abs=0.01)
    assert best_against_best(one, eight, Noise(1.0, 6)).p == pytest.approx(1 / 9, abs=0.01)


@pytest.mark.parametrize(
    ("ours", "others"),
    [([0] * 8, [0]), ([0] * 8, [0] * 5), ([0] * 8, [0, -9, -9]), ([0, -9, -9], [0] * 5)],
)
def test_intervals_of_a_chosen_best_keep_their_level(ours, others, rng):
    """Of 800 experiments with equal best means, 2.5 % a side (+ 3 standard errors) miss 0."""
    misses = np.zeros(2)
    for _ in range(800):
        noise = pooled_noise(rng.normal(size=(3, 3)))
        sides = [Means(rng.normal(side), np.ones(len(side), int)) for side in (ours, others)]
        result = best_against_best(*sides, noise)
        misses += result.high < 0, result.low > 0
    assert misses.max() / 800 < 0.042


def test_jumps_are_one_for_equal_means_and_large_for_jumps(rng):
    noise = Noise(1.0, 1000)
    equal = np.array([jumps(Means(rng.normal(size=5), np.ones(5)), noise) for _ in range(100)])
    assert equal[:, 0].mean() == pytest.approx(1, abs=0.25)
    assert (equal[:, 3] < 0.05).mean() < 0.11
    assert jumps(Means(np.array([0, 9.0, 0, 9, 0]), np.ones(5)), noise).p < 0.01


def test_the_order_of_a_line_is_one_of_two_among_all():
    ratio, p = order_test(np.arange(5.0)[None])
    assert p == pytest.approx(2 / 120)
    assert ratio == pytest.approx(1 / 2)  # steps of 1, variance 10 / 5
    rows = np.array([[0, 1, 2, 3, 4.0], [7, 5, 3, 2, 0.0]])
    assert order_test(rows)[1] == pytest.approx(2 / 120), "rows are ordered together"
    assert order_test(np.array([[0, 9.0, 1, 8, 2]]))[1] > 0.5
    assert order_test(np.arange(10.0)[None])[1] < 0.001, "with drawn orders"


def test_the_spread_of_groups_has_the_p_of_the_f_test(rng):
    arrays = rng.normal(size=(4, 5)) + rng.normal(size=(4, 1)) * 2
    within = pooled_noise(arrays)
    between = pooled_noise([arrays.mean(1)])
    result = spread_ratio(between, within, 5)
    assert result.p == pytest.approx(stats.f_oneway(*arrays).pvalue)
    assert result.low <= result.value <= result.high
    assert spread_ratio(Noise(0.1, 3), Noise(1.0, 16), 5).value == 0, "less than seeds alone give"


def test_rank_correlations_have_intervals(rng):
    x = np.arange(20.0)
    result = rank_correlation(x, x + rng.normal(0, 8, 20))
    assert result.low < result.value < result.high
    assert result.value == pytest.approx(stats.spearmanr(x, x).statistic, abs=0.5)
    assert rank_correlation(x, -x).high < -0.9
