"""Active pre-training (Liu and Abbeel 2021) as URLB's `icm_apt` has it, for rewards of distances.

A state's reward is a function of the mean distance to its k nearest neighbours among the states of
its batch. The state rewarded is s_t; what else URLB does is in `belib.agents.ddpg`. Distances are
taken in one of three representations:

| `representation` | a state is | of |
|---|---|---|
| "learnt" | what a curiosity module makes of it, which learns meanwhile | the paper |
| "random" | what its first layer makes of it, drawn once, never trained | Seo et al. 2021 |
| "observation" | its sensors over their standard deviations in all batches | ours |

The first two have `representation_dim` numbers, the last has the environment's.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from belib.actor_critic import Metrics
from belib.agents.ddpg import Explorer
from belib.config import PretrainConfig
from belib.knn import knn_distances
from belib.networks import RunningMoments, Trunk, mlp
from belib.replay import Batch
from belib.rewards import distance_reward
from belib.streams import Streams

_LEAST_VARIANCE = 1e-5
"""Added to a sensor's variance, as in RND: one that never moves must not count."""


class APT(Explorer):
    """Members may differ in objective, alpha, q, Renyi's form and seed."""

    def __init__(self, obs_dim: int, action_dim: int, configs: Sequence[PretrainConfig]):
        super().__init__(obs_dim, action_dim, configs)
        kind, dim = self.config.representation, self.config.representation_dim
        if kind == "learnt":
            self.icm = ICM(self.streams, obs_dim, action_dim, dim, self.config.hidden_dim)
            self.optimizers["icm"] = self.adam(self.icm)
        elif kind == "random":
            self.trunk = Trunk(self.streams, obs_dim, dim).requires_grad_(False)
        else:
            self.seen = RunningMoments(len(configs), obs_dim)
        self.rewards = [distance_reward(config, obs_dim) for config in configs]

    def update_representation(self, batch: Batch) -> Metrics:
        """Train the representation to predict a later state, and the action that led there.

        Of observations their deviations are updated; a random representation stays.
        """
        if self.config.representation == "observation":
            self.seen.count_in(batch.obs)
        if self.config.representation != "learnt":
            return {}
        later = batch.next_obs if self.config.convention == "urlb" else batch.states()[:, :, 1]
        forward_error, inverse_error = self.icm(batch.obs, batch.action, later)
        loss = forward_error + inverse_error
        return self.descend("icm", loss, {"icm_loss": loss})

    def represent(self, obs: Tensor) -> Tensor:
        """States (M, B, obs_dim) as distances are taken between them, (M, B, dimension)."""
        if self.config.representation == "observation":
            return obs / (self.seen.variance + _LEAST_VARIANCE).sqrt()
        trunk = self.icm.trunk if self.config.representation == "learnt" else self.trunk
        return trunk(obs).float()

    def intrinsic_reward(self, obs: Tensor) -> tuple[Tensor, Metrics]:
        """Each member's reward of the mean distance to its k nearest neighbours."""
        representation = self.represent(obs)
        exclude_self = self.config.convention == "corrected"
        nearest = knn_distances(representation, k=self.config.k, exclude_self=exclude_self)
        distance = nearest.mean(-1)
        reward = torch.stack([pay(own) for pay, own in zip(self.rewards, distance, strict=True)])
        # The variance of the representation; torch's own `var` takes a tenth of an update.
        centred = representation - representation.mean(1, keepdim=True)
        scale = centred.square().sum(-1).mean(-1).sqrt()
        metrics = {"knn_distance": distance.mean(-1), "representation_scale": scale}
        return reward, metrics


class ICM(nn.Module):
    """Intrinsic curiosity module (Pathak et al. 2017) on a representation in (-1, 1)^r."""

    def __init__(
        self,
        streams: Streams,
        obs_dim: int,
        action_dim: int,
        representation_dim: int,
        hidden_dim: int,
    ):
        super().__init__()
        self.trunk = Trunk(streams, obs_dim, representation_dim)
        widths = (hidden_dim, representation_dim)
        self.forward_net = mlp(streams, representation_dim + action_dim, *widths)
        self.inverse_net = mlp(streams, 2 * representation_dim, hidden_dim, action_dim)

    def forward(self, obs: Tensor, action: Tensor, next_obs: Tensor) -> tuple[Tensor, Tensor]:
        """Mean Euclidean errors, (M,) each, of the next representation and of the action.

        Norms, not their squares, and gradients through both representations, as in URLB.
        """
        now, later = self.trunk(obs), self.trunk(next_obs)
        predicted = self.forward_net(torch.cat([now, action.to(now.dtype)], -1)).float()
        inferred = self.inverse_net(torch.cat([now, later], -1)).float().tanh()
        forward_error = (later.float() - predicted).norm(dim=-1).mean(-1)
        inverse_error = (action - inferred).norm(dim=-1).mean(-1)
        return forward_error, inverse_error
