"""The deterministic actor-critic that URLB's collectors and ExORL's learners share.

Despite URLB's name for it (DDPG) it has TD3's twin critics and smoothed target actions, without
TD3's delayed policy updates and without a target actor.
"""

import copy
import itertools
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
"""Numbers of one update, one a member: (M,)."""

# Of all parameters in one call, for which torch has no public name.
_lerp = torch._foreach_lerp_  # pyright: ignore[reportPrivateImportUsage]

_EDGE = 1 - 1e-6  # actions stay inside the open interval (URLB)


class ActorCritic(nn.Module):
    """M learners in lockstep. A loss is (M,): one a member; their sum has each member's gradients.

    Args:
        obs_dim, action_dim: sizes of the task.
        configs: one a member; equal in all but what an algorithm allows to differ.
    """

    shared_trunk: bool
    """Whether the two critics share their first layer: in URLB they do, in ExORL they do not."""

    actor_network: type[nn.Module] = Actor

    def __init__(self, obs_dim: int, action_dim: int, configs: Sequence[LearnerConfig]):
        super().__init__()
        keep_freed_memory()
        self.config = configs[0]
        self.precision = self.config.precision  # an engine decides what `auto` is
        self.streams = Streams([config.seed for config in configs], "agent")
        sizes = (self.streams, obs_dim, action_dim, self.config.hidden_dim)
        self.action_dim = action_dim
        self.actor = self.actor_network(*sizes)
        self.critic = TwinCritic(*sizes, shared_trunk=self.shared_trunk)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self.optimizers = nn.ModuleDict()
        self.optimizers["actor"] = self.adam(self.actor)
        self.optimizers["critic"] = self.adam(self.critic)

    def adam(self, network: nn.Module) -> Adam:
        """The optimiser of a network."""
        return Adam(network.parameters(), self.config.learning_rate)

    @torch.no_grad()
    def act(self, obs: Tensor, *, explore: bool) -> Tensor:
        """Actions (M, B, action_dim) for observations (M, B, obs_dim): the mean, or with noise.

        They are where the observations are, wherever the networks are.
        """
        with self.products():
            return self.actions(obs.to(self.streams.device), explore=explore).to(obs.device)

    def actions(self, obs: Tensor, *, explore: bool) -> Tensor:
        """What `act` does, where the networks are."""
        action = self.actor(obs)
        if explore:
            action += self.config.stddev * self.streams.normal(*action.shape[1:])
        return action.clamp(-_EDGE, _EDGE)

    def update(self, batch: Batch) -> Metrics:
        """One update of critic, actor and target critic, in URLB's order."""
        with self.products():
            metrics = self.descend("critic", *self.critic_loss(batch))
            metrics |= self.descend("actor", *self.actor_loss(batch))
        self.update_target()
        return metrics

    def products(self) -> AbstractContextManager:
        """The precision of the networks' products, to be entered around them."""
        return products(self.precision, self.streams.device)

    def critic_loss(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """Both critics' squared errors to r + discount min Q'(s', a'), a' a noisy policy action."""
        with torch.no_grad():
            next_action = self.noisy_action(batch.next_obs)
            next_value = self.critic_target(batch.next_obs, next_action).amin(0)
            target = batch.reward + batch.discount * next_value
        values = self.critic(batch.obs, batch.action)
        loss = (values - target).square().mean(-1).sum(0)
        return loss, {"critic_loss": loss, "value": values.mean((0, -1))}

    def actor_loss(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """-min Q(s, a) with a noisy policy action."""
        values = self.critic(batch.obs, self.noisy_action(batch.obs)).amin(0)
        loss = -values.mean(-1)
        return loss, {"actor_loss": loss}

    def noisy_action(self, obs: Tensor) -> Tensor:
        """The mean action with clipped noise."""
        return self.smoothed(self.actor(obs))

    def smoothed(self, mean: Tensor) -> Tensor:
        """Actions (M, ..., action_dim) with clipped noise, in range without losing gradients."""
        noise = self.config.stddev * self.streams.normal(*mean.shape[1:])
        clip = self.config.stddev_clip
        action = mean + noise.clamp(-clip, clip)
        return action + (action.clamp(-_EDGE, _EDGE) - action).detach()

    def descend(self, name: str, loss: Tensor, metrics: Metrics) -> Metrics:
        """One Adam step of the named network, and of no other that the loss runs through."""
        parameters = getattr(self, name).parameters()
        cast(Adam, self.optimizers[name]).descend(parameters, loss.sum())
        return {key: value.detach() for key, value in metrics.items()}

    @torch.no_grad()
    def update_target(self) -> None:
        """Move the target critic by tau towards the critic."""
        targets: list[Tensor] = list(self.critic_target.parameters())
        sources: list[Tensor] = list(self.critic.parameters())
        _lerp(targets, sources, self.config.tau)

    @torch.no_grad()
    def clear(self, member: int) -> None:
        """Set a member's parameters and moments to zero, so that it holds nothing infinite."""
        moments = (cast(Adam, adam).moments() for adam in self.optimizers.values())
        for tensor in (*self.parameters(), *itertools.chain(*moments)):
            tensor.unflatten(0, (-1, len(self.streams)))[:, member].zero_()

    def get_extra_state(self) -> str:
        """Return the precision, for `state_dict`."""
        return self.precision

    def set_extra_state(self, state: str) -> None:
        """Continue in the precision of the saved learner."""
        self.precision = state
