"""Maps of high-dimensional states: joint PHATE and t-SNE fits, kept on disk, and PCA."""

import hashlib
import json
import time
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from belib import datasets, paths
from belib.arrays import whole_number
from belib.config.checks import check_type
from belib.coverage.states import Array, States, scale
from belib.datasets.episodes import read_arrays
from belib.envs import Environment, primal_task
from belib.knn import knn_distances
from belib.streams import derive_seed

COMPONENTS = 50
"""States of more features are first projected on this many principal components."""


@dataclass(frozen=True)
class Embedding:
    """A map of states.

    Attributes:
        points: the states' rows, in order, with `x` and `y`.
        record: how the map was made: method, versions, parameters as used (few points limit
            neighbours; PHATE chooses t), seed, scaling, threads, seconds, and numbers of `points`,
            `distinct` points, `features` and principal components (`pca`).
    """

    points: pd.DataFrame
    record: dict[str, Any]

    def __getitem__(self, dataset: str) -> pd.DataFrame:
        """Return the points of one dataset, ordered by time."""
        return self.points[self.points["dataset"] == dataset]

    @property
    def description(self) -> str:
        """Return how the map was made, for captions."""
        record, components = self.record, f"{self.record['pca']} components of"
        features = f"{components if record['pca'] else 'All'} {record['features']} features"
        how = f"{record['method']} {record['parameters']}, seed {record['seed']}"
        return f"{features}, scaling {record['scaling']!r}; {how}."


def episodes_inside(
    points: pd.DataFrame, x: tuple[float, float], y: tuple[float, float]
) -> pd.DataFrame:
    """Return the episodes with points in a rectangle of a map, most points first.

    Columns: `dataset`, `episode`, `inside` (points in the rectangle), `share` (of all its points).
    """
    inside = points["x"].between(*x) & points["y"].between(*y)
    groups = inside.groupby([points["dataset"], points["episode"]], sort=False)
    episodes = groups.agg(inside="sum", share="mean").query("inside > 0").reset_index()
    return episodes.sort_values("inside", ascending=False, kind="stable", ignore_index=True)


def embed(
    states: States,
    *,
    method: str = "phate",
    scaling: str = "none",
    seed: int = 0,
    threads: int = 1,
    runs_dir: str | Path = "runs",
    progress: bool = True,
    **parameters: Any,
) -> Embedding:
    """Return one joint map of all states; read it from disk if it was made before.

    Equal features, options and versions give equal maps, to the bit on one machine.

    Args:
        method: "phate" (Moon et al. 2019) by phate, or "tsne" by openTSNE.
        threads: more threads than idle cores are slower.
        runs_dir: its folder `embeddings/` keeps maps.
        progress: whether to print the expected time.
        parameters: replace the method's defaults (knn, decay, t; perplexity, ...).

    Raise ValueError for a wrong option or too few states, TypeError for an unknown parameter.
    """
    features = scale(states.features, scaling)
    record = _record(method, features, parameters) | {
        "seed": whole_number("seed", seed),
        "scaling": scaling,
        "threads": whole_number("threads", threads, least=1),
    }
    digest = hashlib.sha256(features.tobytes() + json.dumps(record, sort_keys=True).encode())
    folder = paths.writable_folder(paths.resolve(runs_dir) / "embeddings")
    file = folder / f"{method}-{digest.hexdigest()[:16]}.npz"
    if not file.exists():
        _make(file, features, record, progress)
    points = read_arrays(file).get("map", np.empty(0))
    if points.shape != (len(features), 2):
        raise ValueError(f"{file} must hold a map of {len(features)} points, got {points.shape}")
    rows = states.rows.assign(x=points[:, 0], y=points[:, 1])
    return Embedding(rows, paths.read_json(file.with_suffix(".json"), record))


def _record(method: str, features: Array, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return a map's options and sizes."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    try:  # as JSON values
        plain = json.loads(json.dumps(parameters, allow_nan=False, default=np.generic.item))
    except (TypeError, ValueError):
        rule = "parameters must be finite numbers, text, or lists or dictionaries of these"
        raise ValueError(f"{rule}, got {parameters}") from None
    _, package, _, defaults = METHODS[method]
    return {
        "method": method,
        "versions": {name: version(name) for name in (package, "numpy", "scikit-learn")},
        "parameters": defaults | plain,
        "points": len(features),
        "features": features.shape[1],
        "pca": COMPONENTS if features.shape[1] > COMPONENTS else None,
    }


def _make(file: Path, features: Array, record: dict[str, Any], progress: bool) -> None:
    """Fit a map; write its record first, so that no map lacks one."""
    start, (n, d), method = time.perf_counter(), features.shape, record["method"]
    fit, _, seconds, _ = METHODS[method]
    # datasets of one seed share their random steps: equal states are one point of the fit
    features, inverse = np.unique(features, axis=0, return_inverse=True)
    if len(features) < 4:
        raise ValueError(f"states must have 4 distinct points or more, got {len(features)} of {n}")
    spread = np.abs(features - features[0]).max()
    if not 1e-100 < spread < 1e100:  # the libraries square features
        raise ValueError(f"features must be 1e-100 to 1e100 apart, got {spread:.3g}: see scaling")
    if progress:
        expected = 10 + seconds * n / 1000
        print(f"{method}: {n:,} points of {d} features, about {expected:,.0f} s on one core")
    seed = record["seed"]
    seed = seed if seed < 2**32 else derive_seed(seed, "embedding") % 2**32  # 32 bits
    with threadpool_limits(record["threads"]):
        if record["pca"]:
            record["pca"] = min(record["pca"], len(features) - 1)  # n points span n - 1 dimensions
            features = PCA(record["pca"], svd_solver="full").fit_transform(features)
        options = {"n_components": 2, "random_state": seed, "n_jobs": record["threads"]}
        points, used = fit(features, verbose=0, **options, **record["parameters"])
    if not np.isfinite(points).all():
        raise ValueError(f"features must have a finite map, got NaN from {method}")
    record["parameters"] |= used
    record |= {"distinct": len(features), "seconds": round(time.perf_counter() - start, 1)}
    paths.write_text(file.with_suffix(".json"), json.dumps(record, indent=2) + "\n")
    points = np.asarray(points, dtype=np.float64)[inverse]
    paths.write_atomic(file, partial(np.savez_compressed, map=points))


def _phate(features: Array, *, knn: int, n_landmark: int | None, **options: Any):
    import phate  # takes seconds

    knn = min(whole_number("knn", knn, least=1), len(features) - 2)  # the graph's limit
    landmarks = n_landmark if n_landmark and n_landmark < len(features) else None
    model = phate.PHATE(knn=knn, n_landmark=landmarks, **options)
    points = model.fit_transform(features)
    t = model.optimal_t if model.t == "auto" else model.t
    return points, {"knn": knn, "n_landmark": landmarks, "t": int(t)}


def _tsne(features: Array, *, perplexity: float, **options: Any):
    import openTSNE

    perplexity = check_type("perplexity", perplexity, float, "at least 1")
    perplexity = min(perplexity, (len(features) - 1) / 3)  # few points have few neighbours
    features = features if features.shape[1] > 1 else np.pad(features, ((0, 0), (0, 1)))  # d >= 2
    points = openTSNE.TSNE(perplexity=perplexity, **options).fit(features)
    return np.asarray(points), {"perplexity": perplexity}


METHODS = {
    "phate": (_phate, "phate", 0.7, {"knn": 5, "decay": 40, "t": "auto", "n_landmark": 2000}),
    "tsne": (_tsne, "openTSNE", 2.0, {"perplexity": 30, "initialization": "pca"}),
}
"""Function, package, seconds for 1,000 states (results/coverage.csv), default parameters.

A function returns the map of features and the parameters that it changed."""


class StateMap(NamedTuple):
    """Principal components of n states, and the k-NN distances that rewards use."""

    position: Array
    """(n, 2) principal components; features beyond 5 spreads are clipped."""
    distance: Array
    """(n,) mean distance to the k nearest other states, in units of a feature's spread."""
    source: str
    """A description of the states, for captions."""


def state_map(obs: NDArray, source: str, *, k: int = 12) -> StateMap:
    """Map robustly scaled observations (n, obs_dim)."""
    scaled = scale(np.asarray(obs, dtype=np.float64), "robust")
    pca = PCA(2, random_state=0)
    position = pca.fit_transform(scaled.clip(-5, 5))  # outliers would fill the map
    variance = pca.explained_variance_ratio_.sum()
    distance = knn_distances(scaled, k=k).mean(-1)
    return StateMap(position, distance, f"{source}; PCA, {variance:.0%} of the variance")


def find_states(
    runs_dir: str | Path, *, domain: str = "walker", n: int = 1500, k: int = 12
) -> StateMap:
    """Map about n states of the domain's first dataset in `runs_dir`, else of random actions.

    Datasets are sorted by name, so a `behavioral-...` dataset comes first. Nothing is written.
    """
    for dataset in datasets.find_datasets(runs_dir, domain):
        obs = np.concatenate([episode["observation"] for episode in dataset.episodes()])
        obs = obs[:: -(-len(obs) // n)]
        return state_map(obs, f"{domain}, {len(obs):,} states of {dataset.name}", k=k)
    source = f"{domain}, {n:,} states of random actions"
    return state_map(random_states(domain, n), source, k=k)


def random_states(domain: str, n: int, *, seed: int = 0, steps: int = 100) -> NDArray[np.float32]:
    """Return observations (n, obs_dim) of random actions, in episodes of `steps` states."""
    env, random = Environment(primal_task(domain), seed), np.random.default_rng(seed)
    obs: list[NDArray] = []
    while len(obs) < n:
        obs.append(env.reset().obs)
        actions = random.uniform(-1, 1, (steps - 1, env.action_dim))
        obs.extend(env.step(action).obs for action in actions)
    return np.array(obs[:n])
