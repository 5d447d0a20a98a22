"""DDPG as URLB has it, with the two hooks that make an exploring agent of it."""

from belib.actor_critic import ActorCritic, Metrics
from belib.replay import Batch


class DDPG(ActorCritic):
    """Learns from the rewards in replay; exploring agents override the two hooks."""

    shared_trunk = True

    def update(self, batch: Batch) -> Metrics:
        """One update: representation, intrinsic reward, critic, actor, target critic."""
        metrics = self.update_representation(batch)
        reward, reward_metrics = self.intrinsic_reward(batch)
        return metrics | reward_metrics | super().update(batch._replace(reward=reward))

    def update_representation(self, batch: Batch) -> Metrics:
        """Hook: train what the intrinsic reward is computed from."""
        return {}

    def intrinsic_reward(self, batch: Batch) -> tuple:
        """Hook: the rewards (M, B) that replace those in replay, and their metrics."""
        return batch.reward, {}
