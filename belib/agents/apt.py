"""Active pre-training (Liu and Abbeel 2021), as URLB's `icm_apt`, for rewards of `belib.rewards`.

The reward of a state is a function of the mean distance to its k nearest neighbours in the batch.
Distances are between representations. Conventions: `belib.agents.ddpg`.

| `representation` | a state is represented by | source |
|---|---|---|
| "learnt" | the trunk of a curiosity module, trained with the agent | the paper |
| "random" | such a trunk with random weights, never trained | Seo et al. 2021 |
| "observation" | its sensors divided by their standard deviations so far | ours |
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

_LEAST_VARIANCE = 1e-5  # added to that of each sensor, as in RND: some sensors are constant


class APT(Explorer):
    """Members may differ in objective, alpha, q, Renyi's form and seed."""

    def __init__(self, obs_dim: int, action_dim: int, configs: Sequence[PretrainConfig]):
        super().__init__(obs_dim, action_dim, configs)
        self.kind, dim = self.config.representation, self.config.representation_dim
        if self.kind == "learnt":
            self.icm = ICM(self.streams, obs_dim, action_dim, dim, self.config.hidden_dim)
            self.optimizers["icm"] = self.adam(self.icm)
        elif self.kind == "random":
            self.trunk = Trunk(self.streams, obs_dim, dim).requires_grad_(False)
        else:
            self.seen = RunningMoments(len(configs), obs_dim)
        self.rewards = [distance_reward(config, obs_dim) for config in configs]

    def update_representation(self, batch: Batch) -> Metrics:
        """Train the curiosity module, or update the sensors' standard deviations."""
        if self.kind == "observation":
            self.seen.count_in(batch.obs)
        if self.kind != "learnt":
            return {}
        later = batch.next_obs if self.config.convention == "urlb" else batch.path[:, :, 1]
        forward_error, inverse_error = self.icm(batch.obs, batch.action, later)
        loss = forward_error + inverse_error
        return self.descend("icm", loss, {"icm_loss": loss})

    def represent(self, obs: Tensor) -> Tensor:
        """Return representations (M, B, dimension) of states (M, B, obs_dim)."""
        if self.kind == "observation":
            return obs / (self.seen.variance + _LEAST_VARIANCE).sqrt()
        trunk = self.icm.trunk if self.kind == "learnt" else self.trunk
        return trunk(obs).float()

    def intrinsic_reward(self, obs: Tensor) -> tuple[Tensor, Metrics]:
        """Return the reward of the mean distance to the k nearest neighbours."""
        representation = self.represent(obs)
        exclude_self = self.config.convention == "corrected"
        nearest = knn_distances(representation, k=self.config.k, exclude_self=exclude_self)
        distance = nearest.mean(-1)
        reward = torch.stack([f(r) for f, r in zip(self.rewards, distance, strict=True)])
        # standard deviation of the representation; `Tensor.var` would take a tenth of an update
        centred = representation - representation.mean(1, keepdim=True)
        scale = centred.square().sum(-1).mean(-1).sqrt()
        return reward, {"knn_distance": distance.mean(-1), "representation_scale": scale}


class ICM(nn.Module):
    """Intrinsic curiosity module (Pathak et al. 2017) on a representation in (-1, 1)^dim."""

    def __init__(self, streams: Streams, obs_dim: int, action_dim: int, dim: int, hidden_dim: int):
        super().__init__()
        self.trunk = Trunk(streams, obs_dim, dim)
        self.forward_net = mlp(streams, dim + action_dim, hidden_dim, dim)
        self.inverse_net = mlp(streams, 2 * dim, hidden_dim, action_dim)

    def forward(self, obs: Tensor, action: Tensor, next_obs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean errors (M,) of the predicted representation and of the inferred action.

        As in URLB, they are norms, not squares, with gradients through both representations.
        """
        now, later = self.trunk(obs), self.trunk(next_obs)
        predicted = self.forward_net(torch.cat([now, action.to(now.dtype)], -1)).float()
        inferred = self.inverse_net(torch.cat([now, later], -1)).float().tanh()
        forward_error = (later.float() - predicted).norm(dim=-1).mean(-1)
        inverse_error = (action - inferred).norm(dim=-1).mean(-1)
        return forward_error, inverse_error
