"""Networks, optimiser, precision of products, and what all learners share."""

import copy

import pytest
import torch
from test_offline import OBS, learner
from torch.nn import functional

from belib import machine
from belib.machine import products
from belib.networks import Actor, Adam, Linear, RunningMoments, RunningRMS, Trunk, TwinCritic
from belib.streams import Streams


def test_a_member_is_ordinary_layers_with_orthogonal_weights_of_its_seed():
    layer, x = Linear(Streams([0, 1], "test"), 8, 8, copies=2), torch.randn(4, 7, 8)
    for row, (weight, bias) in enumerate(zip(layer.weight, layer.bias, strict=True)):
        torch.testing.assert_close(layer(x)[row], functional.linear(x[row], weight.T, bias[0]))
        torch.testing.assert_close(weight @ weight.T, torch.eye(8), atol=1e-5, rtol=0)
    assert len({float(w.sum()) for w in layer.weight.detach()}) == 4
    assert torch.equal(Linear(Streams([1], "test"), 8, 8, copies=2).weight, layer.weight[1::2])
    trunk, x = Trunk(Streams([0, 1], "test"), 8, 6).double(), torch.randn(2, 7, 8).double()
    for part in (inputs := [x.requires_grad_(), *trunk.parameters()]):
        part.data += 0.3 * torch.randn_like(part)
    normal = functional.layer_norm(trunk.linear(x), (6,))
    outputs = trunk(x), (trunk.scale * normal + trunk.shift).tanh()
    torch.testing.assert_close(*outputs)
    torch.testing.assert_close(*(torch.autograd.grad(y.exp().sum(), inputs) for y in outputs))


@pytest.mark.parametrize("shared", [True, False])
def test_twin_critics_differ_and_keep_members_apart(shared):
    critic = TwinCritic(Streams([0, 1, 2], "test"), 4, 2, 8, shared=shared)
    obs, actions = torch.randn(3, 5, 4), torch.randn(3, 2, 5, 2)
    values = critic(obs, actions[:, 1])
    assert values.shape == (2, 3, 5)
    assert not torch.equal(values[0], values[1])
    torch.testing.assert_close(critic.of_several(obs, actions)[:, :, 1], values)
    values[0, 1].sum().backward()
    touched = critic.trunk.linear.weight.grad.flatten(1).abs().sum(1) > 0
    assert touched.tolist() == [False, True, False] + ([] if shared else [False] * 3)


def test_adam_is_torchs():
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(3, 4, generator=generator), torch.randn(5, generator=generator)]
    ours, theirs = ([torch.nn.Parameter(x.clone()) for x in start] for _ in range(2))
    one, two = Adam(ours, 0.01), torch.optim.Adam(theirs, lr=0.01)
    for _ in range(20):
        one.descend(sum((x**4).sum() for x in ours))
        two.zero_grad()
        sum((x**4).sum() for x in theirs).backward()
        two.step()
    for parameter, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(parameter, expected)


def test_running_moments_and_rms_are_those_of_all_numbers():
    g = torch.Generator().manual_seed(0)
    parts = [5 * torch.randn(2, n, 3, generator=g) + 2 for n in (10, 500, 7, 9_483)]
    moments, rms = RunningMoments(2, 3), RunningRMS(2)
    for part in parts:
        moments.count_in(part)
        scaled = rms(part[..., 0])
    everything = torch.cat(parts, 1).double()
    variance, mean = torch.var_mean(everything, 1, correction=0, keepdim=True)
    torch.testing.assert_close(moments.mean.double(), mean, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(moments.variance.double(), variance, rtol=1e-4, atol=0)
    expected = parts[-1][..., 0] / everything[..., 0].square().mean(1, keepdim=True).sqrt()
    torch.testing.assert_close(scaled.double(), expected, rtol=1e-4, atol=0)
    assert torch.isfinite(RunningRMS(1)(torch.zeros(1, 4))).all()


@pytest.mark.parametrize(("error", "answer"), [(1e-6, "medium"), (2e-3, "highest")])
def test_torchs_setting_is_the_fastest_that_is_right_and_restored(monkeypatch, error, answer):
    """On a processor whose products have this error at the setting `medium`."""
    monkeypatch.setattr(machine, "_error_of_a_product", lambda: error)
    monkeypatch.setattr(machine, "fastest_float32", machine.fastest_float32.__wrapped__)
    before = torch.get_float32_matmul_precision()
    for precision in ("float32", "tf32", "bfloat16"):
        with products(precision):
            assert torch.get_float32_matmul_precision() == answer
        assert torch.get_float32_matmul_precision() == before


def test_bfloat16_products_use_present_parameters_and_leave_all_else_in_float32():
    """Also after a step inside the same block, and with gradients after a call without them."""
    actor, x = Actor(Streams([0], "test"), 4, 2, 8), torch.randn(1, 50, 4)
    with products("bfloat16"):
        with torch.no_grad():
            before = actor(x)
            actor.head[0].weight.mul_(2)
        after = actor(x)
        assert actor.trunk(x).dtype == torch.bfloat16
    gradients = torch.autograd.grad(after.sum(), list(actor.parameters()))
    assert {x.dtype for x in (after, *gradients)} == {torch.float32}
    assert all(gradient.abs().sum() > 0 for gradient in gradients)
    exact = actor(x)
    assert not torch.equal(before, after)
    assert not torch.equal(exact, after)
    torch.testing.assert_close(after, exact, atol=0.03, rtol=0)


def test_the_fastest_precision_is_measured_and_must_be_right(monkeypatch):
    assert machine.fastest_precision() in ("float32", "bfloat16")  # with the real clock
    cases = ((1.4, 1e-3, "bfloat16"), (1.2, 1e-3, "float32"), (2.0, 0.1, "float32"))
    for ratio, error, answer in cases:
        monkeypatch.setattr(machine, "_seconds_of_a_product", {"float32": ratio, "bfloat16": 1}.get)
        monkeypatch.setattr(machine, "_error_of_a_product", lambda error=error: error)
        assert machine.fastest_precision.__wrapped__() == answer


def test_a_cleared_member_is_zero_and_the_others_are_as_before():
    made = learner("td3", seeds=(0, 1, 2))
    before = copy.deepcopy(dict(made.named_parameters()))
    made.clear(1)
    for name, value in made.named_parameters():
        old, new = (x.unflatten(0, (-1, 3)) for x in (before[name], value))
        assert not new[:, 1].any()
        assert torch.equal(new[:, ::2], old[:, ::2])


def test_smoothing_noise_is_drawn_for_each_row_clipped_and_differentiable():
    made, obs = learner("td3", stddev=0.2, stddev_clip=0.3), torch.ones(1, 4096, OBS)
    noisy = made.smoothed(mean := made.actor(obs))
    noise = (noisy - mean).detach()
    assert noise.abs().max() <= 0.3 + 1e-6
    clipped = (0.2 * torch.randn(100_000)).clamp(-0.3, 0.3).std()
    assert noise[0, :, 0].std() == pytest.approx(clipped.item(), rel=0.05)
    near = made.smoothed(torch.full((1, 4096, 2), 0.9))
    assert (near.min().item(), near.max().item()) == pytest.approx((0.6, 1 - 1e-6), abs=1e-7)
    noisy.sum().backward()
    assert made.actor.head[-1].weight.grad.abs().sum() > 0


def test_acting_is_the_mean_or_noisy_and_in_range():
    made, obs = learner("td3"), 100 * torch.randn(1, 100, OBS)
    mean, noisy = (made.act(obs, explore=explore) for explore in (False, True))
    assert torch.equal(mean, made.act(obs, explore=False))
    assert (noisy - mean).abs().max() > 0.3  # exploration noise is not clipped
    assert max(mean.abs().max(), noisy.abs().max()) < 1
    still = made.act(torch.zeros(1, 4096, OBS), explore=True)  # the mean is 0
    assert still.std().item() == pytest.approx(0.2, rel=0.05)
