"""Points of several datasets in one array, each with where it came from, and their scaling."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from belib.arrays import real_array, whole_number
from belib.config.checks import SHARE, check_type
from belib.datasets import Dataset, origin, task_rewards
from belib.streams import derive_seed

Array = NDArray[np.float64]

SCALINGS = ("none", "robust")


@dataclass(frozen=True)
class Sample:
    """Observations of several datasets, in the order of the datasets and within each of time.

    Attributes:
        features: (n, d) observations as recorded.
        rows: a row a point: `dataset`, its `objective`, `parameter`, `seed` and `scale`, the
            `episode` and `row` of its file, the `step` at which it was reached, and task rewards.

    Raises ValueError for features that are not finite numbers, or not as many as there are rows.
    """

    features: Array
    rows: pd.DataFrame

    def __post_init__(self):
        features = real_array("features", self.features, ndim=2)
        if len(features) != len(self.rows):
            wanted = f"features must have a row for each of {len(self.rows)} rows"
            raise ValueError(f"{wanted}, got shape {features.shape}")
        object.__setattr__(self, "features", features)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def names(self) -> list[str]:
        """The datasets, in order."""
        return list(self.rows["dataset"].unique())

    def of(self, name: str) -> NDArray[np.bool_]:
        """Which points are a dataset's, (n,)."""
        return self.rows["dataset"].to_numpy() == name


def subsample(
    datasets: Sequence[Dataset], *, size: int = 10_000, seed: int = 0, tasks: Sequence[str] = ()
) -> Sample:
    """`size` states of each dataset, uniform over its steps, without replacement.

    A dataset's points depend on its name and the seed, not on the datasets beside it. Episodes'
    first states, which no action led to, are not drawn.

    Args:
        tasks: whose rewards, recorded or relabelled, come with the rows.

    Raises ValueError where a dataset has fewer steps, or datasets do not go together.
    """
    size = whole_number("size", size)

    def chosen(dataset: Dataset) -> NDArray[np.intp]:
        if not 1 <= size <= dataset.steps:
            raise ValueError(
                f"size must be between 1 and the {dataset.steps} steps of {dataset.name}, "
                f"got {size}"
            )
        return _random(dataset, seed).choice(dataset.steps, size, replace=False)

    return _join(datasets, chosen, tasks)


def growing_subsample(
    datasets: Sequence[Dataset], *, increments: int = 10, share: float = 0.2, seed: int = 0
) -> Sample:
    """A share of each increment of each dataset's steps; `rows` has the `increment`, from 1.

    The defaults are the paper's 10,000 states of every 50,000 for its 500,000 steps (appendix,
    volumetric coverage), and the same proportions of any other length.
    """
    increments = whole_number("increments", increments)
    share = check_type("share", share, float, SHARE)

    def ends_of(dataset: Dataset) -> NDArray[np.intp]:
        return np.linspace(0, dataset.steps, increments + 1).round().astype(int)

    def chosen(dataset: Dataset) -> NDArray[np.intp]:
        random, ends = _random(dataset, seed), ends_of(dataset)
        sizes = np.maximum(1, (np.diff(ends) * share).round().astype(int))
        parts = zip(ends, ends[1:], sizes, strict=False)
        return np.concatenate(
            [low + random.choice(high - low, size, replace=False) for low, high, size in parts]
        )

    for dataset in datasets:
        if not 1 <= increments <= dataset.steps:
            raise ValueError(
                f"increments must be between 1 and the {dataset.steps} steps of {dataset.name}, "
                f"got {increments}"
            )
    sample = _join(datasets, chosen)
    increment = np.empty(len(sample.rows), int)
    for dataset in datasets:
        own = (sample.rows["dataset"] == dataset.name).to_numpy()
        increment[own] = np.searchsorted(ends_of(dataset), sample.rows["step"][own])
    return Sample(sample.features, sample.rows.assign(increment=increment))


def scale(features: Array, scaling: str) -> Array:
    """Features (n, d) in the units in which distances are taken.

    "none" leaves them, so that the sensor of the largest numbers decides. "robust" subtracts each
    column's median and divides by its interquartile range over 1.349 (a normal column then has
    variance 1), or by the deviation where that range is 0; constant columns are left out.

    Raises ValueError where all are constant, and for features that are not finite.
    """
    if scaling not in SCALINGS:
        raise ValueError(f"scaling must be one of {', '.join(SCALINGS)}, got {scaling!r}")
    features = real_array("features", features, ndim=2)
    if scaling == "none":
        return features
    varying = (features != features[:1]).any(0)
    if not varying.any():
        raise ValueError(f"features must vary in a column or more, got {len(features)} equal rows")
    features = features[:, varying]
    sizes = np.frexp(np.abs(features).max(0))[1]
    features = np.ldexp(features, -sizes)  # so that squares neither overflow nor vanish
    low, median, high = np.quantile(features, (0.25, 0.5, 0.75), axis=0)
    spread = (high - low) / 1.349
    return (features - median) / np.where(spread > 0, spread, features.std(0))


def _random(dataset: Dataset, seed: int) -> np.random.Generator:
    return np.random.default_rng(derive_seed(seed, "coverage", dataset.name))


def _join(
    datasets: Sequence[Dataset],
    chosen: Callable[[Dataset], NDArray[np.intp]],
    tasks: Sequence[str] = (),
) -> Sample:
    names = [dataset.name for dataset in datasets]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"datasets must be at least one, each with its own name, got {names}")
    if len({dataset.domain for dataset in datasets}) > 1:
        raise ValueError(f"datasets must share one domain, got {[d.domain for d in datasets]}")
    steps = [np.sort(chosen(dataset)) for dataset in datasets]  # refused before anything is read
    parts = [_read(dataset, each, tasks) for dataset, each in zip(datasets, steps, strict=True)]
    features, rows = zip(*parts, strict=True)
    return Sample(np.concatenate(features), pd.concat(rows, ignore_index=True))


def _read(
    dataset: Dataset, steps: NDArray[np.intp], tasks: Sequence[str]
) -> tuple[Array, pd.DataFrame]:
    """The states (m, d) reached by the given steps, ascending from 0, and their rows."""
    rewards = task_rewards(dataset, tasks) if tasks else None
    features, places, first = [], [], 0
    for number, episode in enumerate(dataset.episodes()):
        length = len(episode["observation"]) - 1
        low, high = np.searchsorted(steps, (first, first + length))
        row = steps[low:high] - first + 1
        features.append(episode["observation"][row].astype(np.float64))
        place = pd.DataFrame({"episode": number, "row": row, "step": steps[low:high] + 1})
        if rewards:
            place[list(tasks)] = rewards[number][row]
        places.append(place)
        first += length
    return np.concatenate(features), _described(dataset, pd.concat(places, ignore_index=True))


def _described(dataset: Dataset, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with what is known of their dataset in front."""
    values = origin(dataset)
    values["parameter"] = np.nan if values["parameter"] is None else values["parameter"]
    return pd.DataFrame({"dataset": dataset.name, **values, **rows})
