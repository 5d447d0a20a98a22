"""The loop that all stages share: steps, a progress bar, checkpoints."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from tqdm.auto import tqdm

from belib import machine, runs
from belib.config import LearnerConfig

# At a terminal or in a notebook the bar moves; in a log it is one line, at the end.
_IN_LOG = not sys.stderr.isatty() and "ipykernel" not in sys.modules


# Below this many numbers in a hidden layer's output a second thread gains little, and where another
# process is busy it waits for a core so long that everything takes 5 times longer.
_WORTH_THREADS = 2**15

CHECKPOINT_SHARE = 0.02
"""Of a run's time, which its checkpoints may take."""


@contextmanager
def fitting_threads(configs: Sequence[LearnerConfig]) -> Iterator[None]:
    """Use one thread for small networks, torch's own number for others."""
    small = len(configs) * configs[0].batch_size * configs[0].hidden_dim < _WORTH_THREADS
    with machine.threads(1 if small else torch.get_num_threads()):
        yield


class Work(Protocol):
    """What a stage gives to the loop."""

    step: int

    def advance(self) -> None:
        """Do one step."""
        ...

    def state(self) -> dict[str, Any]:
        """All that is needed to continue, in tensors and plain values."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()`: the next steps are the same to the bit."""
        ...

    def write_tables(self) -> None:
        """Write what a reader sees of the run so far."""
        ...

    def postfix(self) -> dict[str, float]:
        """Numbers for the progress bar."""
        ...


AnyWork = TypeVar("AnyWork", bound=Work)


def run(
    work: AnyWork,
    configs: Sequence[runs.Config],
    folders: Sequence[Path],
    description: str,
    unit: str,
    *,
    checkpoint_minutes: float,
    progress: bool,
) -> AnyWork:
    """Continue `work` from its checkpoint, if there is one, and advance it to `num_steps`.

    A checkpoint is written every `checkpoint_minutes`, more rarely where that would take more than
    a fiftieth of the time, and at the end. Other processes are kept out of the folders meanwhile:
    raises `runs.InUseError` where one is there.
    """
    with runs.locked(folders), fitting_threads(configs):
        state, num_steps = runs.open_folders(folders, configs), configs[0].num_steps
        if state is not None:
            with runs.restoring(folders[0]):
                work.restore(state)
            print(f"{description}: continued from step {work.step}")
        else:
            save(work, folders)  # without it, a run killed early would not be known as this one
        bar = tqdm(
            total=num_steps,
            initial=work.step,
            desc=description,
            unit=f" {unit}",
            mininterval=1e9 if _IN_LOG else 0.5,
            disable=not progress,
        )
        with bar:
            checkpoints = _advance(work, folders, num_steps, bar, 60 * checkpoint_minutes)
    if progress:
        print(f"{description}: {checkpoints}")
    return work


def _advance(
    work: Work, folders: Sequence[Path], num_steps: int, bar: tqdm, interval: float
) -> str:
    """Do all steps, with a checkpoint every `interval` seconds or more rarely; what these cost."""
    begun = saved = shown = time.monotonic()
    spent, count, wait = 0.0, 0, interval
    while work.step < num_steps:
        work.advance()
        bar.update()
        now = time.monotonic()
        if now - shown > 2:
            shown = now
            bar.set_postfix(work.postfix(), refresh=False)
        if now - saved > wait:
            cost = save(work, folders).seconds
            saved, spent, count = time.monotonic(), spent + cost, count + 1
            wait = max(interval, cost / CHECKPOINT_SHARE)
    bar.set_postfix(work.postfix(), refresh=False)
    last = save(work, folders)
    spent, total = spent + last.seconds, time.monotonic() - begun
    size = f"{last.size / 1e6:.1f} MB"
    return f"{count + 1} checkpoints, the last of {size}, took {spent:.1f} of {total:.0f} s"


def save(work: Work, folders: Sequence[Path]) -> runs.Saved:
    """Write the checkpoint and the tables; the checkpoint's size, and the time of all."""
    begun = time.monotonic()
    size, _ = runs.save_checkpoint(folders, work.state())
    work.write_tables()
    return runs.Saved(size, time.monotonic() - begun)
