"""Random streams: one per member, which depends on the member's seed alone."""

import zlib
from collections.abc import Callable, Sequence
from typing import Self, cast

import numpy as np
import torch
from torch import Tensor, nn

from belib.arrays import whole_number

Distribution = Callable[..., Tensor]
"""Fills a tensor in place from a `generator`: `Tensor.normal_`, `Tensor.uniform_`."""


def derive_seed(seed: int, *purpose: str | int) -> int:
    """Return a 63-bit seed for one purpose of a run, independent of those for other purposes.

    Raise ValueError unless the seed is a whole number of at least 0, of any size.
    """
    seed = whole_number("seed", seed)
    keys = [zlib.crc32(part.encode()) if isinstance(part, str) else part for part in purpose]
    drawn = np.random.SeedSequence([seed, *keys]).generate_state(1, np.uint64)
    return int(drawn[0] >> np.uint64(1))


class Streams(nn.Module):
    """M independent generators: a member's draws do not depend on other members.

    Generators and their states are on the CPU. `to` sets the device of the draws of `normal` and
    `uniform`, which differ between CPUs and GPUs.

    Args:
        seeds: one per member.
        purpose: use of the draws (`"agent"`, `"replay"`): streams of one seed must not coincide.
    """

    def __init__(self, seeds: Sequence[int], purpose: str):
        super().__init__()
        self.generators = [torch.Generator().manual_seed(derive_seed(s, purpose)) for s in seeds]
        self.tape: Tape | None = None
        self.register_buffer("_place", torch.empty(0), persistent=False)

    def __len__(self) -> int:
        return len(self.generators)

    @property
    def device(self) -> torch.device:
        """The device of the draws of `normal` and `uniform`."""
        return cast(Tensor, self._place).device

    def normal(self, *shape: int) -> Tensor:
        """Return standard normal numbers, (M, *shape)."""
        return self._numbers(Tensor.normal_, shape)

    def uniform(self, *shape: int) -> Tensor:
        """Return uniform numbers in [-1, 1), (M, *shape)."""
        return self._numbers(Tensor.uniform_, shape) * 2 - 1

    def integers(self, highs: Sequence[int], *shape: int) -> Tensor:
        """Return integers (M, *shape) in [0, high), one `high` per member."""
        pairs = zip(highs, self.generators, strict=True)
        return torch.stack([torch.randint(high, shape, generator=g) for high, g in pairs])

    def _numbers(self, distribution: Distribution, shape: tuple[int, ...]) -> Tensor:
        if self.tape is not None:
            return self.tape.read(distribution, shape)
        return self.fill(torch.empty(len(self), *shape, device=self.device), distribution)

    def fill(self, numbers: Tensor, distribution: Distribution) -> Tensor:
        """Fill `numbers` (M, ...) with draws; on a GPU, from seeds drawn on the CPU."""
        gpu = None if numbers.device.type == "cpu" else torch.Generator(numbers.device)
        for row, generator in zip(numbers, self.generators, strict=True):
            if gpu is not None:
                generator = gpu.manual_seed(int(torch.randint(2**62, (), generator=generator)))
            distribution(row, generator=generator)
        return numbers

    def get_extra_state(self) -> list[Tensor]:
        """Return the generators' states, for `state_dict`."""
        return [generator.get_state() for generator in self.generators]

    def set_extra_state(self, state: list[Tensor]) -> None:
        """Continue from the saved states."""
        for generator, saved in zip(self.generators, state, strict=True):
            generator.set_state(saved)


class Tape:
    """The random numbers of one step, drawn before the step into fixed memory.

    A CUDA graph cannot draw, so it reads these numbers. Within `with tape:` streams read from the
    tape. The first step records which numbers it needs. `draw` draws them in the same order before
    every later step, so that a step has the same numbers with or without a tape.
    """

    def __init__(self, streams: Streams):
        self.streams = streams
        self._recorded: list[tuple[Distribution, Tensor]] = []
        self._position = 0

    def draw(self) -> None:
        """Draw the next step's numbers."""
        for distribution, numbers in self._recorded:
            self.streams.fill(numbers, distribution)

    def read(self, distribution: Distribution, shape: tuple[int, ...]) -> Tensor:
        """Return the next numbers (M, *shape); RuntimeError if the first step drew others."""
        if self._position == len(self._recorded):
            numbers = torch.empty(len(self.streams), *shape, device=self.streams.device)
            self._recorded.append((distribution, self.streams.fill(numbers, distribution)))
        before, numbers = self._recorded[self._position]
        self._position += 1
        old = tuple(numbers.shape[1:])
        if before is not distribution or old != shape:
            raise RuntimeError(f"a step must draw the same shapes each time, got {shape}: {old}")
        return numbers

    def __enter__(self) -> Self:
        self.streams.tape, self._position = self, 0
        return self

    def __exit__(self, *error: object) -> None:
        self.streams.tape = None
