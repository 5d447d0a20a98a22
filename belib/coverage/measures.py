"""Measures of how many states a dataset covers, with standard errors, and their use for returns.

All but `radius_none` use robustly scaled features (`states.scale`):

- `shannon`, `renyi` (order q), `behavioral` (Prelec's alpha): k-NN entropies in nats of distinct
  states. `behavioral` is the entropy's logarithm. Only differences between datasets have a meaning:
  the unit of volume is chosen so that nearly all densities are at most 1. NaN if a feature is
  constant, or float64 overflows. In many dimensions estimates are too high, more so for fewer
  states: compare equal sizes. Below order 1 the most isolated states dominate.
- `dimension`: see `intrinsic_dimension`. States near in time lie on a trajectory, of dimension 1.
- `net`: share of cells of equal width that the dataset visits. Cells cover the states of all
  datasets; a cell with one outlier counts as much as any other.
- `recall`: share of joint states with a state of the dataset within r. Joint states are held out,
  equally many from each dataset; r is their median distance to the k-th nearest joint state.
- `from_random`: energy distance to the first dataset of random actions; absent without one.
- `radius_none`, `radius_robust`: radius of the smallest ball around raw and scaled states.

Standard errors, `<name>_se`, come from random halves of the episodes (the delete-d jackknife of
Shao and Wu 1989, d = half): states of an episode depend on each other, and a bootstrap would repeat
states, at distance 0. They include neither bias nor the difference between two trainings of an
agent. Radii have none: extremes cannot be resampled.
"""

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from belib import estimators, paths, results
from belib.arrays import check_positive, real_array, whole_number
from belib.coverage.ball import smallest_ball
from belib.coverage.states import Array, Integers, States, scale
from belib.knn import knn_distances
from belib.results import tables
from belib.statistics import rank_correlation
from belib.streams import derive_seed

MEASURES = {
    "shannon": "Shannon entropy",
    "renyi": "Rényi entropy",
    "behavioral": "log behavioral entropy",
    "dimension": "intrinsic dimension",
    "net": "cells of equal width",
    "recall": "joint states within r",
    "from_random": "distance to random",
    "radius_none": "ball, raw features",
    "radius_robust": "ball, scaled features",
}
"""Columns of `measures`, and their labels."""

FEWEST_POINTS = 100  # per dataset: a quarter are joint states, halves of the rest need neighbours
FEWEST_EPISODES = 6  # for a standard error: six have 20 halves
FEWEST_RECIPES = 5  # for a rank correlation
JOINT_STATES = 5_000  # at most a quarter of a dataset's
CELLS = 1_000  # of the net, at most a quarter of the smallest dataset's states
_NEIGHBOURS = 10  # of a state, for the intrinsic dimension

Mask = NDArray[np.bool_]


def measures(
    states: States,
    *,
    k: int = 5,
    alpha: float = 0.5,
    q: float = 0.5,
    halves: int = 30,
    seed: int = 0,
) -> pd.DataFrame:
    """Return `MEASURES` and standard errors (see this module), one row per dataset.

    Args:
        halves: number of random halves of the episodes, for standard errors.

    Raise ValueError if a dataset has fewer than `FEWEST_POINTS` states, or too few differ.
    """
    check_positive("alpha", alpha)
    check_positive("q", q)
    whole_number("k", k, least=1)
    whole_number("halves", halves)
    joint, table = _Joint(states, k, alpha, q, seed), {}
    for name in states.names:
        selected = states.of(name)
        episode = states.rows.loc[selected, "episode"].to_numpy()
        episodes = np.unique(episode)
        draws = random_halves(len(episodes), halves, derive_seed(seed, "halves", name))
        subsets = [
            np.isin(episode, episodes),
            *(np.isin(episode, episodes[half]) for half in draws),
        ]
        row: dict[str, float] = {"points": len(episode), "episodes": len(episodes)}
        for measure, (value, *of_halves) in joint.values(selected, np.array(subsets)).items():
            error = standard_error(of_halves, len(episodes))
            row |= {measure: value, f"{measure}_se": error}
        row["radius_none"] = smallest_ball(states.features[selected]).radius
        row["radius_robust"] = smallest_ball(joint.features[selected]).radius
        table[name] = row
    described = states.rows.drop_duplicates("dataset").set_index("dataset")
    described = described.filter(["objective", "parameter", "variant", "seed", "scale"])
    return described.join(pd.DataFrame.from_dict(table, orient="index"))


def intrinsic_dimension(points: Array, *, k: int = _NEIGHBOURS) -> float:
    """Return the maximum-likelihood dimension of points (n, d) (Levina and Bickel 2004).

    It is the inverse of the mean of log(T_k / T_j) over points and j < k, with the distances
    T_1 <= ... <= T_k to neighbours (MacKay and Ghahramani 2005); inf if all are equal. Equal points
    count once. Raise ValueError unless 2 <= k < number of distinct points.
    """
    distinct = np.unique(real_array("points", points, ndim=2), axis=0)
    if not 2 <= whole_number("k", k) < len(distinct):
        rule = f"at least 2 and below the {len(distinct)} distinct points"
        raise ValueError(f"k must be {rule}, got {k}")
    distances = knn_distances(distinct, k=k)
    mean = np.log(distances[:, -1:] / distances[:, :-1]).mean()
    return float(1 / mean) if mean > 0 else math.inf


def net(points: Array, size: int) -> Integers:
    """Return the cell (n,) of each point, of at most `size` cells of about equal width.

    Farthest-point traversal (Gonzalez 1985): a new centre is the point farthest from all centres,
    and a point belongs to the nearest centre. Equal points share a cell.
    """
    cell = np.zeros(len(points), dtype=np.intp)
    nearest = np.square(points - points[0]).sum(1)
    for number in range(1, size):
        centre = nearest.argmax()
        if nearest[centre] == 0:
            break
        squared = np.square(points - points[centre]).sum(1)
        closer = squared < nearest
        cell[closer], nearest[closer] = number, squared[closer]
    return cell


def random_halves(episodes: int, count: int, seed: int) -> Mask:
    """Return `count` random halves, (count, episodes); none below `FEWEST_EPISODES`."""
    if episodes < FEWEST_EPISODES:
        return np.zeros((0, episodes), dtype=bool)
    random = np.random.default_rng(seed)
    order = random.permuted(np.tile(np.arange(episodes), (count, 1)), axis=1)
    return order < episodes // 2


def standard_error(values: Sequence[float], episodes: int) -> float:
    """Return the standard error of a measure from its values on halves of the episodes."""
    half = episodes // 2
    correction = np.sqrt(half / (episodes - half))  # drawn without replacement
    return float(np.std(values, ddof=1) * correction) if len(values) > 1 else math.nan


class _Joint:
    """The yardstick of all datasets: joint states, their r and unit of volume, a net."""

    def __init__(self, states: States, k: int, alpha: float, q: float, seed: int):
        smallest = states.rows["dataset"].value_counts().min()
        if smallest < FEWEST_POINTS:
            rule = f"each dataset must have {FEWEST_POINTS} points or more"
            raise ValueError(f"{rule}, got {smallest}")
        self.k, self.alpha, self.q = k, alpha, q
        self.features = scale(states.features, "robust")
        self.cell = net(self.features, min(CELLS, smallest // 4))
        self.held_out = np.zeros(len(states.rows), dtype=bool)
        size = min(JOINT_STATES // len(states.names), smallest // 4)
        for name in states.names:
            random = np.random.default_rng(derive_seed(seed, "reference", name))
            selected = np.flatnonzero(states.of(name))
            self.held_out[random.choice(selected, size, replace=False)] = True
        joint = self.features[self.held_out]
        varying = joint[:, np.ptp(joint, axis=0) > 0]  # a constant feature has no density
        log_f = estimators.knn_density(varying, k=k, log=True, duplicates="drop")
        # a dataset's density is at most the joint one times the number of datasets
        self.volume = math.exp(-np.quantile(log_f, 0.99)) / len(states.names)
        self.r = np.median(knn_distances(joint, k=k)[:, -1])
        random_names = states.rows.loc[states.rows["objective"] == "random", "dataset"]
        self.random = self.features[states.of("".join(random_names.head(1)))]

    def values(self, selected: Mask, subsets: Mask) -> dict[str, list[float]]:
        """Return the measures of subsets (s, n) of a dataset's n states."""
        x, cell, held_out = self.features[selected], self.cell[selected], self.held_out[selected]
        rows = [self._of_points(np.unique(x[kept], axis=0)) for kept in subsets]
        values = {name: [row[name] for row in rows] for name in rows[0]}
        values["net"] = [len(np.unique(cell[kept])) / (self.cell.max() + 1) for kept in subsets]
        near = [cdist([y], x)[0] <= self.r for y in self.features[self.held_out]]
        reached = (subsets & ~held_out).astype(np.float32) @ np.transpose(near) > 0
        values["recall"] = reached.mean(1).tolist()
        if np.array_equal(x, self.random):
            values["from_random"] = [0.0]  # no error of a distance to itself
        elif len(self.random):
            values["from_random"] = _energy_distances(x, subsets, self.random).tolist()
        return values

    def _of_points(self, points: Array) -> dict[str, float]:
        """Return entropies and dimension of distinct points, NaN for too few or no density."""
        values = {name: math.nan for name in ("shannon", "renyi", "behavioral", "dimension")}
        if len(points) > _NEIGHBOURS:
            values["dimension"] = intrinsic_dimension(points)
        if len(points) > self.k and (np.ptp(points, axis=0) > 0).all():
            options = {"k": self.k, "reference_volume": self.volume}
            values["shannon"] = estimators.shannon_entropy_knn(points, **options).value
            values["renyi"] = estimators.renyi_entropy_knn(points, q=self.q, **options).value
            with suppress(ValueError):  # overflow of float64, or the logarithm of 0
                entropy = estimators.behavioral_entropy_knn(points, alpha=self.alpha, **options)
                values["behavioral"] = math.log(entropy.value)
        return values


def _energy_distances(x: Array, subsets: Mask, other: Array) -> Array:
    """Return sqrt(2 E|X - Y| - E|X - X'| - E|Y - Y'|) of subsets (s, n) of x to `other`."""
    weights = subsets / subsets.sum(1, keepdims=True)
    between = weights @ [cdist([point], other).mean() for point in x]
    within = sum(weights[:, i] * (weights @ cdist(x[i : i + 1], x)[0]) for i in range(len(x)))
    among = np.mean([cdist([point], other).mean() for point in other])
    return np.sqrt(np.maximum(2 * between - within - among, 0))


def offline_returns(runs_dir: str | Path, domain: str) -> pd.DataFrame:
    """Return the mean final return of each `task`, `algorithm` and `dataset` over learner seeds.

    Reads `<runs_dir>/offline/<domain>/`; no rows without results. Raise ValueError for mixed
    scales.
    """
    keys = ["task", "algorithm", "dataset"]
    folder = paths.resolve(runs_dir) / "offline" / domain
    if not any(folder.glob("**/results.csv")):
        return pd.DataFrame(columns=[*keys, "return"])
    table = results.collect(runs_dir)
    learnt = table[(table["domain"] == domain) & ~table["algorithm"].isin(results.BASELINES)]
    if learnt.empty:
        return pd.DataFrame(columns=[*keys, "return"])
    return results.final(learnt).groupby(keys)["return"].mean().reset_index()


def by_dataset(measured: pd.DataFrame) -> pd.DataFrame:
    """Return a checked table of `measures` of one domain, indexed by dataset and sorted.

    Raise ValueError if a dataset has several rows, such as those of two domains or sizes.
    """
    if "dataset" not in measured:
        measured = measured.rename_axis("dataset").reset_index()
    columns = [name for name in MEASURES if name in measured]
    table = tables.checked(measured, names=["dataset"], numbers=columns)
    return tables.once(table, ["dataset"], columns).set_index("dataset").sort_index()


def rank_correlations(measured: pd.DataFrame, returns: pd.DataFrame) -> pd.DataFrame:
    """Return Spearman's rho between measures and returns, one row per task, learner and measure.

    Datasets of one recipe, whose names differ in the seed only (`rnd-s0`, `rnd-s1`), are averaged,
    since they are not independent. `low` to `high` is `statistics.rank_correlation`'s interval.
    Tasks and learners with fewer than `FEWEST_RECIPES` recipes, and constant measures, have no row.
    Even 17 recipes leave intervals about 1 wide, and the largest of many rho is large by chance:
    treat it as a hint, to be confirmed on another domain.

    Args:
        measured: from `measures`.
        returns: from `offline_returns`.
    """
    keys, rows, measured = ["task", "algorithm", "dataset"], [], by_dataset(measured)
    returns = tables.checked(returns, names=keys, numbers=["return"], empty=True)
    returns = tables.once(returns, keys, ["return"]).sort_values(keys)
    for (task, algorithm), group in returns.groupby(["task", "algorithm"]):
        joined = measured.join(group.set_index("dataset")["return"], how="inner")
        recipes = [re.sub(r"-s\d+$", "", name) for name in joined.index]
        means = joined.groupby(recipes).mean(numeric_only=True)
        for measure in (name for name in MEASURES if name in means):
            pair = means[[measure, "return"]].dropna()
            if len(pair) >= FEWEST_RECIPES and (pair.nunique() > 1).all():
                rho = rank_correlation(*pair.to_numpy(dtype=float).T)
                rows.append((task, algorithm, measure, len(pair), rho.value, rho.low, rho.high))
    columns = ["task", "algorithm", "measure", "recipes", "rho", "low", "high"]
    return pd.DataFrame(rows, columns=columns)
