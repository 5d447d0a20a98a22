"""Offline updates against ExORL's, at the paper's shapes, in one run on one machine.

`python benchmarks/updates_offline.py` writes results/updates_offline.csv: milliseconds an update,
and ours over theirs; on a busy machine use `--threads 1`. ExORL's updates are written again here as
its code does them: a network a critic, a forward pass a question, torch's own Adam. `--laptop`
times small shapes only, and writes nothing.
"""

import argparse
import copy
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from measuring import in_turn, provenance, write_table
from torch import Tensor, nn
from torch.nn import functional

from belib.config import PRECISIONS, OfflineConfig
from belib.offline import LEARNERS
from belib.replay import Batch

OBS, ACTION = 24, 6  # Walker
TARGETS = {"td3": (0.51, 0.33), "cql": (0.455, 0.27), "crr": (0.44, 0.253)}
"""What ours over theirs has to reach, in float32 and in bfloat16."""


def network(in_dim: int, out_dim: int, hidden: int) -> nn.Sequential:
    made = nn.Sequential(
        nn.Linear(in_dim, hidden),
        nn.LayerNorm(hidden),
        nn.Tanh(),
        nn.Linear(hidden, hidden),
        nn.ReLU(inplace=True),
        nn.Linear(hidden, out_dim),
    )
    for layer in made:
        if isinstance(layer, nn.Linear):
            nn.init.orthogonal_(layer.weight)
            nn.init.zeros_(layer.bias)
    return made


class Reference:
    """What ExORL's three agents share."""

    outputs = ACTION

    def __init__(self, hidden: int):
        self.actor = network(OBS, self.outputs, hidden)
        self.critics = nn.ModuleList([network(OBS + ACTION, 1, hidden) for _ in range(2)])
        self.targets = copy.deepcopy(self.critics)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=1e-4)
        self.critic_optimizer = torch.optim.Adam(self.critics.parameters(), lr=1e-4)

    def values(self, critics: nn.ModuleList, obs: Tensor, action: Tensor) -> list[Tensor]:
        x = torch.cat([obs, action], -1)
        return [critic(x) for critic in critics]

    def sample(self, obs: Tensor) -> Tensor:
        mean = self.actor(obs).tanh()
        action = mean + (0.2 * torch.randn_like(mean)).clamp(-0.3, 0.3)
        return action - action.detach() + action.detach().clamp(-1 + 1e-6, 1 - 1e-6)

    def step(self, optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    def critic_loss(self, batch: Batch) -> tuple[Tensor, list[Tensor]]:
        with torch.no_grad():
            next_values = self.values(self.targets, batch.next_obs, self.sample(batch.next_obs))
            target = batch.reward + batch.discount * torch.min(*next_values)
        values = self.values(self.critics, batch.obs, batch.action)
        return sum(functional.mse_loss(value, target) for value in values), values

    def update(self, batch: Batch) -> None:
        loss, _ = self.critic_loss(batch)
        self.step(self.critic_optimizer, loss)
        self.step(self.actor_optimizer, self.actor_loss(batch))
        for net, target in zip(self.critics.parameters(), self.targets.parameters(), strict=True):
            target.data.copy_(0.01 * net.data + 0.99 * target.data)

    def actor_loss(self, batch: Batch) -> Tensor:
        return -torch.min(*self.values(self.critics, batch.obs, self.sample(batch.obs))).mean()


class ReferenceCRR(Reference):
    """Ten copies of the observations go through actor and critics."""

    def actor_loss(self, batch: Batch) -> Tensor:
        with torch.no_grad():
            obs = batch.obs.repeat_interleave(10, 0)
            sampled = torch.min(*self.values(self.critics, obs, self.sample(obs)))
            value = sampled.view(-1, 10, 1).mean(1)
            own = torch.min(*self.values(self.critics, batch.obs, batch.action))
            weight = torch.sign(torch.relu(own - value))
        normal = torch.distributions.Normal(self.actor(batch.obs).tanh(), 0.2)
        return -(normal.log_prob(batch.action).sum(-1, keepdim=True) * weight).mean()


class ReferenceCQL(Reference):
    """Three critic passes for three kinds of actions, beside the data's."""

    outputs = 2 * ACTION

    def __init__(self, hidden: int):
        super().__init__(hidden)
        self.log_temperature = torch.zeros(1, requires_grad=True)
        self.temperature_optimizer = torch.optim.Adam([self.log_temperature], lr=1e-4)

    def policy(self, obs: Tensor) -> torch.distributions.Normal:
        mean, log_std = self.actor(obs).chunk(2, -1)
        return torch.distributions.Normal(mean.tanh(), log_std.clamp(-10, 2).exp())

    def sample(self, obs: Tensor, *shape: int) -> Tensor:
        return self.policy(obs).rsample(shape).tanh()

    def critic_loss(self, batch: Batch) -> tuple[Tensor, list[Tensor]]:
        loss, values = super().critic_loss(batch)
        with torch.no_grad():
            uniform = torch.rand(3, *batch.action.shape) * 2 - 1
            proposals = [uniform, self.sample(batch.obs, 3), self.sample(batch.next_obs, 3)]
        obs = batch.obs.repeat(3, 1)
        flat = [self.values(self.critics, obs, each.flatten(0, 1)) for each in proposals]
        for critic, value in enumerate(values):
            several = [each[critic].view(3, -1, 1) for each in flat]
            entries = torch.cat([*several, value.unsqueeze(0)], 0)
            loss = loss + 0.01 * (entries.logsumexp(0).mean() - value.mean())
        return loss, values

    def actor_loss(self, batch: Batch) -> Tensor:
        policy = self.policy(batch.obs)
        x = policy.rsample()
        log_slope = 2 * (0.6931 - x - functional.softplus(-2 * x))
        log_density = policy.log_prob(x) - log_slope
        loss = -(self.log_temperature * (log_density - ACTION).detach()).mean()
        self.step(self.temperature_optimizer, loss)
        value = torch.min(*self.values(self.critics, batch.obs, x.tanh()))
        return (self.log_temperature.exp().detach() * log_density - value).mean()


REFERENCES = {"td3": Reference, "cql": ReferenceCQL, "crr": ReferenceCRR}


def batch(members: int, size: int) -> Batch:
    """Numbers of the right shapes."""
    normal = lambda *shape: torch.randn(members, size, *shape)  # noqa: E731
    discount = torch.full((members, size), 0.99)
    return Batch(normal(OBS), normal(ACTION).tanh(), normal(), discount, normal(OBS))


def plain(data: Batch) -> Batch:
    """One member's batch with ExORL's (B, 1) rewards and discounts."""
    one = Batch(*(part[0] for part in data[:5]))
    return one._replace(reward=one.reward[:, None], discount=one.discount[:, None])


def milliseconds(functions: list[Callable], repetitions: int) -> list[float]:
    """The median time of each, called in turn so that a busy moment meets them all.

    With one thread it is processor time, which other processes lengthen little.
    """
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times, _ = in_turn(functions, repetitions, warm_up=2, clock=clock)
    return list(1e3 * np.median(times, axis=1))


def learner(algorithm: str, members: int, **sizes) -> object:
    configs = [OfflineConfig(algorithm=algorithm, seed=seed, **sizes) for seed in range(members)]
    return LEARNERS[algorithm](OBS, ACTION, configs)


def paper_rows(repetitions: int) -> list[dict]:
    """One member, batch and hidden layers of 1024.

    ExORL's come first: a learner of ours tells the process to keep freed memory, theirs do not.
    """
    rows, data = [], batch(1, 1024)
    theirs = {name: reference(1024) for name, reference in REFERENCES.items()}
    updates = [lambda each=each: each.update(plain(data)) for each in theirs.values()]
    exorl = dict(zip(theirs, milliseconds(updates, repetitions), strict=True))
    for algorithm, targets in TARGETS.items():
        ours = [learner(algorithm, 1, precision=p) for p in PRECISIONS]
        found = milliseconds([lambda each=each: each.update(data) for each in ours], repetitions)
        for precision, ms, target in zip(PRECISIONS, found, targets, strict=True):
            row = {"algorithm": algorithm, "members": 1, "hidden": 1024, "precision": precision}
            row |= {"ms": ms, "exorl_ms": exorl[algorithm], "ratio": ms / exorl[algorithm]}
            rows.append({**row, "target": target})
            print(rows[-1], flush=True)
    return rows


def laptop_rows(repetitions: int) -> list[dict]:
    """Fifteen members, batch and hidden layers of 256."""
    rows, sizes = [], {"hidden_dim": 256, "batch_size": 256}
    for members in (1, 15):
        data = batch(members, 256)
        for algorithm in LEARNERS:
            made = [learner(algorithm, members, precision=p, **sizes) for p in PRECISIONS]
            updates = [lambda each=each: each.update(data) for each in made]  # noqa: B023
            for precision, ms in zip(PRECISIONS, milliseconds(updates, repetitions), strict=True):
                row = {"algorithm": algorithm, "members": members, "hidden": 256}
                rows.append({**row, "precision": precision, "ms": ms})
                print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--laptop", action="store_true", help="small shapes only; nothing written")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    clock = "processor" if options.threads == 1 else "wall"
    head = f"{provenance('torch')}, medians of {clock} time"
    rows = [] if options.laptop else paper_rows(options.repetitions)
    table = pd.DataFrame(rows + laptop_rows(options.repetitions)).round(3)
    if not options.laptop:
        write_table("updates_offline", table, head)
