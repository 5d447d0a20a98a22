"""Datasets for other people's tools."""

import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from belib.datasets.card import origin
from belib.datasets.dataset import Dataset
from belib.datasets.episodes import read_episode
from belib.datasets.relabelling import task_rewards


def export_minari(
    dataset: Dataset, dataset_id: str | None = None, *, task: str | None = None, **metadata: Any
) -> Any:
    """Write a dataset as a Minari one, which `minari.load_dataset` finds; returns it.

    Observations have a row more than actions, rewards, terminations and truncations, whose first
    row is row 1 of our files. The last step is a termination where its discount is 0, else a
    truncation. Physics states and other arrays are the episodes' `infos`, as long as observations.

    Args:
        dataset: the source.
        dataset_id: by default `belib/<domain>/<name>-v0`.
        task: whose rewards are written, by default those stored in the episodes.
        metadata: `author`, `author_email`, `code_permalink`, ... of Minari's dataset.

    Minari's folder is `MINARI_DATASETS_PATH`, or `.minari/datasets` at home. Raises ImportError
    without the `minari` extra, ValueError where the id is taken already, DatasetError for episodes
    that `validate` finds faults in.
    """
    try:
        import gymnasium
        import minari
        from minari.storage import get_dataset_path
    except ImportError as error:
        raise ImportError(
            "export to Minari needs its package: pip install 'belib[minari]'"
        ) from error
    dataset_id = dataset_id or f"belib/{dataset.domain}/{dataset.name}-v0"
    place = _new_place(dataset_id, get_dataset_path)
    labels = [None] * len(dataset.files) if task is None else task_rewards(dataset, [task])
    first = read_episode(dataset.files[0])
    size = {key: array.shape[1:] for key, array in first.items()}
    made_by = origin(dataset)
    words = f"{dataset.name}: {dataset.steps} steps in dm_control's {dataset.domain}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of metadata that are not given
            return minari.create_dataset_from_buffers(
                dataset_id,
                _episodes(dataset, labels, minari.data_collector.EpisodeBuffer),
                observation_space=gymnasium.spaces.Box(-np.inf, np.inf, size["observation"]),
                action_space=gymnasium.spaces.Box(-1, 1, size["action"]),
                data_format="hdf5",
                **{"algorithm_name": made_by["objective"], "description": words, **metadata},
            )
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)  # ours, and not whole
        raise


def _new_place(dataset_id: str, get_dataset_path: Callable[[str], Path]) -> Path:
    if re.search(r"-v\d+$", dataset_id) is None:
        raise ValueError(f"dataset_id must end in a version, as -v0, got {dataset_id!r}")
    place = get_dataset_path(dataset_id)
    if place.exists():
        raise ValueError(f"dataset_id must be new, got {dataset_id}, which is in {place}")
    return place


def _episodes(
    dataset: Dataset, labels: Sequence[np.ndarray | None], episode_buffer: Any
) -> Iterator[Any]:
    """One episode at a time, in Minari's form, with `labels` (rows, 1) or its own rewards."""
    for episode, rewards in zip(dataset.episodes(strict=True), labels, strict=True):
        discount = episode.pop("discount")[1:, 0]
        stored = episode.pop("reward")
        truncated = np.zeros(len(discount), bool)
        truncated[-1] = discount[-1] != 0
        yield episode_buffer(
            observations=episode.pop("observation"),
            actions=episode.pop("action")[1:],
            rewards=(stored if rewards is None else rewards)[1:, 0],
            terminations=discount == 0,
            truncations=truncated,
            infos=episode,
        )
