import math

import numpy as np
import pytest
import torch

from belib.estimators import behavioral_entropy_knn, shannon_entropy_knn
from belib.knn import knn_distances
from belib.rewards import (
    behavioral_reward,
    behavioral_reward_exact,
    peak_distance,
    renyi_reward,
    shannon_reward,
)
from belib.weighting import prelec_beta

DISTANCES = [0, 0.01, 0.1, 0.5, 1, 2, 5, 10, 50]
# the paper's final reward with c = 1 and beta conditioned on M = 512, to 4 digits
TABLE = {
    0.2: [0, 7.119e-4, 4.186e-3, 0.01128, 0.01669, 0.02483, 0.04351, 0.06891, 0.2226],
    0.5: [0, 7.775e-4, 0.01428, 0.0649, 0.1041, 0.1529, 0.2364, 0.3237, 0.7005],
    1.0: [0, 9.852e-5, 8.665e-3, 0.1352, 0.3466, 0.7324, 1.493, 2.18, 3.855],
    2.0: [0, 9.901e-7, 9.071e-4, 0.08006, 0.4448, 1.989, 9.595, 22.88, 64.85],
    5.0: [0, 9.754e-13, 7.865e-7, 5.479e-3, 0.16, 3.197, 91.22, 752.3, 2.526e4],
}
SHANNON = [0, 9.95e-3, 0.09531, 0.4055, 0.6931, 1.099, 1.792, 2.398, 3.932]
REWARDS = {
    "shannon": shannon_reward,
    "renyi": lambda r: renyi_reward(r, q=2.0),
    "renyi, literal": lambda r: renyi_reward(r, q=0.5, literal=True),
    "behavioral": lambda r: behavioral_reward(r, alpha=0.5, beta=2.0, c=1.5),
    "exact": lambda r: behavioral_reward_exact(r, alpha=0.5, beta=2.0, k=3, n=9, d=2).log,
}


def conditioned(distance, alpha):
    return behavioral_reward(distance, alpha=alpha, beta=prelec_beta(alpha, 512))


def test_the_table():
    for alpha, expected in TABLE.items():
        assert conditioned(DISTANCES, alpha).tolist() == pytest.approx(expected, rel=6e-4, abs=0)
    assert shannon_reward(DISTANCES).tolist() == pytest.approx(SHANNON, rel=6e-4, abs=0)
    assert np.isnan(conditioned([np.nan], 0.5)).all()


@pytest.mark.parametrize("name", REWARDS)
def test_arrays_and_tensors_of_any_shape_agree(name):
    reward, distance = REWARDS[name], np.random.default_rng(0).gamma(1.0, 3.0, (2, 3, 4))
    expected = reward(distance)
    assert type(expected) is np.ndarray
    torch.testing.assert_close(reward(torch.tensor(distance)), torch.tensor(expected))
    np.testing.assert_array_equal(reward(distance[1]), expected[1])  # entry by entry
    assert reward(distance.tolist()).tolist() == expected.tolist()
    assert reward(float(distance[0, 0, 0])) == pytest.approx(expected[0, 0, 0], rel=1e-14)
    for dtype, precision in (("float16", "float32"), ("float32", "float32")):
        assert reward(distance.astype(dtype)).dtype == np.dtype(precision)
        assert reward(torch.ones(2, dtype=getattr(torch, dtype))).dtype == torch.float32


@pytest.mark.parametrize("alpha", TABLE)
def test_float32_keeps_its_precision_and_gradients_are_finite(alpha):
    distance = torch.cat([torch.zeros(1), torch.logspace(-9, 3, 500)]).requires_grad_()
    reward, exact = conditioned(distance, alpha), conditioned(distance.detach().double(), alpha)
    normal = exact > 1e-37  # as float32
    torch.testing.assert_close(reward[normal].double(), exact[normal], rtol=1e-5, atol=0)
    (gradient,) = torch.autograd.grad(reward.sum(), distance)
    assert reward[0] == gradient[0] == 0
    assert torch.isfinite(reward).all()
    assert torch.isfinite(gradient).all()
    one = torch.ones(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda r: conditioned(r, alpha), one)


def test_c_above_one_pays_for_any_novelty_and_c_below_one_is_refused():
    r = torch.tensor([0.0, 1e-3], dtype=torch.float64, requires_grad=True)
    reward = behavioral_reward(r, alpha=2.0, beta=1.0, c=math.e)
    (gradient,) = torch.autograd.grad(reward.sum(), r)
    # L = 1 at R = 0, so the reward is R / e there: of first order, not of order 1 + alpha
    assert gradient[0].item() == pytest.approx(math.exp(-1), rel=1e-12)
    assert reward.tolist() == pytest.approx([0, 1e-3 / math.e], rel=1e-2)
    with pytest.raises(ValueError, match=r"c must be at least 1, got .*log\(R \+ c\) < 0"):
        behavioral_reward(1.0, alpha=0.5, beta=1.0, c=1 - 1e-9)


PEAKS = [(1.5, 512, 123.4), (2.0, 512, 91.8), (5.0, 512, 143), (2.0, None, 3.0), (5.0, None, 1.88)]


@pytest.mark.parametrize(
    ("alpha", "n_outcomes", "peak"), [*PEAKS, (0.2, 2, None), (1.0, 512, None)]
)
def test_rewards_increase_up_to_a_peak_if_alpha_is_above_one(alpha, n_outcomes, peak):
    beta = prelec_beta(alpha, n_outcomes) if n_outcomes else 1.0
    distance = np.geomspace(1e-6, 1e6, 20_000)
    reward = behavioral_reward(distance, alpha=alpha, beta=beta)
    at = reward.argmax()
    assert distance[at] == pytest.approx(peak or 1e6, rel=5e-3)
    assert peak_distance(alpha=alpha, beta=beta) == pytest.approx(peak or math.inf, rel=5e-3)
    assert (np.diff(reward[: at + 1]) > 0).all()
    assert (np.diff(reward[at:]) <= 0).all()  # it vanishes for alpha = 5, beta = 1


def test_at_alpha_one_there_is_a_peak_if_beta_is_above_one_and_below_none():
    assert peak_distance(alpha=1.0, beta=2.0) == pytest.approx(3.24429, rel=1e-5)
    assert peak_distance(alpha=0.5, beta=100.0) == math.inf, "it falls, and rises in the end"


@pytest.mark.parametrize("q", [0.2, 0.5, 0.9, 1.1, 3.0])
def test_renyis_reward_grows_and_its_published_form_falls_above_one(q):
    distance = np.logspace(-3, 3, 100)
    assert (np.diff(renyi_reward(distance, q=q)) > 0).all()
    assert (np.diff(renyi_reward(distance, q=q, literal=True)) * (1 - q) > 0).all()
    assert renyi_reward(3.0, q=q) == pytest.approx((4 ** (1 - q) - 1) / (1 - q))
    assert renyi_reward(3.0, q=q, literal=True) == pytest.approx(3 ** (1 - q))


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 0.8), (2.0, 0.8), (1.0, 1.0)])
def test_the_exact_rewards_mean_is_the_papers_estimate(alpha, beta, d):
    """At alpha = beta = 1, unlike the simplified one, it is Shannon's."""
    sample = np.random.default_rng(d).uniform(0, 3, (400, d))  # densities on both sides of 1
    distance = knn_distances(sample, k=4)[:, -1]
    reward = behavioral_reward_exact(distance, alpha=alpha, beta=beta, k=4, n=400, d=d)
    estimate = behavioral_entropy_knn(sample, alpha=alpha, beta=beta, k=4, correction=None)
    if alpha == beta == 1:
        estimate = shannon_entropy_knn(sample, k=4, correction=None)
    assert np.mean(reward.sign * np.exp(reward.log)) == pytest.approx(estimate.value, rel=1e-10)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 5.0])
def test_the_exact_reward_stays_finite_in_512_dimensions(alpha):
    distance = torch.logspace(-3, 3, 200, requires_grad=True)
    beta = prelec_beta(alpha, 512)
    reward = behavioral_reward_exact(distance, alpha=alpha, beta=beta, k=12, n=1024, d=512)
    assert torch.isfinite(reward.log).all()
    (gradient,) = torch.autograd.grad(reward.log.sum(), distance)
    assert torch.isfinite(gradient).all()
    # below R = 5.47 the density exceeds 1, where all alpha pay Shannon's reward
    assert (reward.sign == torch.where(distance < 5.47, -1.0, 1.0)).all()
    zero = behavioral_reward_exact([0.0], alpha=alpha, beta=1.0, k=1, n=2, d=1)
    assert (zero.sign.item(), zero.log.item()) == (-1, math.inf)
