"""Export datasets to Minari."""

import re
import shutil
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from belib.datasets.card import origin
from belib.datasets.dataset import Dataset
from belib.datasets.relabelling import task_rewards


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
