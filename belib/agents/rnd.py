"""Random network distillation (Burda et al. 2019) as URLB has it.

A predictor learns the output of a fixed random network; a state is worth the predictor's squared
error there, divided by the running standard deviation of such errors (not of returns, as in Burda
et al., and without subtracting a mean). Convention "urlb" or "corrected": see `belib.agents.ddpg`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from belib.actor_critic import Metrics
from belib.agents.ddpg import Explorer
from belib.config import PretrainConfig
from belib.networks import mlp
from belib.replay import Batch


class RND(Explorer):
    """Members may differ in seed."""

    def __init__(self, obs_dim: int, action_dim: int, configs: Sequence[PretrainConfig]):
        super().__init__(obs_dim, action_dim, configs)
        hidden, width = self.config.hidden_dim, self.config.representation_dim
        dims = (obs_dim, hidden, hidden, width)
        self.predictor = mlp(self.streams, *dims)
        self.target = mlp(self.streams, *dims).requires_grad_(False)
        self.seen = RunningMoments(len(configs), obs_dim)
        self.errors = RunningMoments(len(configs), 1)
        self._known: tuple[Tensor, ...] = ()
        self.optimizers["predictor"] = self.adam(self.predictor)

    def update_representation(self, batch: Batch) -> Metrics:
        """Train the predictor on the batch."""
        self._known = ()
        if self.config.convention == "corrected":
            self.seen.count_in(batch.obs)
        loss = self.error(batch.obs).mean(-1)
        return self.descend("predictor", loss, {"rnd_loss": loss})

    def intrinsic_reward(self, obs: Tensor) -> tuple[Tensor, Metrics]:
        """The error over its running standard deviation."""
        error = self.error(obs)
        self.errors.count_in(error[..., None])
        deviation = self.errors.variance[..., 0].sqrt()
        return error / (deviation + 1e-8), {"representation_scale": deviation[:, 0]}

    def error(self, obs: Tensor) -> Tensor:
        """(M, B): mean over the representation of squared differences."""
        if not self._known or self._known[0] is not obs:  # learning and paying meet the same batch
            normal = self.normalised(obs)
            self._known = obs, normal, self.target(normal).float()
        _, normal, target = self._known
        return (target - self.predictor(normal).float()).square().mean(-1)

    def normalised(self, obs: Tensor) -> Tensor:
        """Observations scaled to unit variance and clipped."""
        mean, variance = self.seen.mean, self.seen.variance
        if self.config.convention == "urlb":
            variance, mean = torch.var_mean(obs, 1, correction=0, keepdim=True)
        clip = self.config.rnd_obs_clip
        return ((obs - mean) / (variance + 1e-5).sqrt()).clamp(-clip, clip)


class RunningMoments(nn.Module):
    """Mean and variance of all numbers seen, a member and feature each (Chan et al. 1979).

    It starts from a variance of 1 with the weight of 1e-4 numbers, as URLB's, so that a first batch
    of equal numbers has a positive variance.
    """

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, members: int, features: int):
        super().__init__()
        self.register_buffer("mean", torch.zeros(members, 1, features))
        self.register_buffer("variance", torch.ones(members, 1, features))
        self.register_buffer("count", torch.tensor(1e-4, dtype=torch.float64))

    @torch.no_grad()
    def count_in(self, x: Tensor) -> None:
        """Count the numbers (M, B, features) in."""
        variance, mean = torch.var_mean(x, 1, correction=0, keepdim=True)
        self.count += x.shape[1]
        share = (x.shape[1] / self.count).float()
        difference = mean - self.mean
        self.mean += share * difference
        self.variance.lerp_(variance, share).add_(share * (1 - share) * difference.square())
