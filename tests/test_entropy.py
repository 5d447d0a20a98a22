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
    differential_renyi_entropy,
    differential_shannon_entropy,
    largest_admissible_alpha,
    renyi_entropy,
    shannon_entropy,
)
from belib.weighting import LinearInLogOdds, Power, TverskyKahneman, prelec_beta

INF = math.inf
LINE = [(-INF, INF)]
ORACLES = json.loads(
    (Path(__file__).parent / "data/differential_behavioral_entropy.json").read_text()
)


def density_and_bounds(case):
    """The density of an oracle case as a function of (..., d), and its box."""
    name, d, params = case["density"], case["d"] or 1, case["params"]
    if name == "uniform_box":
        volume = params["volume"]
        return lambda x: np.full(x.shape[:-1], 1 / volume), [(0, volume)] * d
    if name.startswith("exponential"):
        return lambda x: np.exp(-x.sum(-1)), [(0, INF)] * d
    if name.startswith("gaussian"):
        sigma = params["sigma"]
        norm = (2 * math.pi * sigma**2) ** (d / 2)
        return lambda x: np.exp(-np.square(x / sigma).sum(-1) / 2) / norm, LINE * d
    if name.startswith("truncnorm"):
        norm = (math.sqrt(2 * math.pi) * math.erf(3 / math.sqrt(2))) ** d
        return lambda x: np.exp(-np.square(x).sum(-1) / 2) / norm, [(-3, 3)] * d
    scale = params["scale"]
    return lambda x: (6 * (x / scale) * (1 - x / scale) / scale).prod(-1), [(0, scale)] * d


def check_oracle(case):
    found = differential_behavioral_entropy(
        *density_and_bounds(case),
        alpha=case["alpha"],
        beta=case["beta"],
        extension="odd" if case["extension"] == "odd" else "identity",
    )
    allowed = 1e-8 * max(1, abs(case["value"]))
    assert abs(found.value - case["value"]) <= allowed, case
    assert 0 <= found.error <= allowed, case


def test_oracles_of_one_dimension():
    for case in [case for case in ORACLES["cases"] if case["d"] in (None, 1)][::6]:
        check_oracle(case)


def test_hard_oracles_of_two_dimensions():
    hard = [
        ("exponential_iid_rate1", 0.2, 1.0),
        ("gaussian_isotropic_sigma_1/sqrt(2pi)", 0.2, 1.0),
        ("beta22_scale1", 0.2, 1.0),
    ]
    for name, alpha, beta in hard:
        wanted = {"density": name, "d": 2, "alpha": alpha, "beta": beta}
        (case,) = [c for c in ORACLES["cases"] if wanted.items() <= c.items()]
        check_oracle(case)


@pytest.mark.slow
def test_every_oracle_of_one_and_two_dimensions():
    cases = [case for case in ORACLES["cases"] if case["d"] != 4]
    assert len(cases) == 182 + 84
    for case in cases:
        check_oracle(case)


SHANNON = {
    "far": (lambda x: stats.norm.pdf(x[..., 0], 500, 1), LINE, stats.norm.entropy()),
    "narrow": (lambda x: stats.norm.pdf(x[..., 0], 3, 1e-2), LINE, stats.norm(0, 1e-2).entropy()),
    "in a wide box": (lambda x: stats.norm.pdf(x[..., 0]), [(-100, 90)], stats.norm.entropy()),
    "cauchy": (lambda x: stats.cauchy.pdf(x[..., 0]), LINE, math.log(4 * math.pi)),
    "lognormal": (
        lambda x: stats.lognorm.pdf(x[..., 0], 0.5),
        [(0, INF)],
        stats.lognorm(0.5).entropy(),
    ),
    "laplace": (lambda x: np.exp(-np.abs(x[..., 0] - 0.3)) / 2, LINE, 1 + math.log(2)),
    "arcsine": (lambda x: stats.beta.pdf(x[..., 0], 0.5, 0.5), [(0, 1)], math.log(math.pi / 4)),
    "pole": (lambda x: 0.3 * (1 - x[..., 0]) ** -0.7, [(0, 1)], -math.log(0.3) - 0.7 / 0.3),
    "box within bounds": (lambda x: (np.abs(x[..., 0] - 1) < 1) / 2, LINE, math.log(2)),
    "correlated": (
        stats.multivariate_normal([1, -2], [[1, 0.5], [0.5, 1]]).pdf,
        LINE * 2,
        1 + math.log(2 * math.pi) + math.log(0.75) / 2,
    ),
    "half plane": (
        lambda x: np.exp(-x[..., 0]) * stats.norm.pdf(x[..., 1]),
        [(0, INF), (-INF, INF)],
        1 + stats.norm.entropy(),
    ),
    "cauchy squared": (lambda x: stats.cauchy.pdf(x).prod(-1), LINE * 2, 2 * math.log(4 * math.pi)),
}


@pytest.mark.parametrize("name", SHANNON)
def test_shannon_entropies_in_closed_form(name):
    density, bounds, truth = SHANNON[name]
    assert float(differential_shannon_entropy(density, bounds)) == pytest.approx(truth, abs=2e-8)
    if len(bounds) == 1:
        at_one = differential_behavioral_entropy(density, bounds, alpha=1.0)
        assert at_one.value == pytest.approx(truth, abs=2e-8)


@pytest.mark.parametrize("alpha", [0.2, 0.7, 2.0])
def test_gaussian_tails_beyond_the_range_of_float64(alpha):
    """N(mu, sigma^2), sigma = 1 / sqrt(2 pi): beta^(-1/2a) Gamma(1 + 1/2a) / (2a Gamma(3/2))."""
    sigma = 1 / math.sqrt(2 * math.pi)
    m = 1 / (2 * alpha)
    truth = m * math.gamma(1 + m) / math.gamma(1.5)
    found = differential_behavioral_entropy(
        lambda x: stats.norm.pdf(x[..., 0], 7, sigma), LINE, alpha=alpha
    )
    assert found.value == pytest.approx(truth, rel=1e-8)


def test_tails_of_a_strip_are_those_of_its_line():
    """U[0, 2] x N(0, 1): int h(f / 2) dx over the strip is twice that over the line."""
    strip = differential_behavioral_entropy(
        lambda x: stats.norm.pdf(x[..., 1]) / 2, [(0, 2), (-INF, INF)], alpha=0.4
    )
    line = differential_behavioral_entropy(
        lambda x: stats.norm.pdf(x[..., 0]), LINE, alpha=0.4, reference_volume=0.5
    )
    assert strip.value == pytest.approx(line.value, rel=1e-8)


def test_renyi_of_densities():
    gamma = 1 / (2 * math.sqrt(math.pi))
    density = lambda x: stats.norm.pdf(x[..., 0])  # noqa: E731
    assert differential_renyi_entropy(density, LINE, q=2.0).value == pytest.approx(-math.log(gamma))
    for q in (0.2, 3.0):
        truth = math.log(2 * math.pi) / 2 - math.log(q) / 2 / (1 - q)
        assert float(differential_renyi_entropy(density, LINE, q=q)) == pytest.approx(truth)
    assert float(differential_renyi_entropy(density, LINE, q=1)) == pytest.approx(
        stats.norm.entropy()
    )


def test_generalized_entropies_agree_where_they_should():
    density, bounds = density_and_bounds(ORACLES["cases"][-1])
    power = differential_generalized_entropy(density, bounds, weighting=Power(1.7))
    by_parts = differential_behavioral_entropy(
        density, bounds, alpha=1.0, beta=1.7, extension="odd"
    )
    assert power.value == pytest.approx(by_parts.value, abs=1e-9)
    plain = differential_generalized_entropy(density, bounds, weighting=lambda f: f**1.7)
    assert plain.value == pytest.approx(power.value, abs=1e-9)
    for weighting in (TverskyKahneman(), LinearInLogOdds()):
        uniform = differential_generalized_entropy(
            lambda x: np.full(x.shape[:-1], 1 / 8), [(0, 4), (1, 3)], weighting=weighting
        )
        w = weighting(1 / 8)
        assert uniform.value == pytest.approx(-8 * w * math.log(w))


@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_scaling_law(alpha):
    """x -> c x with v -> c v leaves the entropy as it is."""
    entropies = [
        differential_behavioral_entropy(
            lambda x, c=c: stats.norm.pdf(x[..., 0], scale=c),
            LINE,
            alpha=alpha,
            beta=prelec_beta(alpha, 512),
            reference_volume=0.3 * c,
        ).value
        for c in (0.01, 1.0, 100.0)
    ]
    np.testing.assert_allclose(entropies, entropies[1], rtol=1e-9)


@pytest.mark.parametrize(
    ("density", "bounds", "options", "match"),
    [
        (stats.cauchy.pdf, LINE, {"alpha": 0.5}, "alpha=0.5.* is infinite: the density's tail"),
        (stats.cauchy.pdf, LINE, {"alpha": 1.0, "beta": 0.4}, "alpha=1.0.* is infinite"),
        (stats.lognorm(1).pdf, [(0, INF)], {"alpha": 0.2}, "is infinite: the density's tail"),
        (
            stats.gamma(0.5).pdf,
            [(0, INF)],
            {"alpha": 2.0, "extension": "odd"},
            "is infinite: the density's pole at",
        ),
        (stats.weibull_min(0.7).pdf, [(0, INF)], {"alpha": 0.2}, "cannot be resolved"),
        (stats.norm.pdf, [(0, INF)], {"alpha": 1.0}, "must integrate to 1 .* found 0.5"),
    ],
)
def test_refusals(density, bounds, options, match):
    with pytest.raises(ValueError, match=match):
        differential_behavioral_entropy(lambda x: density(x[..., 0]), bounds, **options)


def test_messages_about_arguments():
    with pytest.raises(ValueError, match="density must map an array"):
        differential_shannon_entropy(lambda x: stats.norm.pdf(x), LINE * 2)
    with pytest.raises(ValueError, match="bounds must be 1 or 2 pairs low < high"):
        differential_shannon_entropy(lambda x: x[..., 0], [(0, 1)] * 3)
    with pytest.raises(ValueError, match="density must be at least 0, got -1"):
        differential_shannon_entropy(lambda x: -np.ones(len(x)), [(0, 1)])


def pmfs(n_outcomes, count=200, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(n_outcomes, 0.5), size=count)


@pytest.mark.parametrize(
    ("alpha", "n_outcomes"),
    [(a, m) for m in (2, 16, 512) for a in (0.2, 0.7, 1)] + [(3, 2), (8, 2)],
)
def test_uniform_is_maximal_for_alpha_up_to_one_and_for_two_outcomes(alpha, n_outcomes):
    uniform = behavioral_entropy(np.full(n_outcomes, 1 / n_outcomes), alpha=alpha)
    assert uniform == pytest.approx(math.log(n_outcomes))
    assert (behavioral_entropy(pmfs(n_outcomes), alpha=alpha) <= uniform).all()
    for m in range(1, n_outcomes):
        part = np.repeat([1 / m, 0.0], [m, n_outcomes - m])
        assert behavioral_entropy(part, alpha=alpha) <= uniform


def test_uniform_is_not_maximal_beyond():
    """estimators.md: 38.94 on 143 of 512 outcomes against log 512 = 6.24 at alpha = 5."""
    part = np.repeat([1 / 143, 0.0], [143, 369])
    assert behavioral_entropy(part, alpha=5.0) == pytest.approx(38.941, abs=1e-3)


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
    pmf = pmfs(9)
    np.testing.assert_allclose(renyi_entropy(pmf, q=1), shannon_entropy(pmf))
    for q in (1 - 1e-9, 1 + 1e-9):
        np.testing.assert_allclose(renyi_entropy(pmf, q=q), shannon_entropy(pmf), rtol=1e-6)
    np.testing.assert_allclose(
        renyi_entropy(pmf, q=0.9 - 1e-12), renyi_entropy(pmf, q=0.9 + 1e-12), rtol=1e-9
    )
    np.testing.assert_allclose(renyi_entropy(pmf, q=INF), -np.log(pmf.max(1)))
    orders = np.array([renyi_entropy(pmf, q=q) for q in (0.1, 0.5, 0.95, 1, 1.05, 2, 5, INF)])
    assert (np.diff(orders, axis=0) <= 1e-12).all()


def test_behavioral_recovers_shannon_and_continues_in_alpha():
    pmf = pmfs(12)
    np.testing.assert_allclose(behavioral_entropy(pmf, alpha=1, beta=1), shannon_entropy(pmf))
    np.testing.assert_allclose(
        behavioral_entropy(pmf, alpha=1 + 1e-9), shannon_entropy(pmf), rtol=1e-6
    )
    by_column = behavioral_entropy(pmf.T, alpha=0.5, axis=0)
    np.testing.assert_allclose(by_column, behavioral_entropy(pmf, alpha=0.5))


def test_messages_about_pmfs():
    with pytest.raises(ValueError, match=r"pmf must sum to 1 along axis -1, got 0\.9"):
        shannon_entropy([0.5, 0.4])
    with pytest.raises(ValueError, match=r"pmf must be at least 0 everywhere, got -0\.5"):
        behavioral_entropy([1.5, -0.5], alpha=1)
    with pytest.raises(ValueError, match="q must be positive and finite, got 0"):
        renyi_entropy([0.5, 0.5], q=0)


@pytest.mark.parametrize("n_outcomes", [8, 16, 64, 512])
def test_above_the_largest_admissible_alpha_a_part_beats_the_whole(n_outcomes):
    limit = largest_admissible_alpha(n_outcomes)
    size = np.arange(1, n_outcomes + 1)
    uniform = np.tril(np.ones((n_outcomes, n_outcomes))) / size[:, None]
    for alpha, beaten in ((limit - 1e-3, False), (limit + 1e-3, True)):
        entropies = behavioral_entropy(uniform, alpha=alpha)
        assert (entropies[:-1].max() > entropies[-1]) == beaten
    assert limit < math.log(n_outcomes) / (math.log(n_outcomes) - 1) + 0.3


def test_admissible_thresholds():
    known = {16: 1.592, 64: 1.318, 512: 1.191}
    for n_outcomes, alpha in known.items():
        assert largest_admissible_alpha(n_outcomes) == pytest.approx(alpha, abs=5e-4)
    assert largest_admissible_alpha(2) == largest_admissible_alpha(5) == INF
