"""CQL (conservative Q-learning, Kumar et al. 2020), as in ExORL and as published.

Both are soft actor-critics whose critic loss lowers the values of the policy's actions and raises
those of the data's actions. They differ in three points; `convention` chooses:

                   exorl                                   standard: CQL(H)
    Gaussian mean  tanh(output), so the mean action        output of the network
                   is at most tanh(1) = 0.7616 in size
    log pi(a | s)  mean over dimensions, but the target    sum over dimensions
                   entropy is still -action_dim
    soft maximum   log sum exp Q over 3n proposals         log mean (exp Q / density) over 3n
                   and the data's action                   proposals: log integral of exp Q

The published code has log sum instead of log mean, which differs by a constant. Neither code has
the entropy in its targets; `soft_backup` adds it, as in soft actor-critic.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from belib.actor_critic import ActorCritic, Metrics
from belib.config import OfflineConfig
from belib.networks import GaussianActor
from belib.offline.td3 import normal_log_density
from belib.replay import Batch

Gaussian = tuple[Tensor, Tensor]
"""Mean and standard deviation before tanh, (M, B, action_dim) each."""


class CQL(ActorCritic):
    """A critic with a penalty, a stochastic actor, and the temperature of its entropy."""

    config: OfflineConfig
    shared_trunk = False
    actor_network = GaussianActor

    def __init__(self, obs_dim: int, action_dim: int, configs: Sequence[OfflineConfig]):
        super().__init__(obs_dim, action_dim, configs)
        self.exorl = self.config.convention == "exorl"
        # log of the entropy's weight
        self.temperature = nn.ParameterDict({"log": torch.zeros(len(configs), 1)})
        self.optimizers["temperature"] = self.adam(self.temperature)

    def actions(self, obs: Tensor, *, explore: bool) -> Tensor:
        """Return tanh of the mean, or a sample if `explore`."""
        gaussian = self.policy(obs)
        return self.sample(gaussian, 1)[0][:, 0] if explore else gaussian[0].tanh()

    def update(self, batch: Batch) -> Metrics:
        """Update critic, actor, target critic, then the temperature (ExORL: before the actor)."""
        metrics = super().update(batch)
        return metrics | self.descend("temperature", *self.temperature_loss(metrics["log_density"]))

    def policy(self, obs: Tensor) -> Gaussian:
        """Return the policy's Gaussian at obs."""
        mean, std = self.actor(obs)
        return (mean.tanh() if self.exorl else mean), std

    def sample(self, gaussian: Gaussian, n: int) -> tuple[Tensor, Tensor]:
        """Return n actions (M, n, B, action_dim) and their log densities (M, n, B)."""
        mean, std = (part.unsqueeze(1) for part in gaussian)
        action, log_density = tanh_normal(mean, std, self.streams.normal(n, *mean.shape[2:]))
        return action, log_density.mean(-1) if self.exorl else log_density.sum(-1)

    def critic_loss(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """Return squared errors + `cql_weight` (soft maximum of Q - Q of the data's actions)."""
        with torch.no_grad():  # target value, and actions for the penalty
            now, later = self.policy(batch.obs), self.policy(batch.next_obs)
            target = self.target(batch, later)
            proposed, log_density = self.proposals(now, later)
        actions = torch.cat([batch.action.unsqueeze(1), proposed], 1)
        values = self.critic.of_several(batch.obs, actions)
        of_data = values[:, :, 0]
        error = (of_data - target).square().mean(-1).sum(0)
        penalty = (self.soft_maximum(values, log_density) - of_data).mean(-1).sum(0)
        loss = error + self.config.cql_weight * penalty
        metrics = {"critic_loss": loss, "value": of_data.mean((0, -1)), "cql_penalty": penalty}
        return loss, metrics

    def target(self, batch: Batch, later: Gaussian) -> Tensor:
        """Return r + discount min Q'(s', a'), (M, B), a' a sample of the policy at s'."""
        action, log_density = self.sample(later, 1)
        value = self.critic_target(batch.next_obs, action[:, 0]).amin(0)
        if self.config.soft_backup:
            value = value - self.temperature["log"].exp() * log_density[:, 0]
        return batch.reward + batch.discount * value

    def proposals(self, now: Gaussian, later: Gaussian) -> tuple[Tensor, Tensor]:
        """Return n actions each, uniform, of pi(s) and of pi(s'), and log densities (M, 3n, B)."""
        n = self.config.num_action_samples
        uniform = self.streams.uniform(n, *now[0].shape[1:])
        density = torch.full_like(uniform[..., 0], -self.action_dim * math.log(2))
        parts = [(uniform, density), self.sample(now, n), self.sample(later, n)]
        actions, densities = zip(*parts, strict=True)
        return torch.cat(actions, 1), torch.cat(densities, 1)

    def soft_maximum(self, values: Tensor, log_density: Tensor) -> Tensor:
        """Return soft maxima (2, M, B) of values (2, M, 1 + 3n, B), the data's value first."""
        if self.exorl:
            return values.logsumexp(2)
        weighted = values[:, :, 1:] - log_density
        return weighted.logsumexp(2) - math.log(log_density.shape[1])

    def actor_loss(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """Return temperature log pi(a | s) - min Q(s, a), where a is a reparametrised sample."""
        action, log_density = self.sample(self.policy(batch.obs), 1)
        value = self.critic(batch.obs, action[:, 0]).amin(0).mean(-1)
        log_density = log_density[:, 0].mean(-1)
        loss = self.temperature["log"].detach().exp()[:, 0] * log_density - value
        return loss, {"actor_loss": loss, "log_density": log_density}

    def temperature_loss(self, log_density: Tensor) -> tuple[Tensor, Metrics]:
        """Return a loss that raises the temperature if the entropy is below -action_dim."""
        log_temperature = self.temperature["log"][:, 0]
        loss = -log_temperature * (log_density - self.action_dim)
        return loss, {"temperature": log_temperature.exp()}


def tanh_normal(mean: Tensor, std: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Return actions tanh(x), x = mean + std noise, and their log densities by dimension.

    The change of variables adds -log(1 - tanh(x)^2) = -2 (log 2 - x - softplus(-2x)), which stays
    finite when tanh(x) rounds to 1.
    """
    x = torch.addcmul(mean, std, noise)
    log_slope = 2 * (math.log(2) - x - functional.softplus(-2 * x))
    return x.tanh(), normal_log_density(x, mean, std) - log_slope
