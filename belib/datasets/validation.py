"""Check all files of a dataset against all rules of the format."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from belib import envs, paths
from belib.datasets.card import check_card
from belib.datasets.dataset import Dataset, load
from belib.datasets.episodes import read_episode
from belib.datasets.relabelling import read_rewards


def validate(folder: str | Path) -> list[str]:
    """Return all faults of a dataset, one text per file, sorted; change nothing.

    Each text has the file, and the rule and first row of its faults. Readers raise for the same
    faults, except two that change no number that is read: a card that does not fit, and leftovers
    of interrupted writes.

    Raise ValueError for an unknown domain.
    """
    folder = paths.resolve(folder)
    dataset = Dataset(folder, folder.parent.name, tuple(sorted(folder.glob("buffer/[!.]*"))))
    sizes = dict(envs.domain_sizes(dataset.domain))
    leftovers = folder.rglob(f".*{paths.TEMPORARY}")
    faults = {f"{file} was left by an interrupted write and may be removed" for file in leftovers}
    faults |= _error(load, folder) | _error(dataset.config) | _error(dataset.provenance)
    for file in dataset.files:
        faults |= _error(_read, file, dataset.domain, sizes)
    faults = faults or _error(check_card, folder)
    return sorted(fault.replace(f"{folder}/", "") for fault in faults)


def _error(check: Callable, *arguments: Any) -> set[str]:
    """Return the message of the error that a check raises, if any."""
    try:
        check(*arguments)
    except (ValueError, TypeError, OSError) as error:
        return {str(error)}
    return set()


def _read(file: Path, domain: str, sizes: dict[str, int]) -> None:
    episode, rewards = read_episode(file, sizes), file.parents[1] / "rewards"
    if rewards.exists():
        read_rewards(rewards / file.name, episode, envs.primal_task(domain))
