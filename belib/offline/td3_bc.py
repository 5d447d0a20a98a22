"""TD3+BC (Fujimoto and Gu 2021) as ExORL has it: TD3 that is also paid for imitating the data.

Unlike the published one it does not normalise states or delay the actor, and its actor climbs the
smaller of two values at a noisy action, not the first at the mean.
"""

from torch import Tensor

from belib.actor_critic import Metrics
from belib.offline.td3 import TD3
from belib.replay import Batch


class TD3BC(TD3):
    """TD3 but for the actor's loss."""

    def actor_loss(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """Mean squared distance to the data's actions - weight min Q / mean |min Q|."""
        mean = self.actor(batch.obs)
        values = self.critic(batch.obs, self.smoothed(mean)).amin(0)
        weight = self.config.td3_bc_weight / values.detach().abs().mean(-1)
        imitation = (mean - batch.action).square().mean((-2, -1))
        loss = imitation - weight * values.mean(-1)
        return loss, {"actor_loss": loss, "imitation": imitation}
