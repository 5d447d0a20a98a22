"""Check all files of a dataset against all rules of the format."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from belib import envs, paths
from belib.datasets.card import CARD, check_card
from belib.datasets.dataset import PROVENANCE, Dataset
from belib.datasets.episodes import DatasetError, RowFault, episode_faults, parse_name, read_arrays
from belib.datasets.relabelling import reward_faults


class Fault(NamedTuple):
    """A fault and its place; `pd.DataFrame(validate(folder))` is a table of them."""

    file: str  # relative to the dataset's folder
    row: int | None  # the first faulty one, None for the whole file
    fault: str


def validate(folder: str | Path) -> list[Fault]:
    """Return all faults of a dataset, sorted by file and row; change nothing.

    The rules are about names, arrays, the domain's sizes, gaps between indices, rewards,
    configuration, card, and leftovers of interrupted writes. Readers raise for the same faults,
    except those that change no number that is read: float64 arrays, gaps, rewards without episode,
    a card that does not fit, and leftovers.
    """
    folder = paths.resolve(folder)
    if not folder.is_dir():
        return [Fault(".", None, "there is no such folder")]
    names = sorted(file.name for file in (folder / "buffer").glob("[!.]*"))
    if not names:
        return [Fault("buffer", None, "must hold at least one episode, got none")]
    dataset = Dataset(folder, folder.parent.name, ())
    sizes = dict(envs.domain_sizes(dataset.domain)) if dataset.domain in envs.DOMAINS else {}
    faults = list(_name_faults(folder, names))
    for name in names:
        file, rewards = f"buffer/{name}", f"rewards/{name}"
        file_faults = _faults_of(folder, file, _episode_faults, sizes)
        if not file_faults and (folder / rewards).exists():
            file_faults = _faults_of(folder, rewards, _reward_faults, folder / file)
        faults += file_faults
    faults += _faults_of(folder, "config.yaml", lambda _: dataset.config() and ())
    faults += _faults_of(folder, PROVENANCE, lambda _: dataset.provenance() and ())
    if not faults and (folder / CARD).exists():
        faults = _faults_of(folder, CARD, lambda _: [(None, text) for text in check_card(folder)])
    return sorted(faults, key=lambda fault: (fault.file, fault.row or 0))


def _faults_of(folder: Path, file: str, check: Callable, *arguments: Any) -> list[Fault]:
    """Return the faults that a check yields for a file, or the error that it raises."""
    try:
        return [Fault(file, *fault) for fault in check(folder / file, *arguments) or ()]
    except (ValueError, OSError) as error:
        return [Fault(file, None, str(error).replace(f"{folder}/", ""))]


def _episode_faults(file: Path, sizes: dict[str, int]) -> Iterator[RowFault]:
    length = parse_name(file)[1]
    return episode_faults(read_arrays(file), length, sizes)


def _reward_faults(file: Path, episode: Path) -> Iterator[RowFault]:
    rewards, domain = read_arrays(file), file.parents[2].name
    tasks = list(envs.domain_tasks(domain))
    if set(rewards) != set(tasks):
        return iter([(None, f"must hold the tasks {tasks}, got {list(rewards)}")])
    stored = read_arrays(episode, ["reward"])["reward"]
    return reward_faults(rewards, stored, envs.primal_task(domain))


def _name_faults(folder: Path, names: list[str]) -> Iterator[Fault]:
    """Yield missing and repeated indices, unmatched rewards and episodes, and leftovers."""
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
