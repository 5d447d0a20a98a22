"""Which measure of coverage goes with the returns of policies that are learnt offline?"""

import re
from pathlib import Path

import pandas as pd

from belib import paths, results, tables
from belib.coverage.measures import MEASURES
from belib.statistics import rank_correlation

FEWEST_RECIPES = 5

COLUMNS = ("task", "algorithm", "measure", "recipes", "rho", "low", "high")


def offline_returns(runs_dir: str | Path, domain: str) -> pd.DataFrame:
    """Mean final return of each `task`, `algorithm` and `dataset` over the learner's seeds.

    Those of `<runs_dir>/offline/<domain>/`, whose datasets are beside them; empty where there are
    none. ValueError where scales are mixed.
    """
    folder = paths.resolve(runs_dir) / "offline" / domain
    if any(folder.glob("**/results.csv")):
        table = results.collect(runs_dir)
    else:
        table = pd.DataFrame(columns=results.COLUMNS)
    own = table["domain"] == domain
    learnt = table[own & ~table["algorithm"].isin(results.BASELINES)]
    keys = ["task", "algorithm", "dataset"]
    if learnt.empty:
        return pd.DataFrame(columns=[*keys, "return"])
    return results.final(learnt).groupby(keys)["return"].mean().reset_index()


def by_dataset(measured: pd.DataFrame) -> pd.DataFrame:
    """A table of `measures`, one domain's, indexed by dataset, whatever was done to it.

    Raises ValueError where a dataset has several rows, as those of two domains or sizes have.
    """
    if "dataset" not in measured:
        measured = measured.rename_axis("dataset").reset_index()
    known = [name for name in MEASURES if name in measured]
    table = tables.checked(measured, names=["dataset"], numbers=known)
    return tables.once(table, ["dataset"], known).set_index("dataset").sort_index()


def rank_correlations(measured: pd.DataFrame, returns: pd.DataFrame) -> pd.DataFrame:
    """Spearman's rho between measures and returns over recipes, a row a task, learner and measure.

    Datasets of one recipe, whose names differ in the seed alone (`rnd-s0`, `rnd-s1`), are averaged:
    they are no independent points. `low` to `high` is `statistics.rank_correlation`'s interval.

    Args:
        measured: from `measures`, indexed by dataset.
        returns: from `offline_returns`.

    Silent, with no row, for tasks and learners with fewer than `FEWEST_RECIPES` recipes, and for
    measures that are absent or equal for all. Even 17 recipes leave intervals about 1 wide, and
    many rows invite the luckiest: read a rho as a hint that another domain has to confirm.
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
            if len(pair) < FEWEST_RECIPES or (pair.nunique() < 2).any():
                continue
            found = rank_correlation(*pair.to_numpy(dtype=float).T)
            rows.append((task, algorithm, measure, len(pair), found.value, found.low, found.high))
    return pd.DataFrame(rows, columns=COLUMNS)
