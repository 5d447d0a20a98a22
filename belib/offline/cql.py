"""CQL (conservative Q-learning, Kumar et al. 2020), as ExORL has it and as it was published.

Both are soft actor-critics whose critics are also pressed down on actions that policies would take
and up on the data's. They differ in these points, and `convention` chooses:

                   exorl                                   standard: CQL(H)
    Gaussian mean  tanh before the squashing tanh, so      as the network says
                   |a| <= tanh(1) = 0.7616 in evaluation
    log pi(a | s)  mean over dimensions, each held         sum over dimensions
                   to an entropy of -action_dim
    soft maximum   log sum exp Q over 3n proposals         log mean (exp Q / density) over 3n
                   and the data's action                   proposals: log integral of exp Q

The published code sums where the mean is taken, a constant without gradient. Neither it nor ExORL
has the entropy in its targets; `soft_backup` adds it, as soft actor-critic would.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from belib.actor_critic import ActorCritic, Metrics
from belib.config import OfflineConfig
from belib.networks import GaussianActor
from belib.offline.gaussian import tanh_normal
from belib.replay import Batch

Gaussian = tuple[Tensor, Tensor]
"""Mean and standard deviation before squashing, (M, B, action_dim) each."""


class CQL(ActorCritic):
    """A critic with a penalty, a stochastic actor, and a temperature that holds its entropy."""

    config: OfflineConfig
    shared_trunk = False
    actor_network = GaussianActor

    def __init__(self, obs_dim: int, action_dim: int, configs: Sequence[OfflineConfig]):
        super().__init__(obs_dim, action_dim, configs)
        self.exorl = self.config.convention == "exorl"
        self.temperature = Temperature(len(configs))
        self.optimizers["temperature"] = self.adam(self.temperature)

    @torch.no_grad()
    def act(self, obs: Tensor, *, explore: bool) -> Tensor:
        """Actions (M, B, action_dim): the squashed mean, or a sample."""
        with self.products():
            gaussian = self.policy(obs)
        return self.sample(gaussian, 1)[0][:, 0] if explore else gaussian[0].tanh()

    def update(self, batch: Batch) -> Metrics:
        """One update of critic, actor, target critic, then of the temperature.

        ExORL moves the temperature before the actor: one of its 1e-4 steps earlier.
        """
        metrics = super().update(batch)
        return metrics | self.descend("temperature", *self.temperature_loss(metrics["log_density"]))

    def policy(self, obs: Tensor) -> Gaussian:
        """The policy's Gaussian at each observation."""
        mean, std = self.actor(obs)
        return (mean.tanh() if self.exorl else mean), std

    def sample(self, gaussian: Gaussian, n: int) -> tuple[Tensor, Tensor]:
        """n actions (M, n, B, action_dim) of each Gaussian, and log densities (M, n, B)."""
        mean, std = (part.unsqueeze(1) for part in gaussian)
        action, log_density = tanh_normal(mean, std, self.streams.normal(n, *mean.shape[2:]))
        return action, log_density.mean(-1) if self.exorl else log_density.sum(-1)

    def critic_loss(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """Squared errors + `cql_weight` (soft maximum of Q over actions - Q of the data's)."""
        with torch.no_grad():
            here, there = self.policy(batch.obs), self.policy(batch.next_obs)
            target = self.target(batch, there)
            proposed, log_density = self.proposals(here, there)
        actions = torch.cat([batch.action.unsqueeze(1), proposed], 1)
        values = self.critic.of_several(batch.obs, actions)
        of_data = values[:, :, 0]
        error = (of_data - target).square().mean(-1).sum(0)
        penalty = (self.soft_maximum(values, log_density) - of_data).mean(-1).sum(0)
        loss = error + self.config.cql_weight * penalty
        metrics = {"critic_loss": loss, "value": of_data.mean((0, -1)), "cql_penalty": penalty}
        return loss, metrics

    def target(self, batch: Batch, there: Gaussian) -> Tensor:
        """r + discount min Q'(s', a'), a' a sample of the policy; (M, B)."""
        action, log_density = self.sample(there, 1)
        value = self.critic_target(batch.next_obs, action[:, 0]).amin(0)
        if self.config.soft_backup:
            value = value - self.temperature() * log_density[:, 0]
        return batch.reward + batch.discount * value

    def proposals(self, here: Gaussian, there: Gaussian) -> tuple[Tensor, Tensor]:
        """Actions (M, 3n, B, action_dim), log densities (M, 3n, B): uniform, pi(s), pi(s')."""
        n = self.config.num_action_samples
        uniform = self.streams.uniform(n, *here[0].shape[1:])
        density = torch.full(uniform.shape[:-1], -self.action_dim * math.log(2))
        parts = [(uniform, density), self.sample(here, n), self.sample(there, n)]
        actions, densities = zip(*parts, strict=True)
        return torch.cat(actions, 1), torch.cat(densities, 1)

    def soft_maximum(self, values: Tensor, log_density: Tensor) -> Tensor:
        """(2, M, B) of values (2, M, 1 + 3n, B), the data's first, and densities (M, 3n, B)."""
        if self.exorl:
            return values.logsumexp(2)
        weighted = values[:, :, 1:] - log_density
        return weighted.logsumexp(2) - math.log(log_density.shape[1])

    def actor_loss(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """temperature log pi(a given s) - min Q(s, a), a a sample that gradients run through."""
        action, log_density = self.sample(self.policy(batch.obs), 1)
        value = self.critic(batch.obs, action[:, 0]).amin(0).mean(-1)
        log_density = log_density[:, 0].mean(-1)
        loss = self.temperature().detach()[:, 0] * log_density - value
        return loss, {"actor_loss": loss, "log_density": log_density}

    def temperature_loss(self, log_density: Tensor) -> tuple[Tensor, Metrics]:
        """Raises the temperature where the entropy, -(M,), is below its target, -action_dim."""
        log_temperature = self.temperature.log[:, 0]
        loss = -log_temperature * (log_density - self.action_dim)
        return loss, {"temperature": log_temperature.exp()}


class Temperature(nn.Module):
    """The weight of the entropy, one a member (M, 1), 1 at first."""

    def __init__(self, members: int):
        super().__init__()
        self.log = nn.Parameter(torch.zeros(members, 1))

    def forward(self) -> Tensor:
        return self.log.exp()
