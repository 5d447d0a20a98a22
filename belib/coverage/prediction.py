"""Which measure of coverage goes with the returns of policies that are learnt offline?"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import rankdata, spearmanr

from belib import paths, results
from belib.coverage.measures import MEASURES

FEWEST_DATASETS = 5

COLUMNS = ("task", "algorithm", "measure", "datasets", "rho", "low", "high")


def offline_returns(runs_dir: str | Path, domain: str) -> pd.DataFrame:
    """Mean final return of each `task`, `algorithm` and `dataset` over the learner's seeds.

    Those of `<runs_dir>/offline/<domain>/`, whose datasets are beside them; empty where there are
    none. ValueError where scales are mixed.
    """
    if any(paths.resolve(runs_dir).glob(f"offline/{domain}/**/results.csv")):
        table = results.collect(runs_dir)
    else:
        table = pd.DataFrame(columns=results.COLUMNS)
    own = table["domain"] == domain
    learnt = table[own & ~table["algorithm"].isin(results.BASELINES)]
    keys = ["task", "algorithm", "dataset"]
    if learnt.empty:
        return pd.DataFrame(columns=[*keys, "return"])
    return results.final(learnt).groupby(keys)["return"].mean().reset_index()


def rank_correlations(
    measured: pd.DataFrame, returns: pd.DataFrame, *, resamples: int = 2_000, seed: int = 0
) -> pd.DataFrame:
    """Spearman's rho between measures and returns over datasets, a row a task, learner and measure.

    Args:
        measured: from `measures`, indexed by dataset.
        returns: from `offline_returns`.
        resamples: of datasets, with replacement, for the 95 % interval `low` to `high`.

    Silent, with no row, for tasks and learners with fewer than `FEWEST_DATASETS` datasets, and for
    measures that are absent or equal for all. Even 17 datasets leave intervals about 1 wide, and
    many rows invite the luckiest: read a rho as a hint that another domain has to confirm.
    """
    rows = []
    for (task, algorithm), group in returns.groupby(["task", "algorithm"]):
        joined = measured.join(group.set_index("dataset")["return"], how="inner")
        for measure in (name for name in MEASURES if name in joined):
            pair = joined[[measure, "return"]].dropna()
            if len(pair) < FEWEST_DATASETS or (pair.nunique() < 2).any():
                continue
            x, y = pair.to_numpy(dtype=float).T
            low, high = _interval(x, y, resamples, np.random.default_rng(seed))
            rho = float(spearmanr(x, y).statistic)
            rows.append((task, algorithm, measure, len(pair), rho, low, high))
    return pd.DataFrame(rows, columns=COLUMNS)


def _interval(
    x: np.ndarray, y: np.ndarray, resamples: int, random: np.random.Generator
) -> tuple[float, float]:
    """Quantiles of rho over resampled pairs; resamples of one pair only, which have none, apart."""
    draws = random.integers(len(x), size=(resamples, len(x)))
    ranks = [rankdata(values[draws], axis=1) for values in (x, y)]
    a, b = (each - each.mean(1, keepdims=True) for each in ranks)
    scale = np.sqrt((a**2).sum(1) * (b**2).sum(1))
    rho = (a * b).sum(1)[scale > 0] / scale[scale > 0]
    return tuple(np.quantile(rho, (0.025, 0.975)).tolist())
