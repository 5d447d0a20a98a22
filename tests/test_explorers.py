"""The two hooks of the agents that pay themselves, in both conventions."""

import math

import pytest
import torch

from belib.agents import side_by_side
from belib.agents.apt import APT
from belib.agents.ddpg import DDPG
from belib.agents.rnd import RND
from belib.agents.smm import SMM
from belib.config import PretrainConfig
from belib.networks import RunningMoments
from belib.replay import Batch

OBS, ACTION, SKILLS, SIZE = 5, 2, 3, 32
AGENTS = {"behavioral": APT, "rnd": RND, "smm": SMM}


def make(objective, seeds=(0,), **changes):
    sizes = {"hidden_dim": 16, "batch_size": SIZE, "representation_dim": 8, "k": 4}
    sizes |= {"objective": objective, "skill_dim": SKILLS, **changes}
    obs_dim = OBS + SKILLS * (objective == "smm")
    return AGENTS[objective](obs_dim, ACTION, [PretrainConfig(**sizes, seed=s) for s in seeds])


def batch(objective, members=1, seed=0, scale=1.0):
    """Random paths of 4 states each, with a skill of their own for SMM."""
    g = torch.Generator().manual_seed(seed)
    path = scale * torch.randn(members, SIZE, 4, OBS, generator=g)
    if objective == "smm":
        drawn = torch.randint(SKILLS, (members, SIZE, 1), generator=g).expand(-1, -1, 4)
        path = torch.cat([path, torch.eye(SKILLS)[drawn]], -1)
    action = torch.randn(members, SIZE, ACTION, generator=g).tanh()
    reward, discount = torch.zeros(members, SIZE), torch.full((members, SIZE), 0.97)
    return Batch(path[:, :, 0], action, reward, discount, path[:, :, -1], path)


def of_member(data, member):
    return Batch(*(part[member : member + 1] for part in data))


@pytest.mark.parametrize("convention", ["urlb", "corrected"])
@pytest.mark.parametrize("objective", AGENTS)
def test_a_member_learns_the_same_alone_and_beside_others(objective, convention):
    together = make(objective, seeds=(0, 1, 2), convention=convention)
    alone = make(objective, seeds=(1,), convention=convention)
    for step in range(100):
        data = batch(objective, 3, seed=step)
        found, expected = together.update(data), alone.update(of_member(data, 1))
    for key, value in expected.items():
        torch.testing.assert_close(found[key][1:2], value, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("objective", AGENTS)
def test_the_return_pays_one_state_or_all_of_its_n(objective):
    data = batch(objective)
    alone, urlb = make(objective), make(objective)
    expected, _ = alone.intrinsic_reward(data.obs)
    torch.testing.assert_close(urlb.intrinsic_return(data)[0], expected)
    if objective == "behavioral":  # the others draw noise or count errors in
        agent = make(objective, convention="corrected")
        first, second, third = (agent.intrinsic_reward(data.path[:, :, i])[0] for i in range(3))
        total = first + 0.99 * second + 0.99**2 * third
        torch.testing.assert_close(agent.intrinsic_return(data)[0], total)
    moved = data.path.clone()
    moved[:, :, 1:3] = moved[:, :, 1:3].flip(1)  # other states between the same ends
    later = data._replace(path=moved)
    one, two = (make(objective).intrinsic_return(each)[0] for each in (data, later))
    assert torch.equal(one, two)
    pair = [make(objective, convention="corrected") for _ in range(2)]
    one, two = (a.intrinsic_return(d)[0] for a, d in zip(pair, (data, later), strict=True))
    assert not torch.allclose(one, two)


@pytest.mark.parametrize(("convention", "first"), [("urlb", 0), ("corrected", 1)])
def test_apt_counts_the_state_itself_or_not(convention, first):
    agent, data = make("behavioral", convention=convention, k=3), batch("behavioral")
    phi = agent.icm.trunk(data.obs)[0].detach().double()
    nearest = torch.cdist(phi, phi).fill_diagonal_(0).sort(-1).values[:, first : first + 3]
    _, metrics = agent.intrinsic_reward(data.obs)
    assert metrics["knn_distance"].item() == pytest.approx(nearest.mean().item(), rel=1e-5)


@pytest.mark.parametrize(("convention", "step"), [("urlb", 3), ("corrected", 1)])
def test_apts_curiosity_spans_n_steps_or_one(convention, step):
    agent, data = make("behavioral", convention=convention), batch("behavioral")
    errors = agent.icm(data.obs, data.action, data.path[:, :, step])
    found = agent.update_representation(data)["icm_loss"]
    torch.testing.assert_close(found, sum(errors).detach())


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
    fixed = [parameter.clone() for parameter in agent.target.parameters()]
    before = agent.error(data.obs).mean()
    for _ in range(100):
        metrics = agent.update(data)
    pairs = zip(fixed, agent.target.parameters(), strict=True)
    assert all(torch.equal(one, two) for one, two in pairs)
    assert agent.error(data.obs).mean() < before / 2
    assert metrics["intrinsic_reward"] >= 0


def test_rnd_scales_observations_by_the_batch_or_by_all_seen():
    far = batch("rnd", seed=1)
    far = far._replace(obs=far.obs + 100)
    urlb, corrected = make("rnd"), make("rnd", convention="corrected")
    for agent in (urlb, corrected):
        agent.update(batch("rnd"))
    assert urlb.normalised(far.obs).mean().abs() < 1e-3
    assert (corrected.normalised(far.obs) == 5).all()  # clipped: far from anything seen


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
    scaled = torch.cat(parts, 1) / moments.variance.sqrt()
    assert scaled.std().item() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(("convention", "sign"), [("urlb", 1), ("corrected", -1)])
def test_smm_by_hand(convention, sign):
    agent, data = make("smm", convention=convention), batch("smm")
    state, skill = data.obs.split([OBS, SKILLS], -1)
    probability = agent.discriminator(state).softmax(-1)
    cross_entropy = -(probability.log() * skill).sum(-1)
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
    told = data.obs.clone()
    told[..., :SKILLS] = told[..., OBS:] + 0.1 * told[..., :SKILLS]  # the state shows its skill
    data = data._replace(obs=told)
    losses = [float(agent.update(data)["discriminator_loss"]) for _ in range(100)]
    assert losses[0] == pytest.approx(math.log(SKILLS), rel=0.5)
    assert losses[-1] < 0.1
    blind = told.clone()
    blind[..., OBS:] = blind[..., OBS:].roll(1, -1)
    state_only = agent.discriminator(blind[..., :OBS])
    assert torch.equal(state_only, agent.discriminator(told[..., :OBS]))


@pytest.mark.parametrize("objective", AGENTS)
def test_products_in_bfloat16_pay_nearly_the_same(objective):
    """bfloat16 has 3 digits; distances and sums are computed in float32 from them."""
    exact, rounded = make(objective), make(objective, precision="bfloat16")
    for step in range(3):
        data = batch(objective, seed=step)
        one, two = exact.update(data), rounded.update(data)
    assert all(value.dtype == torch.float32 for value in two.values())
    torch.testing.assert_close(two["intrinsic_reward"], one["intrinsic_reward"], rtol=0.05, atol=0)
    assert two["intrinsic_reward"] != one["intrinsic_reward"]
    assert all(parameter.dtype == torch.float32 for parameter in rounded.parameters())


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
    named = lambda *asked, **given: [c.dataset for c in side_by_side("smoke", *asked, **given)]  # noqa: E731
    assert named("random", []) == named("random", ["random"]) == ["random-s0"]
    assert named("rnd", ["smm", "rnd", "random"], seed=2) == ["rnd-s2", "smm-s2", "random-s2"]
    both = ["shannon-s0", "task-walker_run-s0", "random-s0"]
    assert named("shannon", ["task"], task="walker_run") == both
    for asked in (("shannon", ["task"]), ("task", []), ("random", ["task"])):
        with pytest.raises(ValueError, match="task must be given for the objective task"):
            named(*asked)
    with pytest.raises(ValueError, match="for no other, got 'walker_run' for shannon"):
        named("shannon", ["rnd"], task="walker_run")
