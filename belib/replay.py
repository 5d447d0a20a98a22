"""Replay memory: preallocated rows, from which one gather takes n-step transitions.

Rows are those of episode files: an observation, the action that led to it, the rewards for reaching
it, the discount. Row 0 of an episode has no action. The transition that starts at row t is
(obs[t], action[t+1], reward[t+1..t+n], discount[t+1..t+n], obs[t+n]), all in one episode.
Rows are on the networks' device. Starts of transitions are stored and drawn on the CPU.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from belib.streams import Streams


class Batch(NamedTuple):
    """B transitions for each of M members."""

    obs: Tensor  # (M, B, obs_dim)
    action: Tensor  # (M, B, action_dim)
    reward: Tensor  # (M, B), the sum of n discounted rewards
    discount: Tensor  # (M, B), gamma^n times the product of n discounts
    next_obs: Tensor  # (M, B, obs_dim), n steps later
    path: Tensor  # (M, B, n + 1, obs_dim), all states from obs to next_obs


class Replay:
    """The last `capacity` rows of each of S sources (a collecting member, a dataset).

    Args:
        sources: number S of separate memories.
        capacity: rows of a source; new rows overwrite the oldest.
        n_step, discount: steps of a transition, gamma.
        rewards: number of reward columns (tasks).
        members: (source, reward column) of every member; by default one member a source.
    """

    def __init__(
        self,
        sources: int,
        capacity: int,
        obs_dim: int,
        action_dim: int,
        *,
        n_step: int,
        discount: float,
        rewards: int = 1,
        members: Sequence[tuple[int, int]] | None = None,
    ):
        self.capacity, self.n_step, self.discount = capacity, n_step, discount
        self.obs_dim = obs_dim
        self._split = (obs_dim, action_dim, rewards, 1)
        self._rows = torch.zeros(sources * capacity, sum(self._split))
        self._starts = np.zeros((sources, capacity), np.int64)  # a ring of valid starts, in order
        self._first = np.zeros(sources, np.int64)
        self.count = np.zeros(sources, np.int64)  # valid starts
        self._written = np.zeros(sources, np.int64)
        self._length = np.zeros(sources, np.int64)  # rows of the episode in progress
        members = members or [(source, 0) for source in range(sources)]
        self._source = np.array([source for source, _ in members])
        self._begin = torch.from_numpy(self._source * capacity).view(-1, 1, 1)
        self._column = torch.tensor([column for _, column in members]).view(-1, 1, 1, 1)
        self._ahead = torch.arange(n_step + 1)

    def to(self, device: torch.device) -> None:
        """Move the rows to another device."""
        for name in ("_rows", "_begin", "_column", "_ahead"):
            setattr(self, name, getattr(self, name).to(device))

    def add(self, source: int, *columns: np.ndarray, first: bool) -> None:
        """Append consecutive rows of one episode; `first` says that they begin it.

        `columns` are obs, action, reward and discount, (rows, ...), or (...) for one row. If the
        present episode has one row only, a first row replaces it: such episodes are not on disk.
        """
        block = np.concatenate([np.atleast_2d(part).astype(np.float32) for part in columns], -1)
        if first:
            self._written[source] -= self._length[source] == 1
            self._length[source] = 0
        for begin in range(0, len(block), self.capacity):
            self._append(source, block[begin : begin + self.capacity])

    def _append(self, source: int, block: np.ndarray) -> None:
        n, written = len(block), self._written[source]
        # forget the starts whose rows are overwritten
        starts, oldest = self._starts[source], written + n - self.capacity
        while self.count[source] and starts[self._first[source] % self.capacity] < oldest:
            self._first[source] += 1
            self.count[source] -= 1
        position = source * self.capacity + (written + np.arange(n)) % self.capacity
        index, rows = (to_device(torch.from_numpy(x), self._rows.device) for x in (position, block))
        self._rows.index_copy_(0, index, rows)
        # a start is valid once n_step rows follow it, until its row is overwritten
        length = self._length[source]
        new = written - length + np.arange(max(length, self.n_step), length + n) - self.n_step
        new = new[new >= oldest]
        end = self._first[source] + self.count[source]
        starts[(end + np.arange(len(new))) % self.capacity] = new
        self.count[source] += len(new)
        self._written[source] += n
        self._length[source] += n

    def draw(self, batch_size: int, streams: Streams) -> Tensor:
        """Return uniformly drawn starts (M, B); ValueError if a source has none."""
        counts = self.count[self._source]
        if not counts.all():
            raise ValueError(f"a source has no episode of {self.n_step} steps to sample from yet")
        drawn = streams.integers(counts.tolist(), batch_size).numpy()
        ring = (self._first[self._source, None] + drawn) % self.capacity
        return torch.from_numpy(self._starts[self._source[:, None], ring])

    def transitions(self, start: Tensor) -> Batch:
        """Return the batch of transitions at starts (M, B)."""
        index = (start[..., None] + self._ahead) % self.capacity + self._begin  # (M, B, n + 1)
        gathered = self._rows.index_select(0, index.flatten()).view(*index.shape, -1)
        obs, action, reward, discount = gathered.split(self._split, -1)
        column = self._column.expand(*reward.shape[:-1], 1)
        reward = reward.gather(-1, column)[..., 1:, 0]
        discounts = (self.discount * discount[..., 1:, 0]).cumprod(-1)  # discount[t+1..t+j] gamma^j
        total = reward[..., 0] + (reward[..., 1:] * discounts[..., :-1]).sum(-1)
        ends = obs[..., 0, :], action[..., 1, :], total, discounts[..., -1], obs[..., -1, :]
        return Batch(*ends, path=obs)


def to_device(x: Tensor, device: torch.device) -> Tensor:
    """Return a CPU tensor on a device; copies to a GPU are asynchronous."""
    return x if device.type == "cpu" else x.pin_memory().to(device, non_blocking=True)
