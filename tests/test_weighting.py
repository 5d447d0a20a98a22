import math

import numpy as np
import pytest

from belib.weighting import (
    Identity,
    LinearInLogOdds,
    Power,
    Prelec,
    TverskyKahneman,
    entropy_term,
    prelec_beta,
    prelec_weight,
)

WEIGHTINGS = [
    *(Prelec(a, b, e) for a in (0.2, 1, 5) for b in (0.5, 2) for e in ("identity", "odd")),
    TverskyKahneman(),
    TverskyKahneman(0.28),
    TverskyKahneman(3.0),
    LinearInLogOdds(),
    LinearInLogOdds(2.0, 3.0),
    Power(0.3),
    Power(3.0),
    Identity(),
]


@pytest.mark.parametrize(
    ("alpha", "beta"), [(0.2, 4.32568), (0.5, 2.49766), (1, 1), (2, 0.160299), (5, 6.6028e-4)]
)
def test_values_for_512_outcomes(alpha, beta):
    assert prelec_beta(alpha, 512) == pytest.approx(beta, rel=1e-5)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("n_outcomes", [2, 16, 512])
def test_one_over_m_is_a_fixed_point(alpha, n_outcomes):
    weighting = Prelec(alpha, prelec_beta(alpha, n_outcomes))
    assert weighting(1 / n_outcomes) == pytest.approx(1 / n_outcomes, rel=1e-13)
    if alpha != 1:
        assert weighting.fixed_point == pytest.approx(1 / n_outcomes)


def test_odd_extension_keeps_the_fixed_points_and_their_inverses():
    for alpha in (0.2, 0.5, 2.0, 5.0):
        weighting = Prelec(alpha, prelec_beta(alpha, 16), "odd")
        fixed = np.array([0, 1 / 16, 1, 16])
        np.testing.assert_allclose(weighting(fixed), fixed, rtol=1e-14)


@pytest.mark.parametrize("weighting", WEIGHTINGS, ids=str)
def test_definition_1(weighting):
    """Continuous, strictly increasing, w(0) = 0, w(1) = 1; also above 1."""
    assert weighting(0.0) == 0
    assert weighting(1.0) == 1
    log_p = np.linspace(-3, 1, 2001)
    log_w = weighting.log(log_p)
    # Where (-log p)^5 is flat at p = 1, steps fall below rounding.
    assert (np.diff(log_w) >= 0).all()
    assert (np.diff(log_w[np.abs(log_p) > 0.01]) > 0).all()
    for point in (-1.0, 0.0, 0.5):  # no jump: a Hölder bound with the smallest exponent tested
        near = weighting.log(np.array([point - 1e-12, point, point + 1e-12]))
        assert np.ptp(near) < 3 * 2 * (1e-12) ** 0.2


@pytest.mark.parametrize("weighting", WEIGHTINGS, ids=str)
def test_log_space_agrees_with_probabilities_and_reaches_further(weighting):
    p = np.array([1e-12, 0.01, 0.5, 0.99, 1.0, 1.5])
    np.testing.assert_allclose(np.exp(weighting.log(np.log(p))), weighting(p), rtol=1e-12)
    assert np.isfinite(weighting.log(-1e5))


@pytest.mark.parametrize(
    "weighting", [w for w in WEIGHTINGS if getattr(w, "extension", 0) != "odd"]
)
def test_above_one_weightings_of_probabilities_are_the_identity(weighting):
    if not isinstance(weighting, Power):
        assert weighting(np.array([1.5, 40.0])) == pytest.approx([1.5, 40.0])


def test_prelec_weight_by_hand():
    assert prelec_weight(math.exp(-4), alpha=0.5, beta=3) == pytest.approx(math.exp(-6))
    assert prelec_weight(math.exp(4), alpha=0.5, beta=3) == pytest.approx(math.exp(4))
    odd = prelec_weight(math.exp(4), alpha=0.5, beta=3, extension="odd")
    assert odd == pytest.approx(math.exp(6))


def entropy(weighting, pmf):
    with np.errstate(divide="ignore"):
        return entropy_term(weighting, np.log(pmf)).sum()


@pytest.mark.parametrize(
    ("weighting", "n_outcomes", "more_even"),
    [
        (Prelec(5.0, prelec_beta(5.0, 512)), 512, 143),
        (TverskyKahneman(3.0), 512, 2),
        (LinearInLogOdds(3.0, 1.0), 512, 2),
        (Power(3.0), 512, 2),
    ],
    ids=str,
)
def test_the_uniform_pmf_is_not_maximal_for_every_weighting(weighting, n_outcomes, more_even):
    uniform = np.full(n_outcomes, 1 / n_outcomes)
    concentrated = np.zeros(n_outcomes)
    concentrated[:more_even] = 1 / more_even
    assert entropy(weighting, concentrated) > 1.1 * entropy(weighting, uniform)


def test_entropies_are_continuous_and_ignore_impossible_outcomes():
    """Two of the Shannon-Khinchin axioms (Amigo et al. 2018)."""
    pmf = np.array([0.5, 0.3, 0.2])
    for weighting in WEIGHTINGS:
        assert entropy(weighting, np.append(pmf, 0)) == entropy(weighting, pmf)
        shifted = pmf + np.array([1e-13, -1e-13, 0])
        assert entropy(weighting, shifted) == pytest.approx(entropy(weighting, pmf), abs=1e-9)


def test_entropy_term_of_a_plain_function_is_that_of_its_weighting():
    log_p = np.array([-np.inf, -3.0, -0.1, 0.2])
    plain = entropy_term(lambda p: p**2, log_p, 0.5)
    np.testing.assert_allclose(plain, entropy_term(Power(2.0), log_p, 0.5), rtol=1e-13)
    assert plain[0] == 0


@pytest.mark.parametrize("alpha", [0, -1.0, math.nan, math.inf])
def test_alpha_outside_its_range(alpha):
    with pytest.raises(ValueError, match="alpha must be positive"):
        prelec_beta(alpha, 512)
    with pytest.raises(ValueError, match="alpha must be positive"):
        Prelec(alpha)


def test_messages():
    with pytest.raises(ValueError, match="n_outcomes must be at least 2, got 1"):
        prelec_beta(0.5, 1)
    with pytest.raises(ValueError, match=r"p must be at least 0 everywhere, got -0\.1"):
        prelec_weight([0.2, -0.1], alpha=0.5)
    with pytest.raises(ValueError, match="p must be at least 0 everywhere, got nan"):
        prelec_weight(math.nan, alpha=0.5)
    with pytest.raises(ValueError, match="extension must be one of"):
        Prelec(0.5, extension="even")
    with pytest.raises(ValueError, match=r"gamma must exceed about 0\.2792"):
        TverskyKahneman(0.279)
