"""Random network distillation (Burda et al. 2019) as in URLB.

A predictor learns the output of a fixed random network. The reward is its squared error, divided by
the running standard deviation of errors (Burda et al.: of returns). Conventions:
`belib.agents.ddpg`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from belib.actor_critic import Metrics
from belib.agents.ddpg import Explorer
from belib.config import PretrainConfig
from belib.networks import RunningMoments, mlp
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
        self._targets: tuple[Tensor, ...] = ()
        self.optimizers["predictor"] = self.adam(self.predictor)

    def update_representation(self, batch: Batch) -> Metrics:
        """Train the predictor on the batch."""
        self._targets = ()
        if self.config.convention == "corrected":
            self.seen.count_in(batch.obs)
        loss = self.error(batch.obs).mean(-1)
        return self.descend("predictor", loss, {"rnd_loss": loss})

    def intrinsic_reward(self, obs: Tensor) -> tuple[Tensor, Metrics]:
        """Return the error divided by the running standard deviation of errors."""
        error = self.error(obs)
        self.errors.count_in(error[..., None])
        deviation = self.errors.variance[..., 0].sqrt()
        return error / (deviation + 1e-8), {"representation_scale": deviation[:, 0]}

    def error(self, obs: Tensor) -> Tensor:
        """Return the predictor's mean squared error (M, B)."""
        if not self._targets or self._targets[0] is not obs:  # a batch is met twice
            normal = self.normalised(obs)
            self._targets = obs, normal, self.target(normal).float()
        _, normal, target = self._targets
        return (target - self.predictor(normal).float()).square().mean(-1)

    def normalised(self, obs: Tensor) -> Tensor:
        """Return observations scaled to unit variance and clipped."""
        mean, variance = self.seen.mean, self.seen.variance
        if self.config.convention == "urlb":
            variance, mean = torch.var_mean(obs, 1, correction=0, keepdim=True)
        clip = self.config.rnd_obs_clip
        return ((obs - mean) / (variance + 1e-5).sqrt()).clamp(-clip, clip)
