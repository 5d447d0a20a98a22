"""TD3+BC (Fujimoto and Gu 2021) as in ExORL: TD3 whose actor also imitates the data.

The published method normalises states, updates the actor every second step, and takes the first
critic's value at the mean action. Here it is the smaller value at a noisy action.
"""

from torch import Tensor

from belib.actor_critic import Metrics
from belib.offline.td3 import TD3
from belib.replay import Batch


class TD3BC(TD3):
    """TD3 with another actor loss."""

    def actor_loss(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """Return the mean squared error of the data's actions - weight min Q / mean |min Q|."""
        mean = self.actor(batch.obs)
        values = self.critic(batch.obs, self.smoothed(mean)).amin(0)
        weight = self.config.td3_bc_weight / values.detach().abs().mean(-1)
        imitation = (mean - batch.action).square().mean((-2, -1))
        loss = imitation - weight * values.mean(-1)
        return loss, {"actor_loss": loss, "imitation": imitation}
