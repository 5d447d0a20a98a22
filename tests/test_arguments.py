"""Any array of numbers: the right value or a ValueError, and never anything else."""

import functools
import math
import multiprocessing
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from belib import entropy, estimators, rewards
from belib.arrays import real_array, whole_number
from belib.knn import knn_distances
from belib.weighting import Identity, LinearInLogOdds, Power, Prelec, TverskyKahneman, prelec_weight

SAMPLES = np.random.default_rng(0).normal(size=(60, 2))
PMF = np.array([0.5, 0.3, 0.2])

# Every public function of arrays, as a function of one array that it must accept or refuse.
FUNCTIONS = {
    "knn_distances": (lambda x: knn_distances(x, k=3), SAMPLES),
    "knn_density": (lambda x: estimators.knn_density(x, k=3), SAMPLES),
    "shannon_entropy_knn": (estimators.shannon_entropy_knn, SAMPLES),
    "renyi_entropy_knn": (lambda x: estimators.renyi_entropy_knn(x, q=0.5), SAMPLES),
    "behavioral_entropy_knn": (lambda x: estimators.behavioral_entropy_knn(x, alpha=0.5), SAMPLES),
    "naive": (lambda x: estimators.naive_behavioral_entropy_knn(x, alpha=0.5), SAMPLES),
    "support": (
        lambda x: estimators.shannon_entropy_knn(SAMPLES, support=(-9, x)),
        np.full(2, 9.0),
    ),
    "shannon_entropy": (entropy.shannon_entropy, PMF),
    "renyi_entropy": (lambda x: entropy.renyi_entropy(x, q=2.0), PMF),
    "behavioral_entropy": (lambda x: entropy.behavioral_entropy(x, alpha=0.5), PMF),
    "maximizing_pmf": (lambda x: entropy.maximizing_pmf(3, alpha=0.5, start=x), PMF),
    "prelec_weight": (lambda x: prelec_weight(x, alpha=0.5), PMF),
    "Prelec.log": (Prelec(0.5).log, np.log(PMF)),
    "TverskyKahneman": (TverskyKahneman(), PMF),
    "LinearInLogOdds": (LinearInLogOdds(), PMF),
    "Power": (Power(2.0), PMF),
    "Identity": (Identity(), PMF),
    "shannon_reward": (rewards.shannon_reward, PMF),
    "renyi_reward": (lambda x: rewards.renyi_reward(x, q=0.5), PMF),
    "behavioral_reward": (lambda x: rewards.behavioral_reward(x, alpha=0.5, beta=1.0), PMF),
    "exact": (
        lambda x: rewards.behavioral_reward_exact(x, alpha=0.5, beta=1.0, k=3, n=9, d=2).log,
        PMF,
    ),
}
WRONG = {
    "masked": (lambda x: np.ma.masked_equal(x, x.flat[0]), "masked"),
    "a list of masked": (lambda x: [np.ma.masked_equal(x, x.flat[0])], "masked"),
    "complex": (lambda x: x + 1j, "real numbers, got complex128"),
    "complex of no imaginary part": (lambda x: x + 0j, "real numbers, got complex128"),
    "text": (lambda x: x.astype(str), "real numbers, got <U"),
    "objects": (lambda x: np.where(x == x.flat[0], None, x), "real numbers, got object"),
    "dates": (lambda x: x.astype("datetime64[s]"), "real numbers, got datetime64"),
    "ragged": (lambda x: [x.tolist(), [1.0]], "array of numbers"),
    "large integers": (lambda x: np.full(x.shape, 2**60), "2\\^53"),
    "complex tensor": (lambda x: torch.tensor(x) + 1j, r"got (torch\.)?complex"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_no_array_of_real_numbers_is_refused(name, wrong):
    function, right = FUNCTIONS[name]
    spoil, message = WRONG[wrong]
    with pytest.raises(ValueError, match=message):
        function(spoil(right))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_that_numpy_makes_an_array_of_gives_the_same(name):
    function, right = FUNCTIONS[name]

    def value(x):
        found = function(x)
        return np.asarray(getattr(found, "value", found))

    forms = [right.tolist(), np.asfortranarray(right), np.ma.array(right), torch.tensor(right)]
    index = range(9, 9 + len(right))
    forms.append((pd.DataFrame if right.ndim == 2 else pd.Series)(right, index=index))
    for form in forms:
        np.testing.assert_allclose(value(form), value(right), rtol=1e-14)
    single = right.astype(np.float32)
    np.testing.assert_allclose(value(single), value(single.astype(np.float64)), rtol=2e-5)


def test_the_checks_by_hand():
    assert real_array("x", [True, 2]).tolist() == [1.0, 2.0]
    assert real_array("x", torch.ones(2, requires_grad=True)).tolist() == [1.0, 1.0]
    assert real_array("x", 2**53).tolist() == 2.0**53
    with pytest.raises(ValueError, match=r"x must have 2 axes, got shape \(2,\)"):
        real_array("x", [1, 2], ndim=2)
    with pytest.raises(ValueError, match=r"x must be finite, got nan at index \[1, 0\]"):
        real_array("x", [[1.0], [math.nan]])
    assert type(whole_number("k", np.int32(3))) is int
    for value in (3.0, True, "3", None, np.bool_(1), [3]):
        with pytest.raises(ValueError, match="k must be an integer, got"):
            whole_number("k", value)
    with pytest.raises(ValueError, match="k must be between 1 and 5, got 6"):
        whole_number("k", 6, least=1, most=5)


NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=32)
POINTS = arrays.arrays(
    st.sampled_from([np.float32, np.float64]),
    st.tuples(st.integers(2, 12), st.sampled_from([1, 2, 9, 24])),
    elements=st.one_of(NUMBERS, st.sampled_from([0.0, 1.0, 1e3, 1e-3, 1e8, 1e-30, -1e30])),
)


def distances_by_hand(points, k):
    """By `math.dist`, which neither over- nor underflows."""
    rows = points.astype(np.float64).tolist()
    apart = [
        sorted(math.dist(a, b) for j, b in enumerate(rows) if j != i) for i, a in enumerate(rows)
    ]
    return np.array(apart)[:, :k]


@settings(deadline=None, max_examples=150, derandomize=True)
@given(points=POINTS, k=st.integers(1, 5), as_tensor=st.booleans())
def test_distances_are_right_or_refused(points, k, as_tensor):
    x = torch.tensor(points) if as_tensor else points
    if k >= len(points):
        with pytest.raises(ValueError, match="k must be between"):
            knn_distances(x, k=k)
        return
    with np.errstate(over="ignore"):
        expected = distances_by_hand(points, k).astype(points.dtype if as_tensor else np.float64)
    try:
        found = np.asarray(knn_distances(x, k=k))
    except ValueError:  # beyond what floats hold, or their squares
        tiny = (expected[expected > 0].min(initial=1) / np.abs(points).max()) < 1e-149
        assert tiny or not np.isfinite(expected).all()
        return
    np.testing.assert_array_equal(found == 0, expected == 0)
    rtol = 1e-4 if as_tensor and points.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-44)


def two_scales():
    x = 0.1 * np.random.default_rng(0).normal(size=(512, 24))
    x[::2] += 1000
    return x


def duplicates_and_one_far():
    x = np.repeat(np.random.default_rng(0).normal(size=(50, 24)), 2, axis=0)
    return np.append(x, np.full((1, 24), 1e8), axis=0)


@pytest.mark.parametrize("make", [two_scales, duplicates_and_one_far])
@pytest.mark.parametrize("gpu", [False, True])
def test_tensors_of_two_scales_are_searched_as_exactly_as_others(make, gpu, monkeypatch):
    monkeypatch.setattr("belib.knn._on_gpu", lambda x: gpu)
    points = make().astype(np.float32)
    expected = distances_by_hand(points, 5)
    for x in (torch.tensor(points), torch.tensor(points)[None].expand(2, -1, -1), points):
        found = np.asarray(knn_distances(x, k=5)).reshape(-1, *expected.shape)[-1]
        np.testing.assert_allclose(found, expected, rtol=1e-4)
        assert ((found == 0) == (expected == 0)).all()


def test_ordinary_points_need_no_second_search(monkeypatch):
    """The bound of the product's errors is tight enough that differences are rarely asked."""
    x = torch.tanh(torch.randn(4, 256, 128, generator=torch.Generator().manual_seed(0)))
    asked = []
    monkeypatch.setattr("belib.knn._undecided", lambda points, rows, k: asked.extend(rows))
    knn_distances(x, k=12)
    assert not asked


def test_gradients_reach_the_points_and_are_finite_at_duplicates():
    x = torch.randn(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x.requires_grad_()
    assert torch.autograd.gradcheck(lambda y: knn_distances(y, k=3), x)
    assert torch.autograd.gradcheck(lambda y: knn_distances(y, k=3, exclude_self=False), x)
    with torch.no_grad():
        x[3] = x[4]
    knn_distances(x, k=3).mean().backward()
    assert x.grad.isfinite().all()
    assert torch.equal(knn_distances(x, k=3).detach(), knn_distances(x.detach(), k=3))


def test_shapes_and_kinds_that_no_search_takes():
    wrong = [np.zeros(5), np.zeros((2, 3, 4)), np.zeros((5, 0)), np.float64(1), "points", None]
    wrong += [torch.zeros(5), torch.zeros(2, 2, 3, 4), torch.zeros(5, 2, dtype=torch.int64)]
    for x in wrong:
        with pytest.raises(ValueError, match="x must"):
            knn_distances(x, k=1)
    assert knn_distances([[0.0], [1.0], [3.0]], k=np.int64(1)).tolist() == [[1], [1], [2]]


ENTROPIES = {
    "shannon": estimators.shannon_entropy_knn,
    "renyi 0.5": functools.partial(estimators.renyi_entropy_knn, q=0.5),
    "behavioral 0.5": functools.partial(estimators.behavioral_entropy_knn, alpha=0.5),
    "behavioral 2": functools.partial(estimators.behavioral_entropy_knn, alpha=2.0),
}


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    name=st.sampled_from(sorted(ENTROPIES)),
    scale=st.sampled_from([1e-300, 1e-150, 1e-9, 1.0, 1e9, 1e150, 1e300]),
    d=st.sampled_from([1, 3, 12]),
    kind=st.sampled_from([np.float32, np.float64]),
    duplicates=st.sampled_from(["raise", "drop", "jitter"]),
    equal=st.booleans(),
)
@example(name="shannon", scale=1e300, d=3, kind=np.float64, duplicates="jitter", equal=True)
def test_entropies_follow_the_scale_or_are_refused(name, scale, d, kind, duplicates, equal):
    """H of c X with reference volume c^d is H of X."""
    x = np.random.default_rng(1).normal(size=(80, d))
    if equal:
        x[7] = x[8]
    with np.errstate(all="ignore"):
        scaled, volume = (x * scale).astype(kind), float(np.power(scale, d))
    try:
        found = ENTROPIES[name](scaled, duplicates=duplicates, reference_volume=volume)
    except ValueError:
        in_range = np.isfinite(scaled).all() and 1e-300 < volume < 1e300
        assert (equal and duplicates == "raise") or not in_range or kind == np.float32
        return
    expected = ENTROPIES[name](x.astype(kind), duplicates=duplicates)
    assert found.value == pytest.approx(expected.value, rel=1e-3)


def test_estimates_go_to_other_processes_whole():
    samples = [np.random.default_rng(seed).normal(size=(200, 1)) for seed in range(3)]
    here = [estimators.renyi_entropy_knn(x, q=0.5) for x in samples]
    estimate = functools.partial(estimators.renyi_entropy_knn, q=0.5)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for one, other in zip(here, pool.map(estimate, samples), strict=True):
            assert (one.value, one.standard_error) == (other.value, other.standard_error)
    own = estimators.generalized_behavioral_entropy_knn(samples[0], weighting=lambda p: p)
    again = pickle.loads(pickle.dumps(own))
    assert again.standard_error == own.standard_error > 0
    assert (again.local_values == own.local_values).all()
    assert pickle.loads(pickle.dumps(again)).standard_error == own.standard_error


NEAR_ONE = [1, 1 + 2.3e-16, 1 - 1.2e-16, sum([0.1] * 10), 1 - 1e-14, 1 + 1e-12, 1 - 1e-9, 1 + 1e-6]


@pytest.mark.parametrize("q", NEAR_ONE)
def test_renyis_limit_is_smooth_from_both_sides(q):
    """dH/dq is of order 1, so that H_q differs from Shannon's by about as much as q from 1."""
    within = {"rel": 0, "abs": 1e-12 + 3 * abs(q - 1)}
    x = np.random.default_rng(0).normal(size=(500, 1))
    for k in (1, 5, 200):
        ours = estimators.renyi_entropy_knn(x, q=q, k=k)
        limit = estimators.shannon_entropy_knn(x, k=k)
        assert ours.value == pytest.approx(limit.value, **within)
        assert ours.local_values == pytest.approx(limit.local_values, rel=1e-9, abs=1e-4)
        assert ours.standard_error == pytest.approx(limit.standard_error, rel=1e-4, nan_ok=True)
    for pmf in (PMF, PMF.astype(np.float32), np.array([1.0, 0.0])):
        expected = entropy.shannon_entropy(pmf)
        assert entropy.renyi_entropy(pmf, q=q) == pytest.approx(expected, **within)
    found = entropy.differential_renyi_entropy(stats.norm.logpdf, [(-np.inf, np.inf)], q=q)
    assert found.value == pytest.approx(stats.norm.entropy(), rel=0, abs=1e-8 + abs(q - 1))
    assert found.error < 1e-8
    distance = np.array([0.0, 1e-300, 1e-8, 1.0, 1e4])
    for r in (distance, torch.tensor(distance), torch.tensor(distance, dtype=torch.float16)):
        ours, limit = rewards.renyi_reward(r, q=q), rewards.shannon_reward(r)
        np.testing.assert_allclose(ours, limit, rtol=3e-7 + 20 * abs(q - 1))


def test_both_forms_of_the_gamma_ratio_meet():
    for y in (1e-4, -1e-4):
        series, direct = (estimators._log_gamma_ratio(5, y * c) for c in (1 - 1e-9, 1 + 1e-9))
        assert series == pytest.approx(direct, abs=1e-14)


def test_extreme_orders_and_parameters():
    assert entropy.renyi_entropy(PMF, q=1e306) == pytest.approx(-math.log(0.5))
    assert entropy.renyi_entropy(PMF, q=1e-300) == pytest.approx(math.log(3))
    assert rewards.peak_distance(alpha=1.0001, beta=0.5) == math.inf
    assert rewards.peak_distance(alpha=3000.0, beta=0.5) < math.e
    assert 0 < rewards.peak_distance(alpha=1.1, beta=1e12) < 1e-9
    assert math.isnan(Prelec(1 + 1e-15, 1 + 1e-15).fixed_point)
    with pytest.raises(ValueError, match="alpha must give beta within floats, got 2000"):
        rewards.prelec_beta(2000.0, 512)


POSITIVE = "must be positive and finite"
INTEGER = "k must be an integer|k must be between 1 and 59 for 60 points, got -1"
PARAMETERS = [
    (f"alpha {POSITIVE}", Prelec),
    (f"alpha {POSITIVE}", lambda x: rewards.behavioral_reward(PMF, alpha=x, beta=1.0)),
    (f"beta {POSITIVE}", lambda x: rewards.behavioral_reward(PMF, alpha=1.0, beta=x)),
    ("c must be", lambda x: rewards.behavioral_reward(PMF, alpha=1.0, beta=1.0, c=x)),
    (f"q {POSITIVE}", lambda x: rewards.renyi_reward(PMF, q=x)),
    (f"q {POSITIVE}", lambda x: entropy.renyi_entropy(PMF, q=x)),
    ("q must be", lambda x: estimators.renyi_entropy_knn(SAMPLES, q=x)),
    ("q must be", lambda x: entropy.differential_renyi_entropy(stats.norm.logpdf, [(0, 1)], q=x)),
    (
        "reference_volume must be",
        lambda x: estimators.shannon_entropy_knn(SAMPLES, reference_volume=x),
    ),
    (INTEGER, lambda x: knn_distances(SAMPLES, k=x)),
    (INTEGER, lambda x: knn_distances(torch.tensor(SAMPLES), k=x)),
    (INTEGER, lambda x: estimators.shannon_entropy_knn(SAMPLES, k=x)),
    ("seed must be", lambda x: estimators.shannon_entropy_knn(SAMPLES, seed=x)),
    ("seed must be", lambda x: estimators.knn_density(SAMPLES, seed=x)),
]
NO_NUMBERS = ["2", None, [1.0, 2.0], np.array([0.5, 2.0]), 1j, math.nan, 0.0, -1]


@pytest.mark.parametrize(("message", "function"), PARAMETERS)
def test_parameters_that_are_no_numbers_are_refused_by_name(message, function):
    for value in NO_NUMBERS:
        with pytest.raises(ValueError, match=message):
            function(value)


def test_supports_and_axes_that_make_no_sense():
    for support in ((0, 1, 2), (3, -3), ([0, 0, 0], 9), ("a", "b"), (math.nan, 9)):
        with pytest.raises(ValueError, match="support must"):
            estimators.shannon_entropy_knn(SAMPLES, support=support)
    with pytest.raises(ValueError, match="axis must be an integer"):
        entropy.behavioral_entropy(PMF, alpha=0.5, axis=None)


def test_a_reward_of_negative_distances_is_refused():
    with pytest.raises(ValueError, match="distance must be at least 0, got -2"):
        rewards.shannon_reward([1.0, -2.0])
    with pytest.raises(ValueError, match=r"floating-point type, got torch\.int64"):
        rewards.shannon_reward(torch.ones(2, dtype=torch.int64))
    assert rewards.shannon_reward([1, 0]).tolist() == [math.log(2), 0.0]
