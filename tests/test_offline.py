"""Learners: losses by hand, ExORL's conventions, losses pinned to a file."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch import nn

from belib.config import ALGORITHMS, OfflineConfig
from belib.offline import LEARNERS
from belib.offline.cql import tanh_normal
from belib.replay import Batch

OBS, ACTION = 5, 2
GOLDEN = Path(__file__).parent / "data" / "offline_losses.json"


def learner(algorithm, seeds=(0,), dims=(OBS, ACTION), **changes):
    sizes = {"hidden_dim": 16, "batch_size": 32, "algorithm": algorithm, **changes}
    return LEARNERS[algorithm](*dims, [OfflineConfig(**sizes, seed=seed) for seed in seeds])


def batch(members=1, seed=0):
    g = torch.Generator().manual_seed(seed)
    obs, action, reward, next_obs = (
        torch.randn(members, 32, *shape, generator=g) for shape in ((OBS,), (ACTION,), (), (OBS,))
    )
    path = torch.stack([obs, next_obs], 2)
    return Batch(obs, action.tanh(), reward, torch.full_like(reward, 0.97), next_obs, path)


class LinearCritic(nn.Module):
    """Q1 = s + a, Q2 = s + 2 a, of a state and an action of one number."""

    def forward(self, obs, action):
        s, a = obs[..., 0], action[..., 0]
        return torch.stack([s + a, s + 2 * a])

    def of_several(self, obs, actions):
        return self(obs.unsqueeze(1).expand_as(actions), actions)


class Half(nn.Module):
    """The policy's mean is half the state."""

    def forward(self, obs):
        return obs / 2


def by_hand(algorithm, **changes):
    """Return a learner of known networks, without noise, and two transitions.

    s = 0.4, 0.8; a = 0.5, -0.5; r = 1, 2; discount 0.9, 0; s' = 0.2, 0.6.
    """
    made = learner(algorithm, dims=(1, 1), stddev=0.5, stddev_clip=1e-9, **changes)
    made.critic = made.critic_target = LinearCritic()
    made.actor = Half()
    s, a, later = torch.tensor([[0.4, 0.8], [0.5, -0.5], [0.2, 0.6]]).view(3, 1, 2, 1)
    reward, discount = torch.tensor([[[1.0, 2.0]], [[0.9, 0.0]]])
    return made, Batch(s, a, reward, discount, later, path=None)


def log_density(error):
    return torch.distributions.Normal(0.0, 0.5).log_prob(torch.tensor(error)).item()


ACTOR_LOSSES = {  # a = 0.2, 0.4; min Q = 0.6, 1.2; the data's actions are off by 0.3, 0.9
    "td3": -0.9,
    # min Q is positive: its mean over the mean of its size is 1.
    "td3_bc": -2.5 + (0.3**2 + 0.9**2) / 2,
    "bc": -(log_density(0.3) + log_density(0.9)) / 2,
    # min Q of the data 0.9, -0.2; V = min Q at the mean = 0.6, 1.2: advantages 0.3, -1.4.
    "crr indicator": -log_density(0.3) / 2,
    "crr exp": -(math.exp(0.3) * log_density(0.3) + math.exp(-1.4) * log_density(0.9)) / 2,
    "crr identity": -(0.3 * log_density(0.3) - 1.4 * log_density(0.9)) / 2,
}


@pytest.mark.parametrize("name", ACTOR_LOSSES)
def test_losses_by_hand(name):
    algorithm, _, weight = name.partition(" ")
    made, data = by_hand(algorithm, **({"crr_weight": weight} if weight else {}))
    assert made.actor_loss(data)[0].item() == pytest.approx(ACTOR_LOSSES[name], rel=1e-5)
    if algorithm == "td3":
        # a' = 0.1, 0.3; min Q' = 0.3, 0.9; y = 1.27, 2. Q1 = 0.9, 0.3; Q2 = 1.4, -0.2.
        expected = (0.37**2 + 1.7**2) / 2 + (0.13**2 + 2.2**2) / 2
        assert made.critic_loss(data)[0].item() == pytest.approx(expected, rel=1e-5)


def test_cqls_exorl_loss_by_hand(monkeypatch):
    made, data = by_hand("cql", cql_weight=0.5, num_action_samples=1)
    monkeypatch.setattr(Half, "forward", lambda self, obs: (obs / 2, torch.full_like(obs, 1e-9)))
    monkeypatch.setattr(made.streams, "uniform", lambda *shape: torch.full((1, *shape), 0.25))
    td = penalty = 0.0
    for s, a, r, d, s_ in ((0.4, 0.5, 1, 0.9, 0.2), (0.8, -0.5, 2, 0, 0.6)):
        now, later = (math.tanh(math.tanh(x / 2)) for x in (s, s_))
        y = r + d * (s_ + later)
        for c in (1, 2):
            values = [s + c * action for action in (a, 0.25, now, later)]
            td += (values[0] - y) ** 2 / 2
            penalty += (math.log(sum(map(math.exp, values))) - values[0]) / 2
    assert made.critic_loss(data)[0].item() == pytest.approx(td + 0.5 * penalty, rel=1e-5)


def test_standard_cql_estimates_the_integral_of_exp_q():
    made = learner("cql", dims=(1, 1), convention="standard", num_action_samples=20_000)
    made.critic = LinearCritic()
    obs = torch.tensor([[[0.3], [-0.2]]])
    with torch.no_grad():
        policy = made.policy(obs)
        actions, log_density = made.proposals(policy, policy)
        values = made.critic.of_several(obs, actions)
        values = torch.cat([values[:, :, :1], values], 2)  # a place for the data's action
        maximum = made.soft_maximum(values, log_density)
    for critic, slope in enumerate((1, 2)):  # integral of exp(s + c a) over [-1, 1]
        exact = obs[0, :, 0] + math.log(2 * math.sinh(slope) / slope)
        torch.testing.assert_close(maximum[critic, 0], exact, atol=0.1, rtol=0)


def test_exorls_cql_squashes_means_twice_and_averages_log_densities():
    exorl, standard = (learner("cql", convention=name) for name in ("exorl", "standard"))
    obs = torch.randn(1, 8, OBS)
    mean, std = standard.actor(obs)
    assert torch.equal(exorl.policy(obs)[0], mean.tanh())
    (_, averaged), (_, summed) = (made.sample((mean, std), 3) for made in (exorl, standard))
    torch.testing.assert_close(summed, ACTION * averaged)
    for made, bound in ((exorl, math.tanh(1)), (standard, 1.0)):
        with torch.no_grad():
            made.actor.head[-1].bias += 20.0
        assert made.act(obs, explore=False).max().item() == pytest.approx(bound, abs=1e-4)
        assert made.act(obs, explore=True).abs().max() <= 1


def test_the_density_of_a_squashed_action_is_torchs_and_finite():
    mean, std, noise = torch.rand(3, 3, 4) + 0.1
    law = torch.distributions
    squashed = law.TransformedDistribution(law.Normal(mean, std), law.TanhTransform())
    action, log_density = tanh_normal(mean, std, noise)
    torch.testing.assert_close(log_density, squashed.log_prob(action), atol=1e-4, rtol=1e-4)
    assert torch.isfinite(tanh_normal(50 * mean, std, noise)[1]).all()


def test_cqls_soft_backup_subtracts_the_log_density():
    made, data = learner("cql", convention="standard", soft_backup=True), batch()
    later, state = made.policy(data.next_obs), made.streams.state_dict()
    target = made.target(data, later)
    made.streams.load_state_dict(state)
    action, log_density = made.sample(later, 1)
    value = made.critic_target(data.next_obs, action[:, 0]).amin(0)
    expected = data.reward + 0.97 * (value - 1.0 * log_density[:, 0])  # temperature 1
    torch.testing.assert_close(target, expected, atol=1e-6, rtol=1e-6)


def test_cqls_temperature_rises_where_entropy_is_below_its_target():
    made = learner("cql")
    for log_density, rise in ((5.0, 3.0), (-5.0, -7.0)):  # target entropy -2: log density 2
        loss, _ = made.temperature_loss(torch.tensor([log_density]))
        (gradient,) = torch.autograd.grad(loss.sum(), made.temperature.parameters())
        assert -gradient.item() == rise


def losses(case):
    name, _, convention = case.partition("-")
    made = learner(name, **({"convention": convention} if convention else {}))
    metrics = [made.update(batch(seed=step)) for step in range(1, 101)]
    rows = [metrics[step - 1] for step in (1, 10, 100)]
    return [{key: row[key].item() for key in row if "loss" in key} for row in rows]


CASES = [*ALGORITHMS, "cql-standard"]


@pytest.mark.parametrize("case", CASES)
def test_losses_are_what_they_were(case):
    """A number that changes silently with a release is a fault: losses at updates 1, 10, 100."""
    for one, two in zip(losses(case), json.loads(GOLDEN.read_text())[case], strict=True):
        assert one == pytest.approx(two, rel=1e-3, abs=1e-4)


if __name__ == "__main__":  # writes the file that losses are pinned to
    torch.set_num_threads(1)
    GOLDEN.write_text(json.dumps({case: losses(case) for case in CASES}, indent=1) + "\n")
