"""Numbers beside the maps: how much of the states each dataset covers, with standard errors."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from belib import estimators
from belib.arrays import real_array, whole_number
from belib.coverage.ball import smallest_ball
from belib.coverage.cells import Cells, Integers, net, visited
from belib.coverage.halves import Keep, Statistic, random_halves, standard_error
from belib.coverage.sampling import Sample, scale
from belib.knn import knn_distances
from belib.streams import derive_seed
from belib.weighting import check_positive

Array = NDArray[np.float64]

MEASURES = {
    "shannon": "Shannon entropy",
    "renyi": "Rényi entropy",
    "behavioral": "log behavioral entropy",
    "dimension": "intrinsic dimension",
    "net": "cells of equal width",
    "cells": "cells of equal mass",
    "recall": "joint states within r",
    "density": "density in cells",
    "from_random": "distance to random",
    "radius_none": "ball, raw features",
    "radius_robust": "ball, scaled features",
}
"""The columns that `measures` computes, in words."""

FEWEST_POINTS = 100
"""Of a dataset: a quarter serves as reference, and half of the rest must have neighbours."""

_NEIGHBOURS = 10  # of a point, from which the intrinsic dimension is estimated


def measures(
    sample: Sample,
    *,
    k: int = 5,
    alpha: float = 0.5,
    q: float = 0.5,
    references: int = 5_000,
    net_size: int = 1_000,
    halves: int = 30,
    seed: int = 0,
) -> pd.DataFrame:
    """Coverage of each dataset on robustly scaled features: a row a dataset, `MEASURES` and more.

    Beside each measure but the radii, `<name>_se` is its standard error by halves of the episodes
    (`coverage.halves`); extremes cannot be resampled.

    - `shannon`, `renyi` (of order q), `behavioral` (of Prelec's alpha; its logarithm, since for
      alpha < 1 the integral over a space of many dimensions is as large as the space): k-NN
      entropies in nats. Their unit of volume is common to all datasets and makes nearly every
      density at most 1; only differences mean something. Equal points count once. NaN where a
      feature is constant in a dataset, which then has no density, and where float64 overflows. In
      many dimensions estimates are too high, more so for fewer points: compare equal sizes. Below
      order 1 the few most isolated states decide.
    - `dimension`: Levina and Bickel's, averaged as MacKay and Ghahramani do, from 10 neighbours.
      Of points that are close in time it is a trajectory's, 1.
    - `net`: share of cells of equal width that the dataset visits; the cells tile the places where
      any dataset was, so that a place counts once, an outlier included.
    - `cells`: share of cells around joint states that hold a state of the dataset; a cell reaches
      to the k-th nearest joint state (Naeem et al. 2020, coverage). A place counts as often as all
      datasets were there, so that one which keeps to the crowd scores high.
    - `recall`: share of joint states within r of a state of the dataset; r is the median reach.
    - `density`: how many such cells a state of the dataset is in, over k: 1 if distributed as all
      datasets together, more where it keeps to where many are (Naeem et al. 2020).
    - `from_random`: energy distance to the first dataset of random actions; NaN without one.
    - `radius_none`, `radius_robust`: of the smallest ball, on raw and on scaled features.

    Args:
        references: joint states, equally many of each dataset and at most a quarter of it, which
            then do not count among its states in `cells`, `recall` and `density`.
        net_size: cells of equal width, at most a quarter as many as a dataset has points.
        halves: random halves a standard error.

    Raises ValueError where a dataset has fewer than `FEWEST_POINTS`, or the references are too few
    or equal.
    """
    for name, value in (("alpha", alpha), ("q", q)):
        check_positive(name, value)
    for name, value in (("k", k), ("references", references), ("net_size", net_size)):
        whole_number(name, value, least=1)
    whole_number("halves", halves)
    sample = _in_order(sample)
    smallest = sample.rows["dataset"].value_counts().min()
    if smallest < FEWEST_POINTS:
        raise ValueError(f"each dataset must have {FEWEST_POINTS} points or more, got {smallest}")
    features = scale(sample.features, "robust")
    held_out = _held_out(sample, references, seed)
    distinct = len(np.unique(features[held_out], axis=0))
    if distinct <= k:
        raise ValueError(f"references must be more than k = {k} distinct states, got {distinct}")
    cells = Cells.around(features[held_out], k)
    described = sample.rows.drop_duplicates("dataset").set_index("dataset")
    random = described.index[described["objective"] == "random"]
    cell = net(features, min(net_size, smallest // 4))
    volume = cells.volume / len(sample.names)  # the joint density is the mean of all datasets'
    table = {}
    for name in sample.names:
        mine, kept = sample.of(name), sample.of(name) & ~held_out
        episodes, count = _episodes(sample, mine)
        statistics = _entropies(features[mine], episodes, k, alpha, q, volume)
        statistics["net"] = visited(cell[mine], episodes, count, cell.max() + 1)
        statistics |= cells.statistics(features[kept], _episodes(sample, kept)[0], count)
        if len(random):
            other = features[sample.of(random[0])]
            statistics |= {"from_random": _from_random(features[mine], episodes, count, other)}
        draws = random_halves(count, halves, derive_seed(seed, "halves", name))
        row: dict[str, float] = {"points": int(mine.sum()), "episodes": count}
        for measure, statistic in statistics.items():
            row[measure] = statistic(np.ones(count, dtype=bool))
            row[f"{measure}_se"] = standard_error(statistic, draws)
        if name in random[:1]:
            row |= {"from_random": 0.0, "from_random_se": np.nan}  # a distance to itself
        row["radius_none"] = smallest_ball(sample.features[mine]).radius
        row["radius_robust"] = smallest_ball(features[mine]).radius
        table[name] = row
    known = described[["objective", "parameter", "seed", "scale"]]
    return known.join(pd.DataFrame.from_dict(table, orient="index"))


def intrinsic_dimension(points: Array, *, k: int = _NEIGHBOURS) -> float:
    """Maximum-likelihood dimension of points (n, d), pooled: Levina and Bickel 2004, MacKay 2005.

    The inverse of the mean of log(T_k / T_j), j < k, of the distances T_1 <= ... <= T_k; inf where
    all of these are equal. Equal points count once. Raises ValueError unless 2 <= k < their number.
    """
    distinct = np.unique(real_array("points", points, ndim=2), axis=0)
    if not 2 <= whole_number("k", k) < len(distinct):
        rule = f"at least 2 and below the {len(distinct)} distinct points"
        raise ValueError(f"k must be {rule}, got {k}")
    distances = knn_distances(distinct, k=k)
    mean = np.log(distances[:, -1:] / distances[:, :-1]).mean()
    return float(1 / mean) if mean > 0 else math.inf


def _in_order(sample: Sample) -> Sample:
    """The sample with the points of a dataset, and of an episode, one after another in time."""
    keys = [sample.rows[name] for name in ("row", "episode") if name in sample.rows]
    order = np.lexsort((*keys, pd.factorize(sample.rows["dataset"])[0]))
    return Sample(sample.features[order], sample.rows.iloc[order])


def _held_out(sample: Sample, references: int, seed: int) -> NDArray[np.bool_]:
    """Which points are references, (n,)."""
    held_out = np.zeros(len(sample), dtype=bool)
    sizes = sample.rows["dataset"].value_counts()
    each = min(references // len(sizes), sizes.min() // 4)
    if each * len(sizes) < 20:
        raise ValueError(
            f"references must be 20 or more over {len(sizes)} datasets, got {references}"
        )
    for name in sample.names:
        random = np.random.default_rng(derive_seed(seed, "reference", name))
        held_out[random.choice(np.flatnonzero(sample.of(name)), each, replace=False)] = True
    return held_out


def _episodes(sample: Sample, mine: NDArray[np.bool_]) -> tuple[Integers, int]:
    """The number of each point's episode, (n,), and how many episodes its dataset has here."""
    name = sample.rows.loc[mine, "dataset"].iloc[0]
    known = np.unique(sample.rows.loc[sample.of(name), "episode"])
    return np.searchsorted(known, sample.rows.loc[mine, "episode"]), len(known)


def _entropies(
    points: Array, episodes: Integers, k: int, alpha: float, q: float, volume: float
) -> dict[str, Statistic]:
    """Entropies and dimension of the distinct points of the episodes kept, NaN for too few."""
    points, first = np.unique(points, axis=0, return_index=True)
    episodes, options = episodes[first], {"k": k, "reference_volume": volume}
    functions = {
        "shannon": partial(estimators.shannon_entropy_knn, **options),
        "renyi": partial(estimators.renyi_entropy_knn, q=q, **options),
        "behavioral": partial(_log_behavioral_entropy, alpha=alpha, **options),
    }

    def of_episodes(function: Callable[[Array], Any]) -> Statistic:
        def statistic(keep: Keep) -> float:
            kept = points[keep[episodes]]
            dense = len(kept) > k and (np.ptp(kept, axis=0) > 0).all()
            return float(function(kept)) if dense else np.nan

        return statistic

    def dimension(keep: Keep) -> float:
        kept = points[keep[episodes]]
        return intrinsic_dimension(kept) if len(kept) > _NEIGHBOURS else np.nan

    statistics = {name: of_episodes(function) for name, function in functions.items()}
    return statistics | {"dimension": dimension}


def _log_behavioral_entropy(points: Array, **options: Any) -> float:
    """NaN for an entropy that is not positive or, in very many dimensions, exceeds float64."""
    try:
        value = estimators.behavioral_entropy_knn(points, **options).value
    except ValueError:  # overflow; Shannon's would have refused the same points for other reasons
        return np.nan
    return math.log(value) if value > 0 else np.nan


def _from_random(points: Array, episodes: Integers, count: int, other: Array) -> Statistic:
    """Energy distance sqrt(2 E|X - Y| - E|X - X'| - E|Y - Y'|) of the episodes kept to `other`."""
    sizes = np.bincount(episodes, minlength=count)
    starts = np.cumsum(sizes) - sizes
    within = np.zeros((count, count))
    for episode in range(count):
        apart = cdist(points[episodes == episode], points).sum(0)
        within[episode] = np.add.reduceat(apart, starts)
    between = np.bincount(episodes, [cdist([x], other).mean() for x in points], minlength=count)
    among = _mean_distance(other)

    def distance(keep: Keep) -> float:
        n = sizes[keep].sum()
        squared = 2 * between[keep].sum() / n - within[np.ix_(keep, keep)].sum() / n**2 - among
        return float(np.sqrt(max(squared, 0.0)))

    return distance


def _mean_distance(points: Array) -> float:
    """Mean distance of all ordered pairs, the point itself included."""
    return float(np.mean([cdist([x], points).mean() for x in points]))
