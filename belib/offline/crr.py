"""CRR (critic-regularised regression, Wang et al. 2020) as in ExORL.

The actor imitates the data's actions that the critic prefers to the actor's. It differs from the
published method: the critic has no distribution of returns, the value of a state is the smaller of
the two critics' (not of the target critics'), and exp(A) has no temperature.
"""

import torch
from torch import Tensor

from belib.actor_critic import Metrics
from belib.offline.gaussian import normal_log_density
from belib.offline.td3 import TD3
from belib.replay import Batch


class CRR(TD3):
    """TD3 whose actor imitates the data, weighted by advantage."""

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
