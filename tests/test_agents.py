"""The agents that collect: DDPG, and the two hooks of those with an intrinsic reward."""

import copy
import math

import pytest
import torch

from belib.agents import AGENTS, agent_of, side_by_side
from belib.config import OfflineConfig, PretrainConfig
from belib.offline import TD3
from belib.replay import Batch
from belib.rewards import behavioral_reward, facts
from belib.weighting import prelec_beta

OBS, ACTION, SKILLS, SIZE = 5, 2, 3, 32


def make(objective="behavioral", seeds=(0,), **changes):
    sizes = {"hidden_dim": 16, "batch_size": SIZE, "representation_dim": 8, "k": 4}
    sizes |= {"objective": objective, "skill_dim": SKILLS, **changes}
    obs_dim = OBS + SKILLS * (objective == "smm")
    configs = [PretrainConfig(**sizes, seed=seed) for seed in seeds]
    return agent_of(objective)(obs_dim, ACTION, configs)


def batch(objective="behavioral", members=1, seed=0, scale=1.0):
    """Return random paths of 4 states; SMM's states end in a skill."""
    g = torch.Generator().manual_seed(seed)
    path = scale * torch.randn(members, SIZE, 4, OBS, generator=g)
    if objective == "smm":
        skills = torch.randint(SKILLS, (members, SIZE, 1), generator=g).expand(-1, -1, 4)
        path = torch.cat([path, torch.eye(SKILLS)[skills]], -1)
    action = torch.randn(members, SIZE, ACTION, generator=g).tanh()
    reward, discount = torch.zeros(members, SIZE), torch.full((members, SIZE), 0.97)
    return Batch(path[:, :, 0], action, reward, discount, path[:, :, -1], path)


@pytest.mark.parametrize("objective", ["behavioral", "rnd", "smm"])
def test_the_return_pays_one_state_or_the_discounted_n(objective):
    data = batch(objective)
    agent, again = make(objective), make(objective)
    assert torch.equal(agent.intrinsic_return(data)[0], again.intrinsic_reward(data.obs)[0])
    agent, again = (make(objective, convention="corrected") for _ in range(2))
    first, second, third = (again.intrinsic_reward(data.path[:, :, i])[0] for i in range(3))
    total = first + 0.99 * second + 0.99**2 * third
    torch.testing.assert_close(agent.intrinsic_return(data)[0], total)


def test_a_seeds_agent_and_its_learner_begin_with_different_actors():
    agent, learner = make().actor, TD3(OBS, ACTION, [OfflineConfig(hidden_dim=16)]).actor
    for one, other in zip(agent.parameters(), learner.parameters(), strict=True):
        assert not torch.equal(one, other) or one.unique().numel() == 1  # scales and shifts


@pytest.mark.parametrize(("convention", "first"), [("urlb", 0), ("corrected", 1)])
def test_apts_distance_and_reward_by_hand(convention, first):
    """URLB counts the state itself, at distance 0."""
    agent, data = make(convention=convention, k=3), batch()
    phi = agent.icm.trunk(data.obs)[0].detach().double()
    nearest = torch.cdist(phi, phi).fill_diagonal_(0).sort(-1).values[:, first : first + 3]
    reward, metrics = agent.intrinsic_reward(data.obs)
    assert metrics["knn_distance"].item() == pytest.approx(nearest.mean().item(), rel=1e-5)
    expected = behavioral_reward(nearest.mean(-1), alpha=0.5, beta=prelec_beta(0.5, 8))
    torch.testing.assert_close(reward[0].double(), expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(("convention", "step"), [("urlb", 3), ("corrected", 1)])
def test_apts_curiosity_spans_n_steps_or_one_and_learns(convention, step):
    agent, data = make(convention=convention, learning_rate=3e-3), batch()
    icm, now, later = agent.icm, *map(agent.icm.trunk, (data.obs, data.path[:, :, step]))
    predicted = icm.forward_net(torch.cat([now, data.action], -1))
    inferred = icm.inverse_net(torch.cat([now, later], -1)).tanh()
    errors = (later - predicted).norm(dim=-1) + (data.action - inferred).norm(dim=-1)
    before = agent.update_representation(data)["icm_loss"]
    torch.testing.assert_close(before, errors.mean(-1).detach())
    for _ in range(50):
        after = agent.update_representation(data)["icm_loss"]
    assert after < 0.9 * before


@pytest.mark.parametrize(("representation", "m"), [("random", 8), ("observation", OBS)])
def test_representations_that_are_not_learnt(representation, m):
    agent, data = make(representation=representation), batch()
    before = agent.represent(data.obs)
    assert "icm_loss" not in agent.update(data)
    after = agent.represent(data.obs)
    assert after.shape[-1] == m
    if representation == "random":
        assert torch.equal(before, after)
    else:  # sensors divided by their standard deviations so far
        assert after.std(1, correction=0)[0].tolist() == pytest.approx([1.0] * OBS, rel=1e-3)
    beta, distance = prelec_beta(0.5, m), torch.linspace(0, 3, 7)
    expected = behavioral_reward(distance, alpha=0.5, beta=beta)
    torch.testing.assert_close(agent.rewards[0](distance), expected)
    assert facts(agent.config, OBS) == {"alpha": 0.5, "beta": beta, "n_outcomes": m}


def test_members_may_differ_in_objective_and_renyis_forms_by_hand():
    forms = [{"q": 2.0, "renyi_form": form} for form in ("published", "signed")]
    configs = [make("renyi", **form).config for form in forms] + [make("shannon").config]
    assert [facts(config, OBS) for config in configs] == [{"q": 2.0}, {"q": 2.0}, {}]
    agent, same = AGENTS["apt"](OBS, ACTION, configs), batch().obs.expand(3, -1, -1)
    _, metrics = agent.intrinsic_reward(same)
    torch.testing.assert_close(metrics["knn_distance"], metrics["knn_distance"][:1].expand(3))
    distance = torch.tensor([0.0, 0.5, 1.0, 2.0])
    published, signed, shannon = (reward(distance) for reward in agent.rewards)
    torch.testing.assert_close(published, torch.tensor([1e6, 2.0, 1.0, 0.5]))
    torch.testing.assert_close(signed, 1 - 1 / (1 + distance))
    torch.testing.assert_close(shannon, (1 + distance).log())


def test_rms_scaled_rewards_have_unit_size():
    agent = make(intrinsic_reward_scale="rms")
    for step in range(20):
        reward, metrics = agent.intrinsic_return(batch(seed=step))
    assert reward.square().mean().sqrt() == pytest.approx(1, rel=0.2)
    assert metrics["intrinsic_reward"].item() < 0.5  # logged before it is scaled


def test_rnd_by_hand_and_its_predictor_learns():
    agent, data = make("rnd", learning_rate=1e-3), batch("rnd", scale=7.0)
    x = data.obs[0].double()
    x = ((x - x.mean(0)) / (x.var(0, correction=0) + 1e-5).sqrt()).clamp(-5, 5).float()
    error = (agent.target(x[None]) - agent.predictor(x[None])).square().mean(-1)
    torch.testing.assert_close(agent.error(data.obs), error)
    reward, _ = agent.intrinsic_reward(data.obs)
    torch.testing.assert_close(reward, error / error.std(correction=0), rtol=1e-3, atol=0)
    target = copy.deepcopy(list(agent.target.parameters()))
    for _ in range(60):
        agent.update_representation(data)
    assert all(map(torch.equal, target, agent.target.parameters()))
    assert agent.error(data.obs).mean() < error.mean() / 2


@pytest.mark.parametrize("convention", ["urlb", "corrected"])
def test_rnd_scales_observations_by_the_batch_or_by_all_so_far(convention):
    agent, far = make("rnd", convention=convention), batch("rnd", seed=1).obs + 100
    agent.update(data := batch("rnd", scale=7.0))
    assert agent.normalised(data.obs).std().item() == pytest.approx(1, rel=0.01)
    if convention == "urlb":
        assert agent.normalised(far).mean().abs() < 1e-3
    else:
        assert (agent.normalised(far) == 5).all()  # clipped
    constant = make("rnd", convention=convention).update(batch("rnd", scale=0.0))
    assert all(torch.isfinite(value).all() for value in constant.values())


@pytest.mark.parametrize(("convention", "sign"), [("urlb", 1), ("corrected", -1)])
def test_smm_by_hand(convention, sign):
    agent, data = make("smm", convention=convention), batch("smm")
    state, skill = data.obs.split([OBS, SKILLS], -1)
    cross_entropy = -(agent.discriminator(state).softmax(-1).log() * skill).sum(-1)
    before = agent.streams.state_dict()
    noise = agent.streams.normal(SIZE, 128)
    agent.streams.load_state_dict(before)
    h = agent.vae.encoder(data.obs)
    deviation = (0.5 * agent.vae.log_variance(h)).exp()
    code = agent.vae.mean(h) + deviation * noise
    error = (agent.vae.decoder(code) - data.obs).square().sum(-1)
    reward, _ = agent.intrinsic_reward(data.obs)
    torch.testing.assert_close(reward, error + math.log(SKILLS) + sign * cross_entropy)
    law = torch.distributions
    codes = law.Normal(agent.vae.mean(h), deviation)
    divergence = law.kl_divergence(codes, law.Normal(0.0, 1.0))
    torch.testing.assert_close(agent.vae(data.obs, agent.streams)[1], divergence.sum(-1))


def test_smm_pays_a_batch_before_its_discriminator_learns_skills_from_states():
    agent, data = make("smm", discriminator_learning_rate=1e-2), batch("smm")
    obs = data.obs.clone()
    obs[..., :SKILLS] = obs[..., OBS:] + 0.1 * obs[..., :SKILLS]  # the state shows its skill
    data = data._replace(obs=obs)
    paid = make("smm").intrinsic_return(data)[1]["intrinsic_reward"]
    first = agent.update(data)
    torch.testing.assert_close(first["intrinsic_reward"], paid)
    assert float(first["discriminator_loss"]) == pytest.approx(math.log(SKILLS), rel=0.5)
    for _ in range(60):
        last = agent.update_representation(data)
    assert last["discriminator_loss"] < 0.1


def test_objectives_stand_side_by_side_once_and_random_actions_last():
    fields = {"task": "walker_run", "seed": 2}
    configs = side_by_side("smoke", "rnd", ["task", "rnd", "random"], **fields)
    assert [c.dataset for c in configs] == ["rnd-s2", "task-walker_run-s2", "random-s2"]
    with pytest.raises(ValueError, match="if, and only if, objective is task: 'walker_run'"):
        side_by_side("smoke", "rnd", [], **fields)
