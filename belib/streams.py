"""Random streams: one per member, which depends on the member's seed alone."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from belib.arrays import whole_number

Distribution = Callable[..., Tensor]  # fills a tensor from a `generator`: `Tensor.normal_`


def derive_seed(seed: int, *purpose: str | int) -> int:
    """Return a 63-bit seed for one purpose of a run, independent of those for other purposes.

    Zeros at the end of a purpose do not count. Raise ValueError unless the seed is a whole number
    of at least 0, of any size.
    """
    keys = [zlib.crc32(part.encode()) if isinstance(part, str) else part for part in purpose]
    sequence = np.random.SeedSequence([whole_number("seed", seed), *keys])
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


class Streams(nn.Module):
    """M independent generators: a member's draws do not depend on other members.

    `seeds` are the members'; streams for another `purpose` (`"agent"`, `"replay"`) are independent.
    Generators are on the CPU. `to` sets the device of the draws of `normal` and `uniform`, which
    differ between CPUs and GPUs.
    """

    def __init__(self, seeds: Sequence[int], purpose: str):
        super().__init__()
        self.generators = [torch.Generator().manual_seed(derive_seed(s, purpose)) for s in seeds]
        self._tape: list[tuple[Distribution, Tensor]] = []
        self._position: int | None = None  # on the tape; None outside of `taped`
        self._place = nn.Buffer(torch.empty(0), persistent=False)

    def __len__(self) -> int:
        return len(self.generators)

    @property
    def device(self) -> torch.device:
        """The device of the draws of `normal` and `uniform`."""
        return self._place.device

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
        if self._position is None or self._position == len(self._tape):
            numbers = torch.empty(len(self), *shape, device=self.device)
            self._fill(numbers, distribution)
            if self._position is None:
                return numbers
            self._tape.append((distribution, numbers))
        before, numbers = self._tape[self._position]
        self._position += 1
        if (before, numbers.shape[1:]) != (distribution, shape):
            raise RuntimeError(f"a step must draw the same shapes each time, got {shape}")
        return numbers

    def _fill(self, numbers: Tensor, distribution: Distribution) -> None:
        """Fill `numbers` (M, ...) with draws; on a GPU, from seeds drawn on the CPU."""
        gpu = None if numbers.device.type == "cpu" else torch.Generator(numbers.device)
        for row, generator in zip(numbers, self.generators, strict=True):
            if gpu is not None:
                generator = gpu.manual_seed(int(torch.randint(2**62, (), generator=generator)))
            distribution(row, generator=generator)

    def draw_ahead(self) -> None:
        """Draw the numbers of the next step that is `taped`."""
        for distribution, numbers in self._tape:
            self._fill(numbers, distribution)

    @contextmanager
    def taped(self) -> Iterator[None]:
        """Take the numbers of a step from fixed memory, since a CUDA graph cannot draw.

        The first step records what it draws; `draw_ahead` draws the same before every later one.
        """
        self._position = 0
        yield
        self._position = None

    def get_extra_state(self) -> list[Tensor]:
        """Return the generators' states, for `state_dict`."""
        return [generator.get_state() for generator in self.generators]

    def set_extra_state(self, state: list[Tensor]) -> None:
        """Continue from the saved states."""
        for generator, saved in zip(self.generators, state, strict=True):
            generator.set_state(saved)
