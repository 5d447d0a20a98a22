"""State marginal matching (Lee et al. 2019) as in URLB.

Every episode has a skill z, an input of actor and critic beside the state. The reward is the sum of
a variational autoencoder's reconstruction error of (s, z), which stands for -log p(s, z), of log
(number of skills), and of a discriminator's cross entropy. Sensors are not scaled, so large ones
dominate the error. The target distribution is uniform. Conventions: `belib.agents.ddpg`.
"""

import math
from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

from belib.actor_critic import Metrics
from belib.agents.ddpg import Explorer
from belib.config import PretrainConfig
from belib.networks import mlp
from belib.replay import Batch
from belib.streams import Streams

# URLB's autoencoder: widths of the hidden layers and the code, weight of the KL divergence
_VAE_HIDDEN, _CODE, _VAE_BETA = 150, 128, 0.5


class SMM(Explorer):
    """Members may differ in seed. Observations (M, B, obs_dim) end in the one-hot skill."""

    learns_first = False

    def __init__(self, obs_dim: int, action_dim: int, configs: Sequence[PretrainConfig]):
        super().__init__(obs_dim, action_dim, configs)
        config, hidden = self.config, self.config.hidden_dim
        self.sizes = [obs_dim - config.skill_dim, config.skill_dim]
        self.discriminator = mlp(self.streams, self.sizes[0], hidden, hidden, config.skill_dim)
        self.vae = VAE(self.streams, obs_dim)
        rate = config.discriminator_learning_rate
        self.optimizers["discriminator"] = self.adam(self.discriminator, rate)
        self.optimizers["vae"] = self.adam(self.vae, config.vae_learning_rate)

    def update_representation(self, batch: Batch) -> Metrics:
        """Train the autoencoder on states and skills, and the discriminator on skills."""
        error, divergence = self.vae(batch.obs, self.streams)
        loss = _VAE_BETA * divergence.mean(-1) + error.mean(-1) / batch.obs.shape[-1]
        metrics = self.descend("vae", loss, {"vae_loss": loss})
        loss = self.skill_error(batch.obs).mean(-1)
        return metrics | self.descend("discriminator", loss, {"discriminator_loss": loss})

    def intrinsic_reward(self, obs: Tensor) -> tuple[Tensor, Metrics]:
        """Return reconstruction error + log(skills) +- the skill's cross entropy."""
        error, _ = self.vae(obs, self.streams)
        sign = 1 if self.config.convention == "urlb" else -1
        reward = error + math.log(self.config.skill_dim) + sign * self.skill_error(obs)
        return reward, {"representation_scale": error.mean(-1)}

    def skill_error(self, obs: Tensor) -> Tensor:
        """Return the discriminator's cross entropy (M, B)."""
        state, skill = obs.split(self.sizes, -1)
        logits = self.discriminator(state).float()
        return -(functional.log_softmax(logits, -1) * skill).sum(-1)


class VAE(nn.Module):
    """A variational autoencoder (Kingma and Welling 2014) with unit-variance Gaussian output."""

    def __init__(self, streams: Streams, dim: int):
        super().__init__()
        self.encoder = nn.Sequential(mlp(streams, dim, _VAE_HIDDEN, _VAE_HIDDEN), nn.ReLU())
        self.mean = mlp(streams, _VAE_HIDDEN, _CODE)
        self.log_variance = mlp(streams, _VAE_HIDDEN, _CODE)
        self.decoder = mlp(streams, _CODE, _VAE_HIDDEN, _VAE_HIDDEN, dim)

    def forward(self, x: Tensor, streams: Streams) -> tuple[Tensor, Tensor]:
        """Return squared reconstruction errors (M, B) of x (M, B, dim), and KL divergences."""
        h = self.encoder(x)
        mean, log_variance = self.mean(h).float(), self.log_variance(h).float()
        noise = streams.normal(*mean.shape[1:])
        reconstruction = self.decoder(mean + (log_variance / 2).exp() * noise)
        divergence = (mean.square() + log_variance.exp() - log_variance - 1).sum(-1) / 2
        return (reconstruction.float() - x).square().sum(-1), divergence
