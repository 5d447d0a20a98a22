"""Any array of numbers: the right value or a ValueError, and never anything else."""

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

from belib import entropy, estimators, rewards
from belib.arrays import real_array, whole_number
from belib.knn import knn_distances
from belib.weighting import Prelec, TverskyKahneman

SAMPLES = np.random.default_rng(0).normal(size=(60, 2))
PMF, HIGH = np.array([0.5, 0.3, 0.2]), np.full(2, 9.0)

# Every public function of arrays, as a function of one array that it must accept or refuse.
FUNCTIONS = {
    "knn": (lambda x: knn_distances(x, k=3), SAMPLES),
    "shannon_entropy_knn": (estimators.shannon_entropy_knn, SAMPLES),
    "renyi_entropy_knn": (partial(estimators.renyi_entropy_knn, q=0.5), SAMPLES),
    "behavioral_entropy_knn": (partial(estimators.behavioral_entropy_knn, alpha=0.5), SAMPLES),
    "with alpha = 2": (partial(estimators.behavioral_entropy_knn, alpha=2.0), SAMPLES),
    "support": (lambda x: estimators.shannon_entropy_knn(SAMPLES, support=(-9, x)), HIGH),
    "shannon_entropy": (entropy.shannon_entropy, PMF),
    "renyi_entropy": (lambda x: entropy.renyi_entropy(x, q=2.0), PMF),
    "behavioral_entropy": (lambda x: entropy.behavioral_entropy(x, alpha=0.5), PMF),
    "maximizing_pmf": (lambda x: entropy.maximizing_pmf(3, alpha=0.5, start=x), PMF),
    "Prelec": (Prelec(0.5), PMF),
    "Prelec.log": (Prelec(0.5).log, np.log(PMF)),
    "TverskyKahneman": (TverskyKahneman(), PMF),
    "shannon_reward": (rewards.shannon_reward, PMF),
    "renyi_reward": (lambda x: rewards.renyi_reward(x, q=0.5), PMF),
    "behavioral_reward": (lambda x: rewards.behavioral_reward(x, alpha=0.5, beta=1.0), PMF),
}
WRONG = {
    "masked": (lambda x: np.ma.masked_equal(x, x.flat[0]), "masked"),
    "a list of masked": (lambda x: [np.ma.masked_equal(x, x.flat[0])], "masked"),
    "complex": (lambda x: x + 0j, "real numbers, got complex128"),
    "text": (lambda x: x.astype(str), "real numbers, got <U"),
    "objects": (lambda x: np.where(x == x.flat[0], None, x), "real numbers, got object"),
    "ragged": (lambda x: [x.tolist(), [1.0]], "inhomogeneous"),
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


@pytest.mark.parametrize("d", [1, 3, 12])
@pytest.mark.parametrize("scale", [1e-300, 1e-140, 1e-9, 1e9, 1e140, 1e300])
@pytest.mark.parametrize("name", ["renyi_entropy_knn", "behavioral_entropy_knn", "with alpha = 2"])
def test_entropies_follow_the_scale_or_are_refused(name, scale, d):
    """H of c X with reference volume c^d is H of X."""
    x, (entropy, _) = np.random.default_rng(1).normal(size=(80, d)), FUNCTIONS[name]
    volume = 10.0 ** (d * math.log10(scale)) if abs(d * math.log10(scale)) < 308 else math.inf
    if not 1e-300 < volume < 1e300:
        with pytest.raises(ValueError, match=r"must be|underflows"):
            entropy(scale * x, reference_volume=volume)
        return
    estimate = entropy(scale * x, reference_volume=volume)
    assert estimate.value == pytest.approx(entropy(x).value, rel=1e-6)


@pytest.mark.parametrize("q", [1, 1 + 2.3e-16, 1 - 1.2e-16, 1 - 1e-14, 1 + 1e-12, 1 - 1e-9])
def test_renyis_limit_is_smooth_from_both_sides(q):
    """dH/dq is of order 1, so that H_q differs from Shannon's by about as much as q from 1."""
    within = {"rel": 0, "abs": 1e-12 + 3 * abs(q - 1)}
    x = np.random.default_rng(0).normal(size=(500, 1))
    for k in (1, 200):
        ours = estimators.renyi_entropy_knn(x, q=q, k=k)
        limit = estimators.shannon_entropy_knn(x, k=k)
        assert ours.value == pytest.approx(limit.value, **within)
        assert ours.local_values == pytest.approx(limit.local_values, rel=1e-9, abs=1e-4)
        assert ours.standard_error == pytest.approx(limit.standard_error, rel=1e-4, nan_ok=True)
    for pmf in (PMF, PMF.astype(np.float32), np.array([1.0, 0.0])):
        expected = entropy.shannon_entropy(pmf)
        assert entropy.renyi_entropy(pmf, q=q) == pytest.approx(expected, **within)
    distance = np.array([0.0, 1e-300, 1e-8, 1.0, 1e4])
    for r in (distance, torch.tensor(distance), torch.tensor(distance, dtype=torch.float16)):
        ours, limit = rewards.renyi_reward(r, q=q), rewards.shannon_reward(r)
        np.testing.assert_allclose(ours, limit, rtol=3e-7 + 20 * abs(q - 1))


def test_extreme_orders_and_parameters():
    assert entropy.renyi_entropy(PMF, q=1e-300) == pytest.approx(math.log(3))
    assert rewards.peak_distance(alpha=1.0001, beta=0.5) == math.inf
    assert rewards.peak_distance(alpha=3000.0, beta=0.5) < math.e
    assert 0 < rewards.peak_distance(alpha=1.1, beta=1e12) < 1e-9


POSITIVE = "must be positive and finite"
INTEGER = "k must be an integer|k must be between 1 and 59, got -1"
PARAMETERS = [
    (f"alpha {POSITIVE}", Prelec),
    (f"beta {POSITIVE}", lambda x: rewards.behavioral_reward(PMF, alpha=1.0, beta=x)),
    ("c must be", lambda x: rewards.behavioral_reward(PMF, alpha=1.0, beta=1.0, c=x)),
    (f"q {POSITIVE}", lambda x: rewards.renyi_reward(PMF, q=x)),
    (f"q {POSITIVE}", lambda x: entropy.renyi_entropy(PMF, q=x)),
    ("q must be", lambda x: estimators.renyi_entropy_knn(SAMPLES, q=x)),
    ("volume must be", lambda x: estimators.shannon_entropy_knn(SAMPLES, reference_volume=x)),
    (INTEGER, lambda x: knn_distances(SAMPLES, k=x)),
]
NO_NUMBERS = ["2", None, [1.0, 2.0], np.array([0.5, 2.0]), 1j, math.nan, 0.0, -1]


@pytest.mark.parametrize(("message", "function"), PARAMETERS)
def test_parameters_that_are_no_numbers_are_refused_by_name(message, function):
    for value in NO_NUMBERS:
        with pytest.raises(ValueError, match=message):
            function(value)


def test_a_reward_of_negative_distances_is_refused():
    with pytest.raises(ValueError, match="distance must be at least 0, got -2"):
        rewards.shannon_reward([1.0, -2.0])
    with pytest.raises(ValueError, match=r"floating-point type, got torch\.int64"):
        rewards.shannon_reward(torch.ones(2, dtype=torch.int64))
    assert rewards.shannon_reward([1, 0]).tolist() == [math.log(2), 0.0]
