"""States drawn from several datasets into one array, and the scaling of their features."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from belib.arrays import real_array, whole_number
from belib.config.checks import check_type
from belib.datasets import Dataset, origin, task_rewards
from belib.streams import derive_seed

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

SCALINGS = ("none", "robust")


@dataclass(frozen=True)
class States:
    """States of several datasets, ordered by dataset and, within a dataset, by time.

    Attributes:
        features: (n, d) observations as recorded.
        rows: one per state: `dataset`, its `objective`, `parameter`, `variant`, `seed`, `scale`,
            the `episode` and `row` in its file, the `step` that led to the state, task rewards.
    """

    features: Array
    rows: pd.DataFrame

    @property
    def names(self) -> list[str]:
        """Names of the datasets, in order."""
        return list(self.rows["dataset"].unique())

    def of(self, name: str) -> NDArray[np.bool_]:
        """Return which states, (n,), are those of one dataset."""
        return self.rows["dataset"].to_numpy() == name


def draw_states(
    datasets: Sequence[Dataset], *, size: int = 10_000, seed: int = 0, tasks: Sequence[str] = ()
) -> States:
    """Draw `size` states of each dataset, uniformly over its steps, without replacement.

    A dataset's draw depends on its name and the seed only. The first state of an episode is never
    drawn: no action led to it.

    Args:
        tasks: tasks whose rewards, recorded or relabelled, are added to the rows.

    Raise ValueError if a dataset has fewer steps, or two share a name or differ in domain.
    """
    size = _checked(datasets, "size", size)
    steps = [_random(data, seed).choice(data.steps, size, replace=False) for data in datasets]
    return _read(datasets, steps, tasks)


def draw_increments(
    datasets: Sequence[Dataset], increments: int, share: float, seed: int
) -> States:
    """Draw a share of the steps of each increment; `rows` has a column `increment`, from 1."""
    increments = _checked(datasets, "increments", increments)
    share = check_type("share", share, float, "in (0, 1]")
    steps, numbers = [], []
    for dataset in datasets:
        random = _random(dataset, seed)
        ends = np.linspace(0, dataset.steps, increments + 1).round().astype(int)
        sizes = np.maximum(1, (np.diff(ends) * share).round().astype(int))
        parts = [
            low + random.choice(high - low, size, replace=False)
            for low, high, size in zip(ends[:-1], ends[1:], sizes, strict=True)
        ]
        steps.append(np.concatenate(parts))
        numbers.append(np.repeat(np.arange(increments) + 1, sizes))
    states = _read(datasets, steps)
    return States(states.features, states.rows.assign(increment=np.concatenate(numbers)))


def scale(features: Array, scaling: str) -> Array:
    """Return features (n, d) in the units in which distances are measured.

    "none" changes nothing, so the feature with the largest values dominates. "robust" subtracts
    each column's median and divides by its interquartile range / 1.349 (1 for a standard normal
    column), or by its standard deviation if that is 0; constant columns are dropped.

    Raise ValueError if all columns are constant, or if features are not finite.
    """
    if scaling not in SCALINGS:
        raise ValueError(f"scaling must be one of {', '.join(SCALINGS)}, got {scaling!r}")
    features = real_array("features", features, ndim=2)
    if scaling == "none":
        return features
    features, rows = features[:, (features != features[:1]).any(0)], len(features)
    if features.shape[1] == 0:
        raise ValueError(f"features must vary in a column or more, got {rows} equal rows")
    features = np.ldexp(features, -np.frexp(np.abs(features).max(0))[1])  # squares stay finite
    low, median, high = np.quantile(features, (0.25, 0.5, 0.75), axis=0)
    spread = (high - low) / 1.349
    return (features - median) / np.where(spread > 0, spread, features.std(0))


def _read(
    datasets: Sequence[Dataset], steps: Sequence[Integers], tasks: Sequence[str] = ()
) -> States:
    """Return the states after the given steps of each dataset, counted from 0."""
    features, rows = [], []
    for dataset, chosen in zip(datasets, map(np.sort, steps), strict=True):
        lengths = dataset.lengths
        obs = np.concatenate([episode["observation"][1:] for episode in dataset.episodes()])
        features.append(obs[chosen].astype(np.float64))
        table = {
            "dataset": dataset.name,
            **origin(dataset),
            "episode": np.repeat(np.arange(len(lengths)), lengths)[chosen],
            "row": np.concatenate([np.arange(1, length + 1) for length in lengths])[chosen],
            "step": chosen + 1,
        }
        if tasks:
            rewards = np.concatenate([episode[1:] for episode in task_rewards(dataset, tasks)])
            table |= zip(tasks, rewards[chosen].T, strict=True)
        rows.append(pd.DataFrame(table).astype({"parameter": float}))
    return States(np.concatenate(features), pd.concat(rows, ignore_index=True))


def _random(dataset: Dataset, seed: int) -> np.random.Generator:
    return np.random.default_rng(derive_seed(seed, "coverage", dataset.name))


def _checked(datasets: Sequence[Dataset], name: str, count: int) -> int:
    """Check names, domains and numbers of steps; return `count`."""
    count = whole_number(name, count)
    names = [dataset.name for dataset in datasets]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"datasets must be at least one, each with its own name, got {names}")
    if len({dataset.domain for dataset in datasets}) > 1:
        raise ValueError(f"datasets must share one domain, got {[d.domain for d in datasets]}")
    for dataset in datasets:
        if not 1 <= count <= dataset.steps:
            limits = f"1 and the {dataset.steps} steps of {dataset.name}"
            raise ValueError(f"{name} must be between {limits}, got {count}")
    return count
