"""States drawn from several datasets, the scaling of their features, and maps of them."""

import hashlib
import importlib
import json
import time
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from belib import paths
from belib.arrays import real_array, whole_number
from belib.config.checks import check_type
from belib.datasets import Dataset, find_datasets, origin, task_rewards
from belib.envs import Environment, primal_task
from belib.knn import knn_distances
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
        """The objective, parameter, variant, seed and scale of each dataset; the index is names."""
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

    Raise ValueError if features are not finite, or for "robust" if all columns are constant.
    """
    check_type("scaling", scaling, str, SCALINGS)
    x = real_array("features", features, ndim=2)
    if scaling == "none":
        return x
    x = x[:, np.ptp(x, axis=0) > 0]
    if x.shape[1] == 0:
        raise ValueError(f"features must vary in a column or more, got {len(x)} equal rows")
    low, median, high = np.quantile(x, (0.25, 0.5, 0.75), axis=0)
    spread = (high - low) / 1.349
    return (x - median) / np.where(spread > 0, spread, x.std(0))


class Embedding(NamedTuple):
    """A map of states, and a record of how it was made.

    The record has method, versions, parameters as used (few points limit neighbours; PHATE chooses
    t), seed, scaling, threads, seconds, and numbers of `points`, `distinct` points and `features`.
    """

    points: pd.DataFrame  # the states' rows, by dataset and time, with `x` and `y`
    record: dict[str, Any]
    description: str = ""  # of how the map was made, for captions


def embed(
    states: States,
    *,
    method: str = "phate",
    scaling: str = "none",
    seed: int = 0,
    threads: int = 1,
    runs_dir: str | Path = "runs",
    **parameters: Any,
) -> Embedding:
    """Return one joint map of all states; read it from disk if it was made before.

    Equal features, options and versions give equal maps, to the bit on one machine.

    Args:
        method: "phate" (Moon et al. 2019) by phate, or "tsne" by openTSNE.
        seed: below 2^32, the libraries' limit.
        threads: more threads than idle cores are slower.
        runs_dir: maps are kept in its folder `embeddings/`.
        parameters: replace the method's defaults (knn, decay, t; perplexity, ...).

    Raise ValueError for a wrong option or too few states, TypeError for an unknown parameter.
    """
    check_type("method", method, str, METHODS)
    seed = whole_number("seed", seed, most=2**32 - 1)
    threads = whole_number("threads", threads, least=1)
    package = METHODS[method][0].partition(".")[0]
    versions = {name: version(name) for name in (package, "numpy")}
    options = {"seed": seed, "threads": threads, "versions": versions}
    features = scale(states.features, scaling)
    asked = _json([features.shape, method, parameters, options])
    digest = hashlib.sha256(features.tobytes() + asked.encode()).hexdigest()
    folder = paths.make_folder(paths.resolve(runs_dir) / "embeddings")
    if not (file := folder / f"{method}-{digest[:16]}.npz").exists():
        points, record = _fit(features, method, parameters, **options)
        paths.write_atomic(file, partial(np.savez, points=points, record=_json(record)))
    with np.load(file, allow_pickle=False) as made:
        (x, y), record = made["points"], json.loads(str(made["record"])) | {"scaling": scaling}
    described = "{features} features, scaling {scaling!r}; {method} {parameters}, seed {seed}."
    return Embedding(states.rows.assign(x=x, y=y), record, described.format(**record))


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=np.generic.item)


def _fit(
    features: Array, method: str, parameters: dict[str, Any], **options: Any
) -> tuple[Array, dict[str, Any]]:
    """Return a map (2, n) of features (n, d), and its record."""
    start, (n, d), (module, name, seconds, defaults) = time.time(), features.shape, METHODS[method]
    # datasets of one seed share their random steps: equal states are one point of the fit
    distinct, inverse = np.unique(features, axis=0, return_inverse=True)
    if len(distinct) < 4:
        raise ValueError(f"states must have 4 distinct points or more, got {len(distinct)} of {n}")
    print(f"{method}: {n:,} points of {d} features, about {10 + seconds * n / 1000:,.0f} s")
    limits = {"knn": len(distinct) - 2, "perplexity": (len(distinct) - 1) / 3}  # of few points
    used = defaults | parameters
    used |= {name: min(used[name], limits[name]) for name in limits if name in used}
    fixed = {"n_components": 2, "random_state": options["seed"], "n_jobs": options["threads"]}
    with threadpool_limits(options["threads"]):
        model = getattr(importlib.import_module(module), name)(verbose=0, **fixed, **used)
        points = np.asarray(model.fit_transform(distinct), dtype=np.float64)[inverse]
    used |= {"t": int(model.optimal_t)} if used.get("t") == "auto" else {}
    sizes = {"points": n, "distinct": len(distinct), "features": d}
    record = {"method": method, "parameters": used, **options, **sizes}
    return points.T, record | {"seconds": round(time.time() - start, 1)}


METHODS = {  # module, class, seconds for 1,000 states (results/coverage.csv), default parameters
    "phate": ("phate", "PHATE", 0.7, {"knn": 5, "decay": 40, "t": "auto", "n_landmark": 2000}),
    "tsne": ("openTSNE.sklearn", "TSNE", 2.0, {"perplexity": 30, "initialization": "pca"}),
}


class StateMap(NamedTuple):
    """Principal components of n states, and the k-NN distances that rewards use."""

    position: Array  # (n, 2) principal components; features beyond 5 spreads are clipped
    distance: Array  # (n,) mean distance to the k nearest other states, in spreads of a feature
    source: str  # a description of the states, for captions


def find_states(runs_dir: str | Path, *, domain: str = "walker", k: int = 12) -> StateMap:
    """Map at most 1,500 states of the domain's first dataset in `runs_dir`, else of random actions.

    Datasets are sorted by name, so a `behavioral-...` dataset comes first. Nothing is written.
    """
    if collected := find_datasets(runs_dir, domain):
        obs = np.concatenate([episode["observation"] for episode in collected[0].episodes()])
        obs, source = obs[:: -(-len(obs) // 1500)], collected[0].name
    else:
        env, random = Environment(primal_task(domain), 0), np.random.default_rng(0)
        obs, source = [], "random actions"
        for n in range(1500):
            step = env.step(random.uniform(-1, 1, env.action_dim)) if n % 100 else env.reset()
            obs.append(step.obs)
    scaled = scale(obs, "robust")
    pca = PCA(2, random_state=0)
    position = pca.fit_transform(scaled.clip(-5, 5))  # outliers would fill the map
    how = f"PCA, {pca.explained_variance_ratio_.sum():.0%} of the variance"
    distance = knn_distances(scaled, k=k).mean(-1)
    return StateMap(position, distance, f"{domain}, {len(obs):,} states of {source}; {how}")
