"""Merge, subsample and import datasets; sources are never changed."""

import json
import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from belib import paths
from belib.arrays import whole_number
from belib.datasets.card import identity, write_card
from belib.datasets.dataset import PROVENANCE, Dataset, episode_files, load
from belib.datasets.episodes import DatasetError, episode_name, parse_name, read_episode
from belib.envs import domain_sizes


def merge(sources: Sequence[Dataset], folder: str | Path) -> Dataset:
    """Make a dataset of all episodes of the sources, in order and renumbered.

    `folder` is new or empty, in a folder named after the domain. Recorded rewards are kept if all
    sources have them. Raise DatasetError for mixed domains or a malformed episode.
    """
    sources, sizes = list(sources), {}
    domains = {source.domain for source in sources}
    if len(domains) != 1:
        raise DatasetError(f"sources must be of one domain, got {sorted(domains) or 'none'}")
    for source in sources:
        read_episode(source.files[0], sizes)
    files = [file for source in sources for file in source.files]
    return _derive(files, folder, {"made_by": "merge", "sources": list(map(_source, sources))})


def subsample(
    dataset: Dataset,
    folder: str | Path,
    *,
    seed: int,
    n_episodes: int | None = None,
    steps: int | None = None,
) -> Dataset:
    """Make a dataset of whole episodes drawn without replacement, in the order of collection.

    Args:
        dataset: the source.
        folder: new or empty, in a folder of the domain's name.
        seed: of the draw.
        n_episodes, steps: give one: the number of episodes, or the least number of transitions.

    Raise ValueError for a wrong number, DatasetError for a malformed episode.
    """
    if (n_episodes is None) == (steps is None):
        raise ValueError(f"give n_episodes or steps, got {n_episodes} and {steps}")
    seed = whole_number("seed", seed)
    order = np.random.default_rng(seed).permutation(len(dataset.files))
    if n_episodes is not None:
        count = n_episodes = whole_number("n_episodes", n_episodes, least=1, most=len(order))
    else:
        steps = whole_number("steps", steps, least=1, most=dataset.steps)
        lengths = np.cumsum(np.array(dataset.lengths)[order])
        count = int(np.searchsorted(lengths, steps)) + 1
    files = [dataset.files[i] for i in sorted(order[:count])]
    provenance = {"made_by": "subsample", "seed": seed, "n_episodes": n_episodes, "steps": steps}
    provenance |= {"sources": [_source(dataset)], "files": [file.name for file in files]}
    return _derive(files, folder, provenance, config=dataset.folder / "config.yaml")


def import_exorl(source: str | Path, folder: str | Path, *, link: bool = False) -> Dataset:
    """Make a dataset of all episodes of a public ExORL download or of URLB's buffer.

    Args:
        source: `datasets/<domain>/<algorithm>` or its `buffer/`, or URLB's working folder.
        folder: new or empty, in a folder of the domain's name.
        link: make symbolic links, which need the source to stay, instead of copies.

    Raise DatasetError, and write nothing, if a file is not an episode of the domain.
    """
    source, domain = Path(source).absolute(), paths.resolve(folder).parent.name
    buffer = source / "buffer" if (source / "buffer").exists() else source
    if not buffer.is_dir():
        raise DatasetError(f"there is no folder {buffer}")
    files, sizes = episode_files(buffer), dict(domain_sizes(domain))
    for file in files:
        read_episode(file, sizes)
    name = buffer.parent.name if buffer.name == "buffer" else buffer.name
    provenance = {"name": name, "domain": domain, "folder": str(buffer)}
    provenance = {"made_by": "import_exorl", "sources": [provenance]}
    return _derive(files, folder, provenance, link=link)


def _derive(
    files: Sequence[Path],
    folder: str | Path,
    provenance: dict[str, Any],
    *,
    config: Path | None = None,
    link: bool | None = None,
) -> Dataset:
    """Write a dataset atomically; our own files (`link` None) keep rewards and get a card."""
    folder, ours = paths.resolve(folder), link is None
    for source in provenance["sources"]:
        if folder.parent.name != (domain := source["domain"]):
            raise DatasetError(f"{folder} must be in a folder named {domain}, its data's domain")
    if folder.exists() and any(folder.iterdir()):
        raise DatasetError(f"{folder} must be new or empty: a dataset's files are not replaced")
    parent, hidden = paths.writable_folder(folder.parent), f".{folder.name}."
    with tempfile.TemporaryDirectory(paths.TEMPORARY, hidden, parent) as place:
        made = Path(place) / folder.parent.name / folder.name
        rewards = [file.parents[1] / "rewards" / file.name for file in files]
        rewards = rewards if ours and all(file.exists() for file in rewards) else []
        for kind, sources in (("buffer", files), ("rewards", rewards)):
            for index, file in enumerate(sources):
                _copy(file, made / kind / episode_name(index, parse_name(file)[1]), link)
        if config is not None and config.exists():
            _copy(config, made / config.name)
        provenance = {**provenance, "git_revision": paths.git_revision()}
        paths.write_text(made / PROVENANCE, json.dumps(provenance, indent=2) + "\n")
        if ours:
            write_card(made)
        made.replace(folder)
    return load(folder)


def _copy(file: Path, target: Path, link: bool | None = False) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if link:
        target.symlink_to(file.resolve())
    else:
        with open(file, "rb") as opened:
            paths.write_atomic(target, partial(shutil.copyfileobj, opened))


def _source(dataset: Dataset) -> dict[str, Any]:
    return {**identity(dataset), "provenance": dataset.provenance()}
