"""Behavioral cloning as in ExORL: maximum likelihood of the data's actions."""

from torch import Tensor

from belib.actor_critic import Metrics
from belib.offline.gaussian import normal_log_density
from belib.offline.td3 import TD3
from belib.replay import Batch


class BC(TD3):
    """TD3's actor alone; the critics are never trained."""

    def update(self, batch: Batch) -> Metrics:
        """Update the actor once."""
        with self.products():
            return self.descend("actor", *self.actor_loss(batch))

    def actor_loss(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """Return -log N(a; mu(s), stddev^2), summed over dimensions."""
        log_density = normal_log_density(batch.action, self.actor(batch.obs), self.config.stddev)
        loss = -log_density.sum(-1).mean(-1)
        return loss, {"actor_loss": loss}
