"""Datasets made of others: merged, subsampled, imported. The sources are only read."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from belib import paths
from belib.arrays import whole_number
from belib.datasets.card import origin, write_card
from belib.datasets.dataset import PROVENANCE, Dataset, content_sha256, episode_files, load
from belib.datasets.episodes import DatasetError, episode_name, parse_name, read_episode
from belib.envs import domain_sizes


def merge(sources: Sequence[Dataset], folder: str | Path) -> Dataset:
    """A new dataset of all episodes of the sources, in their order, numbered anew.

    Args:
        sources: of one domain.
        folder: new or empty, in a folder of the domain's name.

    Recorded rewards are kept where all sources have them. Raises DatasetError, also for episodes
    that `validate` finds faults in.
    """
    sources = list(sources)
    domains = {source.domain for source in sources}
    if len(domains) != 1:
        raise DatasetError(f"sources must be of one domain, got {sorted(domains) or 'none'}")
    sizes: dict[str, int] = {}
    for source in sources:
        read_episode(source.files[0], strict=True, sizes=sizes)
    files = [file for source in sources for file in source.files]
    provenance = {"made_by": "merge", "sources": [_summary(source) for source in sources]}
    return _copied(files, paths.resolve(folder), domains.pop(), provenance)


def subsample(
    dataset: Dataset,
    folder: str | Path,
    *,
    seed: int,
    n_episodes: int | None = None,
    steps: int | None = None,
) -> Dataset:
    """A new dataset of whole episodes drawn without replacement, in the order of collection.

    Args:
        dataset: the source.
        folder: new or empty, in a folder of the domain's name.
        seed: of the draw.
        n_episodes, steps: give one: how many episodes, or the transitions that they hold at least.

    Raises ValueError, DatasetError for a source with episodes that `validate` finds faults in.
    """
    if (n_episodes is None) == (steps is None):
        raise ValueError(f"give n_episodes or steps, got {n_episodes} and {steps}")
    seed = whole_number("seed", seed)
    order = np.random.default_rng(seed).permutation(len(dataset.files))
    if n_episodes is not None:
        wanted = n_episodes = whole_number("n_episodes", n_episodes, least=1, most=len(order))
    else:
        steps = whole_number("steps", steps, least=1, most=dataset.steps)
        lengths = np.cumsum(np.array(dataset.lengths)[order])
        wanted = int(np.searchsorted(lengths, steps)) + 1
    files = [dataset.files[i] for i in sorted(order[:wanted])]
    provenance = {"made_by": "subsample", "seed": seed, "n_episodes": n_episodes, "steps": steps}
    provenance |= {"sources": [_summary(dataset)], "files": [file.name for file in files]}
    config = dataset.folder / "config.yaml"
    return _copied(files, paths.resolve(folder), dataset.domain, provenance, config)


def import_exorl(source: str | Path, folder: str | Path, *, link: bool = False) -> Dataset:
    """A dataset of a public ExORL download or of URLB's buffer: every episode, checked.

    ExORL's own loader stops at the oldest million transitions; nothing is left out here.

    Args:
        source: `datasets/<domain>/<algorithm>` or its `buffer/`, or URLB's working folder.
        folder: new or empty, in a folder of the domain's name.
        link: make symbolic links, which need the source to stay, rather than copies.

    Raises DatasetError for a file that is no episode of the domain, by the rules of `validate`;
    nothing is made then. float64 arrays are copied as they are, and cast as they are read.
    """
    source, folder = Path(source).absolute(), paths.resolve(folder)
    buffer = source / "buffer" if (source / "buffer").exists() else source
    if not buffer.is_dir():
        raise DatasetError(f"there is no folder {buffer}")
    files, sizes = episode_files(buffer), dict(domain_sizes(folder.parent.name))
    for file in files:
        read_episode(file, strict=True, sizes=sizes)
    name = buffer.parent.name if buffer != source or source.name == "buffer" else source.name
    provenance = {"made_by": "import_exorl", "sources": [{"name": name, "folder": str(buffer)}]}
    with _new_folder(folder) as made:
        for index, file in enumerate(files):
            target = made / "buffer" / episode_name(index, parse_name(file)[1])
            target.symlink_to(file.resolve()) if link else _copy(file, target)
        _write_provenance(made, provenance)
    return load(folder)


def _copied(
    files: Sequence[Path],
    folder: Path,
    domain: str,
    provenance: dict[str, Any],
    config: Path | None = None,
) -> Dataset:
    """A dataset of copies of `files` and their recorded rewards, with its card."""
    if folder.parent.name != domain:
        raise DatasetError(f"{folder} must be in a folder named {domain}, for its data's domain")
    rewards = [file.parents[1] / "rewards" / file.name for file in files]
    recorded = all(file.exists() for file in rewards)
    with _new_folder(folder) as made:
        for index, (file, labels) in enumerate(zip(files, rewards, strict=True)):
            name = episode_name(index, parse_name(file)[1])
            _copy(file, made / "buffer" / name)
            if recorded:
                _copy(labels, made / "rewards" / name)
        if config is not None and config.exists():
            _copy(config, made / config.name)
        _write_provenance(made, provenance)
    try:
        write_card(folder)
    except BaseException:
        shutil.rmtree(folder)  # ours, and not whole
        raise
    return load(folder)


def _copy(file: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    with open(file, "rb") as opened:
        paths.write_atomic(target, partial(shutil.copyfileobj, opened))


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A folder with `buffer/` in it that gets the name `folder` once it is complete."""
    if folder.exists() and any(folder.iterdir()):
        raise DatasetError(f"{folder} must be new or empty: a dataset's files are not replaced")
    paths.writable_folder(folder.parent)
    made = folder.with_name(f".{folder.name}.{os.getpid()}{paths.TEMPORARY}")
    made.mkdir()
    try:
        (made / "buffer").mkdir()
        yield made
        made.replace(folder)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def _write_provenance(folder: Path, provenance: dict[str, Any]) -> None:
    provenance = {**provenance, "git_revision": paths.git_revision()}
    paths.write_text(folder / PROVENANCE, json.dumps(provenance, indent=2) + "\n")


def _summary(source: Dataset) -> dict[str, Any]:
    """What a source was, by its contents rather than its place."""
    return {
        "name": source.name,
        "domain": source.domain,
        **origin(source),
        "episodes": len(source.files),
        "steps": source.steps,
        "sha256": content_sha256(source, strict=True),
        "provenance": source.provenance(),
    }
