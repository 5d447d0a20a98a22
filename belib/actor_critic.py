"""The deterministic actor-critic that URLB's collectors and ExORL's learners share.

URLB calls it DDPG. It has TD3's twin critics and smoothed target actions, but neither TD3's delayed
policy updates nor its target actor.
"""

import copy
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import cast

import torch
from torch import Tensor, nn

from belib.config import LearnerConfig
from belib.machine import keep_freed_memory, products
from belib.networks import Actor, Adam, TwinCritic
from belib.replay import Batch
from belib.streams import Streams

Metrics = dict[str, Tensor]
"""Metrics of one update, (M,) each."""

_EDGE = 1 - 1e-6  # largest size of an action, inside (-1, 1) as in URLB


class ActorCritic(nn.Module):
    """M learners in lockstep. Losses are (M,); the gradient of their sum holds each member's own.

    Args:
        obs_dim, action_dim: sizes of the task.
        configs: one a member; they may differ in `MEMBER_FIELDS`.
    """

    shared_trunk: bool
    """Whether the two critics share their first layer (URLB) or not (ExORL)."""

    actor_network: type[nn.Module] = Actor
    purpose = "learner"  # of its random streams

    def __init__(self, obs_dim: int, action_dim: int, configs: Sequence[LearnerConfig]):
        super().__init__()
        keep_freed_memory()
        self.config = configs[0]
        self.precision = self.config.precision  # the engine replaces `auto`
        self.seeds = [config.seed for config in configs]
        self.streams = Streams(self.seeds, self.purpose)
        sizes = (self.streams, obs_dim, action_dim, self.config.hidden_dim)
        self.action_dim = action_dim
        self.actor = self.actor_network(*sizes)
        self.critic = TwinCritic(*sizes, shared=self.shared_trunk)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self.optimizers = nn.ModuleDict()
        self.optimizers["actor"] = self.adam(self.actor)
        self.optimizers["critic"] = self.adam(self.critic)

    def adam(self, network: nn.Module, learning_rate: float | None = None) -> Adam:
        """Return a network's optimiser, by default with the config's learning rate."""
        return Adam(network.parameters(), learning_rate or self.config.learning_rate)

    @torch.no_grad()
    def act(self, obs: Tensor, *, explore: bool = False) -> Tensor:
        """Return actions (M, B, action_dim) at obs (M, B, obs_dim), on the device of obs."""
        with self.products():
            return self.actions(obs.to(self.streams.device), explore=explore).to(obs.device)

    def actions(self, obs: Tensor, *, explore: bool) -> Tensor:
        """Return mean actions, with noise if `explore`, on the networks' device."""
        action = self.actor(obs)
        if explore:
            action += self.config.stddev * self.streams.normal(*action.shape[1:])
        return action.clamp(-_EDGE, _EDGE)

    def update(self, batch: Batch) -> Metrics:
        """Update critic, actor and target critic once."""
        with self.products():
            metrics = self.descend("critic", *self.critic_loss(batch))
            metrics |= self.descend("actor", *self.actor_loss(batch))
        self.update_target()
        return metrics

    def products(self) -> AbstractContextManager:
        """Return a context in which products have the learner's precision."""
        return products(self.precision, self.streams.device)

    def critic_loss(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """Return squared errors to the target r + discount min Q'(s', a'), a' a noisy action."""
        with torch.no_grad():  # target value
            next_action = self.smoothed(self.actor(batch.next_obs))
            next_value = self.critic_target(batch.next_obs, next_action).amin(0)
            target = batch.reward + batch.discount * next_value
        values = self.critic(batch.obs, batch.action)
        loss = (values - target).square().mean(-1).sum(0)
        return loss, {"critic_loss": loss, "value": values.mean((0, -1))}

    def actor_loss(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """Return -min Q(s, a), where a is a noisy action of the policy."""
        values = self.critic(batch.obs, self.smoothed(self.actor(batch.obs))).amin(0)
        loss = -values.mean(-1)
        return loss, {"actor_loss": loss}

    def smoothed(self, mean: Tensor) -> Tensor:
        """Return mean actions with clipped noise; the clip to the range is straight-through."""
        noise = self.config.stddev * self.streams.normal(*mean.shape[1:])
        clip = self.config.stddev_clip
        action = mean + noise.clamp(-clip, clip)
        return action + (action.clamp(-_EDGE, _EDGE) - action).detach()

    def descend(self, name: str, loss: Tensor, metrics: Metrics) -> Metrics:
        """Take one Adam step of the named network alone; return detached metrics."""
        cast(Adam, self.optimizers[name]).descend(loss.sum())
        return {key: value.detach() for key, value in metrics.items()}

    @torch.no_grad()
    def update_target(self) -> None:
        """Move the target critic by tau towards the critic."""
        networks = self.critic_target.parameters(), self.critic.parameters()
        for target, source in zip(*networks, strict=True):
            target.lerp_(source, self.config.tau)

    @torch.no_grad()
    def clear(self, member: int) -> None:
        """Set the parameters and moments of a diverged member to 0."""
        for tensor in (*self.parameters(), *self.optimizers.buffers()):
            if tensor.dim():  # all but the numbers of steps
                tensor.unflatten(0, (-1, len(self.streams)))[:, member].zero_()

    def get_extra_state(self) -> dict[str, str]:
        """Return the precision, for `state_dict`."""
        return {"precision": self.precision}

    def set_extra_state(self, state: dict[str, str]) -> None:
        """Continue in the saved precision."""
        self.precision = state["precision"]
