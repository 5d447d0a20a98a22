"""DDPG as URLB has it, and two hooks that make an exploring agent of it.

URLB's code differs from the papers that it implements. `convention` chooses between them; "urlb" is
what the paper ran, as far as its text and URLB's code determine it.

| | "urlb" (the default) | "corrected" |
|---|---|---|
| n-step return | r(s_t) alone | r(s_t) + ... + gamma^(n-1) r(s_(t+n-1)) |
| APT, neighbours of a state | itself, at distance 0, and k - 1 others | k others [1] |
| APT, its curiosity module learns | (s_t, a_t, s_(t+n)) | (s_t, a_t, s_(t+1)) [2] |
| RND, observations are scaled by | the batch's mean and variance | those of all batches [3] |
| SMM, a skill's cross entropy | is added | is subtracted: skills that can be told apart [4] |
| a terminal's discount of 0 | counts as 1 | is kept |
| replay holds | finished episodes | all steps so far |
| a batch is drawn from (ours, under both) | all episodes; URLB: a quarter of them, by turns | |

[1] Liu and Abbeel 2021. [2] Pathak et al. 2017. [3] Burda et al. 2019. [4] Lee et al. 2019.
Episode files keep the environment's own discount under both.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from belib.actor_critic import ActorCritic, Metrics
from belib.config import PretrainConfig
from belib.networks import RunningRMS
from belib.replay import Batch


class DDPG(ActorCritic):
    """Learns from the rewards in replay."""

    shared_trunk = True


class Explorer(DDPG):
    """An agent with an intrinsic reward. Subclasses say what it learns and what a state pays."""

    config: PretrainConfig
    learns_first = True
    """Whether the representation learns from a batch before its rewards are computed, or after."""

    def __init__(self, obs_dim: int, action_dim: int, configs: Sequence[PretrainConfig]):
        super().__init__(obs_dim, action_dim, configs)
        self.rms = RunningRMS(len(configs)) if self.config.intrinsic_reward_scale == "rms" else None

    def update(self, batch: Batch) -> Metrics:
        """One update: representation, intrinsic reward, critic, actor, target critic."""
        with self.products():
            metrics = self.update_representation(batch) if self.learns_first else {}
            reward, paid = self.intrinsic_return(batch)
            metrics |= {} if self.learns_first else self.update_representation(batch)
        return metrics | paid | super().update(batch._replace(reward=reward))

    @torch.no_grad()
    def intrinsic_return(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """The rewards (M, B) that replace those in replay: n-step returns, by `convention`."""
        reward, metrics = self.intrinsic_reward(batch.obs)
        metrics = {"intrinsic_reward": reward.mean(-1), **metrics}
        total = self.scaled(reward)
        if self.config.convention == "corrected":
            for step, obs in enumerate(batch.states().unbind(2)[1:-1], start=1):
                reward, _ = self.intrinsic_reward(obs)
                total = total + self.config.discount**step * self.scaled(reward)
        return total, metrics

    def scaled(self, reward: Tensor) -> Tensor:
        """The reward as the critic learns it, by `intrinsic_reward_scale`."""
        return reward if self.rms is None else self.rms(reward)

    def update_representation(self, batch: Batch) -> Metrics:
        """Hook: train what the intrinsic reward is computed from."""
        raise NotImplementedError

    def intrinsic_reward(self, obs: Tensor) -> tuple[Tensor, Metrics]:
        """Hook: the rewards (M, B) of states (M, B, obs_dim), and what is worth recording."""
        raise NotImplementedError
