import pytest
import torch

from belib.rewards import behavioral_reward, renyi_reward, shannon_reward
from belib.weighting import prelec_beta

DISTANCES = [0.01, 0.1, 0.5, 1, 2, 5, 10, 50]
# The paper's final reward with c = 1 and beta conditioned on M = 512, to 4 digits.
TABLE = {
    0.2: [7.119e-4, 4.186e-3, 0.01128, 0.01669, 0.02483, 0.04351, 0.06891, 0.2226],
    0.5: [7.775e-4, 0.01428, 0.0649, 0.1041, 0.1529, 0.2364, 0.3237, 0.7005],
    0.9: [1.548e-4, 0.01043, 0.1302, 0.3032, 0.5891, 1.11, 1.57, 2.792],
    1.0: [9.852e-5, 8.665e-3, 0.1352, 0.3466, 0.7324, 1.493, 2.18, 3.855],
    2.0: [9.901e-7, 9.071e-4, 0.08006, 0.4448, 1.989, 9.595, 22.88, 64.85],
    5.0: [9.754e-13, 7.865e-7, 5.479e-3, 0.16, 3.197, 91.22, 752.3, 2.526e4],
}


@pytest.mark.parametrize("alpha", TABLE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_table(alpha, dtype):
    distance = torch.tensor(DISTANCES, dtype=dtype)
    reward = behavioral_reward(distance, alpha=alpha, beta=prelec_beta(alpha, 512))
    assert reward.dtype == dtype
    assert reward.tolist() == pytest.approx(TABLE[alpha], rel=6e-4)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 1.0, 2.0])
def test_float32_keeps_small_distances(alpha):
    small = torch.logspace(-9, 2, 50, dtype=torch.float64)
    beta = prelec_beta(alpha, 512)
    exact = behavioral_reward(small, alpha=alpha, beta=beta)
    found = behavioral_reward(small.float(), alpha=alpha, beta=beta).double()
    torch.testing.assert_close(found, exact, rtol=2e-5, atol=0)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 3.0])
def test_zero_and_its_gradient(alpha):
    distance = torch.tensor([0.0, 1e-8, 1.0], requires_grad=True)
    reward = behavioral_reward(distance, alpha=alpha, beta=prelec_beta(alpha, 512))
    (gradient,) = torch.autograd.grad(reward.sum(), distance)
    assert reward[0] == 0
    assert gradient[0] == 0
    assert torch.isfinite(gradient).all()


def test_at_alpha_one_it_is_not_the_shannon_reward():
    distance = torch.tensor(DISTANCES, dtype=torch.float64)
    expected = distance / (1 + distance) * shannon_reward(distance)
    torch.testing.assert_close(behavioral_reward(distance, alpha=1.0, beta=1.0), expected)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.7, 0.9, 1.0])
def test_increasing_up_to_alpha_one(alpha):
    distance = torch.logspace(-6, 6, 400, dtype=torch.float64)
    reward = behavioral_reward(distance, alpha=alpha, beta=prelec_beta(alpha, 512))
    assert (reward.diff() > 0).all()


@pytest.mark.parametrize(("alpha", "peak"), [(1.5, 123.4), (2.0, 91.8), (3.0, 102), (5.0, 143)])
def test_novelty_beyond_the_peak_is_punished_above_alpha_one(alpha, peak):
    distance = torch.linspace(1, 400, 40_000, dtype=torch.float64)
    reward = behavioral_reward(distance, alpha=alpha, beta=prelec_beta(alpha, 512))
    assert distance[reward.argmax()].item() == pytest.approx(peak, rel=5e-3)


def test_renyi_tends_to_shannon_and_grows_for_every_order():
    distance = torch.logspace(-3, 3, 100, dtype=torch.float64)
    near = renyi_reward(distance, q=1 + 1e-9)
    torch.testing.assert_close(near, shannon_reward(distance), rtol=1e-6, atol=0)
    torch.testing.assert_close(renyi_reward(distance, q=1.0), shannon_reward(distance))
    for q in (0.2, 0.9, 1.1, 3.0):
        assert (renyi_reward(distance, q=q).diff() > 0).all()
    assert renyi_reward(torch.tensor([3.0]), q=2.0).item() == pytest.approx(1 - 1 / 4)
