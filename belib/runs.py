"""A run in folders: its configurations, its lock, its checkpoint, and the loop that advances it.

Every member of a lockstep run has a folder. The first one's holds the checkpoint of all.
"""

import fcntl
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import torch
from tqdm.auto import tqdm

from belib import machine, paths
from belib.config import OfflineConfig, PretrainConfig

Config = PretrainConfig | OfflineConfig

CHECKPOINT, CONFIG = "checkpoint.pt", "config.yaml"
FORMAT = 3  # of checkpoints; it grows when earlier states cannot be continued
CHECKPOINT_SHARE = 0.02  # the largest share of a run's time that is spent on checkpoints
_WORTH_THREADS = 2**15  # below this size of a hidden layer's output one thread is faster

# In a log the progress bar is one line, written at the end.
_IN_LOG = not sys.stderr.isatty() and "ipykernel" not in sys.modules


class Work:
    """M members in lockstep, which `advance` runs; a base class of the stages.

    `SAVED` names the attributes that a checkpoint holds: plain values, tensors, and objects with a
    `state_dict`. An attribute that is None is not restored.
    """

    SAVED: ClassVar[tuple[str, ...]] = ("step",)
    configs: Sequence[Any]
    folders: Sequence[Path]
    name: str
    step: int

    def advance(self) -> None:
        """Do one step of every member."""
        raise NotImplementedError

    def write_tables(self) -> None:
        """Write the members' tables, after each checkpoint."""

    def finish(self) -> None:
        """Write what a finished run has, after the last checkpoint."""

    def state(self) -> dict[str, Any]:
        """Return tensors and plain values, from which `restore` continues."""
        values = {name: getattr(self, name) for name in self.SAVED}
        return {n: v.state_dict() if hasattr(v, "state_dict") else v for n, v in values.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()`; the next steps are identical to the bit."""
        for name in self.SAVED:
            value = getattr(self, name)
            if hasattr(value, "load_state_dict"):
                value.load_state_dict(state[name])
            elif value is not None:
                setattr(self, name, state[name])


def members(configs: Config | Sequence[Config]) -> list[Any]:
    """Return one config or several as a list.

    Raise ValueError without any, and if they differ in fields that are not MEMBER_FIELDS.
    """
    configs = [configs] if isinstance(configs, Config) else list(configs)
    if not configs:
        raise ValueError("a run must have one member or more, got none")
    for config in configs:
        for name in _differing(config, configs[0], ignore=config.MEMBER_FIELDS):
            values = sorted({str(getattr(member, name)) for member in configs})
            raise ValueError(f"members of one run must have the same {name}, got {values}")
    return configs


def check_folders(folders: list[Path], configs: Sequence[Config]) -> None:
    """Raise ValueError, with the fields that differ, for folders made with other configurations.

    `num_steps` may differ: a larger one continues the run. `precision: auto` continues a run in the
    precision that it began with. Raise ValueError, too, for two members with the same folder.
    """
    if twice := [folder for folder in folders if folders.count(folder) > 1]:
        raise ValueError(f"members must have different folders, got {twice[0]} twice")
    for folder, config in zip(folders, configs, strict=True):
        if not (folder / CONFIG).exists():
            continue
        old = type(config).from_yaml(folder / CONFIG)
        free = ("num_steps", *(["precision"] if config.precision == "auto" else []))
        if names := _differing(old, config, ignore=free):
            pairs = [f"{n}: {getattr(old, n)} there, {getattr(config, n)} here" for n in names]
            raise ValueError(
                f"{folder} was made with another configuration ({'; '.join(pairs)}): choose "
                "another runs_dir, or continue it with the configuration that it has"
            )


def _differing(one: Config, other: Config, *, ignore: Sequence[str]) -> list[str]:
    """Return the fields in which two configs differ and that at least one of them uses."""
    unused = set(one.unused_fields) & set(other.unused_fields)
    names = [item.name for item in fields(one) if item.name not in {*ignore, *unused}]
    return [name for name in names if getattr(one, name) != getattr(other, name)]


def advance(work: Work, *, checkpoint_minutes: float, progress: bool) -> None:
    """Continue `work` from its checkpoint, if there is one, and advance it to `num_steps`.

    A checkpoint is written every `checkpoint_minutes`, or less often if checkpoints would take
    more than `CHECKPOINT_SHARE` of the time, and at the end. The folders are locked.
    """
    total, every = work.configs[0].num_steps, 1e9 if _IN_LOG else 0.5
    with locked(work.folders), fitting_threads(work.configs):
        state = _open(work)
        if state is None:
            save(work)  # it marks the folders as this run's from the start
        else:
            work.restore(state)
            print(f"{work.name}: continued from step {work.step}")
        options = {"unit": " steps", "mininterval": every, "disable": not progress}
        with tqdm(total=total, initial=work.step, desc=work.name, **options) as bar:
            saved, wait = time.monotonic(), 60 * checkpoint_minutes
            while work.step < total:
                work.advance()
                bar.update()
                if time.monotonic() - saved > wait:
                    wait = max(60 * checkpoint_minutes, save(work) / CHECKPOINT_SHARE)
                    saved = time.monotonic()
        save(work)
        work.finish()


def _open(work: Work) -> dict[str, Any] | None:
    """Write the configs into the folders; return the checkpoint, or None for a new run.

    Raise OSError for a folder that is not writable, and ValueError if the run had other members or
    is beyond the config's `num_steps`.
    """
    state, names = checkpoint_in(work.folders[0]), [folder.name for folder in work.folders]
    had, num_steps = state["members"] if state else "unknown", work.configs[0].num_steps
    for folder in work.folders:
        for left in folder.rglob(f".*{paths.TEMPORARY}"):  # by writes that were killed
            left.unlink()
        tables = (*folder.glob("*/*.npz"), *folder.glob("results.csv"))
        if had != names and (state or ((folder / CONFIG).exists() and any(tables))):
            raise ValueError(
                f"{folder} is part of a run with other members, or its checkpoint was removed "
                f"(members: {had}, got {names}): continue that run, or choose another runs_dir"
            )
    if state and state["step"] > num_steps:
        least = f"{state['step']}, which {work.folders[0]} has reached"
        raise ValueError(f"num_steps must be at least {least}, got {num_steps}")
    for folder, config in zip(work.folders, work.configs, strict=True):
        paths.write_text(paths.make_folder(folder) / CONFIG, config.to_yaml())
    return state


def save(work: Work) -> float:
    """Replace the checkpoint, then the tables; return the seconds spent."""
    start, names = time.monotonic(), [folder.name for folder in work.folders]
    state = {**work.state(), "members": names, "format": FORMAT}
    paths.write_atomic(work.folders[0] / CHECKPOINT, lambda file: torch.save(state, file))
    work.write_tables()
    return time.monotonic() - start


def checkpoint_in(folder: Path) -> dict[str, Any] | None:
    """Return the checkpoint in a folder, or None; ValueError if damaged or of another `FORMAT`."""
    file = folder / CHECKPOINT
    if not file.exists():
        return None
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
        version = state["format"]
    except Exception as error:
        kind = type(error).__name__
        raise ValueError(f"{file} must be a run's checkpoint, it is damaged: {kind}") from error
    if version != FORMAT:
        advice = "continue it with the version of belib that began it, or choose another runs_dir"
        raise ValueError(f"{file} must have format {FORMAT}, got {version}: {advice}")
    return state


@contextmanager
def locked(folders: Sequence[Path], *, wait: bool = False) -> Iterator[None]:
    """Lock folders, which are created if needed, against other runs, also of this process.

    A file `.lock` in each names the process that holds it, and stays. The kernel releases the lock
    (flock) when its holder dies. Some network file systems do not share locks between hosts: then
    holders on other hosts are not seen.

    If a folder is locked already, `wait` for its holder to end, or raise BlockingIOError.
    """
    with ExitStack() as stack:
        for folder in sorted(set(folders)):
            file = stack.enter_context(open(paths.make_folder(folder) / ".lock", "a+"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                message = f"{folder} is in use by {file.read()}:"
                if not wait:
                    advice = "wait for it, end it, or choose another runs_dir"
                    raise BlockingIOError(f"{message} {advice}") from None
                print(f"{message} waiting for it", flush=True)
                fcntl.flock(file, fcntl.LOCK_EX)
            file.truncate(0)
            file.write(f"process {os.getpid()} on {platform.node()}")
            file.flush()
            stack.callback(file.truncate, 0)
        yield


def fitting_threads(configs: Sequence[Config]) -> AbstractContextManager[None]:
    """Return a context with one thread for small networks, and torch's number for others.

    With several threads on a busy machine, waiting for cores makes small networks 5 times as slow.
    """
    small = len(configs) * configs[0].batch_size * configs[0].hidden_dim < _WORTH_THREADS
    return machine.threads(1 if small else torch.get_num_threads())
