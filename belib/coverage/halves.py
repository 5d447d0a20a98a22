"""Standard errors of statistics of whole datasets, by halves of their episodes.

Points of one episode depend on each other, so episodes are resampled, not points; and without
replacement, since a point's distance to its own copy is none between neighbours. A statistic varies
from half to half of the episodes about as much as it would from one dataset to another (the
delete-d jackknife of Shao and Wu 1989 with d = half), so this deviation is its standard error. It
knows nothing of the difference between two trainings of the agent, nor of bias.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Keep = NDArray[np.bool_]
Statistic = Callable[[Keep], float]

FEWEST_EPISODES = 6
"""Six have 20 halves; fewer give no standard error."""


def random_halves(episodes: int, count: int, seed: int) -> NDArray[np.bool_]:
    """`count` random halves, (count, episodes); none below `FEWEST_EPISODES`."""
    if episodes < FEWEST_EPISODES:
        return np.zeros((0, episodes), dtype=bool)
    random = np.random.default_rng(seed)
    order = random.permuted(np.tile(np.arange(episodes), (count, 1)), axis=1)
    return order < episodes // 2


def standard_error(statistic: Statistic, halves: NDArray[np.bool_]) -> float:
    """Of `statistic`, which takes the episodes to keep, (episodes,); NaN without halves."""
    if len(halves) < 2:
        return np.nan
    episodes = halves.shape[1]
    kept = episodes // 2
    found = [statistic(half) for half in halves]
    return float(np.std(found, ddof=1) * np.sqrt(kept / (episodes - kept)))
