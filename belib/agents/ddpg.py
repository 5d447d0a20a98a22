"""DDPG as in URLB, and an exploring agent with two hooks.

URLB's code differs from the papers that it implements. `convention` chooses between the two; the
paper ran "urlb", as far as its text and URLB's code tell.

| | "urlb" (the default) | "corrected" |
|---|---|---|
| n-step return | r(s_t) alone | r(s_t) + ... + gamma^(n-1) r(s_(t+n-1)) |
| APT, neighbours of a state | itself, at distance 0, and k - 1 others | k others [1] |
| APT, the curiosity module learns from | (s_t, a_t, s_(t+n)) | (s_t, a_t, s_(t+1)) [2] |
| RND, observations are scaled by | the batch's mean and variance | those of all batches [3] |
| SMM, the cross entropy of the skill | added | subtracted: favours distinguishable skills [4] |
| a discount of 0 at a terminal state | replaced by 1 | kept |
| replay holds | finished episodes | all steps so far |
| batches are drawn from | all episodes (URLB: from quarters, in turn) | all episodes |

[1] Liu and Abbeel 2021. [2] Pathak et al. 2017. [3] Burda et al. 2019. [4] Lee et al. 2019.
Episode files keep the environment's own discount under both.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from belib.actor_critic import ActorCritic, Metrics
from belib.config import PretrainConfig
from belib.networks import RunningRMS
from belib.replay import Batch


class DDPG(ActorCritic):
    """The actor-critic that learns from the rewards in replay."""

    shared_trunk = True
    purpose = "agent"  # it and the learner of its seed begin with different actors


class Explorer(DDPG):
    """An agent with an intrinsic reward. Subclasses define its representation and reward."""

    config: PretrainConfig
    learns_first = True
    """Whether the representation learns from a batch before rewards are computed, or after."""

    def __init__(self, obs_dim: int, action_dim: int, configs: Sequence[PretrainConfig]):
        super().__init__(obs_dim, action_dim, configs)
        rms = self.config.intrinsic_reward_scale == "rms"
        self.rms = RunningRMS(len(configs)) if rms else nn.Identity()

    def update(self, batch: Batch) -> Metrics:
        """Update representation, intrinsic reward, critic, actor and target critic."""
        with self.products():
            metrics = self.update_representation(batch) if self.learns_first else {}
            reward, paid = self.intrinsic_return(batch)
            metrics |= {} if self.learns_first else self.update_representation(batch)
        return metrics | paid | super().update(batch._replace(reward=reward))

    @torch.no_grad()
    def intrinsic_return(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """Return the intrinsic n-step returns (M, B) that replace the rewards in replay."""
        reward, metrics = self.intrinsic_reward(batch.obs)
        metrics = {"intrinsic_reward": reward.mean(-1), **metrics}
        total = self.rms(reward)
        if self.config.convention == "corrected":
            for step, obs in enumerate(batch.path.unbind(2)[1:-1], start=1):
                reward, _ = self.intrinsic_reward(obs)
                total = total + self.config.discount**step * self.rms(reward)
        return total, metrics

    def update_representation(self, batch: Batch) -> Metrics:
        """Hook: train the representation that the intrinsic reward uses; return metrics."""
        raise NotImplementedError

    def intrinsic_reward(self, obs: Tensor) -> tuple[Tensor, Metrics]:
        """Hook: return the rewards (M, B) of states (M, B, obs_dim), and metrics."""
        raise NotImplementedError
