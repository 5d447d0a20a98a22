"""Random streams: one a member, drawn from the member's own seed, and nothing else."""

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
    """A 63-bit seed for one purpose of a run, unrelated to the seeds for other purposes.

    Raises ValueError for a seed that is no whole number from 0 on; it may be of any size.
    """
    seed = whole_number("seed", seed)
    words = [zlib.crc32(word.encode()) if isinstance(word, str) else word for word in purpose]
    drawn = np.random.SeedSequence([seed, *words]).generate_state(1, np.uint64)
    return int(drawn[0] >> np.uint64(1))


class Streams(nn.Module):
    """M independent generators, so that a member draws the same alone or beside others.

    They live on the CPU, and so does their state, wherever the numbers are needed. `to` says where
    `normal` and `uniform` put their numbers; draws differ between devices.

    Args:
        seeds: one seed a member.
        purpose: what is drawn (`"agent"`, `"replay"`): streams of one seed must not coincide.
    """

    def __init__(self, seeds: Sequence[int], purpose: str):
        super().__init__()
        self.generators = [
            torch.Generator().manual_seed(derive_seed(seed, purpose)) for seed in seeds
        ]
        self.tape: Tape | None = None
        self.register_buffer("_place", torch.empty(0), persistent=False)

    def __len__(self) -> int:
        return len(self.generators)

    @property
    def device(self) -> torch.device:
        """The device of the numbers that `normal` and `uniform` return."""
        return cast(Tensor, self._place).device

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers, (M, *shape)."""
        return self._numbers(Tensor.normal_, shape)

    def uniform(self, *shape: int) -> Tensor:
        """Uniform numbers in [-1, 1), the range of actions, (M, *shape)."""
        return self._numbers(Tensor.uniform_, shape) * 2 - 1

    def integers(self, highs: Sequence[int], *shape: int) -> Tensor:
        """Integers in [0, high), with a `high` of its own for each member, (M, *shape)."""
        pairs = zip(highs, self.generators, strict=True)
        return torch.stack([torch.randint(high, shape, generator=g) for high, g in pairs])

    def _numbers(self, distribution: Distribution, shape: tuple[int, ...]) -> Tensor:
        if self.tape is not None:
            return self.tape.read(distribution, shape)
        empty = torch.empty(len(self), *shape, device=self.device)
        return self.fill(empty, distribution)

    def fill(self, numbers: Tensor, distribution: Distribution) -> Tensor:
        """Draw all of (M, ...) anew; elsewhere than on the CPU, from seeds drawn on the CPU."""
        card = None if numbers.device.type == "cpu" else torch.Generator(numbers.device)
        for row, generator in zip(numbers, self.generators, strict=True):
            if card is not None:
                seed = int(torch.randint(2**62, (), generator=generator))
                generator = card.manual_seed(seed)
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
    """The numbers of one step, drawn before it and always at the same place in memory.

    A step that is repeated as a CUDA graph cannot draw: it reads what is here. Within `with tape:`
    streams read from it. The first step finds it empty and so records what a step needs; before
    each later one, `draw` draws that in the same order, so that a step meets the numbers that it
    would have drawn itself.
    """

    def __init__(self, streams: Streams):
        self.streams = streams
        self._recorded: list[tuple[Distribution, Tensor]] = []
        self._position = 0

    def draw(self) -> None:
        """The next step's numbers."""
        for distribution, numbers in self._recorded:
            self.streams.fill(numbers, distribution)

    def read(self, distribution: Distribution, shape: tuple[int, ...]) -> Tensor:
        """The step's next numbers (M, *shape); RuntimeError where earlier steps read others."""
        if self._position == len(self._recorded):
            numbers = torch.empty(len(self.streams), *shape, device=self.streams.device)
            self._recorded.append((distribution, self.streams.fill(numbers, distribution)))
        known, numbers = self._recorded[self._position]
        self._position += 1
        if known is not distribution or numbers.shape[1:] != shape:
            found = tuple(numbers.shape[1:])
            raise RuntimeError(f"a step must draw the same shapes each time, got {shape}: {found}")
        return numbers

    def __enter__(self) -> Self:
        self.streams.tape, self._position = self, 0
        return self

    def __exit__(self, *error: object) -> None:
        self.streams.tape = None
