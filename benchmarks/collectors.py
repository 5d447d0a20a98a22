"""Our collectors against a plain writing of the same updates, and the memory of a replay.

`python benchmarks/collectors.py` writes results/collectors.csv. URLB's own code does not run beside
ours (it needs old versions), so `Plain...` writes its updates as its files do: a module a network,
`torch.optim.Adam`, differences of all pairs of states (batch x batch x 512) for neighbours, critic
gradients in the actor's step. Ratios are of medians of one process. On a machine of the development
kind (2 cores, AMD Zen 5) URLB's own updates took 903 (APT), 333 (RND) and 266 ms (SMM).
"""

import argparse
import itertools
import math
import resource

import numpy as np
import pandas as pd
import torch
from dm_control import suite
from measuring import in_turn, provenance, spread, write_table
from torch import Tensor, nn
from torch.nn import functional

from belib.config import PretrainConfig
from belib.envs import Environment
from belib.replay import Batch, Replay
from belib.rewards import shannon_reward
from belib.streams import Streams
from belib.training.collection import AGENTS

TARGETS = {"shannon": 175 / 903, "rnd": 150 / 333, "smm": 140 / 266}


def layers(*dims: int) -> list[nn.Module]:
    found = []
    for i, o in itertools.pairwise(dims):
        found += [nn.Linear(i, o), nn.ReLU(inplace=True)]
    return found[:-1]


def trunk(i: int, o: int) -> list[nn.Module]:
    return [nn.Linear(i, o), nn.LayerNorm(o), nn.Tanh()]


class PlainCritic(nn.Module):
    def __init__(self, obs_dim: int, action_dim: int, hidden: int):
        super().__init__()
        self.trunk = nn.Sequential(*trunk(obs_dim + action_dim, hidden))
        self.heads = nn.ModuleList(nn.Sequential(*layers(hidden, hidden, 1)) for _ in range(2))

    def forward(self, obs: Tensor, action: Tensor) -> list[Tensor]:
        h = self.trunk(torch.cat([obs, action], -1))
        return [head(h) for head in self.heads]


class PlainDDPG:
    def __init__(self, obs_dim: int, action_dim: int, config: PretrainConfig):
        hidden, self.config = config.hidden_dim, config
        head = [nn.Linear(hidden, hidden), nn.ReLU(inplace=True), nn.Linear(hidden, action_dim)]
        self.actor = nn.Sequential(*trunk(obs_dim, hidden), *head, nn.Tanh())
        self.critic, self.target = (PlainCritic(obs_dim, action_dim, hidden) for _ in range(2))
        self.optimizers = {n: self.adam(getattr(self, n)) for n in ("actor", "critic")}

    def adam(self, network: nn.Module) -> torch.optim.Adam:
        return torch.optim.Adam(network.parameters(), lr=self.config.learning_rate)

    def noisy(self, obs: Tensor) -> Tensor:
        mean = self.actor(obs)
        noise = (0.2 * torch.randn_like(mean)).clamp(-0.3, 0.3)
        action = mean + noise
        return action - action.detach() + action.clamp(-1 + 1e-6, 1 - 1e-6).detach()

    def descend(self, name: str, loss: Tensor) -> None:
        self.optimizers[name].zero_grad(set_to_none=True)
        loss.backward()
        self.optimizers[name].step()

    def update(self, batch: Batch) -> None:
        obs, action, _, discount, next_obs = (part[0] for part in batch[:5])
        reward = self.learn_and_pay(obs, action, next_obs)[:, None]
        with torch.no_grad():
            value = torch.min(*self.target(next_obs, self.noisy(next_obs)))
            target = reward + discount[:, None] * value
        one, two = self.critic(obs, action)
        self.descend("critic", functional.mse_loss(one, target) + functional.mse_loss(two, target))
        self.descend("actor", -torch.min(*self.critic(obs, self.noisy(obs))).mean())
        for own, other in zip(self.critic.parameters(), self.target.parameters(), strict=True):
            other.data.copy_(0.01 * own.data + 0.99 * other.data)


class PlainAPT(PlainDDPG):
    def __init__(self, obs_dim: int, action_dim: int, config: PretrainConfig):
        super().__init__(obs_dim, action_dim, config)
        r, hidden = config.representation_dim, config.hidden_dim
        self.trunk = nn.Sequential(*trunk(obs_dim, r))
        self.forward_net = nn.Sequential(*layers(r + action_dim, hidden, r))
        self.inverse_net = nn.Sequential(*layers(2 * r, hidden, action_dim), nn.Tanh())
        self.icm = nn.ModuleList([self.trunk, self.forward_net, self.inverse_net])
        self.optimizers["icm"] = self.adam(self.icm)

    def learn_and_pay(self, obs: Tensor, action: Tensor, next_obs: Tensor) -> Tensor:
        now, later = self.trunk(obs), self.trunk(next_obs)
        forward = (later - self.forward_net(torch.cat([now, action], -1))).norm(dim=-1)
        inverse = (action - self.inverse_net(torch.cat([now, later], -1))).norm(dim=-1)
        self.descend("icm", forward.mean() + inverse.mean())
        with torch.no_grad():
            phi = self.trunk(obs)
            pairs = torch.norm(phi[:, None] - phi[None], dim=-1, p=2)
            nearest = pairs.topk(self.config.k, dim=1, largest=False).values
            return shannon_reward(nearest.mean(1))


class PlainRND(PlainDDPG):
    def __init__(self, obs_dim: int, action_dim: int, config: PretrainConfig):
        super().__init__(obs_dim, action_dim, config)
        dims = (obs_dim, config.hidden_dim, config.hidden_dim, config.representation_dim)
        self.norm = nn.BatchNorm1d(obs_dim, affine=False)
        self.predictor, self.random = (nn.Sequential(*layers(*dims)) for _ in range(2))
        self.optimizers["predictor"] = self.adam(self.predictor)

    def error(self, obs: Tensor) -> Tensor:
        x = self.norm(obs).clamp(-5, 5)
        with torch.no_grad():
            target = self.random(x)
        return (target - self.predictor(x)).square().mean(-1)

    def learn_and_pay(self, obs: Tensor, action: Tensor, next_obs: Tensor) -> Tensor:
        self.descend("predictor", self.error(obs).mean())
        with torch.no_grad():
            error = self.error(obs)
            return error / (error.var().sqrt() + 1e-8)


class PlainSMM(PlainDDPG):
    def __init__(self, obs_dim: int, action_dim: int, config: PretrainConfig):
        super().__init__(obs_dim, action_dim, config)
        self.encoder = nn.Sequential(*layers(obs_dim, 150, 150), nn.ReLU())
        self.code = nn.Linear(150, 256)
        self.decoder = nn.Sequential(*layers(128, 150, 150, obs_dim))
        self.vae = nn.ModuleList([self.encoder, self.code, self.decoder])
        hidden, self.skills = config.hidden_dim, config.skill_dim
        dims = (obs_dim - self.skills, hidden, hidden, self.skills)
        self.discriminator = nn.Sequential(*layers(*dims))
        self.optimizers |= {n: self.adam(getattr(self, n)) for n in ("vae", "discriminator")}

    def learn_and_pay(self, obs: Tensor, action: Tensor, next_obs: Tensor) -> Tensor:
        mean, log_variance = self.code(self.encoder(obs)).chunk(2, -1)
        found = self.decoder(mean + (log_variance / 2).exp() * torch.randn_like(mean))
        divergence = (mean.square() + log_variance.exp() - log_variance - 1).sum(-1) / 2
        error = (found - obs).square()
        skill = obs[:, -self.skills :].argmax(-1)
        logits = self.discriminator(obs[:, : -self.skills])
        told = functional.cross_entropy(logits, skill, reduction="none")
        self.descend("vae", 0.5 * divergence.mean() + error.mean())
        self.descend("discriminator", told.mean())
        return (error.sum(-1) + math.log(self.skills) + told).detach()


PLAIN = {"shannon": PlainAPT, "rnd": PlainRND, "smm": PlainSMM}


def row(what: str, setting: str, times: np.ndarray, target: float) -> dict:
    """Medians of (2, repetitions) milliseconds, ours and the other's."""
    ours, other = np.median(times, axis=1)
    return {
        "what": what,
        "setting": setting,
        "ours": ours,
        "other": other,
        "ratio": ours / other,
        "spread": spread(times),
        "target": f"ratio <= {target:.2f}",
        "repetitions": times.shape[1],
    }


def batch(obs_dim: int, action_dim: int, size: int, skills: int) -> Batch:
    g = torch.Generator().manual_seed(0)
    path = torch.randn(1, size, 4, obs_dim, generator=g)
    if skills:
        path[..., -skills:] = torch.eye(skills)[torch.randint(skills, (1, size, 1), generator=g)]
    action = torch.rand(1, size, action_dim, generator=g) * 2 - 1
    reward, discount = torch.zeros(1, size), torch.full((1, size), 0.97)
    return Batch(path[:, :, 0], action, reward, discount, path[:, :, -1], path)


def update_row(objective: str, precision: str, repeats: int) -> dict:
    """One update at the paper's shapes, Walker: ours and the plain one (in float32) in turn."""
    config = PretrainConfig(objective=objective, precision=precision)
    skills = config.skill_dim if objective == "smm" else 0
    sizes, data = (24 + skills, 6), batch(24 + skills, 6, config.batch_size, skills)
    agent, plain = AGENTS[objective](*sizes, [config]), PLAIN[objective](*sizes, config)
    updates = [lambda: agent.update(data), lambda: plain.update(data)]
    times, _ = in_turn(updates, repeats, warm_up=2)
    shapes = f"batch 1024, hidden 1024, Walker, ours in {precision}; ms"
    return row(f"update of {objective}", shapes, 1000 * times, TARGETS[objective])


def step_row(domain: str, task: str, repeats: int) -> dict:
    """One step of our environment against dm_control's own, the same actions."""
    ours, other = Environment(f"{domain}_{task}", 0), suite.load(domain, task)
    actions = np.random.default_rng(0).uniform(-1, 1, (500, ours.action_dim))

    def play(env: object) -> None:
        env.reset()
        for action in actions:
            env.step(action)

    times, _ = in_turn([lambda: play(ours), lambda: play(other)], repeats)
    per_step = 1000 * times / len(actions)
    return row(f"step of {domain}", "random actions; ms", per_step, 1.15)


def memory_row(what: str, steps: int, obs_dim: int, action_dim: int, target: float) -> dict:
    """Growth of the process by a replay of `steps` steps in episodes of 1000."""
    before = resident()
    replay = Replay(1, steps + steps // 1000, obs_dim, action_dim, n_step=3, discount=0.99)
    shapes = {"observation": obs_dim, "action": action_dim, "reward": 1, "discount": 1}
    episode = {key: np.ones((1001, size), np.float32) for key, size in shapes.items()}
    for _ in range(steps // 1000):
        replay.add_episode(0, episode)
    replay.sample(1024, Streams([0], "replay"))
    grown = resident() - before
    return {
        "what": what,
        "setting": f"{steps} steps; MB",
        "ours": grown,
        "target": f"ours <= {target}",
    }


def resident() -> float:
    """MB of this process now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    head = provenance("torch", "dm_control")
    rows = [
        memory_row("replay of Walker", 500_000, 24, 6, 350),
        memory_row("replay of Quadruped", 1_000_000, 78, 12, 1500),
        *(update_row(o, p, repeats) for p in ("float32", "bfloat16") for o in PLAIN),
        *(step_row(*pair, repeats) for pair in (("walker", "stand"), ("quadruped", "walk"))),
    ]
    table = pd.DataFrame(rows)
    write_table("collectors", table, head)
    print(table.to_string())


if __name__ == "__main__":
    main()
