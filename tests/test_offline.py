"""Learners: losses by hand, ExORL's conventions, losses pinned to a file."""

import copy
import json
import math
from pathlib import Path

import pytest
import torch
from torch import nn

from belib.config import ALGORITHMS, OfflineConfig
from belib.offline import LEARNERS
from belib.offline.gaussian import normal_log_density, tanh_normal
from belib.replay import Batch

OBS, ACTION = 5, 2
GOLDEN = Path(__file__).parent / "data" / "offline_losses.json"


def learner(algorithm, seeds=(0,), dims=(OBS, ACTION), **changes):
    sizes = {"hidden_dim": 16, "batch_size": 32, "algorithm": algorithm}
    return LEARNERS[algorithm](
        *dims, [OfflineConfig(**{**sizes, "seed": s, **changes}) for s in seeds]
    )


def batch(members=1, size=32, seed=0):
    g = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(members, size, *shape, generator=g)

    discount = torch.full((members, size), 0.97)
    return Batch(normal(OBS), normal(ACTION).tanh(), normal(), discount, normal(OBS))


def assert_one_learns_as_alone(together, alone, batches, **within):
    """Member 1 of three gives the losses and has the parameters of one alone."""
    for data in batches:
        metrics = together.update(data)
        expected = alone.update(Batch(*(part[1:2] for part in data if part is not None)))
    for key, value in expected.items():
        torch.testing.assert_close(metrics[key][1:2], value, **within)
    parameters = dict(together.named_parameters())
    for name, value in alone.named_parameters():
        member = parameters[name].unflatten(0, (-1, 3))[:, 1]
        torch.testing.assert_close(member, value, **within)


def assert_restored_goes_on(made, other, batches):
    """To the bit: the state holds networks, moments, running statistics and streams."""
    *earlier, last = batches
    for data in earlier:
        made.update(data)
    other.load_state_dict(copy.deepcopy(made.state_dict()))
    one, two = (each.update(last) for each in (made, other))
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert all(map(torch.equal, made.buffers(), other.buffers()))
    assert all(map(torch.equal, made.parameters(), other.parameters()))


class LinearCritic(nn.Module):
    """Q1 = s + a, Q2 = s + 2 a, for one number each of state and action."""

    def forward(self, obs, action):
        s, a = obs[..., 0], action[..., 0]
        return torch.stack([s + a, s + 2 * a])

    def of_several(self, obs, actions):
        return self(obs.unsqueeze(1).expand_as(actions), actions)


class Half(nn.Module):
    """The policy's mean is half the state; its standard deviation 0 where one is asked for."""

    def __init__(self, gaussian):
        super().__init__()
        self.gaussian = gaussian

    def forward(self, obs):
        return (obs / 2, torch.full_like(obs, 1e-9)) if self.gaussian else obs / 2


def by_hand(algorithm, **changes):
    """A learner of known networks, without noise, and two transitions.

    s = 0.4, 0.8; a = 0.5, -0.5; r = 1, 2; discount 0.9, 0; s' = 0.2, 0.6.
    """
    made = learner(algorithm, dims=(1, 1), stddev=0.5, stddev_clip=1e-9, **changes)
    made.critic = made.critic_target = LinearCritic()
    made.actor = Half(gaussian=algorithm == "cql")
    s, a, later = torch.tensor([[0.4, 0.8], [0.5, -0.5], [0.2, 0.6]]).view(3, 1, 2, 1)
    reward, discount = torch.tensor([[[1.0, 2.0]], [[0.9, 0.0]]])
    return made, Batch(s, a, reward, discount, later)


@pytest.mark.parametrize("algorithm", ["td3", "td3_bc", "crr"])
def test_td3s_critic_loss_by_hand(algorithm):
    # a' = 0.1, 0.3; min Q' = 0.3, 0.9; y = 1.27, 2. Q1 = 0.9, 0.3; Q2 = 1.4, -0.2.
    made, data = by_hand(algorithm)
    expected = (0.37**2 + 1.7**2) / 2 + (0.13**2 + 2.2**2) / 2
    assert made.critic_loss(data)[0].item() == pytest.approx(expected, rel=1e-5)


def log_density(error):
    """Of a normal variable of standard deviation 0.5."""
    return -(error**2) / (2 * 0.25) - math.log(0.5) - 0.5 * math.log(2 * math.pi)


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
def test_actor_losses_by_hand(name):
    algorithm, _, weight = name.partition(" ")
    made, data = by_hand(algorithm, **({"crr_weight": weight} if weight else {}))
    assert made.actor_loss(data)[0].item() == pytest.approx(ACTOR_LOSSES[name], rel=1e-5)


def test_cqls_exorl_loss_by_hand(monkeypatch):
    made, data = by_hand("cql", cql_weight=0.5, num_action_samples=1)
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


def test_cqls_penalty_of_constant_values():
    """log 10 for ExORL's ten entries; 6 log 2, the log of the cube's volume, for uniform ones."""
    values = torch.full((2, 1, 10, 4), 3.0)
    volume = torch.full((1, 9, 4), -6 * math.log(2))
    exorl = learner("cql").soft_maximum(values, volume) - 3
    standard = learner("cql", convention="standard").soft_maximum(values, volume) - 3
    torch.testing.assert_close(exorl, torch.full((2, 1, 4), math.log(10)))
    torch.testing.assert_close(standard, torch.full((2, 1, 4), 6 * math.log(2)))


def test_standard_cql_estimates_the_integral_of_exp_q():
    made = learner("cql", dims=(1, 1), convention="standard", num_action_samples=20_000)
    made.critic = LinearCritic()
    obs = torch.tensor([[[0.3], [-0.2]]])
    with torch.no_grad():
        policy = made.policy(obs)
        actions, log_density = made.proposals(policy, policy)
        values = made.critic.of_several(obs, actions)
        values = torch.cat([values[:, :, :1], values], 2)  # a place for the data's action
        found = made.soft_maximum(values, log_density)
    for critic, slope in enumerate((1, 2)):  # integral of exp(s + c a) over [-1, 1]
        exact = obs[0, :, 0] + math.log(2 * math.sinh(slope) / slope)
        torch.testing.assert_close(found[critic, 0], exact, atol=0.1, rtol=0)


@pytest.mark.parametrize(("convention", "bound"), [("exorl", 0.76160), ("standard", 1.0)])
def test_exorls_cql_squashes_twice(convention, bound):
    made = learner("cql", convention=convention)
    with torch.no_grad():
        made.actor.head[-1].bias += 20.0
    action = made.act(torch.randn(1, 10, OBS), explore=False)
    assert action.max().item() == pytest.approx(bound, abs=1e-4)
    assert made.act(torch.randn(1, 10, OBS), explore=True).abs().max() <= 1


def test_exorls_cql_averages_log_densities_that_the_published_one_sums():
    one, two = (learner("cql", convention=name) for name in ("exorl", "standard"))
    obs = torch.randn(1, 8, OBS)
    mean, std = two.actor(obs)
    assert torch.equal(one.policy(obs)[0], mean.tanh())
    (_, averaged), (_, summed) = (made.sample((mean, std), 3) for made in (one, two))
    torch.testing.assert_close(summed, ACTION * averaged)


def test_densities_are_torchs():
    g = torch.Generator().manual_seed(0)
    mean, std = torch.randn(3, 4, generator=g), torch.rand(3, 4, generator=g) + 0.1
    normal = torch.distributions.Normal(mean, std)
    torch.testing.assert_close(normal_log_density(mean + 1, mean, std), normal.log_prob(mean + 1))
    squashed = torch.distributions.TransformedDistribution(
        normal, torch.distributions.TanhTransform()
    )
    action, found = tanh_normal(mean, std, torch.randn(3, 4, generator=g))
    torch.testing.assert_close(found, squashed.log_prob(action), atol=1e-4, rtol=1e-4)
    _, far = tanh_normal(torch.full((1,), 50.0), torch.ones(1), torch.zeros(1))
    assert torch.isfinite(far).all()


@pytest.mark.parametrize("soft", [False, True])
def test_cqls_backup_with_and_without_entropy(soft):
    made, data = learner("cql", convention="standard", soft_backup=soft), batch()
    later, state = made.policy(data.next_obs), made.streams.state_dict()
    found = made.target(data, later)
    made.streams.load_state_dict(state)
    action, log_density = made.sample(later, 1)
    value = made.critic_target(data.next_obs, action[:, 0]).amin(0)
    expected = data.reward + 0.97 * (value - soft * 1.0 * log_density[:, 0])  # temperature 1
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)


def test_cqls_temperature_rises_where_entropy_is_below_its_target():
    made = learner("cql")
    for log_density, sign in ((5.0, 1), (-5.0, -1)):  # target entropy -2: log density 2
        loss, _ = made.temperature_loss(torch.tensor([log_density]))
        (gradient,) = torch.autograd.grad(loss.sum(), made.temperature.parameters())
        assert -gradient.sign().item() == sign


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_step_of_one_network_leaves_the_others_alone(algorithm):
    made, data = learner(algorithm), batch()
    names = ("actor",) if algorithm == "bc" else ("critic", "actor")
    for name in names:
        before = copy.deepcopy(dict(made.named_parameters()))
        made.descend(name, *getattr(made, f"{name}_loss")(data))
        changed = {key for key, value in made.named_parameters() if not value.equal(before[key])}
        assert changed
        assert all(key.startswith(f"{name}.") for key in changed)
        assert all(parameter.grad is None for parameter in made.parameters())


@pytest.mark.usefixtures("float32_products")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_member_learns_the_same_alone_and_beside_others(algorithm):
    together, alone = learner(algorithm, seeds=(0, 1, 2)), learner(algorithm, seeds=(1,))
    batches = [batch(3, seed=step) for step in range(30)]
    assert_one_learns_as_alone(together, alone, batches, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_restored_learner_goes_on_to_the_bit(algorithm):
    made, other = learner(algorithm, seeds=(0, 1)), learner(algorithm, seeds=(5, 6))
    assert_restored_goes_on(made, other, [batch(2, seed=step) for step in range(4)])


def losses(algorithm, steps=(1, 10, 100), **changes):
    made, found = learner(algorithm, **changes), []
    for step in range(1, max(steps) + 1):
        metrics = made.update(batch(seed=step))
        if step in steps:
            found.append({key: value.item() for key, value in metrics.items() if "loss" in key})
    return found


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "cql-standard"])
def test_losses_are_what_they_were(algorithm):
    """A number that changes silently with a release is a fault: losses at updates 1, 10, 100."""
    name, _, convention = algorithm.partition("-")
    found = losses(name, **({"convention": convention} if convention else {}))
    for one, two in zip(found, json.loads(GOLDEN.read_text())[algorithm], strict=True):
        assert one == pytest.approx(two, rel=1e-3, abs=1e-4)


def test_bad_values_are_refused():
    with pytest.raises(ValueError, match=r"stddev must be positive for crr, got 0\.0"):
        OfflineConfig(algorithm="crr", stddev=0.0)
    with pytest.raises(ValueError, match="algorithm must be one of td3, td3_bc, bc, cql, crr"):
        OfflineConfig(algorithm="ddpg")


if __name__ == "__main__":  # writes the file that losses are pinned to
    torch.set_num_threads(1)
    names = {name: {} for name in ALGORITHMS} | {"cql-standard": {"convention": "standard"}}
    pinned = {name: losses(name.partition("-")[0], **changes) for name, changes in names.items()}
    GOLDEN.write_text(json.dumps(pinned, indent=1) + "\n")
