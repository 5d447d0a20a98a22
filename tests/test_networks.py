import copy

import pytest
import torch
from test_offline import OBS, learner
from torch.nn import functional

from belib import machine
from belib.machine import products
from belib.networks import Actor, Adam, Linear, RunningRMS, Tanh, Trunk, TwinCritic
from belib.streams import Streams


def test_a_member_is_an_ordinary_linear_layer():
    layer, x = Linear(Streams([0, 1], "test"), 5, 3), torch.randn(2, 7, 5)
    for member in range(2):
        expected = functional.linear(x[member], layer.weight[member].T, layer.bias[member, 0])
        torch.testing.assert_close(layer(x)[member], expected)


def test_weights_are_orthogonal_and_each_members_own():
    layer = Linear(Streams([0, 1], "test"), 8, 8, copies=2)
    assert layer.weight.shape == (4, 8, 8)
    product = layer.weight @ layer.weight.mT
    torch.testing.assert_close(product, torch.eye(8).expand(4, 8, 8), atol=1e-5, rtol=0)
    assert len({float(w.sum()) for w in layer.weight.detach()}) == 4
    alone = Linear(Streams([1], "test"), 8, 8, copies=2)
    torch.testing.assert_close(alone.weight, layer.weight[1::2], rtol=0, atol=0)


def test_trunk_is_linear_norm_tanh():
    trunk, x = Trunk(Streams([0], "test"), 4, 6), torch.randn(1, 9, 4)
    expected = functional.layer_norm(trunk.linear(x), (6,)).tanh()
    torch.testing.assert_close(trunk(x), expected)


@pytest.mark.parametrize("shared", [True, False])
def test_twin_critics_differ_and_keep_members_apart(shared):
    critic = TwinCritic(Streams([0, 1, 2], "test"), 4, 2, 8, shared_trunk=shared)
    obs, action = torch.randn(3, 5, 4), torch.randn(3, 5, 2)
    values = critic(obs, action)
    assert values.shape == (2, 3, 5)
    assert not torch.equal(values[0], values[1])
    values[0, 1].sum().backward()
    touched = critic.trunk.linear.weight.grad.flatten(1).abs().sum(1) > 0
    assert touched.tolist() == [False, True, False] + ([] if shared else [False] * 3)


def test_actor_stays_in_the_action_range():
    actor = Actor(Streams([0], "test"), 4, 2, 8)
    assert actor(100 * torch.randn(1, 50, 4)).abs().max() <= 1


def test_adam_is_torchs():
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(3, 4, generator=generator), torch.randn(5, generator=generator)]
    ours, theirs = ([torch.nn.Parameter(x.clone()) for x in start] for _ in range(2))
    one, two = Adam(ours, 0.01), torch.optim.Adam(theirs, lr=0.01)
    for _ in range(20):
        one.descend(ours, sum((x**4).sum() for x in ours))
        two.zero_grad()
        sum((x**4).sum() for x in theirs).backward()
        two.step()
    for found, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(found, expected)


def test_running_rms_is_the_root_mean_square_of_all_that_was_seen():
    rms, generator = RunningRMS(2), torch.Generator().manual_seed(0)
    seen = [torch.randn(2, 10, generator=generator) * 5 for _ in range(1000)]
    for batch in seen:
        scaled = rms(batch)
    everything = torch.cat(seen, 1)
    expected = everything.square().mean(1, keepdim=True).sqrt()
    torch.testing.assert_close(scaled, seen[-1] / expected, rtol=1e-4, atol=0)
    assert torch.isfinite(RunningRMS(1)(torch.zeros(1, 4))).all()


def test_values_of_several_actions_are_those_of_each():
    critic = TwinCritic(Streams([0, 1], "test"), 4, 2, 8, shared_trunk=False)
    obs, actions = torch.randn(2, 5, 4), torch.randn(2, 3, 5, 2)
    found = critic.of_several(obs, actions)
    assert found.shape == (2, 2, 3, 5)
    torch.testing.assert_close(found[:, :, 1], critic(obs, actions[:, 1]))


def test_float32_products_have_single_precision():
    one, two = torch.randn(2, 64, 300, 300, generator=torch.Generator().manual_seed(0))
    exact = one.double() @ two.double()
    with products("float32"):
        error = (one @ two - exact).abs().max() / exact.abs().max()
    assert error < 1e-5


@pytest.mark.parametrize(("error", "answer"), [(1e-6, "medium"), (2e-3, "highest")])
def test_products_are_set_to_the_fastest_that_is_right_and_settings_left_alone(
    monkeypatch, error, answer
):
    """On a processor whose products err so much at the setting `medium`."""
    monkeypatch.setattr(machine, "_error_of_a_product", lambda: error)
    monkeypatch.setattr(machine, "fastest_float32", machine.fastest_float32.__wrapped__)
    before = torch.get_float32_matmul_precision()
    for precision in ("float32", "tf32", "bfloat16"):
        with products(precision):
            assert torch.get_float32_matmul_precision() == answer
        assert torch.get_float32_matmul_precision() == before


def test_bfloat16_products_leave_parameters_gradients_and_outputs_in_float32():
    actor, x = Actor(Streams([0], "test"), 4, 2, 8), torch.randn(1, 50, 4)
    with products("bfloat16"):
        found = actor(x)
        assert actor.trunk(x).dtype == torch.bfloat16
    found.square().mean().backward()
    assert {found.dtype} | {p.grad.dtype for p in actor.parameters()} == {torch.float32}
    exact = actor(x)
    assert not torch.equal(found, exact)
    torch.testing.assert_close(found, exact, atol=0.03, rtol=0)


def test_bfloat16_products_see_parameters_as_they_are_now():
    """Also after a step inside the same block, and with gradients after a look without them."""
    actor, x = Actor(Streams([0], "test"), 4, 2, 8), torch.randn(1, 50, 4)
    with products("bfloat16"):
        with torch.no_grad():
            before = actor(x)
            actor.head[0].weight.mul_(2)
        after = actor(x)
        gradients = torch.autograd.grad(after.sum(), list(actor.parameters()))
    assert not torch.equal(before, after)
    assert all(each.abs().sum() > 0 for each in gradients)


def test_the_fastest_precision_is_measured_and_must_be_right(monkeypatch):
    """The clock is ours: bfloat16 is chosen where it is 1.3 times as fast, and exact enough."""
    precisions = ("float32", "bfloat16")

    def measured(ratio, error=1e-3):
        times = {"float32": ratio, "bfloat16": 1.0}
        clock = iter([t for _ in range(10) for p in precisions for t in (0.0, times[p])])
        monkeypatch.setattr(machine.time, "thread_time", lambda: next(clock))
        monkeypatch.setattr(machine, "_error_of_a_product", lambda: error)
        return machine.fastest_precision.__wrapped__()

    assert machine.fastest_precision() in precisions  # with the real clock
    monkeypatch.setattr(machine, "device", lambda: torch.device("cpu"))
    assert measured(1.4) == "bfloat16"
    assert measured(1.2) == "float32"
    assert measured(2.0, error=0.1) == "float32"


def test_tf32_is_float32_on_a_cpu():
    one, two = torch.randn(2, 64, 64, generator=torch.Generator().manual_seed(0))
    with products("tf32"):
        found = one @ two
    with products("float32"):
        assert torch.equal(found, one @ two)


def test_tanh_of_bfloat16_is_torchs():
    x = torch.linspace(-4, 4, 1000, dtype=torch.bfloat16).requires_grad_()
    ours, torchs = Tanh.apply(x), x.tanh()
    torch.testing.assert_close(ours, torchs, atol=1e-2, rtol=0)
    slopes = [torch.autograd.grad(y.sum(), x)[0] for y in (ours, torchs)]
    torch.testing.assert_close(*slopes, atol=1e-2, rtol=0)


def test_processes_side_by_side_share_the_threads(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    assert [machine.threads_each(n) for n in (1, 3, 20)] == [8, 2, 1]


def test_the_target_critic_moves_by_tau():
    made = learner("td3")
    with torch.no_grad():
        for parameter in made.critic.parameters():
            parameter += 1
    before, after = copy.deepcopy(made.critic_target.state_dict()), made.critic.state_dict()
    made.update_target()
    for name, value in made.critic_target.state_dict().items():
        torch.testing.assert_close(value, 0.99 * before[name] + 0.01 * after[name])


def test_smoothing_noise_is_drawn_for_each_row_clipped_and_differentiable():
    made, obs = learner("td3", stddev=0.2, stddev_clip=0.3), torch.ones(1, 4096, OBS)
    noisy = made.noisy_action(obs)
    noise = (noisy - made.actor(obs)).detach()
    assert noise.abs().max() <= 0.3 + 1e-6
    assert noise[0, 0, 0] != noise[0, 1, 0]
    clipped = (0.2 * torch.randn(100_000)).clamp(-0.3, 0.3).std()
    assert noise.std() == pytest.approx(clipped.item(), rel=0.05)
    assert noisy.abs().max() <= 1
    noisy.sum().backward()
    assert made.actor.head[-1].weight.grad.abs().sum() > 0


def test_acting_is_the_mean_or_noisy_and_in_range():
    made, obs = learner("td3"), torch.randn(1, 100, OBS)
    mean = made.act(obs, explore=False)
    assert torch.equal(mean, made.act(obs, explore=False))
    noisy = made.act(obs, explore=True)
    assert (noisy - mean).abs().max() > 0.3  # exploration noise is not clipped
    assert noisy.abs().max() < 1
