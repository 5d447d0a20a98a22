"""Every rule of the format, checked on every file: all faults, not the first one."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from belib import paths
from belib.config import PretrainConfig
from belib.datasets.card import CARD, check_card
from belib.datasets.dataset import PROVENANCE, Dataset
from belib.datasets.episodes import (
    DatasetError,
    array_faults,
    parse_name,
    read_arrays,
    row_faults,
)
from belib.datasets.relabelling import label_faults
from belib.envs import domain_sizes, domain_tasks, primal_task


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

    What learns from a dataset (`transitions`, the learners) or makes another of it (import, merge,
    subsample, export) refuses the same arrays and rewards with a DatasetError. Only listed, since
    they change no number that is read: float64 arrays, which are cast, gaps between indices,
    rewards that belong to no episode, a card that does not fit, leftovers.
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
        faults += _card_faults(folder)
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
        yield Fault(file, None, _without(folder, error))
        return
    found = list(array_faults(episode, length)) or list(row_faults(episode, sizes))
    yield from (Fault(file, *fault) for fault in found)
    if (folder / "rewards").exists() and "reward" in episode and episode["reward"].ndim == 2:
        yield from _reward_faults(folder, name, episode["reward"])


def _reward_faults(folder: Path, name: str, stored: np.ndarray) -> Iterator[Fault]:
    """Rewards of all tasks, of the same rows, whose primal task's is the stored one."""
    file = f"rewards/{name}"
    if not (folder / file).exists():
        yield Fault(file, None, "must be there: other episodes have their rewards recorded")
        return
    try:
        labels, tasks = read_arrays(folder / file), domain_tasks(folder.parent.name)
    except ValueError as error:
        yield Fault(file, None, _without(folder, error))
        return
    if set(labels) != set(tasks):
        yield Fault(file, None, f"must hold the tasks {list(tasks)}, got {list(labels)}")
        return
    for fault in label_faults(labels, primal_task(folder.parent.name), stored):
        yield Fault(file, *fault)


def _config_faults(folder: Path) -> Iterator[Fault]:
    dataset = Dataset(folder, folder.parent.name, ())
    for name, read in (("config.yaml", dataset.config), (PROVENANCE, dataset.provenance)):
        try:
            found = read()
        except (DatasetError, OSError) as error:
            yield Fault(name, None, _without(folder, error))
            continue
        recorded = (folder / "rewards").exists() or (folder / PROVENANCE).exists()
        if isinstance(found, PretrainConfig) and not recorded:
            yield Fault("rewards", None, "must be there: they were recorded at collection")


def _card_faults(folder: Path) -> Iterator[Fault]:
    try:
        yield from (Fault(CARD, None, text) for text in check_card(folder))
    except (ValueError, OSError) as error:  # of another file that it is computed from
        yield Fault(CARD, None, f"cannot be computed: {_without(folder, error)}")


def _without(folder: Path, error: Exception) -> str:
    """A message without the dataset's own place."""
    return str(error).replace(f"{folder}/", "")
