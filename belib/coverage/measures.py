"""Measures of how many states a dataset covers, with standard errors, and their use for returns.

All but `radius_none` use robustly scaled features (`states.scale`):

- `shannon`, `renyi` (of order q), `behavioral` (of Prelec's alpha; its logarithm, since for
  alpha < 1 it is as large as the space): k-NN entropies in nats. Only differences between datasets
  mean something: the unit of volume is where the joint density has its 0.99 quantile. Equal states
  count once. NaN if a feature of the dataset is constant, or float64 overflows. In many dimensions
  estimates are too high, more so for fewer states: compare equal sizes. Below order 1 the most
  isolated states decide.
- `dimension`: see `intrinsic_dimension`. States near in time lie on a trajectory, of dimension 1.
- `net`: share of cells of equal width that the dataset visits. Cells tile the places where any
  dataset was, so that each place counts once, an outlier too.
- `recall`: share of joint states with a state of the dataset within r, the median distance of joint
  states to their k-th nearest. Joint states are drawn equally from all datasets and held out.
- `from_random`: energy distance to the first dataset of random actions; absent without one.
- `radius_none`, `radius_robust`: radius of the smallest ball around raw and scaled states.

`<name>_se` is the standard error, from random halves of the episodes: states of an episode depend
on each other, and a bootstrap would repeat states, whose nearest neighbour is then at distance 0. A
measure varies between halves as much as between datasets of one agent (the delete-d jackknife of
Shao and Wu 1989, d = half). Neither bias nor the difference between two trainings of the agent is
in it. Radii have none: extremes cannot be resampled.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from belib import estimators, paths, results, tables
from belib.arrays import check_positive, real_array, whole_number
from belib.coverage.ball import smallest_ball
from belib.coverage.states import Array, Integers, States, scale
from belib.knn import knn_distances
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

FEWEST_POINTS = 100
"""A dataset needs as many states: a quarter are joint ones, half of the rest have neighbours."""
FEWEST_EPISODES = 6
"""Six episodes have 20 halves; fewer give no standard error."""
FEWEST_RECIPES = 5
"""A rank correlation needs as many recipes."""

JOINT_STATES = 5_000
CELLS = 1_000
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
    """Return `MEASURES` and standard errors (see this module), a row a dataset.

    Args:
        halves: number of random halves of the episodes, for standard errors.

    Raises ValueError if a dataset has fewer than `FEWEST_POINTS` states, or too few differ.
    """
    check_positive("alpha", alpha)
    check_positive("q", q)
    whole_number("k", k, least=1)
    whole_number("halves", halves)
    joint, table = _Joint(states, k, seed), {}
    for name in states.names:
        mine = states.of(name)
        episode = states.rows.loc[mine, "episode"].to_numpy()
        member = episode[:, None] == np.unique(episode)  # (n, episodes)
        count = member.shape[1]
        draws = random_halves(count, halves, derive_seed(seed, "halves", name))
        subsets = np.vstack([np.ones(count, dtype=bool), draws])
        row: dict[str, float] = {"points": len(member), "episodes": count}
        for measure, (value, *parted) in joint.values(mine, member, subsets, alpha, q).items():
            row |= {measure: value, f"{measure}_se": standard_error(parted, count)}
        row["radius_none"] = smallest_ball(states.features[mine]).radius
        row["radius_robust"] = smallest_ball(joint.features[mine]).radius
        table[name] = row
    known = states.rows.drop_duplicates("dataset").set_index("dataset")
    known = known.filter(["objective", "parameter", "variant", "seed", "scale"])
    return known.join(pd.DataFrame.from_dict(table, orient="index"))


def intrinsic_dimension(points: Array, *, k: int = _NEIGHBOURS) -> float:
    """Return the maximum-likelihood dimension of points (n, d) (Levina and Bickel 2004).

    It is the inverse of the mean of log(T_k / T_j) over points and j < k, with the distances
    T_1 <= ... <= T_k to neighbours (MacKay and Ghahramani 2005); inf if all are equal. Equal points
    count once. Raises ValueError unless 2 <= k < number of distinct points.
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
    correction = np.sqrt(half / (episodes - half))  # halves share data when taken without
    return float(np.std(values, ddof=1) * correction) if len(values) > 1 else math.nan


class _Joint:
    """What all datasets are measured with: joint states, their r and unit of volume, a net."""

    def __init__(self, states: States, k: int, seed: int):
        smallest = states.rows["dataset"].value_counts().min()
        if smallest < FEWEST_POINTS:
            rule = f"each dataset must have {FEWEST_POINTS} points or more"
            raise ValueError(f"{rule}, got {smallest}")
        self.k, self.features = k, scale(states.features, "robust")
        self.held_out = np.zeros(len(states), dtype=bool)
        size = min(JOINT_STATES // len(states.names), smallest // 4)
        for name in states.names:
            random = np.random.default_rng(derive_seed(seed, "reference", name))
            mine = np.flatnonzero(states.of(name))
            self.held_out[random.choice(mine, size, replace=False)] = True
        self.states = self.features[self.held_out]
        distinct = len(np.unique(self.states, axis=0))
        if distinct <= k:
            rule = f"joint states must be more than k = {k} distinct ones"
            raise ValueError(f"{rule}, got {distinct}")
        self.r = np.median(knn_distances(self.states, k=k)[:, -1])
        varying = self.states[:, np.ptp(self.states, axis=0) > 0]  # others have no density
        log_f = estimators.knn_density(varying, k=k, log=True, duplicates="drop")
        # a dataset's density is at most their number times the joint one
        self.volume = float(np.exp(-np.quantile(log_f, 0.99))) / len(states.names)
        self.cell = net(self.features, min(CELLS, smallest // 4))
        first = states.rows.loc[states.rows["objective"] == "random", "dataset"].head(1)
        self.random = self.features[states.of("".join(first))]

    def values(
        self, mine: Mask, member: Mask, subsets: Mask, alpha: float, q: float
    ) -> dict[str, list[float]]:
        """Return the measures of subsets of a dataset's episodes.

        Args:
            mine: which states, of all, are the dataset's n.
            member: (n, episodes) which episode each is of.
            subsets: (s, episodes).
        """
        points, others = self.features[mine], ~self.held_out[mine]
        distinct, first = np.unique(points, axis=0, return_index=True)
        parts = [distinct[member[first][:, keep].any(1)] for keep in subsets]
        rows = [_of_points(part, self.k, alpha, q, self.volume) for part in parts]
        values = {name: [row[name] for row in rows] for name in rows[0]}
        # cells and joint states (episodes, m) that episodes reach
        cells = [
            np.bincount(self.cell[mine][own], minlength=self.cell.max() + 1) for own in member.T
        ]
        near = [(cdist(self.states, points[own & others]) <= self.r).any(1) for own in member.T]
        for name, reached in (("net", np.array(cells) > 0), ("recall", np.array(near))):
            values[name] = [float(reached[keep].any(0).mean()) for keep in subsets]
        if np.array_equal(points, self.random):
            values["from_random"] = [0.0]  # from itself
        elif len(self.random):
            values["from_random"] = _energy_distances(points, member, subsets, self.random)
        return values


def _of_points(points: Array, k: int, alpha: float, q: float, volume: float) -> dict[str, float]:
    """Return entropies and dimension of distinct points, NaN for too few or without a density."""
    values = {name: math.nan for name in ("shannon", "renyi", "behavioral", "dimension")}
    if len(points) > _NEIGHBOURS:
        values["dimension"] = intrinsic_dimension(points)
    if len(points) > k and (np.ptp(points, axis=0) > 0).all():
        options = {"k": k, "reference_volume": volume}
        values["shannon"] = estimators.shannon_entropy_knn(points, **options).value
        values["renyi"] = estimators.renyi_entropy_knn(points, q=q, **options).value
        try:
            entropy = estimators.behavioral_entropy_knn(points, alpha=alpha, **options).value
            values["behavioral"] = math.log(entropy) if entropy > 0 else math.nan
        except ValueError:  # overflow of float64, in very many dimensions
            pass
    return values


def _energy_distances(points: Array, member: Mask, subsets: Mask, other: Array) -> list[float]:
    """Return sqrt(2 E|X - Y| - E|X - X'| - E|Y - Y'|) of each subset of episodes to `other`."""
    sizes = member.sum(0)
    within = np.array([cdist(points[own], points).sum(0) @ member for own in member.T])
    between = np.array([cdist(points[own], other).mean(1).sum() for own in member.T])
    among = np.mean([cdist([y], other).mean() for y in other])
    distances = []
    for keep in subsets:
        n = sizes[keep].sum()
        squared = 2 * between[keep].sum() / n - within[np.ix_(keep, keep)].sum() / n**2 - among
        distances.append(float(np.sqrt(max(squared, 0.0))))
    return distances


def offline_returns(runs_dir: str | Path, domain: str) -> pd.DataFrame:
    """Return the mean final return of each `task`, `algorithm` and `dataset` over learner seeds.

    Reads `<runs_dir>/offline/<domain>/`; no rows if nothing is there. Raises ValueError if scales
    are mixed.
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

    Raises ValueError if a dataset has several rows, such as those of two domains or sizes.
    """
    if "dataset" not in measured:
        measured = measured.rename_axis("dataset").reset_index()
    columns = [name for name in MEASURES if name in measured]
    table = tables.checked(measured, names=["dataset"], numbers=columns)
    return tables.once(table, ["dataset"], columns).set_index("dataset").sort_index()


def rank_correlations(measured: pd.DataFrame, returns: pd.DataFrame) -> pd.DataFrame:
    """Return Spearman's rho between measures and returns, a row a task, learner and measure.

    Datasets of one recipe, whose names differ in the seed only (`rnd-s0`, `rnd-s1`), are averaged,
    since they are not independent. `low` to `high` is `statistics.rank_correlation`'s interval.
    Tasks and learners with fewer than `FEWEST_RECIPES` recipes, and constant measures, have no row.
    Even 17 recipes leave intervals about 1 wide, and the largest of many rho is large by chance:
    read it as a hint that another domain has to confirm.

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
