"""Random streams: one a member, drawn from the member's own seed, and nothing else."""

import zlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def derive_seed(seed: int, *purpose: str | int) -> int:
    """A 63-bit seed for one purpose of a run, unrelated to the seeds for other purposes."""
    words = [zlib.crc32(word.encode()) if isinstance(word, str) else word for word in purpose]
    drawn = np.random.SeedSequence([seed, *words]).generate_state(1, np.uint64)
    return int(drawn[0] >> np.uint64(1))


class Streams:
    """M independent generators, so that a member draws the same alone or beside others.

    Args:
        seeds: one seed a member.
        purpose: what is drawn (`"agent"`, `"replay"`): streams of one seed must not coincide.
    """

    def __init__(self, seeds: Sequence[int], purpose: str):
        self.generators = [
            torch.Generator().manual_seed(derive_seed(seed, purpose)) for seed in seeds
        ]

    def __len__(self) -> int:
        return len(self.generators)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers, (M, *shape)."""
        return torch.stack([torch.randn(shape, generator=g) for g in self.generators])

    def uniform(self, *shape: int) -> Tensor:
        """Uniform numbers in [-1, 1), the range of actions, (M, *shape)."""
        return torch.stack([torch.rand(shape, generator=g) for g in self.generators]) * 2 - 1

    def integers(self, highs: Sequence[int], *shape: int) -> Tensor:
        """Integers in [0, high), with a `high` of its own for each member, (M, *shape)."""
        pairs = zip(highs, self.generators, strict=True)
        return torch.stack([torch.randint(high, shape, generator=g) for high, g in pairs])

    def state(self) -> list[Tensor]:
        """The generators' states, to be given back to `restore`."""
        return [generator.get_state() for generator in self.generators]

    def restore(self, state: Sequence[Tensor]) -> None:
        """Continue from `state()`."""
        for generator, saved in zip(self.generators, state, strict=True):
            generator.set_state(saved)
