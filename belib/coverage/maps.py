"""Maps of high-dimensional states: joint PHATE and t-SNE fits, kept on disk, and PCA."""

import hashlib
import importlib
import json
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from belib import paths
from belib.arrays import whole_number
from belib.config.checks import check_type
from belib.coverage.states import Array, States, scale
from belib.datasets import find_datasets
from belib.envs import Environment, primal_task
from belib.knn import knn_distances


class Embedding(NamedTuple):
    """A map of states, and a record of how it was made.

    The record has method, versions, parameters as used (few points limit neighbours; PHATE chooses
    t), seed, scaling, threads, seconds, and numbers of `points`, `distinct` points and `features`.
    """

    points: pd.DataFrame  # the states' rows, by dataset and time, with `x` and `y`
    record: dict[str, Any]

    @property
    def description(self) -> str:
        """Return how the map was made, for captions."""
        keys = ("features", "scaling", "method", "parameters", "seed")
        return "{} features, scaling {!r}; {} {}, seed {}.".format(*map(self.record.get, keys))


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
        (x, y), record = made["points"], json.loads(str(made["record"]))
    return Embedding(states.rows.assign(x=x, y=y), record | {"scaling": scaling})


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


METHODS = {
    "phate": ("phate", "PHATE", 0.7, {"knn": 5, "decay": 40, "t": "auto", "n_landmark": 2000}),
    "tsne": ("openTSNE.sklearn", "TSNE", 2.0, {"perplexity": 30, "initialization": "pca"}),
}
"""Module, class, seconds for 1,000 states (results/coverage.csv), default parameters."""


class StateMap(NamedTuple):
    """Principal components of n states, and the k-NN distances that rewards use."""

    position: Array  # (n, 2) principal components; features beyond 5 spreads are clipped
    distance: Array  # (n,) mean distance to the k nearest other states, in spreads of a feature
    source: str  # a description of the states, for captions


def find_states(runs_dir: str | Path, *, domain: str = "walker", k: int = 12) -> StateMap:
    """Map about 1,500 states of the domain's first dataset in `runs_dir`, else of random actions.

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
