"""A run's folders: the configuration that made them, and the checkpoint that continues it.

Members trained in lockstep have a folder each. Their common checkpoint is in the first one's.
"""

import os
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NamedTuple

import torch

from belib import paths
from belib.config import OfflineConfig, PretrainConfig

Config = PretrainConfig | OfflineConfig

CHECKPOINT = "checkpoint.pt"
FORMAT = 3
"""Of checkpoints: a number that grows with each change of what a state holds."""
CONFIG = "config.yaml"
LOCK = ".lock"


def check_members(configs: Sequence[Config]) -> None:
    """Members of one run may differ only in MEMBER_FIELDS; ValueError names the field otherwise."""
    for config in configs:
        for name in _differing(config, configs[0], ignore=config.MEMBER_FIELDS):
            found = sorted({str(getattr(each, name)) for each in configs})
            raise ValueError(f"members of one run must have the same {name}, got {found}")


def check_folders(folders: Sequence[Path], configs: Sequence[Config]) -> None:
    """Refuse folders that another configuration made; ValueError says which fields differ.

    `num_steps` may differ: a larger one continues the run. `precision: auto` continues a run of any
    precision, in the precision that it began with.
    """
    if len(set(folders)) < len(folders):
        raise ValueError(f"members of one run need different folders, got {_names(folders)}")
    for folder, config in zip(folders, configs, strict=True):
        if not (folder / CONFIG).exists():
            continue
        found = type(config).from_yaml(folder / CONFIG)
        free = ("num_steps", *(["precision"] if config.precision == "auto" else []))
        names = _differing(found, config, ignore=free)
        if names:
            pairs = [f"{n}: {getattr(found, n)} there, {getattr(config, n)} here" for n in names]
            raise ValueError(
                f"{folder} was made with another configuration ({'; '.join(pairs)}). Choose "
                "another runs_dir, or continue it with the configuration that it has"
            )


def members(folder: Path) -> list[str]:
    """The names of all members of the run whose checkpoint a folder has, none without one."""
    file = folder / CHECKPOINT
    return _read(file)["members"] if file.exists() else []


def pending(folders: Sequence[Path], finished: Sequence[bool]) -> list[Path]:
    """Of a group's folders those whose runs are to go on, all members of a begun run together.

    A run that was killed while it wrote its last tables, the first member's last of all, continues
    with all of its members.
    """
    left = [folder for folder, done in zip(folders, finished, strict=True) if not done]
    begun = members(left[0]) if left else []
    return [folder for folder in folders if folder in left or folder.name in begun]


def checkpoint(folder: Path) -> dict[str, Any]:
    """The checkpoint of the run that a member's folder belongs to; the first member has it.

    Raises ValueError where there is none beside the folder.
    """
    others = sorted(folder.parent.glob(f"*/{CHECKPOINT}"))
    for file in (folder / CHECKPOINT, *others):
        if file.exists():
            state = _read(file)
            if folder.name in state["members"]:
                return state
    raise ValueError(f"{folder.parent} must hold a checkpoint with {folder.name}, got none")


def checkpoints(folders: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """The checkpoints of the runs that folders beside each other belong to, each read once."""
    names = set(_names(folders))
    for file in sorted({f for folder in folders for f in folder.parent.glob(f"*/{CHECKPOINT}")}):
        state = _read(file)
        if names.intersection(state["members"]):
            yield state


def open_folders(folders: Sequence[Path], configs: Sequence[Config]) -> dict[str, Any] | None:
    """Make checked folders ready for a run of `configs`; its checkpoint, or None where it begins.

    Raises OSError where a folder cannot be written, ValueError where the run had other members or
    is beyond the config's `num_steps`.
    """
    file = folders[0] / CHECKPOINT
    state = _read(file) if file.exists() else None
    there = state["members"] if state else "unknown"
    for folder in folders:
        made = (*folder.glob("*/*.npz"), *folder.glob("results.csv"))
        begun = (folder / CONFIG).exists() and any(made)
        if there != _names(folders) and (state or begun):
            raise ValueError(
                f"{folder} is part of a run with other members, or its checkpoint was removed "
                f"(members there: {there}, here: {_names(folders)}). Continue that run with its "
                "own members, or choose another runs_dir"
            )
    if state and state["step"] > configs[0].num_steps:
        raise ValueError(
            f"num_steps must be at least {state['step']}, which {folders[0]} has reached, got "
            f"{configs[0].num_steps}"
        )
    for folder, config in zip(folders, configs, strict=True):
        paths.writable_folder(folder)
        paths.write_text(folder / CONFIG, config.to_yaml())
    return state


class Saved(NamedTuple):
    """What a checkpoint cost."""

    size: int
    """Bytes on disk."""
    seconds: float


def save_checkpoint(folders: Sequence[Path], state: dict[str, Any]) -> Saved:
    """Replace the run's checkpoint by `state`, of tensors and plain values; says what it cost."""
    begin, file = time.monotonic(), folders[0] / CHECKPOINT
    state = _on_cpu({**state, "members": _names(folders), "format": FORMAT})
    paths.write_atomic(file, lambda opened: torch.save(state, opened))
    return Saved(file.stat().st_size, time.monotonic() - begin)


def _on_cpu(state: Any) -> Any:
    """A state with all of its tensors on the CPU, so that it can be read where there is no card."""
    if isinstance(state, dict):
        return {key: _on_cpu(value) for key, value in state.items()}
    if isinstance(state, list):
        return [_on_cpu(value) for value in state]
    return state.cpu() if isinstance(state, torch.Tensor) else state


class InUseError(RuntimeError):
    """Another process works in a run's folder; the message has its id and host."""


@contextmanager
def locked(folders: Sequence[Path]) -> Iterator[None]:
    """Keep other processes out of the folders of a run, which are created if needed.

    A killed process holds nothing (see `paths.locked`), so that no lock ever has to be removed.

    Raises InUseError where another run, here or in another process, is in one of the folders.
    """
    with ExitStack() as stack:
        for folder in sorted(set(folders)):
            file = paths.writable_folder(folder) / LOCK
            try:
                opened = stack.enter_context(paths.locked(file, wait=False))
            except BlockingIOError as error:
                raise InUseError(
                    f"{folder} is in use by {error.strerror or 'a process that is just starting'}: "
                    "wait for it, end it, or choose another runs_dir"
                ) from None
            opened.truncate(0)
            opened.write(f"process {os.getpid()} on {platform.node()}")
            opened.flush()
        yield


def _read(file: Path) -> dict[str, Any]:
    """A checkpoint; ValueError that names a file of anything else."""
    errors = (OSError, RuntimeError, ValueError, TypeError, LookupError, EOFError, UnpicklingError)
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
    except errors as error:
        found = type(error).__name__
        raise ValueError(f"{file} must be a checkpoint, it is damaged: {found}") from error
    kinds = {"members": list, "step": int}
    if not isinstance(state, dict) or any(type(state.get(key)) is not kinds[key] for key in kinds):
        raise ValueError(f"{file} must be a run's checkpoint with its members and step")
    if state.get("format") != FORMAT:
        raise ValueError(
            f"{file} must be a checkpoint of format {FORMAT}, got {state.get('format', 1)}: "
            "continue the run with the version of belib that began it, or choose another runs_dir"
        )
    return state


@contextmanager
def restoring(folder: Path) -> Iterator[None]:
    """Turn errors of a state that is not this run's into a ValueError that names the checkpoint."""
    try:
        yield
    except (RuntimeError, TypeError, LookupError, AttributeError) as error:
        file = folder / CHECKPOINT
        raise ValueError(f"{file} must hold the state of this run, got {error!r}") from error


def _names(folders: Sequence[Path]) -> list[str]:
    return [folder.name for folder in folders]


def _differing(one: Config, other: Config, *, ignore: Sequence[str]) -> list[str]:
    """The fields in which two configs differ, but for what neither of them uses."""
    unused = set(one.unused_fields) & set(other.unused_fields)
    names = [item.name for item in fields(one) if item.name not in {*ignore, *unused}]
    return [name for name in names if getattr(one, name) != getattr(other, name)]
