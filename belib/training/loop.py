"""The loop that all stages share: steps, a progress bar, checkpoints."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from tqdm.auto import tqdm

from belib import runs

# At a terminal or in a notebook the bar moves; in a log it is one line, at the end.
_IN_LOG = not sys.stderr.isatty() and "ipykernel" not in sys.modules


class Work(Protocol):
    """What a stage gives to the loop."""

    step: int

    def advance(self) -> None:
        """Do one step."""

    def state(self) -> dict[str, Any]:
        """All that is needed to continue, in tensors and plain values."""

    def write_tables(self) -> None:
        """Write what a reader sees of the run so far."""

    def postfix(self) -> dict[str, float]:
        """Numbers for the progress bar."""


def run(
    work: Work,
    folders: Sequence[Path],
    num_steps: int,
    *,
    description: str,
    unit: str,
    checkpoint_minutes: float,
    progress: bool,
) -> None:
    """Advance to `num_steps`, with a checkpoint every `checkpoint_minutes` and one at the end."""
    saved = shown = time.monotonic()
    bar = tqdm(
        total=num_steps,
        initial=work.step,
        desc=description,
        unit=f" {unit}",
        mininterval=1e9 if _IN_LOG else 0.5,
        disable=not progress,
    )
    with bar:
        while work.step < num_steps:
            work.advance()
            bar.update()
            now = time.monotonic()
            if now - shown > 2:
                shown = now
                bar.set_postfix(work.postfix(), refresh=False)
            if now - saved > 60 * checkpoint_minutes:
                save(work, folders)
                saved = time.monotonic()
        bar.set_postfix(work.postfix(), refresh=False)
    save(work, folders)


def save(work: Work, folders: Sequence[Path]) -> None:
    """Write the tables and the checkpoint."""
    work.write_tables()
    runs.save_checkpoint(folders, work.state())
