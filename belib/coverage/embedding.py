"""Maps of high-dimensional states in the plane, one joint fit over all datasets, kept on disk."""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from belib import paths
from belib.arrays import whole_number
from belib.config.checks import AT_LEAST_ONE, check_type
from belib.coverage.sampling import Sample, scale
from belib.datasets.episodes import read_arrays
from belib.streams import derive_seed

Array = NDArray[np.float64]

COMPONENTS = 50
"""More features than this are first projected on their leading principal components."""

FEWEST_DISTINCT = 4
"""Points that differ, below which there are no neighbourhoods to keep."""

_OURS = ("n_components", "random_state", "n_jobs", "verbose", "callbacks", "callbacks_every_iters")


@dataclass(frozen=True)
class Embedding:
    """The map of a sample.

    Attributes:
        points: the sample's rows with `x` and `y`, in its order.
        record: how the map was made: method, versions, parameters as they were used (few points
            have few neighbours; the t that PHATE chose), seed, scaling, numbers of points
            (`distinct` of them), features and principal components, seconds.
    """

    points: pd.DataFrame
    record: dict[str, Any]

    def __getitem__(self, dataset: str) -> pd.DataFrame:
        """The points of one dataset, in the order of time."""
        return self.points[self.points["dataset"] == dataset]


def episodes_inside(
    points: pd.DataFrame, x: tuple[float, float], y: tuple[float, float]
) -> pd.DataFrame:
    """The episodes with points in a rectangle of a map, those with the most of them first.

    Columns: `dataset`, `episode`, `inside` (points in the rectangle) and `share` (of its points).
    """
    within = points["x"].between(*x) & points["y"].between(*y)
    groups = within.groupby([points["dataset"], points["episode"]], sort=False)
    found = groups.agg(inside="sum", share="mean").query("inside > 0").reset_index()
    return found.sort_values("inside", ascending=False, kind="stable", ignore_index=True)


@dataclass(frozen=True)
class _Method:
    """A library's way to embed, and its seconds for n points: first, and a thousand points more."""

    package: str
    fit: Callable[..., tuple[Array, dict[str, Any]]]
    """The map of features, and those of the parameters that were used otherwise than asked for."""
    seconds: tuple[float, float]
    parameters: dict[str, Any]


def embed(
    sample: Sample,
    *,
    method: str = "phate",
    scaling: str = "none",
    seed: int = 0,
    threads: int = 1,
    runs_dir: str | Path = "runs",
    progress: bool = True,
    **parameters: Any,
) -> Embedding:
    """One joint map of all points of a sample; found on disk where it was made before.

    Equal features, method, scaling, seed, parameters and versions give equal maps, to the bit on
    one machine with one number of threads.

    Args:
        method: "phate" (Moon et al. 2019) by phate, or "tsne" by openTSNE.
        scaling: of the features: "none", as the paper seems to have it, or "robust".
        threads: threads of the computation; more than there are idle cores make it slower.
        runs_dir: where maps are kept, under `embeddings/`.
        progress: whether to print the expected time and the steps.
        parameters: instead of the method's defaults (knn, decay, t; perplexity, ...).

    Raises ValueError for an unknown method or scaling, a wrong parameter, and fewer than
    `FEWEST_DISTINCT` points that differ; TypeError for a parameter that the library does not have.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    kind, seed = METHODS[method], whole_number("seed", seed)
    features = scale(sample.features, scaling)
    record = {
        "method": method,
        "versions": {name: version(name) for name in (kind.package, "numpy", "scikit-learn")},
        "parameters": {**kind.parameters, **_checked(parameters)},
        "seed": seed,
        "scaling": scaling,
        "points": len(features),
        "features": features.shape[1],
        "pca": COMPONENTS if features.shape[1] > COMPONENTS else None,
        "threads": whole_number("threads", threads, least=1),
    }
    folder = paths.writable_folder(paths.resolve(runs_dir) / "embeddings")
    file = folder / f"{method}-{_digest(features, record)}.npz"
    if not file.exists():
        _make(file, features, kind, record, progress)
    found = read_arrays(file).get("map", np.empty(0))
    if found.shape != (len(features), 2):
        raise ValueError(f"{file} must hold a map of {len(features)} points, got {found.shape}")
    x, y = found.T
    record = paths.read_json(file.with_suffix(".json"), record)
    return Embedding(sample.rows.assign(x=x, y=y), record)


def _checked(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters as plain values, which a record can hold."""
    found = {}
    for name, value in parameters.items():
        if name in _OURS:
            raise ValueError(f"{name} must be left to embed: see seed, threads, progress")
        found[name] = value.tolist() if isinstance(value, np.generic) else value
        try:
            json.dumps(found[name], allow_nan=False)
        except (TypeError, ValueError):
            words = f"{name} must be a finite number, text, or a list or dictionary of these"
            raise ValueError(f"{words}, got {value!r}") from None
    return found


def _make(file: Path, features: Array, kind: _Method, record: dict, progress: bool) -> None:
    """Compute a map and keep it: its record first, so that a map is never without one."""
    start, size = time.perf_counter(), features.shape[1]
    # Equal points, as datasets with one seed's random steps share them, are one point of the fit.
    features, place = np.unique(features, axis=0, return_inverse=True)
    if len(features) < FEWEST_DISTINCT:
        wanted = f"sample must have {FEWEST_DISTINCT} distinct points or more"
        raise ValueError(f"{wanted}, got {len(features)} among {len(place)}")
    spread = np.abs(features - features[0]).max()
    if not 1e-100 < spread < 1e100:  # of which the libraries take squares
        raise ValueError(f"features must be 1e-100 to 1e100 apart, got {spread:.3g}: see scaling")
    if progress:
        first, more = kind.seconds
        expected = first + more * len(place) / 1000
        print(
            f"{record['method']}: {len(place):,} points of {size} features, about "
            f"{f'{expected / 60:.0f} minutes' if expected > 90 else f'{expected:.0f} s'} on a core"
        )
    with threadpool_limits(record["threads"]):
        if record["pca"]:
            record["pca"] = min(record["pca"], len(features) - 1)  # n points span n - 1 dimensions
            features = PCA(record["pca"], svd_solver="full").fit_transform(features)
        seed = record["seed"]  # the libraries take those of 32 bits
        seed = seed if seed < 2**32 else derive_seed(seed, "embedding") % 2**32
        options = {**record["parameters"], "n_jobs": record["threads"]}
        found, used = kind.fit(features, progress, random_state=seed, **options)
    if not np.isfinite(found).all():
        raise ValueError(f"features must have a finite map, got NaN from {record['method']}")
    record["parameters"] |= used
    record |= {"distinct": len(features), "seconds": round(time.perf_counter() - start, 1)}
    found = np.asarray(found, dtype=np.float64)[place]
    paths.write_text(file.with_suffix(".json"), json.dumps(record, indent=2) + "\n")
    paths.write_atomic(file, partial(np.savez_compressed, map=found))


def _digest(features: Array, record: dict) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(features).tobytes())
    digest.update(json.dumps(record, sort_keys=True).encode())
    return digest.hexdigest()[:16]


def _phate(
    features: Array, progress: bool, *, knn: int, n_landmark: int | None, **options: Any
) -> tuple[Array, dict[str, Any]]:
    import phate  # takes seconds to import, which no other user of the package should wait for

    knn = min(whole_number("knn", knn, least=1), len(features) - 2)  # as many as its graph can have
    landmarks = n_landmark if n_landmark and n_landmark < len(features) else None
    made = phate.PHATE(verbose=int(progress), knn=knn, n_landmark=landmarks, **options)
    found, t = made.fit_transform(features), made.optimal_t if made.t == "auto" else made.t
    return found, {"knn": knn, "n_landmark": landmarks, "t": int(t)}


def _tsne(
    features: Array, progress: bool, *, perplexity: float, **options: Any
) -> tuple[Array, dict[str, Any]]:
    import openTSNE

    perplexity = check_type("perplexity", perplexity, float, AT_LEAST_ONE)
    perplexity = min(perplexity, (len(features) - 1) / 3)  # few points have few neighbours
    features = features if features.shape[1] > 1 else np.pad(features, ((0, 0), (0, 1)))  # a plane
    with tqdm(total=750, desc="tsne", disable=not progress) as bar:

        def advance(*_: Any) -> None:
            bar.update(50)

        options = {"callbacks": advance, "callbacks_every_iters": 50, **options}
        found = openTSNE.TSNE(perplexity=perplexity, **options).fit(features)
    return np.asarray(found), {"perplexity": perplexity}


METHODS = {
    "phate": _Method(
        "phate", _phate, (10.0, 0.7), {"knn": 5, "decay": 40, "t": "auto", "n_landmark": 2000}
    ),
    "tsne": _Method("openTSNE", _tsne, (5.0, 2.0), {"perplexity": 30, "initialization": "pca"}),
}
