import copy

import pytest
import torch

from belib.agents.apt import APT
from belib.config import OfflineConfig, PretrainConfig
from belib.offline.td3 import TD3
from belib.replay import Batch
from belib.rewards import OBJECTIVES, behavioral_reward
from belib.weighting import prelec_beta

OBS, ACTION = 5, 2


def batch(members=1, size=32, seed=0):
    g = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(members, size, *shape, generator=g)

    discount = torch.full((members, size), 0.97)
    path = torch.stack([normal(OBS) for _ in range(4)], 2)
    ends = path[:, :, 0], normal(ACTION).tanh(), normal(), discount, path[:, :, -1]
    return Batch(*ends, path=path)


def apt(seeds=(0,), **changes):
    sizes = {"hidden_dim": 16, "batch_size": 32, "representation_dim": 8, "k": 4}
    return APT(OBS, ACTION, [PretrainConfig(**{**sizes, "seed": s, **changes}) for s in seeds])


def td3(seeds=(0,), **changes):
    sizes = {"hidden_dim": 16, "batch_size": 32}
    return TD3(OBS, ACTION, [OfflineConfig(**{**sizes, "seed": s, **changes}) for s in seeds])


@pytest.mark.usefixtures("float32_products")
@pytest.mark.parametrize("make", [apt, td3])
def test_a_member_learns_the_same_alone_and_beside_others(make):
    together, alone = make(seeds=(0, 1, 2)), make(seeds=(1,))
    for step in range(100):
        data = batch(3, seed=step)
        together.update(data)
        alone.update(Batch(*(part[1:2] for part in data)))
    state = dict(together.named_parameters())
    for name, expected in alone.named_parameters():
        found = state[name]
        if found.dim():
            copies = found.shape[0] // 3
            found = found.view(copies, 3, *found.shape[1:])[:, 1]
        torch.testing.assert_close(found, expected.view_as(found), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("make", [apt, td3])
def test_a_step_of_one_network_leaves_the_others_alone(make):
    learner, data = make(), batch()
    for name, other in (("critic", "actor"), ("actor", "critic")):
        before = copy.deepcopy(getattr(learner, other).state_dict())
        learner.descend(name, *getattr(learner, f"{name}_loss")(data))
        for key, value in getattr(learner, other).state_dict().items():
            assert torch.equal(value, before[key])
        assert all(parameter.grad is None for parameter in getattr(learner, other).parameters())


def test_critic_loss_by_hand():
    learner, data = td3(stddev=0.0), batch()
    action = learner.actor(data.next_obs)
    target = data.reward + 0.97 * learner.critic_target(data.next_obs, action).amin(0)
    one, two = learner.critic(data.obs, data.action)
    expected = (one - target).square().mean(-1) + (two - target).square().mean(-1)
    torch.testing.assert_close(learner.critic_loss(data)[0], expected)


def test_target_moves_by_tau():
    learner = td3()
    with torch.no_grad():
        for parameter in learner.critic.parameters():
            parameter += 1
    before = copy.deepcopy(learner.critic_target.state_dict())
    learner.update_target()
    for name, value in learner.critic_target.state_dict().items():
        expected = 0.99 * before[name] + 0.01 * learner.critic.state_dict()[name]
        torch.testing.assert_close(value, expected)


def test_smoothing_noise_is_each_rows_own_clipped_and_differentiable():
    learner = td3(stddev=0.2, stddev_clip=0.3)
    obs = torch.ones(1, 4096, OBS)
    mean, noisy = learner.actor(obs), learner.noisy_action(obs)
    noise = (noisy - mean).detach()
    assert noise.abs().max() <= 0.3 + 1e-6
    assert noise[0, 0, 0] != noise[0, 1, 0]
    clipped = (0.2 * torch.randn(100_000)).clamp(-0.3, 0.3).std()
    assert noise.std() == pytest.approx(clipped.item(), rel=0.05)
    assert noisy.abs().max() <= 1
    noisy.sum().backward()
    assert learner.actor.head[-1].weight.grad.abs().sum() > 0


def test_acting_is_the_mean_or_noisy_and_in_range():
    learner, obs = td3(), torch.randn(1, 100, OBS)
    assert torch.equal(learner.act(obs, explore=False), learner.act(obs, explore=False))
    noise = learner.act(obs, explore=True) - learner.act(obs, explore=False)
    assert noise.abs().max() > 0.3  # exploration noise is not clipped
    assert learner.act(obs, explore=True).abs().max() < 1


def test_td3_critics_share_nothing_and_urlb_critics_their_trunk():
    assert td3().critic.trunk.linear.weight.shape[0] == 2
    assert apt().critic.trunk.linear.weight.shape[0] == 1


def test_apt_rewards_the_mean_distance_with_self_counted():
    agent, data = apt(), batch()
    representation = agent.icm.trunk(data.obs)[0].detach().double()
    distances = torch.cdist(representation, representation).fill_diagonal_(0)
    mean = distances.sort(-1).values[:, :4].mean(-1)
    expected = OBJECTIVES[agent.config.objective].reward(agent.config)(mean)
    found, _ = agent.intrinsic_reward(data.obs)
    torch.testing.assert_close(found[0].double(), expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("representation", ["random", "observation"])
def test_representations_that_are_not_learnt_cost_no_training(representation):
    agent, data = apt(representation=representation), batch()
    before = agent.represent(data.obs)
    for _ in range(3):
        metrics = agent.update(data)
    assert "icm" not in agent.optimizers
    assert "icm_loss" not in metrics
    after = agent.represent(data.obs)
    if representation == "random":
        assert torch.equal(before, after)
        assert after.shape[-1] == 8
    else:  # each sensor over its deviation in what was seen
        assert after.std(1, correction=0)[0].tolist() == pytest.approx([1.0] * OBS, rel=1e-3)


def test_m_of_prelecs_beta_is_the_dimension_in_use():
    """Five sensors, and not the 8 numbers that the curiosity module would have."""
    agent, distance = apt(representation="observation"), torch.linspace(0, 3, 7)
    expected = behavioral_reward(distance, alpha=0.5, beta=prelec_beta(0.5, OBS))
    torch.testing.assert_close(agent.rewards[0](distance), expected)
    other = behavioral_reward(distance, alpha=0.5, beta=prelec_beta(0.5, 8))
    torch.testing.assert_close(apt().rewards[0](distance), other)


def test_renyis_published_form_falls_for_large_q_and_its_signed_form_rises():
    distance = torch.tensor([0.0, 0.5, 1.0, 2.0])
    published, signed = (
        apt(objective="renyi", q=2.0, renyi_form=form).rewards[0](distance)
        for form in ("published", "signed")
    )
    torch.testing.assert_close(published, torch.tensor([1e6, 2.0, 1.0, 0.5]))
    torch.testing.assert_close(signed, 1 - 1 / (1 + distance))


def test_apt_rewards_obs_and_not_next_obs():
    agent, data = apt(), batch()
    reward, _ = agent.intrinsic_return(data)
    same, _ = agent.intrinsic_return(data._replace(next_obs=data.next_obs + 1))
    other, _ = agent.intrinsic_return(data._replace(obs=data.obs * 2))
    assert torch.equal(reward, same)
    assert not torch.equal(reward, other)


def test_members_may_differ_in_objective():
    shared = {"hidden_dim": 16, "batch_size": 32, "representation_dim": 8, "k": 4}
    configs = [PretrainConfig(objective=o, **shared) for o in ("behavioral", "renyi", "shannon")]
    agent, one = APT(OBS, ACTION, configs), batch()
    data = Batch(*(part.expand(3, *part.shape[1:]) for part in one))
    reward, metrics = agent.intrinsic_reward(data.obs)
    torch.testing.assert_close(metrics["knn_distance"], metrics["knn_distance"][:1].expand(3))
    assert len(set(reward.mean(1).tolist())) == 3


def test_the_icm_learns_to_predict():
    agent = apt(learning_rate=3e-3)
    losses = [float(agent.update(batch(size=32))["icm_loss"]) for _ in range(150)]
    assert losses[-1] < 0.9 * losses[0]


def test_rms_scaled_rewards_have_unit_size():
    agent = apt(intrinsic_reward_scale="rms")
    for step in range(20):
        reward, metrics = agent.intrinsic_return(batch(seed=step))
    assert reward.square().mean().sqrt() == pytest.approx(1, rel=0.2)
    assert metrics["intrinsic_reward"].item() < 0.5  # logged before it is scaled


def test_td3_learns_the_best_action_of_a_contextual_bandit():
    """Reward -(a - tanh(obs))^2 without a future: the policy must find a = tanh(obs)."""
    learner = td3(seeds=(0, 1), learning_rate=3e-3, hidden_dim=32)
    generator = torch.Generator().manual_seed(0)
    for _ in range(600):
        obs = torch.randn(2, 64, OBS, generator=generator)
        action = torch.rand(2, 64, ACTION, generator=generator) * 2 - 1
        reward = -(action - obs[..., :ACTION].tanh()).square().sum(-1)
        learner.update(Batch(obs, action, reward, torch.zeros(2, 64), obs))
    obs = torch.randn(2, 500, OBS, generator=generator)
    error = (learner.act(obs, explore=False) - obs[..., :ACTION].tanh()).abs().mean((1, 2))
    assert error.max() < 0.15  # random actions are off by 0.65, zero actions by 0.54


def test_checkpoints_hold_all_optimizer_moments():
    learner, other = apt(seeds=(0, 1)), apt(seeds=(5, 6))
    for step in range(5):
        learner.update(batch(2, seed=step))
    other.load_state_dict(copy.deepcopy(learner.state_dict()))
    for name in ("actor", "critic", "icm"):
        found, expected = (a.optimizers[name] for a in (other, learner))
        assert found.steps == expected.steps == 5
        assert len(found.moments()) == 2 * len(list(getattr(learner, name).parameters()))
        assert all(map(torch.equal, found.moments(), expected.moments()))
    one, two = (a.update(batch(2, seed=9)) for a in (learner, other))
    assert all(torch.equal(one[key], two[key]) for key in one)
