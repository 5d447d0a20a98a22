"""A dataset's states as a map in two dimensions, with the distances that rewards are made of."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from belib import coverage, datasets
from belib.envs import Environment, primal_task
from belib.knn import knn_distances


class StateMap(NamedTuple):
    """n states of a dataset."""

    position: NDArray[np.float64]
    """(n, 2) principal components, of values within 5 spreads."""
    distance: NDArray[np.float64]
    """(n,) mean distance to the k nearest of the others, in units of an observation's spread."""
    source: str
    """What is shown, for captions."""


def state_map(obs: NDArray, source: str, *, k: int = 12) -> StateMap:
    """Map observations (n, obs_dim), each component scaled robustly (see `coverage.scale`)."""
    scaled = coverage.scale(np.asarray(obs, dtype=np.float64), "robust")
    pca = PCA(2, random_state=0)
    position = pca.fit_transform(scaled.clip(-5, 5))  # a few outliers would fill the map
    share = pca.explained_variance_ratio_.sum()
    distance = knn_distances(scaled, k=k).mean(-1)
    return StateMap(position, distance, f"{source}; PCA, {share:.0%} of the variance")


def find_states(
    runs_dir: str | Path, *, domain: str = "walker", n: int = 1500, k: int = 12
) -> StateMap:
    """A map of about n states of a dataset under `runs_dir`, or else of random actions done now.

    The dataset is the first by name of the domain, which puts `behavioral-...` before the others.
    Nothing is written.
    """
    found = datasets.find_datasets(runs_dir, domain)
    if not found:
        obs = random_states(domain, n)
        return state_map(obs, f"{domain}, {len(obs):,} states of random actions", k=k)
    dataset = found[0]
    obs = np.concatenate([episode["observation"] for episode in dataset.episodes()])
    obs = obs[:: -(-len(obs) // n)]
    return state_map(obs, f"{domain}, {len(obs):,} states of {dataset.name}", k=k)


def random_states(domain: str, n: int, *, seed: int = 0, steps: int = 100) -> NDArray[np.float32]:
    """Observations (n, obs_dim) along episodes of `steps` with uniformly random actions."""
    env, rng = Environment(primal_task(domain), seed), np.random.default_rng(seed)
    obs: list[NDArray] = []
    while len(obs) < n:
        obs.append(env.reset().obs)
        actions = rng.uniform(-1, 1, (steps - 1, env.action_dim))
        obs.extend(env.step(action).obs for action in actions)
    return np.array(obs[:n])
