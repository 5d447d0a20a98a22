"""TD3, and three learners that differ from it in the loss of the actor, all as in ExORL.

        published by               differences here
TD3     Fujimoto et al. 2018       no delayed actor updates, no target actor
TD3+BC  Fujimoto and Gu 2021       states not normalised, an actor update every step, the
                                   smaller value at a noisy action, not the first critic's
                                   at the mean action
CRR     Wang et al. 2020           no distribution of returns; the value of a state is the
                                   smaller of the two critics', not of the target critics';
                                   exp(A) has no temperature
BC      behavioral cloning         maximum likelihood of the data's actions
"""

import math

import torch
from torch import Tensor

from belib.actor_critic import ActorCritic, Metrics
from belib.config import OfflineConfig
from belib.replay import Batch


class TD3(ActorCritic):
    """The actor-critic with two critics that share no layer; its losses are in `actor_critic`."""

    config: OfflineConfig
    shared_trunk = False


class TD3BC(TD3):
    """TD3 whose actor also imitates the data."""

    def actor_loss(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """Return mean (mu(s) - a)^2 - weight min Q / mean |min Q|, where a is the data's action."""
        mean = self.actor(batch.obs)
        values = self.critic(batch.obs, self.smoothed(mean)).amin(0)
        weight = self.config.td3_bc_weight / values.detach().abs().mean(-1)
        imitation = (mean - batch.action).square().mean((-2, -1))
        loss = imitation - weight * values.mean(-1)
        return loss, {"actor_loss": loss, "imitation": imitation}


class BC(TD3):
    """TD3's actor alone, which imitates the data; the critics are never trained."""

    def update(self, batch: Batch) -> Metrics:
        """Update the actor once."""
        with self.products():
            return self.descend("actor", *self.actor_loss(batch))

    def actor_loss(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """Return -log N(a; mu(s), stddev^2), summed over dimensions."""
        log_density = normal_log_density(batch.action, self.actor(batch.obs), self.config.stddev)
        loss = -log_density.sum(-1).mean(-1)
        return loss, {"actor_loss": loss}


class CRR(TD3):
    """TD3 whose actor imitates the data's actions that the critic prefers to the actor's."""

    def actor_loss(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """Return -f(A(s, a)) log N(a; mu(s), stddev^2) of the data, summed over dimensions."""
        mean = self.actor(batch.obs)
        advantage = self.advantage(batch, mean.detach())
        weight = self.weigh(advantage)
        log_density = normal_log_density(batch.action, mean, self.config.stddev).sum(-1)
        loss = -(weight * log_density).mean(-1)
        metrics = {"advantage": advantage.mean(-1), "weight": weight.mean(-1)}
        return loss, {"actor_loss": loss, **metrics}

    @torch.no_grad()
    def advantage(self, batch: Batch, mean: Tensor) -> Tensor:
        """Return min Q(s, a) - V(s), V the mean of min Q over `num_value_samples` noisy actions.

        `mean` is the policy's mean action (M, B, action_dim).
        """
        sampled = self.smoothed(mean.unsqueeze(1).repeat(1, self.config.num_value_samples, 1, 1))
        actions = torch.cat([batch.action.unsqueeze(1), sampled], 1)
        values = self.critic.of_several(batch.obs, actions).amin(0)
        return values[:, 0] - values[:, 1:].mean(1)

    def weigh(self, advantage: Tensor) -> Tensor:
        """Return f(A): 1[A > 0], exp(A) up to 20, or A."""
        return {
            "indicator": lambda: (advantage > 0).float(),
            "exp": lambda: advantage.exp().clamp_max(20.0),
            "identity": lambda: advantage,
        }[self.config.crr_weight]()


def normal_log_density(x: Tensor, mean: Tensor, std: Tensor | float) -> Tensor:
    """Return log N(x; mean, std^2), by dimension."""
    log_std = std.log() if isinstance(std, Tensor) else math.log(std)
    return -0.5 * ((x - mean) / std).square() - log_std - 0.5 * math.log(2 * math.pi)
