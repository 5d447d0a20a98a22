"""Every rule of the format, checked on every file: all faults, not the first one."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from belib import envs, paths
from belib.datasets.card import CARD, check_card
from belib.datasets.dataset import PROVENANCE, Dataset
from belib.datasets.episodes import DatasetError, episode_faults, parse_name, read_arrays
from belib.datasets.relabelling import reward_faults


class Fault(NamedTuple):
    """What is wrong where; a list of faults is a table (`pd.DataFrame(validate(folder))`)."""

    file: str  # relative to the dataset's folder
    row: int | None  # the first one at fault, None for the whole file
    fault: str


def validate(folder: str | Path) -> list[Fault]:
    """Return all faults of a dataset, by file and row; nothing is changed or removed.

    Checked are names, arrays, types, shapes, numbers, sizes that fit the domain and each other,
    indices without gaps, rewards that fit their episodes, the configuration, the card, and files
    that an interrupted write has left.

    Reading refuses the same episodes and rewards with a DatasetError. Only listed, since they
    change no number that is read: float64 arrays, gaps between indices, rewards that belong to no
    episode, a card that does not fit, leftovers.
    """
    folder = paths.resolve(folder)
    if not folder.is_dir():
        return [Fault(".", None, "there is no such folder")]
    names = sorted(file.name for file in (folder / "buffer").glob("[!.]*"))
    if not names:
        return [Fault("buffer", None, "must hold at least one episode, got none")]
    domain, dataset = folder.parent.name, Dataset(folder, folder.parent.name, ())
    sizes = dict(envs.domain_sizes(domain)) if domain in envs.DOMAINS else {}
    checks = {f"buffer/{name}": _episode_faults(folder, name, sizes) for name in names}
    checks |= {"buffer": _name_faults(folder, names), "config.yaml": _read(dataset.config)}
    checks[PROVENANCE] = _read(dataset.provenance)
    faults = [fault for file, check in checks.items() for fault in _caught(folder, file, check)]
    if not faults and (folder / CARD).exists():
        faults = list(_caught(folder, CARD, _card_faults(folder)))
    return sorted(faults, key=lambda fault: (fault.file, fault.row or 0))


def _caught(folder: Path, file: str, check: Iterator[Fault]) -> Iterator[Fault]:
    """Yield the faults of a check; an error that it raises becomes a fault of `file`."""
    try:
        yield from check
    except (ValueError, OSError) as error:
        yield Fault(file, None, str(error).replace(f"{folder}/", ""))


def _read(read: Callable[[], object]) -> Iterator[Fault]:
    read()  # raises
    yield from ()


def _card_faults(folder: Path) -> Iterator[Fault]:
    yield from (Fault(CARD, None, text) for text in check_card(folder))


def _episode_faults(folder: Path, name: str, sizes: dict[str, int]) -> Iterator[Fault]:
    """Yield the faults of an episode, or else of its rewards."""
    file = folder / "buffer" / name
    length, episode = parse_name(file)[1], read_arrays(file)
    faults = [Fault(f"buffer/{name}", *fault) for fault in episode_faults(episode, length, sizes)]
    yield from faults
    if not faults and (folder / "rewards" / name).exists():
        rewards = f"rewards/{name}"
        yield from _caught(folder, rewards, _reward_faults(folder, rewards, episode["reward"]))


def _reward_faults(folder: Path, file: str, stored: np.ndarray) -> Iterator[Fault]:
    """Yield the faults of recorded rewards beside the episode's `stored` ones."""
    rewards, domain = read_arrays(folder / file), folder.parent.name
    tasks = list(envs.domain_tasks(domain))
    if set(rewards) != set(tasks):
        yield Fault(file, None, f"must hold the tasks {tasks}, got {list(rewards)}")
    else:
        faults = reward_faults(rewards, stored, envs.primal_task(domain))
        yield from (Fault(file, *fault) for fault in faults)


def _name_faults(folder: Path, names: list[str]) -> Iterator[Fault]:
    """Yield indices that are missing or occur twice, rewards and episodes apart, and leftovers."""
    indices: dict[int, str] = {}
    for name in names:
        try:
            index, _ = parse_name(Path(name))
        except DatasetError:
            continue  # a fault of the episode
        if indices.setdefault(index, name) != name:
            yield Fault(f"buffer/{name}", None, f"has the index of {indices[index]}")
    gaps = sorted(set(range(max(indices, default=0))) - set(indices))
    if gaps:
        first = ", ".join(map(str, gaps[:5])) + (", ..." if len(gaps) > 5 else "")
        yield Fault("buffer", None, f"lacks {len(gaps)} episodes before its last: {first}")
    recorded = {file.name for file in (folder / "rewards").glob("[!.]*")}
    texts = dict.fromkeys(recorded - set(names), "belongs to no episode")
    missing = set(indices.values()) - recorded if recorded else ()
    texts |= dict.fromkeys(missing, "must be there: other episodes have their rewards recorded")
    yield from (Fault(f"rewards/{name}", None, text) for name, text in texts.items())
    collected = (folder / "config.yaml").exists() and not (folder / PROVENANCE).exists()
    if collected and not recorded:
        yield Fault("rewards", None, "must be there: they were recorded at collection")
    for file in folder.rglob(f".*{paths.TEMPORARY}"):
        text = "was left by an interrupted write and may be removed"
        yield Fault(str(file.relative_to(folder)), None, text)
