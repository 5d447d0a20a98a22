"""Tests of arms on simulated studies: level, power, coverage and agreement with closed forms."""

import numpy as np
import pytest
from scipy import stats

from belib.statistics.comparisons import (
    compare,
    detectable,
    holm,
    permutation_p,
    power,
    variance_components,
    verdict,
)

STUDIES = 2000


def arms(effect=0.0, blocks=20, sds=(1.0, 1.0), block_sd=0.0):
    """Two arms of many studies, (STUDIES, blocks) each."""
    random = np.random.default_rng(0)
    common = block_sd * random.normal(size=(STUDIES, blocks))
    one = effect + sds[0] * random.normal(size=(STUDIES, blocks)) + common
    return one, sds[1] * random.normal(size=(STUDIES, blocks)) + common


def welch(one, other):
    return stats.ttest_ind(one, other, axis=1, equal_var=False)


def within_error(share, expected):
    """Three standard errors of a share of so many studies."""
    return abs(share - expected) < 3 * np.sqrt(expected * (1 - expected) / STUDIES)


@pytest.mark.parametrize("sds", [(1.0, 1.0), (1.0, 4.0)])
def test_five_in_a_hundred_null_studies_find_something_and_intervals_cover(sds):
    one, other = arms(sds=sds)
    found = [compare(x, y, draws=9) for x, y in zip(one[:50], other[:50], strict=True)]
    test = welch(one, other)
    np.testing.assert_allclose([each.p for each in found], test.pvalue[:50])
    assert within_error((test.pvalue < 0.05).mean(), 0.05)
    low, high = test.confidence_interval()
    assert within_error(((low < 0) & (high > 0)).mean(), 0.95)
    np.testing.assert_allclose([each.low for each in found], low[:50])


def test_permutations_within_blocks_keep_their_level_where_blocks_differ():
    one, other = arms(blocks=8, block_sd=5.0)
    p = [permutation_p(x, y, draws=2**8) for x, y in zip(one[:400], other[:400], strict=True)]
    assert 0.02 < np.mean(np.array(p) < 0.05) < 0.08


def test_permutations_by_hand():
    """Of the 8 ways to exchange within three blocks, two are as extreme as three gains of 1."""
    assert permutation_p([2.0, 3.0, 4.0], [1.0, 2.0, 3.0]) == 2 / 8
    assert permutation_p([2.0, 3.0, 4.0], [2.0, 3.0, 4.0]) == 1


def test_power_is_what_is_promised():
    effect = detectable(20)
    assert power(20, effect) == pytest.approx(0.8)
    assert power(20, 1e-6) == pytest.approx(0.05, abs=1e-6)
    share = (welch(*arms(effect=effect)).pvalue < 0.05).mean()
    assert within_error(share, 0.8)


def equivalence(one, other, margin=0.5):
    """p of two one-sided tests of many studies at once."""
    sd = np.sqrt((one.var(1, ddof=1) + other.var(1, ddof=1)) / 2)[:, None]
    sides = (("greater", margin), ("less", -margin))
    options = {"axis": 1, "equal_var": False}
    tests = [stats.ttest_ind(one + m * sd, other, alternative=s, **options) for s, m in sides]
    return np.maximum(tests[0].pvalue, tests[1].pvalue)


def test_equivalence_is_claimed_of_arms_that_differ_by_the_margin_in_five_of_a_hundred():
    """Margin and unit are estimated from the same arms, which costs a little."""
    one, other = arms(effect=0.5, blocks=60)
    p = equivalence(one, other)
    ours = [compare(x, y, draws=9).p_different for x, y in zip(one[:20], other[:20], strict=True)]
    np.testing.assert_allclose(ours, p[:20])
    assert 0.03 < (p < 0.05).mean() < 0.08
    assert (equivalence(*arms(blocks=100)) < 0.05).mean() > 0.9


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("p", "p_different", "value", "word"),
    [
        (0.01, 0.9, 2.0, "better"),
        (0.01, 0.01, -2.0, "worse"),  # a difference is one, however small
        (0.3, 0.01, 0.1, "equivalent"),
        (0.3, 0.3, 0.1, "undecided"),
    ],
)
def test_verdicts(p, p_different, value, word):
    assert verdict(p, p_different, value) == word


def test_variance_components_of_a_nested_design():
    random = np.random.default_rng(0)
    dataset, seed, checkpoint = (
        sd * random.normal(size=shape)
        for sd, shape in ((3, (400, 1, 1)), (2, (400, 3, 1)), (5, (400, 3, 8)))
    )
    found = variance_components(list(dataset + seed + checkpoint))
    assert found["dataset"] == pytest.approx(9, rel=0.2)
    assert found["seed"] == pytest.approx(4, rel=0.25)
    assert found["checkpoint"] == pytest.approx(25, rel=0.1)
    # a component that is not there is estimated about 0, on either side
    none = variance_components(list(5 * random.normal(size=(400, 3, 8))))
    assert abs(none["dataset"]) < 0.5


def test_arms_of_other_blocks_are_refused():
    with pytest.raises(ValueError, match="same blocks, 2 or more, got 3 and 2"):
        compare([1.0, 2.0, 3.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="got 1 and 1"):
        compare([1.0], [2.0])
    with pytest.raises(ValueError, match="must be finite"):
        compare([1.0, np.nan], [2.0, 1.0])
    with pytest.raises(ValueError, match=r"got \(1, 2, 2\)"):
        variance_components([np.ones((2, 2))])
