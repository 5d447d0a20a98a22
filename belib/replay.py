"""Replay memory: preallocated rows, n-step transitions drawn in one gather, inside an episode.

A row is what the episode files hold: the observation, the action that led to it, the rewards for
reaching it, the discount; row 0 of an episode has no action. A transition that starts at row t is
(obs[t], action[t+1], reward[t+1..t+n], discount[t+1..t+n], obs[t+n]).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from belib.streams import Streams


class Batch(NamedTuple):
    """B transitions for each of M members."""

    obs: Tensor
    """(M, B, obs_dim)."""
    action: Tensor
    """(M, B, action_dim)."""
    reward: Tensor
    """(M, B): the sum of n rewards, each multiplied by gamma and the discounts before it."""
    discount: Tensor
    """(M, B): gamma^n times the n discounts."""
    next_obs: Tensor
    """(M, B, obs_dim): n steps later."""
    path: Tensor | None = None
    """(M, B, n + 1, obs_dim): all states from obs to next_obs, where a memory drew them."""

    def states(self) -> Tensor:
        """The path, of a batch that has one."""
        assert self.path is not None, "a batch that no memory drew has no path"
        return self.path


class Replay:
    """The last `capacity` rows of each of S sources (a collecting member, a dataset).

    Args:
        sources: S separate memories.
        capacity: rows of a source; older rows are overwritten, here and never on disk.
        obs_dim, action_dim: sizes.
        n_step: steps of a transition.
        discount: gamma.
        rewards: R reward columns (tasks) a row.
        members: for each member, its (source, reward column); by default one member a source.
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
        self._split = (obs_dim, action_dim, rewards, 1)
        self._rows = torch.zeros(sources * capacity, sum(self._split))
        self._starts = np.zeros((sources, capacity), np.int64)  # a ring of valid starts, in order
        self._first = np.zeros(sources, np.int64)
        self.count = np.zeros(sources, np.int64)
        """Valid starts a source."""
        self._written = np.zeros(sources, np.int64)
        self._length = np.zeros(sources, np.int64)  # rows of the episode in progress
        members = members or [(source, 0) for source in range(sources)]
        self._source = np.array([source for source, _ in members])
        self._column = torch.tensor([column for _, column in members])

    def add(
        self,
        source: int,
        obs: np.ndarray,
        action: np.ndarray,
        reward: np.ndarray,
        discount: np.ndarray,
        *,
        first: bool,
    ) -> None:
        """Append consecutive rows (rows, ...) of one episode; `first` says that they begin it."""
        columns = (obs, action, reward, discount)
        block = np.concatenate([np.atleast_2d(part).astype(np.float32) for part in columns], -1)
        if first:
            self._length[source] = 0
        for begin in range(0, len(block), self.capacity):
            self._append(source, torch.from_numpy(block[begin : begin + self.capacity]))

    def add_episode(self, source: int, episode: dict[str, np.ndarray]) -> None:
        """Append an episode's arrays, as its file has them."""
        keys = ("observation", "action", "reward", "discount")
        self.add(source, *(episode[key] for key in keys), first=True)

    def clear(self, source: int) -> None:
        """Forget a source's rows."""
        for counter in (self._first, self.count, self._written, self._length):
            counter[source] = 0

    def _append(self, source: int, block: Tensor) -> None:
        n, written = len(block), self._written[source]
        self._forget_before(source, written + n - self.capacity)
        position = (written + np.arange(n)) % self.capacity
        self._rows[torch.from_numpy(source * self.capacity + position)] = block
        # A start becomes valid n_step rows later and invalid as its own row is overwritten.
        length = self._length[source]
        new = written - length + np.arange(max(length, self.n_step), length + n) - self.n_step
        held = self._first[source] + self.count[source]
        self._starts[source, (held + np.arange(len(new))) % self.capacity] = new
        self.count[source] += len(new)
        self._written[source] += n
        self._length[source] += n

    def _forget_before(self, source: int, row: int) -> None:
        """Drop the starts whose own row is overwritten."""
        starts, capacity = self._starts[source], self.capacity
        while self.count[source] and starts[self._first[source] % capacity] < row:
            self._first[source] += 1
            self.count[source] -= 1

    def sample(self, batch_size: int, streams: Streams) -> Batch:
        """Draw uniformly over each member's valid starts; ValueError where a source has none."""
        counts = self.count[self._source]
        if not counts.all():
            raise ValueError(f"no episode has {self.n_step} steps yet: nothing to sample from")
        drawn = streams.integers(counts.tolist(), batch_size).numpy()
        ring = (self._first[self._source, None] + drawn) % self.capacity
        start = self._starts[self._source[:, None], ring]
        rows = (start[..., None] + np.arange(self.n_step + 1)) % self.capacity
        rows = torch.from_numpy(rows + (self._source * self.capacity)[:, None, None])
        gathered = self._rows[rows]  # (M, B, n + 1, row)
        return self._transitions(gathered)

    def _transitions(self, gathered: Tensor) -> Batch:
        obs, action, reward, discount = gathered.split(self._split, -1)
        column = self._column.view(-1, 1, 1, 1).expand(*reward.shape[:-1], 1)
        reward = reward.gather(-1, column)[..., 1:, 0]
        through = (self.discount * discount[..., 1:, 0]).cumprod(-1)  # discount[t+1..t+j] gamma^j
        before = torch.cat([torch.ones_like(through[..., :1]), through[..., :-1]], -1)
        total = (reward * before).sum(-1)
        ends = obs[..., 0, :], action[..., 1, :], total, through[..., -1], obs[..., -1, :]
        return Batch(*ends, path=obs)
