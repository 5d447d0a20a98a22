"""Every rule of the format, checked on every file: all faults, not the first one."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from belib import paths
from belib.datasets.card import CARD, check_card
from belib.datasets.dataset import PROVENANCE, Dataset
from belib.datasets.episodes import (
    DTYPES,
    ArrayFault,
    DatasetError,
    array_faults,
    parse_name,
    read_arrays,
)
from belib.envs import domain_sizes, domain_tasks, primal_task

Arrays = dict[str, np.ndarray]


class Fault(NamedTuple):
    """What is wrong where; a list of them is a table (`pd.DataFrame(validate(folder))`)."""

    file: str
    """Relative to the dataset's folder."""
    row: int | None
    """The first row at fault, None for what concerns the whole file."""
    fault: str


def validate(folder: str | Path) -> list[Fault]:
    """All faults of a dataset, none where it keeps every rule of the format.

    Names, arrays, types, shapes, finite numbers, the dummy row, ranges, sizes that fit the domain
    and each other, indices without gaps, rewards that belong to the episodes, the configuration,
    the card, files that an interrupted write has left. Nothing is changed or removed.
    """
    folder = paths.resolve(folder)
    if not folder.is_dir():
        return [Fault(".", None, "there is no such folder")]
    names = sorted(file.name for file in (folder / "buffer").glob("[!.]*"))
    if not names:
        return [Fault("buffer", None, "must hold at least one episode, got none")]
    faults = [*_name_faults(names), *_leftovers(folder)]
    if (folder / "rewards").exists():
        labels = {file.name for file in (folder / "rewards").glob("[!.]*")}
        faults += [
            Fault(f"rewards/{name}", None, "belongs to no episode") for name in labels - set(names)
        ]
    sizes = _domain_sizes(folder.parent.name)
    for name in names:
        if name.endswith(".npz"):
            faults += _episode_faults(folder, name, sizes)
    faults += _config_faults(folder)
    if not faults and (folder / CARD).exists():
        faults += [Fault(CARD, None, text) for text in check_card(folder)]
    return sorted(faults, key=lambda fault: (fault.file, fault.row or 0))


def _name_faults(names: list[str]) -> Iterator[Fault]:
    indices: dict[int, str] = {}
    for name in names:
        try:
            index, _ = parse_name(Path(name))
        except DatasetError:
            text = "must be named episode_<index>_<length>.npz"
            yield Fault(f"buffer/{name}", None, text)
            continue
        if index in indices:
            yield Fault(f"buffer/{name}", None, f"has the index of {indices[index]}")
        indices.setdefault(index, name)
    gaps = sorted(set(range(max(indices, default=0))) - set(indices))
    if gaps:
        shown = ", ".join(map(str, gaps[:5])) + (", ..." if len(gaps) > 5 else "")
        yield Fault("buffer", None, f"lacks {len(gaps)} episodes before its last: {shown}")


def _leftovers(folder: Path) -> Iterator[Fault]:
    for file in sorted(folder.rglob(f".*{paths.TEMPORARY}")):
        text = "was left by an interrupted write and may be removed"
        yield Fault(str(file.relative_to(folder)), None, text)


def _domain_sizes(domain: str) -> dict[str, int]:
    """The domain's sizes; empty for one that dm_control lacks, whose first episode sets them."""
    try:
        return dict(domain_sizes(domain))
    except ValueError:
        return {}


def _episode_faults(folder: Path, name: str, sizes: dict[str, int]) -> Iterator[Fault]:
    """Faults of an episode and its rewards; sizes that were not known yet are added to `sizes`."""
    file = f"buffer/{name}"
    try:
        length = parse_name(Path(name))[1]
    except DatasetError:
        return
    try:
        episode = read_arrays(folder / file)
    except DatasetError as error:
        yield Fault(file, None, _without_path(error))
        return
    hard = list(array_faults(episode, length))
    found = hard or [*_row_faults(episode), *_size_faults(episode, sizes)]
    yield from (Fault(file, *fault) for fault in found)
    if not hard and (folder / "rewards").exists():
        yield from _reward_faults(folder, name, episode)


def _row_faults(episode: Arrays) -> Iterator[ArrayFault]:
    """Rules of single rows: the reset, the ranges of actions and discounts, the terminal."""
    action, reward, discount = (episode[key] for key in ("action", "reward", "discount"))
    for key, array, value in (
        ("action", action, 0),
        ("reward", reward, 0),
        ("discount", discount, 1),
    ):
        if (array[0] != value).any():
            text = f"array {key!r} must be {value} in row 0, which is the reset, got {array[0]}"
            yield ArrayFault(0, text)
    yield from _first("action", action, np.abs(action) > 1, "within [-1, 1]")
    yield from _first("discount", discount, (discount < 0) | (discount > 1), "within [0, 1]")
    inside = np.zeros_like(discount, bool)
    inside[1:-1] = discount[1:-1] == 0
    yield from _first("discount", discount, inside, "above 0 before the last row")


def _first(key: str, array: np.ndarray, wrong: np.ndarray, rule: str) -> Iterator[ArrayFault]:
    rows = np.flatnonzero(wrong.any(-1))
    if rows.size:
        value = array[rows[0]][wrong[rows[0]]][0]
        more = f" (and in {rows.size - 1} more rows)" if rows.size > 1 else ""
        row = int(rows[0])
        yield ArrayFault(row, f"array {key!r} must be {rule}, got {value} in row {row}{more}")


def _size_faults(episode: Arrays, sizes: dict[str, int]) -> Iterator[ArrayFault]:
    for key, array in episode.items():
        if array.ndim != 2 or (key not in DTYPES and key not in sizes):
            continue
        if sizes.setdefault(key, array.shape[1]) != array.shape[1]:
            text = f"array {key!r} must have {sizes[key]} numbers a row, got {array.shape[1]}"
            yield ArrayFault(None, text)


def _reward_faults(folder: Path, name: str, episode: Arrays) -> Iterator[Fault]:
    """Rewards of all tasks, of the same rows, whose primal task's is the stored one."""
    file, rows = f"rewards/{name}", len(episode["reward"])
    if not (folder / file).exists():
        yield Fault(file, None, "must be there: other episodes have their rewards recorded")
        return
    try:
        labels, tasks = read_arrays(folder / file), domain_tasks(folder.parent.name)
    except ValueError as error:
        yield Fault(file, None, _without_path(error))
        return
    if set(labels) != set(tasks):
        yield Fault(file, None, f"must hold the tasks {list(tasks)}, got {list(labels)}")
        return
    for task, array in labels.items():
        if array.dtype != np.float64 or array.shape != (rows,):
            found = f"{array.dtype} {array.shape}"
            yield Fault(file, None, f"array {task!r} must be float64 ({rows},), got {found}")
            return
        yield from (Fault(file, *f) for f in _label_faults(task, array[:, None]))
    primal, stored = primal_task(folder.parent.name), episode["reward"]
    wrong = labels[primal][:, None].astype(np.float32) != stored
    rule = f"the stored reward, {stored[wrong][0] if wrong.any() else 0}"
    yield from (Fault(file, *f) for f in _first(primal, labels[primal][:, None], wrong, rule))


def _label_faults(task: str, array: np.ndarray) -> Iterator[ArrayFault]:
    yield from _first(task, array, ~np.isfinite(array), "finite")
    yield from _first(task, array[:1], array[:1] != 0, "0 in row 0, which is the reset")


def _config_faults(folder: Path) -> Iterator[Fault]:
    try:
        config = Dataset(folder, folder.parent.name, ()).config()
    except DatasetError as error:
        yield Fault("config.yaml", None, _without_path(error))
        return
    if config is None:
        return
    if not (folder / "rewards").exists() and not (folder / PROVENANCE).exists():
        yield Fault("rewards", None, "must be there: they were recorded at collection")
    if config.domain != folder.parent.name:
        text = f"domain must be {folder.parent.name}, as the folder's, got {config.domain}"
        yield Fault("config.yaml", None, text)


def _without_path(error: Exception) -> str:
    return re.sub(r"^/\S*/", "", str(error))
