import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from belib.entropy import (
    behavioral_entropy,
    differential_behavioral_entropy,
    differential_generalized_entropy,
    largest_admissible_alpha,
    maximizing_pmf,
    renyi_entropy,
    shannon_entropy,
)
from belib.weighting import LinearInLogOdds, Power, TverskyKahneman

INF = math.inf
LINE, HALF = [(-INF, INF)], [(0, INF)]
ORACLES = json.loads(
    (Path(__file__).parent / "data/differential_behavioral_entropy.json").read_text()
)


def log_density_and_bounds(case):
    """The log density of an oracle's case, and its box."""
    name, d, params = case["density"], case["d"] or 1, case["params"]
    density = {
        "uniform": lambda: stats.uniform(0, params["volume"]),
        "exponential": stats.expon,
        "gaussian": lambda: stats.norm(0, params["sigma"]),
        "truncnorm[-3,3]": lambda: stats.truncnorm(-3, 3),
        "beta22": lambda: stats.beta(2, 2, scale=params["scale"]),
    }[name.split("_")[0]]()
    log_density = density.logpdf if d == 1 else lambda x: density.logpdf(x).sum(-1)
    return log_density, [density.support()] * d


CASES = [case for case in ORACLES["cases"] if case["d"] != 4]


@pytest.mark.parametrize("step", [29, pytest.param(1, marks=pytest.mark.slow)])
def test_oracles(step):
    assert len(CASES) == 182 + 84
    for case in CASES[::step]:
        options = {key: case[key] for key in ("alpha", "beta")}
        options["extension"] = "odd" if case["extension"] == "odd" else "identity"
        entropy = differential_behavioral_entropy(*log_density_and_bounds(case), **options)
        assert entropy.value == pytest.approx(case["value"], rel=1e-8, abs=1e-8), case
        assert 0 <= entropy.error <= 1e-8 * max(1, abs(case["value"])), case


def line(density):
    return density.logpdf, [density.support()], density.entropy()


CORRELATED = stats.multivariate_normal([1, -2], [[1, 0.5], [0.5, 1]])
TWO_CAUCHYS = lambda x: stats.cauchy.logpdf(x).sum(-1)  # noqa: E731
SHANNON = {
    "far": line(stats.norm(500, 1)),
    "narrow": line(stats.norm(3, 1e-2)),
    "Cauchy": line(stats.cauchy(1000)),
    "lognormal": line(stats.lognorm(0.5)),
    "pole at 0": line(stats.beta(0.3, 1)),
    "box": line(stats.uniform(0, 2)),
    "correlated": (CORRELATED.logpdf, LINE * 2, CORRELATED.entropy()),
    "two Cauchys": (TWO_CAUCHYS, LINE * 2, 2 * math.log(4 * math.pi)),
}


@pytest.mark.parametrize("name", SHANNON)
def test_shannon_entropies_in_closed_form(name):
    log_density, bounds, truth = SHANNON[name]
    entropy = differential_behavioral_entropy(log_density, bounds, alpha=1.0)
    assert entropy.value == pytest.approx(truth, abs=1e-8)
    assert entropy.error < 1e-8


@pytest.mark.parametrize("alpha", [0.1, 0.2, 0.7, 2.0])
def test_gaussian_tails_where_the_density_underflows(alpha):
    """N(mu, sigma^2), sigma = 1 / sqrt(2 pi): beta^(-1/2a) Gamma(1 + 1/2a) / (2a Gamma(3/2))."""
    m = 1 / (2 * alpha)
    truth = m * math.gamma(1 + m) / math.gamma(1.5)
    normal = stats.norm(7, 1 / math.sqrt(2 * math.pi))
    entropy = differential_behavioral_entropy(normal.logpdf, LINE, alpha=alpha)
    assert entropy.value == pytest.approx(truth, rel=1e-8)


def test_generalized_entropies_agree_where_they_should():
    log_density, bounds = log_density_and_bounds(ORACLES["cases"][-1])
    odd = {"alpha": 1.0, "beta": 1.7, "extension": "odd"}
    expected = differential_behavioral_entropy(log_density, bounds, **odd).value
    for weighting in (Power(1.7), lambda f: f**1.7):
        power = differential_generalized_entropy(log_density, bounds, weighting=weighting)
        assert power.value == pytest.approx(expected, abs=1e-9)
    for weighting in (TverskyKahneman(), LinearInLogOdds()):
        log_density, w = lambda x: np.full(x.shape[:-1], -math.log(8)), weighting(1 / 8)
        box = differential_generalized_entropy(log_density, [(0, 4), (1, 3)], weighting=weighting)
        assert box.value == pytest.approx(-8 * w * math.log(w))


def test_scaling_law():
    """x -> c x with v -> c v leaves the entropy as it is."""

    def entropy(c):
        options = {"alpha": 0.5, "beta": 0.7, "reference_volume": 0.3 * c}
        return differential_behavioral_entropy(stats.norm(scale=c).logpdf, LINE, **options).value

    assert entropy(1.0) == pytest.approx(entropy(100.0), rel=1e-9)


INFINITE = "is infinite, or cannot be resolved"


def with_a_far_peak(x):
    return np.logaddexp(np.log(0.9995) + stats.norm.logpdf(x), stats.norm(20, 0.1).logpdf(x) - 7.6)


@pytest.mark.parametrize(
    ("log_density", "bounds", "options", "match"),
    [
        (stats.cauchy.logpdf, LINE, {"alpha": 0.5}, f"alpha=0.5.* {INFINITE}"),
        (stats.t(3).logpdf, LINE, {"alpha": 0.5}, INFINITE),
        (stats.lognorm(1).logpdf, HALF, {"alpha": 0.5, "beta": 1.49}, INFINITE),
        (stats.gamma(0.5).logpdf, HALF, {"alpha": 2.0, "extension": "odd"}, INFINITE),
        (stats.beta(0.5, 0.5).logpdf, [(0, 1)], {"alpha": 1.0}, r"infinite only at x = 0\)"),
        (stats.norm.logpdf, HALF, {"alpha": 1.0}, "must integrate to 1, got 0.5"),
        (with_a_far_peak, LINE, {"alpha": 1.0}, "must integrate to 1, got 0.9995"),
        (stats.beta(2, 2).pdf, [(0, 1)], {"alpha": 1.0}, "give its logarithm"),
        (stats.norm.logpdf, LINE * 2, {"alpha": 1.0}, "cannot reshape"),
        (stats.norm.logpdf, [(0, 1)] * 3, {"alpha": 1.0}, "bounds must be 1 or 2 pairs low < high"),
    ],
)
def test_refusals(log_density, bounds, options, match):
    with pytest.raises(ValueError, match=match):
        differential_behavioral_entropy(log_density, bounds, **options)


def pmfs(n_outcomes, count=200):
    return np.random.default_rng(0).dirichlet(np.full(n_outcomes, 0.5), size=count)


@pytest.mark.parametrize(
    ("alpha", "n_outcomes"),
    [(a, m) for m in (2, 16, 512) for a in (0.2, 0.7, 1)] + [(3, 2), (8, 2)],
)
def test_uniform_is_maximal_for_alpha_up_to_one_and_for_two_outcomes(alpha, n_outcomes):
    uniform = behavioral_entropy(np.full(n_outcomes, 1 / n_outcomes), alpha=alpha)
    assert uniform == pytest.approx(math.log(n_outcomes))
    assert (behavioral_entropy(pmfs(n_outcomes), alpha=alpha) <= uniform).all()


@pytest.mark.parametrize(
    "entropy",
    [
        shannon_entropy,
        lambda pmf: renyi_entropy(pmf, q=0.5),
        lambda pmf: renyi_entropy(pmf, q=2.0),
        lambda pmf: behavioral_entropy(pmf, alpha=0.5, beta=1.3),
        lambda pmf: behavioral_entropy(pmf, alpha=3.0, beta=0.7),
    ],
)
def test_permutations_and_impossible_outcomes_change_nothing(entropy):
    pmf = pmfs(7)
    before = entropy(pmf)
    np.testing.assert_allclose(entropy(pmf[:, ::-1]), before, rtol=1e-13)
    np.testing.assert_allclose(entropy(np.pad(pmf, ((0, 0), (0, 3)))), before, rtol=1e-13)
    assert entropy(np.array([0, 1.0, 0])) == pytest.approx(0, abs=1e-15)


def test_limits_and_order_of_renyi():
    """At q = 0.9 the formula changes; test_arguments.py has the limit at q = 1."""
    pmf = pmfs(9)
    below, above = (renyi_entropy(pmf, q=0.9 + step) for step in (-1e-12, 1e-12))
    np.testing.assert_allclose(below, above, rtol=1e-9)
    np.testing.assert_allclose(renyi_entropy(pmf, q=INF), -np.log(pmf.max(1)))
    orders = np.array([renyi_entropy(pmf, q=q) for q in (0.1, 0.5, 0.95, 1, 1.05, 2, 5, INF)])
    assert (np.diff(orders, axis=0) <= 1e-12).all()
    assert renyi_entropy(pmf[0], q=1e306) == pytest.approx(-math.log(pmf[0].max()))


def test_behavioral_recovers_shannon_and_continues_in_alpha():
    pmf = pmfs(12)
    for alpha in (1, 1 + 1e-9):
        entropies = behavioral_entropy(pmf, alpha=alpha, beta=1)
        np.testing.assert_allclose(entropies, shannon_entropy(pmf), rtol=1e-6)
    by_column = behavioral_entropy(pmf.T, alpha=0.5, axis=0)
    np.testing.assert_allclose(by_column, behavioral_entropy(pmf, alpha=0.5))


def test_what_is_no_pmf():
    with pytest.raises(ValueError, match=r"pmf must sum to 1 along axis -1, got 0\.9"):
        shannon_entropy([0.5, 0.4])
    with pytest.raises(ValueError, match=r"pmf must be at least 0 everywhere, got -0\.5"):
        behavioral_entropy([1.5, -0.5], alpha=1)
    with pytest.raises(ValueError, match="axis must be an integer"):
        behavioral_entropy([0.5, 0.5], alpha=1, axis=None)


@pytest.mark.parametrize("n_outcomes", [6, 16, 512])
def test_above_the_largest_admissible_alpha_a_part_beats_the_whole(n_outcomes):
    limit = largest_admissible_alpha(n_outcomes)
    size = np.arange(1, n_outcomes + 1)
    uniform = np.tril(np.ones((n_outcomes, n_outcomes))) / size[:, None]
    for alpha, beaten in ((limit - 1e-3, False), (limit + 1e-3, True)):
        entropies = behavioral_entropy(uniform, alpha=alpha)
        assert (entropies[:-1].max() > entropies[-1]) == beaten
    assert largest_admissible_alpha(2) == largest_admissible_alpha(5) == INF


def test_the_maximizing_pmf_is_uniform_on_all_or_drops_the_least_probable_outcome():
    np.testing.assert_allclose(maximizing_pmf(6, alpha=3.3), np.full(6, 1 / 6), atol=1e-3)
    start = np.array([0.1, 0.3, 0.02, 0.2, 0.2, 0.18])
    pmf = maximizing_pmf(6, alpha=5.0, start=start)
    np.testing.assert_allclose(pmf, [0.2, 0.2, 0, 0.2, 0.2, 0.2], atol=1e-3)
    others = behavioral_entropy(pmfs(6, 20_000), alpha=5.0)
    assert behavioral_entropy(pmf, alpha=5.0) >= others.max()
