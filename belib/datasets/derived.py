"""Merge, subsample, import and export datasets; sources are never changed."""

import json
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from belib import paths
from belib.arrays import whole_number
from belib.datasets.card import identity, origin, write_card
from belib.datasets.files import Dataset, DatasetError, episode_name, load, parse_name, read_episode
from belib.datasets.relabelling import task_rewards
from belib.envs import domain_sizes


def merge(sources: Sequence[Dataset], folder: str | Path) -> Dataset:
    """Make a dataset of all episodes of the sources, in order and renumbered.

    `folder` is new or empty, in a folder named after the domain. Recorded rewards are kept if all
    sources have them. Raise DatasetError for mixed domains or a malformed episode.
    """
    return _derive("merge", sources, [file for source in sources for file in source.files], folder)


def subsample(dataset: Dataset, folder: str | Path, *, seed: int, n_episodes: int) -> Dataset:
    """Make a dataset of whole episodes drawn without replacement, in the order of collection.

    `folder` is as for `merge`. Raise ValueError for a number that is wrong or above that of the
    episodes, DatasetError for a malformed episode.
    """
    seed, total = whole_number("seed", seed), len(dataset.files)
    count = whole_number("n_episodes", n_episodes, least=1, most=total)
    order = np.random.default_rng(seed).permutation(total)
    files = [dataset.files[i] for i in sorted(order[:count])]
    drawn = {"seed": seed, "drawn": [file.name for file in files]}
    return _derive("subsample", [dataset], files, folder, **drawn)


def import_exorl(source: str | Path, folder: str | Path) -> Dataset:
    """Make a dataset of all episodes of a public ExORL download or of URLB's buffer.

    Args:
        source: `datasets/<domain>/<algorithm>` or URLB's working folder, or their `buffer/`.
        folder: new or empty, in a folder of the domain's name.

    If the episodes have physics states, the rewards of all tasks are computed for the card (see
    `relabel`). Raise DatasetError, and leave nothing, if a file is not an episode of the domain.
    """
    source, domain = paths.resolve(source), paths.resolve(folder).parent.name
    dataset = replace(load(source.parent if source.name == "buffer" else source), domain=domain)
    read_episode(dataset.files[0], dict(domain_sizes(domain)))  # other sizes must equal the first
    return _derive("import_exorl", [dataset], dataset.files, folder, source=str(dataset.folder))


def _derive(
    made_by: str,
    sources: Sequence[Dataset],
    files: Sequence[Path],
    folder: str | Path,
    **details: Any,
) -> Dataset:
    """Write a dataset and its card atomically; recorded rewards are kept if all files have them."""
    folder, domains = paths.resolve(folder), {source.domain for source in sources}
    if domains != {folder.parent.name}:
        rule = f"{folder} must be in a folder named after the one domain of its sources"
        raise DatasetError(f"{rule}, got {', '.join(sorted(domains)) or 'no sources'}")
    if folder.exists() and any(folder.iterdir()):
        raise DatasetError(f"{folder} must be new or empty: a dataset's files are not replaced")
    facts = [{**identity(source), "provenance": source.provenance()} for source in sources]
    provenance = {"made_by": made_by, "sources": facts, **details}
    provenance["git_revision"] = paths.git_revision()
    parent, hidden = paths.make_folder(folder.parent), f".{folder.name}."
    with tempfile.TemporaryDirectory(paths.TEMPORARY, hidden, parent) as place:
        made = Path(place) / folder.parent.name / folder.name
        rewards = [file.parents[1] / "rewards" / file.name for file in files]
        kinds = {"buffer": files, "rewards": rewards if all(map(Path.exists, rewards)) else ()}
        for kind, originals in kinds.items():
            for index, file in enumerate(originals):
                name = episode_name(index, parse_name(file)[1])
                shutil.copyfile(file, paths.make_folder(made / kind) / name)
        config = sources[0].folder / "config.yaml"
        if made_by == "subsample" and config.exists():
            shutil.copyfile(config, made / config.name)
        paths.write_text(made / "provenance.json", json.dumps(provenance, indent=2) + "\n")
        write_card(made)
        made.replace(folder)
    return load(folder)


def export_minari(
    dataset: Dataset, dataset_id: str | None = None, *, task: str | None = None, **metadata: Any
) -> Any:
    """Write and return a Minari dataset in `MINARI_DATASETS_PATH`, by default ~/.minari/datasets.

    Args:
        dataset: the source, whose physics states become the episodes' `infos`.
        dataset_id: by default `belib/<domain>/<name>-v0`, `_` for dots and colons (Minari's rule).
        task: the task of the rewards; by default the stored rewards are written.
        metadata: `author`, `author_email`, `code_permalink`, ... of Minari's dataset.

    Raise ImportError without the `minari` extra, ValueError for an id that is taken or malformed.
    """
    import minari
    from gymnasium.spaces import Box
    from minari.storage import get_dataset_path

    dataset_id = dataset_id or re.sub("[.:]", "_", f"belib/{dataset.domain}/{dataset.name}-v0")
    target = get_dataset_path(dataset_id)
    if target.exists() or not re.search(r"-v\d+$", dataset_id):
        raise ValueError(f"dataset_id must be new and end in a version, as -v0, got {dataset_id!r}")
    first, buffer = next(dataset.episodes()), minari.data_collector.EpisodeBuffer
    try:
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # missing metadata
            return minari.create_dataset_from_buffers(
                dataset_id,
                (buffer(**episode) for episode in _episodes(dataset, task)),
                observation_space=Box(-np.inf, np.inf, first["observation"].shape[1:]),
                action_space=Box(-1, 1, first["action"].shape[1:]),
                **{"algorithm_name": origin(dataset)["objective"], **metadata},
                data_format="hdf5",
            )
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)  # incomplete
        raise


def _episodes(dataset: Dataset, task: str | None) -> Iterator[dict[str, Any]]:
    """Yield Minari's arrays: one observation more than actions, which start at our row 1.

    The last step is a termination if its discount is 0, else a truncation.
    """
    rewards = None if task is None else task_rewards(dataset, [task])
    for index, episode in enumerate(dataset.episodes()):
        stored, discount = episode.pop("reward"), episode.pop("discount")[1:, 0]
        last = np.arange(len(discount)) == len(discount) - 1
        yield {
            "observations": episode.pop("observation"),
            "actions": episode.pop("action")[1:],
            "rewards": (stored if rewards is None else rewards[index])[1:, 0],
            "terminations": discount == 0,
            "truncations": last & (discount != 0),
            "infos": episode,
        }
