"""The agents that collect: DDPG, and the two hooks of those with an intrinsic reward."""

import copy
import math

import pytest
import torch
from test_offline import assert_one_learns_as_alone, assert_restored_goes_on

from belib.agents import AGENTS, agent_of, side_by_side
from belib.agents.ddpg import DDPG
from belib.config import PretrainConfig
from belib.networks import RunningMoments
from belib.replay import Batch
from belib.rewards import OBJECTIVES, behavioral_reward, facts
from belib.weighting import prelec_beta

OBS, ACTION, SKILLS, SIZE = 5, 2, 3, 32
EXPLORERS = ("behavioral", "rnd", "smm")


def make(objective="behavioral", seeds=(0,), **changes):
    sizes = {"hidden_dim": 16, "batch_size": SIZE, "representation_dim": 8, "k": 4}
    sizes |= {"objective": objective, "skill_dim": SKILLS, **changes}
    obs_dim = OBS + SKILLS * (objective == "smm")
    configs = [PretrainConfig(**sizes, seed=seed) for seed in seeds]
    return agent_of(objective)(obs_dim, ACTION, configs)


def batch(objective="behavioral", members=1, seed=0, scale=1.0):
    """Random paths of 4 states; SMM's states end in a skill."""
    g = torch.Generator().manual_seed(seed)
    path = scale * torch.randn(members, SIZE, 4, OBS, generator=g)
    if objective == "smm":
        skills = torch.randint(SKILLS, (members, SIZE, 1), generator=g).expand(-1, -1, 4)
        path = torch.cat([path, torch.eye(SKILLS)[skills]], -1)
    action = torch.randn(members, SIZE, ACTION, generator=g).tanh()
    reward, discount = torch.zeros(members, SIZE), torch.full((members, SIZE), 0.97)
    return Batch(path[:, :, 0], action, reward, discount, path[:, :, -1], path)


def test_every_objective_has_an_agent_of_the_registry():
    assert {entry.agent for entry in OBJECTIVES.values()} == {*AGENTS, None}
    assert agent_of("random") is None


@pytest.mark.usefixtures("float32_products")
@pytest.mark.parametrize("convention", ["urlb", "corrected"])
@pytest.mark.parametrize("objective", EXPLORERS)
def test_a_member_learns_the_same_alone_and_beside_others(objective, convention):
    together = make(objective, seeds=(0, 1, 2), convention=convention)
    alone = make(objective, seeds=(1,), convention=convention)
    batches = [batch(objective, 3, seed=step) for step in range(30)]
    assert_one_learns_as_alone(together, alone, batches, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("objective", EXPLORERS)
def test_a_restored_agent_goes_on_to_the_bit(objective):
    agent, other = make(objective, seeds=(0, 1)), make(objective, seeds=(5, 6))
    assert_restored_goes_on(agent, other, [batch(objective, 2, seed=step) for step in range(4)])


@pytest.mark.parametrize("objective", EXPLORERS)
def test_the_return_pays_one_state_or_all_of_its_n(objective):
    data = batch(objective)
    reward, _ = make(objective).intrinsic_reward(data.obs)
    torch.testing.assert_close(make(objective).intrinsic_return(data)[0], reward)
    path = data.path.clone()
    path[:, :, 1:3] = path[:, :, 1:3].flip(1)  # other states between the same ends
    for convention, same in (("urlb", True), ("corrected", False)):
        one, two = (
            make(objective, convention=convention).intrinsic_return(each)[0]
            for each in (data, data._replace(path=path))
        )
        assert torch.equal(one, two) is same


def test_the_corrected_return_is_discounted():
    agent, data = make(convention="corrected"), batch()
    first, second, third = (agent.intrinsic_reward(data.path[:, :, i])[0] for i in range(3))
    total = first + 0.99 * second + 0.99**2 * third
    torch.testing.assert_close(agent.intrinsic_return(data)[0], total)


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
    errors = agent.icm(data.obs, data.action, data.path[:, :, step])
    before = agent.update_representation(data)["icm_loss"]
    torch.testing.assert_close(before, sum(errors).detach())
    for _ in range(100):
        after = agent.update_representation(data)["icm_loss"]
    assert after < 0.9 * before


@pytest.mark.parametrize("representation", ["random", "observation"])
def test_representations_that_are_not_learnt_cost_no_training(representation):
    agent, data = make(representation=representation), batch()
    before = agent.represent(data.obs)
    for _ in range(3):
        assert "icm_loss" not in agent.update(data)
    after = agent.represent(data.obs)
    if representation == "random":
        assert torch.equal(before, after)
        assert after.shape[-1] == 8
    else:  # each sensor over its deviation so far
        assert after.std(1, correction=0)[0].tolist() == pytest.approx([1.0] * OBS, rel=1e-3)


@pytest.mark.parametrize(("representation", "m"), [("observation", OBS), ("learnt", 8)])
def test_m_of_prelecs_beta_is_the_dimension_in_use(representation, m):
    agent, distance = make(representation=representation), torch.linspace(0, 3, 7)
    beta = prelec_beta(0.5, m)
    expected = behavioral_reward(distance, alpha=0.5, beta=beta)
    torch.testing.assert_close(agent.rewards[0](distance), expected)
    assert facts(agent.config, OBS) == {"alpha": 0.5, "beta": beta, "n_outcomes": m}


def test_renyis_published_and_signed_forms_by_hand():
    distance = torch.tensor([0.0, 0.5, 1.0, 2.0])
    published, signed = (
        make("renyi", q=2.0, renyi_form=form).rewards[0](distance)
        for form in ("published", "signed")
    )
    torch.testing.assert_close(published, torch.tensor([1e6, 2.0, 1.0, 0.5]))
    torch.testing.assert_close(signed, 1 - 1 / (1 + distance))


def test_members_may_differ_in_objective():
    configs = [make(objective).config for objective in ("behavioral", "renyi", "shannon")]
    agent, same = AGENTS["apt"](OBS, ACTION, configs), batch().obs.expand(3, -1, -1)
    reward, metrics = agent.intrinsic_reward(same)
    torch.testing.assert_close(metrics["knn_distance"], metrics["knn_distance"][:1].expand(3))
    assert len(set(reward.mean(1).tolist())) == 3


def test_rms_scaled_rewards_have_unit_size():
    agent = make(intrinsic_reward_scale="rms")
    for step in range(20):
        reward, metrics = agent.intrinsic_return(batch(seed=step))
    assert reward.square().mean().sqrt() == pytest.approx(1, rel=0.2)
    assert metrics["intrinsic_reward"].item() < 0.5  # logged before it is scaled


def test_rnd_by_hand():
    agent, data = make("rnd"), batch("rnd", scale=7.0)
    x = data.obs[0].double()
    x = ((x - x.mean(0)) / (x.var(0, correction=0) + 1e-5).sqrt()).clamp(-5, 5).float()
    error = (agent.target(x[None]) - agent.predictor(x[None])).square().mean(-1)
    torch.testing.assert_close(agent.error(data.obs), error)
    reward, _ = agent.intrinsic_reward(data.obs)
    torch.testing.assert_close(reward, error / error.std(correction=0), rtol=1e-3, atol=0)


def test_rnds_target_stays_and_its_predictor_learns():
    agent, data = make("rnd", learning_rate=1e-3), batch("rnd")
    fixed = copy.deepcopy(list(agent.target.parameters()))
    before = agent.error(data.obs).mean()
    for _ in range(100):
        agent.update(data)
    assert all(map(torch.equal, fixed, agent.target.parameters()))
    assert agent.error(data.obs).mean() < before / 2


def test_rnd_scales_observations_by_the_batch_or_by_all_so_far():
    far = batch("rnd", seed=1).obs + 100
    urlb, corrected = make("rnd"), make("rnd", convention="corrected")
    for agent in (urlb, corrected):
        agent.update(batch("rnd"))
    assert urlb.normalised(far).mean().abs() < 1e-3
    assert (corrected.normalised(far) == 5).all()  # clipped


@pytest.mark.parametrize("convention", ["urlb", "corrected"])
def test_rnd_is_finite_for_constant_observations(convention):
    agent, data = make("rnd", convention=convention), batch("rnd", scale=0.0)
    for _ in range(3):
        metrics = agent.update(data)
    assert all(torch.isfinite(value).all() for value in metrics.values())


def test_running_moments_are_those_of_all_numbers():
    moments, g = RunningMoments(2, 3), torch.Generator().manual_seed(0)
    parts = [5 * torch.randn(2, n, 3, generator=g) + 2 for n in (10, 500, 7, 9_483)]
    for part in parts:
        moments.count_in(part)
    variance, mean = torch.var_mean(torch.cat(parts, 1).double(), 1, correction=0, keepdim=True)
    torch.testing.assert_close(moments.mean.double(), mean, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(moments.variance.double(), variance, rtol=1e-4, atol=0)


@pytest.mark.parametrize(("convention", "sign"), [("urlb", 1), ("corrected", -1)])
def test_smm_by_hand(convention, sign):
    agent, data = make("smm", convention=convention), batch("smm")
    state, skill = data.obs.split([OBS, SKILLS], -1)
    cross_entropy = -(agent.discriminator(state).softmax(-1).log() * skill).sum(-1)
    before = agent.streams.state_dict()
    noise = agent.streams.normal(SIZE, 128)
    agent.streams.load_state_dict(before)
    h = agent.vae.encoder(data.obs)
    code = agent.vae.mean(h) + (0.5 * agent.vae.log_variance(h)).exp() * noise
    error = (agent.vae.decoder(code) - data.obs).square().sum(-1)
    reward, _ = agent.intrinsic_reward(data.obs)
    torch.testing.assert_close(reward, error + math.log(SKILLS) + sign * cross_entropy)


def test_smm_pays_a_batch_before_it_learns_from_it():
    agent, data = make("smm", vae_learning_rate=0.1), batch("smm")
    paid = make("smm").intrinsic_return(data)[1]["intrinsic_reward"]
    torch.testing.assert_close(agent.update(data)["intrinsic_reward"], paid)


def test_smms_discriminator_learns_skills_from_states_alone():
    agent, data = make("smm", discriminator_learning_rate=1e-2), batch("smm")
    obs = data.obs.clone()
    obs[..., :SKILLS] = obs[..., OBS:] + 0.1 * obs[..., :SKILLS]  # the state shows its skill
    data = data._replace(obs=obs)
    losses = [float(agent.update(data)["discriminator_loss"]) for _ in range(100)]
    assert losses[0] == pytest.approx(math.log(SKILLS), rel=0.5)
    assert losses[-1] < 0.1


@pytest.mark.parametrize("objective", EXPLORERS)
def test_products_in_bfloat16_pay_nearly_the_same(objective):
    """bfloat16 has 3 digits; distances and sums are computed in float32 from them."""
    exact, rounded = make(objective), make(objective, precision="bfloat16")
    for step in range(3):
        data = batch(objective, seed=step)
        one, two = exact.update(data), rounded.update(data)
    assert all(value.dtype == torch.float32 for value in (*two.values(), *rounded.parameters()))
    torch.testing.assert_close(two["intrinsic_reward"], one["intrinsic_reward"], rtol=0.05, atol=0)
    assert two["intrinsic_reward"] != one["intrinsic_reward"]


def test_ddpg_learns_from_the_rewards_in_replay():
    """Reward -(a - tanh(obs))^2 without a future: the policy must find a = tanh(obs)."""
    sizes = {"hidden_dim": 32, "batch_size": 64, "learning_rate": 3e-3}
    agent, g = DDPG(OBS, ACTION, [PretrainConfig(**sizes)]), torch.Generator().manual_seed(0)
    for _ in range(600):
        obs = torch.randn(1, 64, OBS, generator=g)
        action = torch.rand(1, 64, ACTION, generator=g) * 2 - 1
        reward = -(action - obs[..., :ACTION].tanh()).square().sum(-1)
        agent.update(Batch(obs, action, reward, torch.zeros(1, 64), obs))
    error = (agent.act(obs, explore=False) - obs[..., :ACTION].tanh()).abs().mean()
    assert error < 0.2  # random actions are off by 0.65, zero actions by 0.54


def test_objectives_stand_side_by_side_each_once_and_random_actions_last():
    def names(*objectives, **fields):
        return [config.dataset for config in side_by_side("smoke", *objectives, **fields)]

    assert names("random", []) == names("random", ["random"]) == ["random-s0"]
    assert names("rnd", ["smm", "rnd", "random"], seed=2) == ["rnd-s2", "smm-s2", "random-s2"]
    both = ["shannon-s0", "task-walker_run-s0", "random-s0"]
    assert names("shannon", ["task"], task="walker_run") == both
    for objectives in (("shannon", ["task"]), ("task", []), ("random", ["task"])):
        with pytest.raises(ValueError, match="task must be given for the objective task"):
            names(*objectives)
    with pytest.raises(ValueError, match="for no other, got 'walker_run' for shannon"):
        names("shannon", ["rnd"], task="walker_run")
