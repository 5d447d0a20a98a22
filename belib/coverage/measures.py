"""Measures of how many states a dataset covers, with standard errors.

All but `radius_none` use robustly scaled features (`states.scale`):

- `shannon`, `renyi` (order q), `behavioral` (Prelec's alpha): k-NN entropies in nats of distinct
  states. `behavioral` is the entropy's logarithm. Only differences between datasets have a meaning:
  the unit of volume is chosen so that nearly all densities are at most 1. NaN if a feature is
  constant, or float64 overflows. In many dimensions estimates are too high, more so for fewer
  states: compare equal sizes. Below order 1 the most isolated states dominate.
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
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, squareform
from scipy.stats import spearmanr

from belib import estimators
from belib.arrays import check_positive
from belib.coverage.ball import smallest_ball
from belib.coverage.states import SCALINGS, Array, States, draw_steps, read_states, scale
from belib.datasets import Dataset
from belib.knn import knn_distances
from belib.streams import derive_seed

MEASURES = {  # columns of `measures`, and their labels
    "shannon": "Shannon entropy",
    "renyi": "Rényi entropy",
    "behavioral": "log behavioral entropy",
    "net": "cells of equal width",
    "recall": "joint states within r",
    "from_random": "distance to random",
    "radius_none": "ball, raw features",
    "radius_robust": "ball, scaled features",
}
FEWEST_EPISODES = 6  # for a standard error: six episodes can be halved in 20 ways
JOINT_STATES = 5_000  # of all datasets together; at most a quarter of each one's states
CELLS = 1_000  # of the net, at most a quarter of the smallest dataset's states
_K = 5  # neighbours


def measures(
    states: States, *, alpha: float = 0.5, q: float = 0.5, halves: int = 30, seed: int = 0
) -> pd.DataFrame:
    """Return origin, `points`, `episodes`, `MEASURES` and standard errors, one row per dataset.

    Errors use `halves` random halves; NaN below 6 episodes. Raise ValueError for too few states.
    """
    check_positive(alpha=alpha)
    features, origins, table = scale(states.features, "robust"), states.origins, {}
    joint, r, volume = _joint_states(features, states, seed)
    cell = net(features, min(CELLS, states.rows["dataset"].value_counts().min() // 4))
    reference = "".join(origins.index[origins["objective"] == "random"][:1])
    for name in origins.index:
        mine = states.of(name)
        x, episode = features[mine], states.rows.loc[mine, "episode"].to_numpy()
        kept = random_halves(episode, halves, derive_seed(seed, "halves", name))
        values = pd.DataFrame([_entropies(x[mask], alpha, q, volume) for mask in kept])
        values["net"] = [len(np.unique(cell[mine][mask])) / (cell.max() + 1) for mask in kept]
        near = [cdist([y], x)[0] <= r for y in features[joint]]
        reached = (kept & ~joint[mine]).astype(np.float32) @ np.transpose(near) > 0
        values["recall"] = reached.mean(1)
        if reference:
            other = features[states.of(reference)]
            values["from_random"] = _energy_distances(x, kept, other) * (name != reference)
        episodes = len(np.unique(episode))
        correction = math.sqrt(episodes // 2 / -(-episodes // 2))  # drawn without replacement
        errors = values[1:].std(skipna=False) * correction
        row = {"points": len(x), "episodes": episodes, **values.iloc[0], **errors.add_suffix("_se")}
        row["radius_none"] = smallest_ball(states.features[mine]).radius
        table[name] = row | {"radius_robust": smallest_ball(x).radius}
    return origins.join(pd.DataFrame.from_dict(table, orient="index"))


def _joint_states(features: Array, states: States, seed: int) -> tuple[NDArray, float, float]:
    """Return which states (n,) are joint ones, r, and the unit of volume."""
    counts, joint = states.rows["dataset"].value_counts(), np.zeros(len(features), dtype=bool)
    size = min(JOINT_STATES // len(counts), counts.min() // 4)
    for name in counts.index:
        random = np.random.default_rng(derive_seed(seed, "reference", name))
        joint[random.choice(np.flatnonzero(states.of(name)), size, replace=False)] = True
    points = features[joint]
    r = np.median(knn_distances(points, k=_K)[:, -1])
    points = points[:, np.ptp(points, axis=0) > 0]  # a constant feature has no density
    log_f = estimators.knn_log_density(points, k=_K, duplicates="drop")
    # a dataset's density is at most the joint one times the number of datasets; e^710 overflows
    return joint, float(r), math.exp(min(-np.quantile(log_f, 0.99), 700)) / len(counts)


def _entropies(points: Array, alpha: float, q: float, volume: float) -> dict[str, float]:
    """Return entropies of the distinct points, NaN for too few or no density."""
    values: dict[str, float] = dict.fromkeys(("shannon", "renyi", "behavioral"), math.nan)
    points, options = np.unique(points, axis=0), {"k": _K, "reference_volume": volume}
    if len(points) > _K and (np.ptp(points, axis=0) > 0).all():
        values["shannon"] = estimators.shannon_entropy_knn(points, **options).value
        values["renyi"] = estimators.renyi_entropy_knn(points, q=q, **options).value
        with suppress(ValueError):  # overflow of float64, or the logarithm of 0
            entropy = estimators.behavioral_entropy_knn(points, alpha=alpha, **options)
            values["behavioral"] = math.log(entropy.value)
    return values


def net(points: Array, size: int) -> NDArray[np.intp]:
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


def random_halves(episode: NDArray, count: int, seed: int) -> NDArray[np.bool_]:
    """Return masks (1 + count, n) of states: of all episodes, then of random halves of them."""
    episodes, index = np.unique(episode, return_inverse=True)
    count = count if len(episodes) >= FEWEST_EPISODES else 0
    order = np.tile(np.arange(len(episodes)), (count, 1))
    half = np.random.default_rng(seed).permuted(order, axis=1) < len(episodes) // 2
    return np.vstack([np.ones(len(index), dtype=bool), half[:, index]])


def _energy_distances(x: Array, subsets: NDArray, other: Array) -> Array:
    """Return sqrt(2 E|X - Y| - E|X - X'| - E|Y - Y'|) of subsets (s, n) of x to `other`."""
    weights = subsets / subsets.sum(1, keepdims=True)
    between = weights @ [cdist([point], other).mean() for point in x]
    within = sum(weights[:, i] * (weights @ cdist(x[i : i + 1], x)[0]) for i in range(len(x)))
    among = np.mean([cdist([point], other).mean() for point in other])
    return np.sqrt(np.maximum(2 * between - within - among, 0))


def agreement(points: Array, spaces: dict[str, Array], facts: dict[str, Array]) -> pd.DataFrame:
    """Return how well distances between points (n, d) agree with those in other spaces (n, m).

    The reward of a point is the mean distance to its 11 nearest others (URLB's 12 count itself) in
    a batch of 128. A row is a mean `value` over 20 batches; `of`: a space, a fact (n,) or points:

    - distances: rank correlation of the pairs' distances here and in the space;
    - neighbours: share of the 11 nearest that are among the 11 nearest in the space;
    - rewards: rank correlation with the rewards in the space, or with the fact;
    - dimensions: participation ratio of the points' covariance.
    """
    random, rows = np.random.default_rng(0), []
    for _ in range(20):
        batch = random.choice(len(points), min(128, len(points)), replace=False)
        (apart, near, paid), values = _batch_distances(points[batch]), {}
        for of, space in spaces.items():
            others, close, would_pay = _batch_distances(space[batch])
            values["distances", of] = spearmanr(apart, others).statistic
            values["neighbours", of] = (near & close).sum() / near.sum()
            values["rewards", of] = spearmanr(paid, would_pay).statistic
        values |= {("rewards", of): spearmanr(paid, x[batch])[0] for of, x in facts.items()}
        spread = np.cov(points[batch].T)
        values["dimensions", "points"] = np.trace(spread) ** 2 / np.square(spread).sum()
        rows.append(values)
    table = [(*key, value) for key, value in pd.DataFrame(rows).mean().items()]
    return pd.DataFrame(table, columns=["measure", "of", "value"])


def _batch_distances(points: Array) -> tuple[Array, NDArray[np.bool_], Array]:
    """Return distances of pairs, which pairs (n, n) are near, and mean k-NN distances (n,)."""
    apart, nearest = cdist(points, points), knn_distances(points, k=11)
    near = (apart <= nearest[:, -1:] * (1 + 1e-9)) & ~np.eye(len(points), dtype=bool)
    return squareform(apart, checks=False), near, nearest.mean(1)


def volumetric_coverage(datasets: Sequence[Dataset], *, seed: int = 0) -> pd.DataFrame:
    """Return the radius of the smallest ball around the states up to each tenth of the steps.

    A fifth of the states of each tenth of the steps is drawn: for 500,000 steps the paper's 10,000
    of every 50,000 (appendix). It names no scaling: very likely raw observations, "none".

    The table has one row per scaling, dataset and tenth: the dataset's origin, `scaling`, `step`,
    `points`, `radius`, `leading_share` (the largest share of the squared radius due to one
    feature), and `coverage` (radius / largest radius of this scaling; NaN if that is 0).
    """
    ends = [np.linspace(0, data.steps, 11).round().astype(int) for data in datasets]
    sizes = [np.maximum(1, (np.diff(end) * 0.2).round().astype(int)) for end in ends]
    drawn = zip(datasets, ends, sizes, strict=True)
    states = read_states(datasets, [draw_steps(*parts, seed) for parts in drawn])
    rows = []
    for scaling in SCALINGS:
        features = scale(states.features, scaling)
        for dataset, end, size in zip(datasets, ends, sizes, strict=True):
            points, support = features[states.of(dataset.name)], None
            for step, count in zip(end[1:], size.cumsum(), strict=True):
                ball = smallest_ball(points[:count], start=support)  # the last support saves steps
                support = ball.support
                parts = ball.weights @ np.square(points[support] - ball.center)  # by feature
                row = {"dataset": dataset.name, "points": count, "radius": ball.radius}
                row |= {"leading_share": parts.max() / (parts.sum() or 1.0), "scaling": scaling}
                rows.append(row | {"step": step})
    table = states.origins.merge(pd.DataFrame(rows), how="right", on="dataset")
    largest = table.groupby("scaling")["radius"].transform("max")
    return table.assign(coverage=table["radius"] / largest)
