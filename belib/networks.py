"""Networks with a leading member axis: M networks of one shape, trained in lockstep.

Inputs are (M, B, features) and a layer is one batched matrix product, so that one member costs as
much as an ordinary network. Twin critics are 2 M networks: all first critics, then all second ones.
"""

import itertools
from collections.abc import Iterable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from belib.streams import Streams

_LOG_STD = (-10, 2)  # range of Gaussian policies' log standard deviation, as in ExORL


class Linear(nn.Module):
    """M affine maps with orthogonal weights (from the members' streams) and zero biases."""

    def __init__(self, streams: Streams, in_dim: int, out_dim: int, copies: int = 1):
        super().__init__()
        weights = [
            nn.init.orthogonal_(torch.empty(out_dim, in_dim), generator=generator).T
            for _ in range(copies)
            for generator in streams.generators
        ]
        self.weight = nn.Parameter(torch.stack(weights).contiguous())
        self.bias = nn.Parameter(torch.zeros(copies * len(streams), 1, out_dim))

    def forward(self, x: Tensor) -> Tensor:
        """Map (M, B, in) to (M, B, out)."""
        product = torch.bmm(x, self.weight)
        return product.add_(self.bias.to(product.dtype))  # on CPUs faster than `baddbmm`


class Trunk(nn.Module):
    """Linear, layer normalisation, tanh: the first layer of URLB's actors and critics."""

    def __init__(self, streams: Streams, in_dim: int, out_dim: int, copies: int = 1):
        super().__init__()
        self.linear = Linear(streams, in_dim, out_dim, copies)
        self.scale = nn.Parameter(torch.ones(copies * len(streams), 1, out_dim))
        self.shift = nn.Parameter(torch.zeros(copies * len(streams), 1, out_dim))

    def forward(self, x: Tensor) -> Tensor:
        """Map (M, B, in) to (M, B, out), in (-1, 1)."""
        h = functional.layer_norm(self.linear(x), self.scale.shape[-1:])
        return cast(Tensor, _Tanh.apply(h, self.scale, self.shift))


class _Tanh(torch.autograd.Function):
    """tanh(scale h + shift) as 1 - 2 sigmoid(-2 x), within 2e-7, which CPUs compute faster."""

    ONE = torch.ones(())

    @staticmethod
    def forward(ctx: Any, h: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        y = torch.addcmul(-2 * shift, h, -2 * scale).sigmoid_()  # never in bfloat16
        y = torch.sub(_Tanh.ONE, y, alpha=2, out=y).to(h.dtype)
        ctx.save_for_backward(h, scale, y)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        h, scale, y = ctx.saved_tensors
        g = torch.ops.aten.tanh_backward(gradients[0], y)
        of_scale, of_shift = (part.sum(1, keepdim=True) for part in (g * h, g))
        return g.mul_(scale.to(g.dtype)), of_scale, of_shift


def mlp(streams: Streams, *dims: int, copies: int = 1) -> nn.Sequential:
    """Return linear layers of the widths `dims` with ReLU between them."""
    layers: list[nn.Module] = []
    for in_dim, out_dim in itertools.pairwise(dims):
        layers += [Linear(streams, in_dim, out_dim, copies), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers[:-1])


class Actor(nn.Module):
    """Map obs (M, B, obs_dim) to the mean action (M, B, action_dim), in (-1, 1)."""

    def __init__(self, streams: Streams, obs_dim: int, action_dim: int, hidden_dim: int):
        super().__init__()
        self.trunk = Trunk(streams, obs_dim, hidden_dim)
        self.head = mlp(streams, hidden_dim, hidden_dim, action_dim)

    def forward(self, obs: Tensor) -> Tensor:
        return self.head(self.trunk(obs)).float().tanh()


class GaussianActor(nn.Module):
    """Map obs (M, B, obs_dim) to mean and standard deviation (M, B, action_dim) before tanh."""

    def __init__(self, streams: Streams, obs_dim: int, action_dim: int, hidden_dim: int):
        super().__init__()
        self.trunk = Trunk(streams, obs_dim, hidden_dim)
        self.head = mlp(streams, hidden_dim, hidden_dim, 2 * action_dim)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = self.head(self.trunk(obs)).float().chunk(2, -1)
        return mean, log_std.clamp(*_LOG_STD).exp()


class TwinCritic(nn.Module):
    """Map obs and action to the values of two critics, (2, M, B)."""

    def __init__(
        self, streams: Streams, obs_dim: int, action_dim: int, hidden_dim: int, *, shared: bool
    ):
        super().__init__()
        self.shared = shared
        self.trunk = Trunk(streams, obs_dim + action_dim, hidden_dim, 1 if shared else 2)
        self.head = mlp(streams, hidden_dim, hidden_dim, 1, copies=2)

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        x = torch.cat([obs, action], -1)
        # a trunk for both critics, or two trunks
        h = torch.cat([self.trunk(x)] * 2) if self.shared else self.trunk(torch.cat([x] * 2))
        return self.head(h).float().view(2, *x.shape[:-1])

    def of_several(self, obs: Tensor, actions: Tensor) -> Tensor:
        """Return values (2, M, N, B) of actions (M, N, B, action_dim) at obs (M, B, obs_dim)."""
        return torch.stack([self(obs, action) for action in actions.unbind(1)], 2)


class RunningRMS(nn.Module):
    """The root mean square of all numbers so far, for every member."""

    def __init__(self, members: int):
        super().__init__()
        self.mean_square = nn.Buffer(torch.zeros(members, 1))
        self.count = nn.Buffer(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        """Include the numbers (M, B); return them divided by the new root mean square."""
        self.count += x.shape[-1]
        share = x.shape[-1] / self.count
        self.mean_square.lerp_(x.square().mean(-1, keepdim=True), share)
        return x / self.mean_square.sqrt().clamp_min(torch.finfo(x.dtype).tiny)


class RunningMoments(nn.Module):
    """Mean and variance of all numbers so far, by member and feature (Chan et al. 1979).

    As in URLB, they begin with mean 0 and variance 1, with the weight of 1e-4 numbers: the variance
    is positive after a batch of equal numbers, and after n numbers at least 1e-4 mean^2 / n.
    """

    def __init__(self, members: int, features: int):
        super().__init__()
        self.mean = nn.Buffer(torch.zeros(members, 1, features))
        self.variance = nn.Buffer(torch.ones(members, 1, features))
        self.count = nn.Buffer(torch.tensor(1e-4, dtype=torch.float64))

    @torch.no_grad()
    def count_in(self, x: Tensor) -> None:
        """Include the numbers (M, B, features)."""
        variance, mean = torch.var_mean(x, 1, correction=0, keepdim=True)
        self.count += x.shape[1]
        share = (x.shape[1] / self.count).float()
        difference = mean - self.mean
        self.mean += share * difference
        self.variance.lerp_(variance, share).add_(share * (1 - share) * difference.square())


_ADAM: dict[str, Any] = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
_ADAM |= {"weight_decay": 0.0, "amsgrad": False, "maximize": False}
# torch has no public name for this function.
_fused_adam = torch._fused_adam_  # pyright: ignore[reportPrivateImportUsage]


class Adam(nn.Module):
    """Adam (Kingma and Ba 2015, default betas and epsilon) of all parameters in one fused call.

    Members do not interact. `torch.optim.Adam` computes the same, and is slower on small networks.
    Moments and the number of steps are buffers, which checkpoints hold and `to` moves.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], learning_rate: float):
        super().__init__()
        self.learning_rate = learning_rate
        self.weights: list[Tensor] = list(parameters)
        self.register_buffer("steps", torch.zeros(()))
        for index, parameter in enumerate(self.weights):
            self.register_buffer(f"mean_{index}", torch.zeros_like(parameter))
            self.register_buffer(f"square_{index}", torch.zeros_like(parameter))

    @torch.no_grad()
    def descend(self, loss: Tensor) -> None:
        """Take a step down the gradient of a scalar loss with respect to the parameters alone.

        The step count is on the parameters' device, so that reading it never synchronises.
        """
        weights = self.weights
        with torch.enable_grad():
            gradients = torch.autograd.grad(loss, weights)
        steps, *moments = self.buffers()
        steps += 1
        counts, rate = [steps] * len(weights), self.learning_rate
        _fused_adam(weights, gradients, moments[::2], moments[1::2], [], counts, lr=rate, **_ADAM)
