"""A run in folders: its configurations, its lock, its checkpoint, and the loop that advances it.

Every member of a lockstep run has a folder. The first one's holds the checkpoint of all.
"""

import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Protocol

import torch
from tqdm.auto import tqdm

from belib import machine, paths
from belib.config import OfflineConfig, PretrainConfig

Config = PretrainConfig | OfflineConfig

CHECKPOINT = "checkpoint.pt"
FORMAT = 3
"""Version of the checkpoint format; it grows when the content of a state changes."""
CONFIG = "config.yaml"
LOCK = ".lock"

CHECKPOINT_SHARE = 0.02
"""The largest share of a run's time that is spent on checkpoints."""

_WORTH_THREADS = 2**15  # below this size of a hidden layer's output one thread is faster

# In a log the progress bar is one line, written at the end.
_IN_LOG = not sys.stderr.isatty() and "ipykernel" not in sys.modules


class Work(Protocol):
    """The work of a stage, which a run advances. A state holds tensors and plain values only."""

    step: int

    @property
    def name(self) -> str: ...
    def advance(self) -> None: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    def write_tables(self) -> None: ...
    def postfix(self) -> dict[str, float]: ...


class InUseError(RuntimeError):
    """Another process uses a run's folder; the message has its id and host."""


def listed(configs: Config | Sequence[Config]) -> list[Any]:
    """Return one config or several as a list."""
    return [configs] if isinstance(configs, Config) else list(configs)


def check_members(configs: Sequence[Config]) -> None:
    """Raise ValueError if members of one run differ in fields that are not MEMBER_FIELDS."""
    for config in configs:
        for name in _differing(config, configs[0], ignore=config.MEMBER_FIELDS):
            values = sorted({str(getattr(member, name)) for member in configs})
            raise ValueError(f"members of one run must have the same {name}, got {values}")


def check_folders(folders: Sequence[Path], configs: Sequence[Config]) -> None:
    """Raise ValueError, with the fields that differ, for folders made with other configurations.

    `num_steps` may differ: a larger one continues the run. `precision: auto` continues a run in the
    precision that it began with.
    """
    if len(set(folders)) < len(folders):
        names = [folder.name for folder in folders]
        raise ValueError(f"members of one run need different folders, got {names}")
    for folder, config in zip(folders, configs, strict=True):
        if not (folder / CONFIG).exists():
            continue
        old = type(config).from_yaml(folder / CONFIG)
        free = ("num_steps", *(["precision"] if config.precision == "auto" else []))
        names = _differing(old, config, ignore=free)
        if names:
            pairs = [f"{n}: {getattr(old, n)} there, {getattr(config, n)} here" for n in names]
            raise ValueError(
                f"{folder} was made with another configuration ({'; '.join(pairs)}). Choose "
                "another runs_dir, or continue it with the configuration that it has"
            )


def _differing(one: Config, other: Config, *, ignore: Sequence[str]) -> list[str]:
    """Return the fields in which two configs differ and that at least one of them uses."""
    unused = set(one.unused_fields) & set(other.unused_fields)
    names = [item.name for item in fields(one) if item.name not in {*ignore, *unused}]
    return [name for name in names if getattr(one, name) != getattr(other, name)]


class Run:
    """Members' configs and folders, the first of which holds the checkpoint."""

    def __init__(self, configs: Sequence[Config], folders: Sequence[Path]):
        self.configs, self.folders = list(configs), list(folders)
        self.names = [folder.name for folder in folders]

    def advance(self, work: Work, *, checkpoint_minutes: float, progress: bool) -> None:
        """Continue `work` from the checkpoint, if there is one, and advance it to `num_steps`.

        A checkpoint is written every `checkpoint_minutes`, or less often if checkpoints would take
        more than `CHECKPOINT_SHARE` of the time, and at the end. The folders are locked.
        """
        with locked(self.folders), fitting_threads(self.configs):
            state = self.open()
            if state is None:
                self.save(work)  # it marks the folders as this run's from the start
            else:
                with restoring(self.folders[0]):
                    work.restore(state)
                print(f"{work.name}: continued from step {work.step}")
            total, every = self.configs[0].num_steps, 1e9 if _IN_LOG else 0.5
            options = {"unit": " steps", "mininterval": every, "disable": not progress}
            with tqdm(total=total, initial=work.step, desc=work.name, **options) as bar:
                self._advance(work, bar, 60 * checkpoint_minutes)
            self.save(work)

    def _advance(self, work: Work, bar: tqdm, interval: float) -> None:
        """Do all steps, with checkpoints at least `interval` seconds apart."""
        saved = refreshed = time.monotonic()
        wait = interval
        while work.step < self.configs[0].num_steps:
            work.advance()
            bar.update()
            now = time.monotonic()
            if now - refreshed > 2 or work.step == self.configs[0].num_steps:
                refreshed = now
                bar.set_postfix(work.postfix(), refresh=False)
            if now - saved > wait:
                wait = max(interval, self.save(work) / CHECKPOINT_SHARE)
                saved = time.monotonic()

    def open(self) -> dict[str, Any] | None:
        """Write the configs into the folders; return the checkpoint, or None for a new run.

        Raise OSError for a folder that is not writable, and ValueError if the run had other members
        or is beyond the config's `num_steps`.
        """
        state = checkpoint_in(self.folders[0])
        members = state["members"] if state else "unknown"
        for folder in self.folders:
            tables = (*folder.glob("*/*.npz"), *folder.glob("results.csv"))
            begun = (folder / CONFIG).exists() and any(tables)
            if members != self.names and (state or begun):
                raise ValueError(
                    f"{folder} is part of a run with other members, or its checkpoint was removed "
                    f"(its members: {members}, got {self.names}). Continue that run with its own "
                    "members, or choose another runs_dir"
                )
        num_steps = self.configs[0].num_steps
        if state and state["step"] > num_steps:
            least = f"{state['step']}, which {self.folders[0]} has reached"
            raise ValueError(f"num_steps must be at least {least}, got {num_steps}")
        for folder, config in zip(self.folders, self.configs, strict=True):
            paths.writable_folder(folder)
            paths.write_text(folder / CONFIG, config.to_yaml())
        return state

    def save(self, work: Work) -> float:
        """Replace the checkpoint, then the tables; return the seconds spent."""
        start = time.monotonic()
        state = {**work.state(), "members": self.names, "format": FORMAT}
        paths.write_atomic(self.folders[0] / CHECKPOINT, lambda file: torch.save(state, file))
        work.write_tables()
        return time.monotonic() - start


def checkpoint_in(folder: Path) -> dict[str, Any] | None:
    """Return the checkpoint in a folder, or None.

    Raise ValueError, with the file's name, if it is no checkpoint or has another format.
    """
    file = folder / CHECKPOINT
    if not file.exists():
        return None
    errors = (OSError, RuntimeError, ValueError, TypeError, LookupError, EOFError, UnpicklingError)
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
    except errors as error:
        kind = type(error).__name__
        raise ValueError(f"{file} must be a checkpoint, it is damaged: {kind}") from error
    kinds = {"members": list, "step": int}
    if not isinstance(state, dict) or any(type(state.get(key)) is not kinds[key] for key in kinds):
        raise ValueError(f"{file} must be a run's checkpoint with its members and step")
    if state.get("format") != FORMAT:
        raise ValueError(
            f"{file} must be a checkpoint of format {FORMAT}, got {state.get('format', 1)}: "
            "continue the run with the version of belib that began it, or choose another runs_dir"
        )
    return state


def checkpoints(folders: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Yield, once, the checkpoint of every run that one of these sibling folders is part of."""
    names = {folder.name for folder in folders}
    for folder in sorted(
        {file.parent for f in folders for file in f.parent.glob(f"*/{CHECKPOINT}")}
    ):
        state = checkpoint_in(folder)
        if state and names.intersection(state["members"]):
            yield state


@contextmanager
def restoring(folder: Path) -> Iterator[None]:
    """Turn errors from restoring another run's state into a ValueError with the file's name."""
    try:
        yield
    except (RuntimeError, TypeError, LookupError, AttributeError) as error:
        file = folder / CHECKPOINT
        raise ValueError(f"{file} must hold the state of this run, got {error!r}") from error


@contextmanager
def locked(folders: Sequence[Path], *, wait: bool = False) -> Iterator[None]:
    """Lock the folders of a run, which are created if needed, against other processes.

    Locks end with their process (see `paths.locked`) and never have to be removed.

    Args:
        folders: of the run.
        wait: whether to wait for other runs in these folders, in this process or another, or to
            raise InUseError.
    """
    with ExitStack() as stack:
        for folder in sorted(set(folders)):
            file = paths.writable_folder(folder) / LOCK
            try:
                opened = stack.enter_context(paths.locked(file, wait=False))
            except BlockingIOError as error:
                holder = error.strerror or "a process that is just starting"
                message = f"{folder} is in use by {holder}: "
                if not wait:
                    advice = "wait for it, end it, or choose another runs_dir"
                    raise InUseError(message + advice) from None
                print(message + "waiting for it", flush=True)
                opened = stack.enter_context(paths.locked(file, wait=True))
            opened.truncate(0)
            opened.write(f"process {os.getpid()} on {platform.node()}")
            opened.flush()
        yield


@contextmanager
def fitting_threads(configs: Sequence[Config]) -> Iterator[None]:
    """Use one thread for small networks, and torch's number of threads for others.

    With several threads on a busy machine, waiting for cores makes small networks 5 times as
    slow.
    """
    small = len(configs) * configs[0].batch_size * configs[0].hidden_dim < _WORTH_THREADS
    with machine.threads(1 if small else torch.get_num_threads()):
        yield
