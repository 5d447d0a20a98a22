import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, gammaln

from belib.estimators import (
    behavioral_entropy_knn,
    generalized_behavioral_entropy_knn,
    knn_log_density,
    renyi_entropy_knn,
    shannon_entropy_knn,
    twiced,
)
from belib.weighting import LinearInLogOdds, Power, Prelec, TverskyKahneman, prelec_beta

ESTIMATORS = [
    shannon_entropy_knn,
    lambda x, **o: renyi_entropy_knn(x, q=0.5, **o),
    lambda x, **o: renyi_entropy_knn(x, q=3.0, **o),
    lambda x, **o: behavioral_entropy_knn(x, alpha=0.5, **o),
    lambda x, **o: behavioral_entropy_knn(x, alpha=2.0, correction=None, **o),
    lambda x, **o: generalized_behavioral_entropy_knn(x, weighting=TverskyKahneman(), **o),
]


def test_by_hand():
    """Points 0, 1, 3, 7 with k = 1: R = 1, 1, 2, 4 and balls of length 2R."""
    x = [0, 1, 3, 7]
    lengths = np.array([2.0, 2, 4, 8])
    np.testing.assert_allclose(knn_log_density(x, k=1), -np.log(4 * lengths))
    estimate, kozachenko = shannon_entropy_knn(x, k=1), np.log(3 * lengths) + np.euler_gamma
    assert (estimate.value, estimate.n) == (pytest.approx(kozachenko.mean()), 4)
    assert math.isnan(estimate.standard_error)  # four samples cannot be divided
    u = np.log(4 * lengths)
    plug_in = behavioral_entropy_knn(x, alpha=2, beta=0.3, k=1, correction=None)
    paper = 0.3 * u**2 * np.exp(-0.3 * u**2) * (4 * lengths)
    assert plug_in.value == pytest.approx(paper.mean(), rel=1e-13)


@pytest.mark.parametrize(("k", "d"), [(1, 1), (3, 2), (12, 5)])
def test_at_alpha_and_beta_one_the_iterated_correction_is_kozachenko_leonenko(k, d):
    x = np.random.default_rng(1).normal(size=(500, d)) * 3
    distance = np.sort(np.linalg.norm(x[:, None] - x[None], axis=-1), axis=1)[:, k]
    log_v = d * np.log(distance) + d / 2 * math.log(math.pi) - gammaln(d / 2 + 1)
    kozachenko = math.log(499) - digamma(k) + log_v
    for estimator, options in ((shannon_entropy_knn, {}), (behavioral_entropy_knn, {"alpha": 1})):
        estimate = estimator(x, k=k, **options)
        np.testing.assert_allclose(estimate.local_values, kozachenko, rtol=0, atol=1e-12)


def test_at_alpha_one_the_iterated_correction_is_nearly_the_unbiased_one():
    """phi = beta Gamma(k) / Gamma(k + 1 - beta) v^(1 - beta) (log v - psi(k + 1 - beta))."""
    x, k, beta = 8 * np.random.default_rng(2).uniform(size=20_000), 5, 0.8
    u = shannon_entropy_knn(x, k=k).local_values
    log_v, factor = u + digamma(k), beta * math.exp(gammaln(k) - gammaln(k + 1 - beta))
    unbiased = factor * np.exp((1 - beta) * log_v) * (log_v - digamma(k + 1 - beta))
    exact = behavioral_entropy_knn(x, alpha=1.0, beta=beta, k=k, extension="odd")
    np.testing.assert_allclose(exact.local_values, unbiased, rtol=1e-12)
    iterated = twiced(lambda u: beta * u * np.exp((1 - beta) * u), u, k)
    plug_in = behavioral_entropy_knn(x, alpha=1.0, beta=beta, k=k, extension="odd", correction=None)
    error = abs(iterated.mean() - unbiased.mean())
    assert error < 2e-4
    assert error < abs(plug_in.value - unbiased.mean()) / 100


def test_steep_powers_are_unbiased():
    """On U[0, 2], where f = 1/2; the iterated correction would multiply the bias."""
    samples = np.random.default_rng(2).uniform(0, 2, (20, 2000))
    values = [generalized_behavioral_entropy_knn(x, weighting=Power(3.0)).value for x in samples]
    truth = 2 * 0.5**3 * 3 * math.log(2)
    assert np.mean(values) == pytest.approx(truth, abs=4 * np.std(values) / math.sqrt(20))
    with pytest.raises(ValueError, match=r"exponent must be below k \+ 1 = 6 .*, got 6"):
        generalized_behavioral_entropy_knn(samples[0], weighting=Power(6.0))


def test_dropped_duplicates_leave_the_order():
    x = NORMAL[:50]
    kept = knn_log_density(np.concatenate([x, x[::2]]), duplicates="drop")
    np.testing.assert_array_equal(kept, knn_log_density(x))


NORMAL_3, BETA = stats.truncnorm(-3, 3), stats.beta(2, 2, scale=4)
# estimators.md, table D: bias and n Var at k = 5 and n = 10,000, iterated (J = 2).
TABLE_D = [
    (NORMAL_3, 1, 0.5, 0.664177, 0.0109, 0.12),
    (NORMAL_3, 1, 2.0, 1.348741, -0.0014, 1.71),
    (BETA, 2, 0.5, 0.982995, -0.0046, 0.08),
    (BETA, 2, 2.0, 4.606476, 0.0071, 8.29),
]


@pytest.mark.parametrize(("density", "d", "alpha", "truth", "bias", "n_var"), TABLE_D)
def test_within_five_standard_deviations_of_the_table(density, d, alpha, truth, bias, n_var):
    x = density.rvs((10_000, d), random_state=np.random.default_rng(7))
    estimate = behavioral_entropy_knn(x, alpha=alpha, beta=prelec_beta(alpha, 512)).value
    assert abs(estimate - truth - bias) < 5 * math.sqrt(n_var / 10_000)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_invariances(estimator):
    x = np.random.default_rng(3).normal(size=(400, 3))
    value = estimator(x).value
    rotation = stats.ortho_group.rvs(3, random_state=np.random.default_rng(4))
    assert estimator(x + 5).value == pytest.approx(value, rel=1e-9)
    assert estimator(x @ rotation).value == pytest.approx(value, rel=1e-9)
    repeated = estimator(np.tile(x[::-1], (2, 1)), duplicates="drop")
    assert (repeated.n, repeated.value) == (400, pytest.approx(value, rel=1e-12))


def test_support_removes_the_bias_of_a_boundary():
    x = np.random.default_rng(8).uniform(0, 8 ** (1 / 4), size=(3000, 4))
    free = shannon_entropy_knn(x).value - math.log(8)
    boxed = shannon_entropy_knn(x, support=(0, 8 ** (1 / 4))).value - math.log(8)
    assert free > 0.1  # estimators.md: 0.27 at n = 2,000
    assert abs(boxed) < 0.05


@pytest.mark.parametrize(
    "weighting",
    [
        *(TverskyKahneman(), LinearInLogOdds(), Power(0.7), lambda f: f**2),
        *(Prelec(0.7), Prelec(0.7, extension="odd")),
    ],
)
def test_uniform_samples(weighting):
    """U[0, 8]: the entropy is -8 w(1/8) log w(1/8), and Renyi's is log 8."""
    x, w = 8 * np.random.default_rng(9).uniform(size=20_000), weighting(1 / 8)
    estimate = generalized_behavioral_entropy_knn(x, weighting=weighting)
    assert estimate.value == pytest.approx(-8 * w * math.log(w), abs=0.02)
    for q in (0.5, 3.0):
        estimate = renyi_entropy_knn(x, q=q)
        assert estimate.value == pytest.approx(math.log(8), abs=5 * estimate.standard_error)
        assert estimate.local_values.mean() == pytest.approx(estimate.value)


@pytest.mark.parametrize("n", [200, 1000])
def test_standard_errors_are_the_spread_of_estimates(n):
    samples = np.random.default_rng(11).normal(size=(60, n, 2))
    estimates = [shannon_entropy_knn(x) for x in samples]
    errors = [estimate.standard_error for estimate in estimates]
    spread = np.std([estimate.value for estimate in estimates], ddof=1)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(spread, rel=0.3)


def test_high_dimensions_stay_in_log_space():
    """The unit ball's volume is e^-864 at d = 512, and its float64 is 0."""
    x = np.random.default_rng(10).normal(size=(400, 512))
    estimate = shannon_entropy_knn(x)
    assert 700 < estimate.value < 1000
    assert np.isfinite(knn_log_density(x)).all()
    scaled = behavioral_entropy_knn(x, alpha=0.5, reference_volume=math.exp(600))
    assert np.isfinite(scaled.value)
    with pytest.raises(ValueError, match=r"over- or underflows float64.*reference_volume near"):
        behavioral_entropy_knn(x, alpha=0.5)


NORMAL = np.random.default_rng(12).normal(size=(1000, 2))


@pytest.mark.parametrize("estimator", [*ESTIMATORS, knn_log_density])
@pytest.mark.parametrize(
    ("samples", "match"),
    [
        ([[1, 2], [3, np.nan]], r"samples must be finite, got nan at index \[1, 1\]"),
        (NORMAL.reshape(10, 100, 2), r"shape \(n > k = 5, d\), got \(10, 100, 2\)"),
        (NORMAL[:5], r"shape \(n > k = 5, d\), got \(5, 2\)"),
        (np.tile(NORMAL[:100], (10, 1)), "got 900 duplicates among 1000"),
        (NORMAL * [1, 0], r"columns \[1\] are constant"),
    ],
)
def test_hostile_samples(estimator, samples, match):
    with pytest.raises(ValueError, match=match):
        estimator(samples, k=5)


@pytest.mark.parametrize(
    ("estimator", "options", "match"),
    [
        (shannon_entropy_knn, {"correction": "psi"}, r"correction must be one of .* got 'psi'"),
        (renyi_entropy_knn, {"q": 4, "k": 3}, r"q must be above 0 and below k \+ 1 = 4, got 4"),
        (shannon_entropy_knn, {"duplicates": "keep"}, "duplicates must be one of .* got 'keep'"),
        (shannon_entropy_knn, {"support": (-1, 1)}, "must lie in support"),
        (shannon_entropy_knn, {"support": (3, -3)}, "support must be"),
        (shannon_entropy_knn, {"support": (math.nan, 9)}, "support must be"),
        (behavioral_entropy_knn, {"alpha": 2, "extension": "odd"}, "correction must be None"),
    ],
)
def test_parameters_out_of_range(estimator, options, match):
    with pytest.raises(ValueError, match=match):
        estimator(NORMAL, **options)


# With beta = 1 and alpha >= 1.5, or conditioned beta and alpha <= 0.5, bias exceeds the interval.
COVERED = [(0.5, 1.0, 1.951796), (1.0, 1.0, 1.402904)]
COVERED += [(2.0, prelec_beta(2.0, 512), 1.348741), (5.0, prelec_beta(5.0, 512), 0.609611)]


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "beta", "truth"), COVERED)
def test_coverage_of_the_interval(alpha, beta, truth):
    """200 intervals of 95 % at n = 2,000 cover the truth in 90 to 97 % of the repetitions."""
    covered = 0
    for seed in range(200):
        samples = NORMAL_3.rvs((2000, 1), random_state=np.random.default_rng(seed))
        estimate = behavioral_entropy_knn(samples, alpha=alpha, beta=beta)
        covered += abs(estimate.value - truth) < 1.96 * estimate.standard_error
    assert 0.90 <= covered / 200 <= 0.97
