import math

import pytest

from belib.weighting import prelec_beta


@pytest.mark.parametrize(
    ("alpha", "beta"), [(0.2, 4.32568), (0.5, 2.49766), (1, 1), (2, 0.160299), (5, 6.6028e-4)]
)
def test_values_for_512_outcomes(alpha, beta):
    assert prelec_beta(alpha, 512) == pytest.approx(beta, rel=1e-5)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("n_outcomes", [2, 16, 512])
def test_one_over_m_is_a_fixed_point(alpha, n_outcomes):
    beta = prelec_beta(alpha, n_outcomes)
    assert math.exp(-beta * math.log(n_outcomes) ** alpha) == pytest.approx(1 / n_outcomes)


@pytest.mark.parametrize("alpha", [0, -1.0, math.nan, math.inf])
def test_alpha_outside_its_range(alpha):
    with pytest.raises(ValueError, match="alpha must be positive"):
        prelec_beta(alpha, 512)


def test_one_outcome_has_no_beta():
    with pytest.raises(ValueError, match="n_outcomes must be at least 2, got 1"):
        prelec_beta(0.5, 1)
