"""States drawn from several datasets into one array, and the scaling of their features."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from belib.arrays import real_array, whole_number
from belib.datasets import Dataset, origin, task_rewards
from belib.streams import derive_seed

Array = NDArray[np.float64]

SCALINGS = ("none", "robust")


class States(NamedTuple):
    """States of several datasets, ordered by dataset and, within a dataset, by time.

    Rows have `dataset`, its `objective`, `parameter`, `variant`, `seed`, `scale`, the `episode`,
    the `step` that led to the state, and task rewards.
    """

    features: Array  # (n, d) observations as recorded
    rows: pd.DataFrame  # one per state

    @property
    def origins(self) -> pd.DataFrame:
        """The datasets' objective, parameter, variant, seed and scale, in order, by name."""
        first = self.rows.drop_duplicates("dataset").set_index("dataset")
        return first.filter(["objective", "parameter", "variant", "seed", "scale"])

    def of(self, name: str) -> NDArray[np.bool_]:
        """Return which states, (n,), are those of one dataset."""
        return self.rows["dataset"].to_numpy() == name


def draw_states(
    datasets: Sequence[Dataset], *, size: int = 10_000, seed: int = 0, tasks: Sequence[str] = ()
) -> States:
    """Draw `size` states of each dataset, uniformly over its steps, without replacement.

    A dataset's draw does not depend on other datasets. The first state of an episode is never
    drawn: no action led to it. Rewards of `tasks`, recorded or relabelled, are added to the rows.

    Raise ValueError if a dataset has fewer steps, or two share a name or differ in domain.
    """
    for dataset in datasets:
        whole_number("size", size, least=1, most=dataset.steps)
    steps = [draw_steps(dataset, (0, dataset.steps), (size,), seed) for dataset in datasets]
    return read_states(datasets, steps, tasks)


def draw_steps(dataset: Dataset, ends: Iterable[int], sizes: Iterable[int], seed: int) -> NDArray:
    """Draw sizes[i] of the steps from ends[i] to ends[i + 1], without replacement."""
    random = np.random.default_rng(derive_seed(seed, "coverage", dataset.name))
    parts = zip(pairwise(ends), sizes, strict=True)
    return np.concatenate([a + random.choice(b - a, size, replace=False) for (a, b), size in parts])


def read_states(
    datasets: Sequence[Dataset], steps: Sequence[NDArray[np.intp]], tasks: Sequence[str] = ()
) -> States:
    """Return the states after the given steps of each dataset, counted from 0."""
    names, domains = {data.name for data in datasets}, {data.domain for data in datasets}
    if len(names) < len(datasets) or len(domains) != 1:
        rule = "datasets must share one domain and differ in their names"
        raise ValueError(f"{rule}, got {names} of {domains}")
    features, rows = [], []
    for dataset, chosen in zip(datasets, map(np.sort, steps), strict=True):
        obs = np.concatenate([episode["observation"][1:] for episode in dataset.episodes()])
        features.append(obs[chosen].astype(np.float64))
        episode = np.repeat(np.arange(len(dataset.lengths)), dataset.lengths)[chosen]
        table = {"dataset": dataset.name, **origin(dataset), "episode": episode, "step": chosen + 1}
        if tasks:
            rewards = np.concatenate([episode[1:] for episode in task_rewards(dataset, tasks)])
            table |= zip(tasks, rewards[chosen].T, strict=True)
        rows.append(pd.DataFrame(table).astype({"parameter": float}))
    return States(np.concatenate(features), pd.concat(rows, ignore_index=True))


def scale(features: ArrayLike, scaling: str) -> Array:
    """Return features (n, d) in the units in which distances are measured.

    "none" changes nothing, so the feature with the largest values dominates. "robust" subtracts
    each column's median and divides by its interquartile range / 1.349 (1 for a standard normal
    column), or by its standard deviation if that is 0; constant columns are dropped.

    Raise ValueError if all columns are constant, or if features are not finite.
    """
    if scaling not in SCALINGS:
        raise ValueError(f"scaling must be one of {', '.join(SCALINGS)}, got {scaling!r}")
    x = real_array("features", features, ndim=2)
    if scaling == "none":
        return x
    x = x[:, np.ptp(x, axis=0) > 0]
    if x.shape[1] == 0:
        raise ValueError(f"features must vary in a column or more, got {len(x)} equal rows")
    low, median, high = np.quantile(x, (0.25, 0.5, 0.75), axis=0)
    spread = (high - low) / 1.349
    return (x - median) / np.where(spread > 0, spread, x.std(0))
