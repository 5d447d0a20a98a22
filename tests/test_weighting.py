import math

import numpy as np
import pytest

from belib.weighting import (
    LinearInLogOdds,
    Power,
    Prelec,
    TverskyKahneman,
    entropy_term,
    prelec_beta,
)

WEIGHTINGS = [
    *(Prelec(a, b, e) for a in (0.2, 1, 5) for b in (0.5, 2) for e in ("identity", "odd")),
    TverskyKahneman(),
    TverskyKahneman(0.28),
    LinearInLogOdds(),
    LinearInLogOdds(2.0, 3.0),
    Power(0.3),
    Power(3.0),
]


@pytest.mark.parametrize("alpha", [0.2, 0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("n_outcomes", [2, 16, 512])
def test_fixed_points(alpha, n_outcomes):
    """1/M, and for the odd extension also M."""
    weighting = Prelec(alpha, prelec_beta(alpha, n_outcomes), "odd")
    fixed = np.array([0, 1 / n_outcomes, 1, n_outcomes])
    np.testing.assert_allclose(weighting(fixed), fixed, rtol=1e-13)


@pytest.mark.parametrize("weighting", WEIGHTINGS, ids=str)
def test_definition_1(weighting):
    """Continuous, strictly increasing, w(0) = 0, w(1) = 1; also above 1."""
    assert (weighting(0.0), weighting(1.0)) == (0, 1)
    log_p = np.linspace(-3, 1, 2001)
    log_w = weighting.log(log_p)
    # Where (-log p)^5 is flat at p = 1, steps fall below rounding.
    assert (np.diff(log_w) >= 0).all()
    assert (np.diff(log_w[np.abs(log_p) > 0.01]) > 0).all()
    for point in (-1.0, 0.0, 0.5):  # no jump: a Hölder bound with the smallest exponent tested
        near = weighting.log(np.array([point - 1e-12, point, point + 1e-12]))
        assert np.ptp(near) < 3 * 2 * (1e-12) ** 0.2
    # the same in log space, which reaches further
    p = np.array([1e-12, 0.01, 0.5, 0.99, 1.0, 1.5])
    np.testing.assert_allclose(np.exp(weighting.log(np.log(p))), weighting(p), rtol=1e-12)
    assert np.isfinite(weighting.log(-1e5))
    if not isinstance(weighting, Power) and getattr(weighting, "extension", 0) != "odd":
        assert weighting(np.array([1.5, 40.0])) == pytest.approx([1.5, 40.0])


def test_prelec_by_hand():
    assert Prelec(0.5, 3)(math.exp(-4)) == pytest.approx(math.exp(-6))
    assert Prelec(0.5, 3)(math.exp(4)) == pytest.approx(math.exp(4))
    assert Prelec(0.5, 3, "odd")(math.exp(4)) == pytest.approx(math.exp(6))


def test_other_weightings_by_hand():
    """Tversky and Kahneman: w(1/2) = 2^(1 - g - 1/g); Gonzalez and Wu: odds delta (p/q)^gamma."""
    p = np.array([0.1, 0.5, 0.99])
    np.testing.assert_allclose(TverskyKahneman()(p), [0.186, 0.421, 0.912], atol=6e-4)
    odds = 0.77 * (p / (1 - p)) ** 0.44
    np.testing.assert_allclose(LinearInLogOdds()(p), odds / (1 + odds), rtol=1e-13)


def test_entropy_term_of_a_plain_function_is_that_of_its_weighting():
    log_p = np.array([-np.inf, -3.0, -0.1, 0.2])
    plain = entropy_term(lambda p: p**2, log_p, 0.5)
    np.testing.assert_allclose(plain, entropy_term(Power(2.0), log_p, 0.5), rtol=1e-13)
    assert plain[0] == 0


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (lambda: prelec_beta(math.nan, 512), "alpha must be positive"),
        (lambda: prelec_beta(2000.0, 512), "alpha must give beta within floats, got 2000"),
        (lambda: prelec_beta(390.0, 512), "within floats, got 390"),  # which is subnormal
        (lambda: prelec_beta(0.5, 1), "n_outcomes must be at least 2, got 1"),
        (lambda: Prelec(0.5)([0.2, -0.1]), r"p must be at least 0 everywhere, got -0\.1"),
        (lambda: Prelec(0.5)(math.nan), "p must be at least 0 everywhere, got nan"),
        (lambda: Prelec(0.5, extension="even"), "extension must be one of"),
        (lambda: Power(-1.0), r"exponent must be positive .*got -1"),
        (lambda: LinearInLogOdds(delta=0.0), r"delta must be positive .*got 0"),
        (lambda: TverskyKahneman(0.279), r"gamma must exceed about 0\.2792"),
    ],
)
def test_refusals(function, match):
    with pytest.raises(ValueError, match=match):
        function()
