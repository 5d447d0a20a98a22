"""Results: one table with a row for every evaluation, and the statistics of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from belib import paths
from belib.config import ALGORITHMS, OfflineConfig, PretrainConfig
from belib.results import tables
from belib.statistics import interquartile_mean

COLUMNS = ("domain", "task", "dataset", "objective", "parameter", "algorithm", "seed", "step")
COLUMNS += ("return", "episodes", "upright", "status", "scale", "data_scale", "revision")
COLUMNS += ("precision", "variant")
"""`return` is the mean return of the deterministic policy over `episodes` evaluation episodes;
`upright` is the share of these episodes that start with an upright torso; `seed` and `scale` are
the learner's, `data_scale` is the dataset's; `status` is `ok`, or `diverged` with a missing
`return`; `precision` is that of matrix products, missing for baselines; `variant` distinguishes
datasets of one objective and parameter."""

TEXT = ("domain", "task", "dataset", "objective", "algorithm", *COLUMNS[-6:])
"""The columns of text, even where a name or a revision consists of digits."""

ONLINE = "online.csv"  # in a dataset's folder: the evaluation of a policy that learnt online
BASELINES = ("zero action", "random policy")
SCORES = ("late", "final", "best")
"""A policy's mean from half of its updates on, its last evaluation, or its best one, which is
chosen by its own return."""

MEMBER = ["task", "dataset", "algorithm", "seed"]  # the columns that identify a policy
_RULES: dict[str, Any] = {"names": MEMBER[:3], "integers": ["seed", "step"], "numbers": ["return"]}
_RULES["optional"] = ["parameter", "episodes", "upright"]

PAPER_TABLE_1 = pd.DataFrame(
    {
        "walker_stand": (990.38, 988.93, 954.93, 947.89, 496.09),
        "walker_walk": (904.66, 878.20, 895.89, 735.77, 409.46),
        "walker_run": (385.07, 440.53, 360.64, 341.03, 140.29),
        "quadruped_walk": (845.31, 776.64, 755.79, 699.22, 425.11),
        "quadruped_run": (522.32, 490.75, 490.46, 490.66, 275.38),
    },
    index=["BE", "RE", "SE", "RND", "SMM"],
).T
"""The best return over datasets, seeds, learners and evaluations, 500K steps and 100K updates."""

_PLACES = {name: f"{i:02}" for i, name in enumerate([*PAPER_TABLE_1.index, *ALGORITHMS])}


def row(
    config: OfflineConfig,
    collected: PretrainConfig | None,
    step: int,
    returns: np.ndarray,
    revision: str,
    **changes: Any,
) -> dict[str, Any]:
    """Return the row of one evaluation: returns (E,) of a policy after `step` updates.

    `collected` is its dataset's config, None for foreign datasets and baselines. `changes` are
    columns that have other values.
    """
    same = ("domain", "task", "dataset", "seed", "scale")
    values = dict.fromkeys(COLUMNS) | {name: getattr(config, name) for name in same}
    if collected is not None:
        values |= {"objective": collected.objective, "parameter": collected.parameter}
        values |= {"data_scale": collected.scale, "variant": collected.variant or None}
    values |= {"algorithm": config.variant, "step": step, "return": float(returns.mean())}
    values |= {"episodes": len(returns), "upright": np.nan, "status": "ok", "revision": revision}
    return values | changes


def online(runs_dir: str | Path, scale: str) -> dict[str, float]:
    """Return the mean final return over seeds of each task that was learnt online at a scale."""
    files = sorted(paths.resolve(runs_dir).glob(f"datasets/*/*/{ONLINE}"))
    table = read(*files).query("scale == @scale") if files else pd.DataFrame()
    return {} if table.empty else evaluations(table).groupby("task")["return"].mean().to_dict()


def read(*files: Path) -> pd.DataFrame:
    """Return the rows of files `results.csv` or `online.csv`; a file may have no rows yet.

    Early versions did not write the last two columns. ValueError names a damaged file.
    """
    table = tables.read_csv(*files, text=TEXT, empty=True, others=COLUMNS[:-2], **_RULES)
    return table.reindex(columns=list(dict.fromkeys([*COLUMNS, *table])))


def collect(runs_dir: str | Path) -> pd.DataFrame:
    """Return all rows of the `results.csv` files in `<runs_dir>/offline`; ValueError for none."""
    folder = paths.resolve(runs_dir) / "offline"
    files = sorted(folder.glob("**/results.csv"))
    table = read(*files) if files else pd.DataFrame()
    if table.empty:
        raise ValueError(f"{folder} must hold results.csv files with rows, got none")
    return table


def evaluations(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Return every evaluation once, from rows of `COLUMNS` in any order.

    They are sorted by task (the paper's first), dataset, learner, seed and step. Raise ValueError
    if one of `MEMBER`, `step`, `return`, the scales and `columns` is missing, for several scales,
    and if a policy has two returns at one step.
    """
    table = tables.checked(table, others=["scale", "data_scale", *columns], **_RULES)
    for name in ("scale", "data_scale"):
        scales = sorted(table[name].dropna().unique())
        if len(scales) > 1:
            raise ValueError(f"results of one statistic must have one {name}, got {scales}")
    table = table.sort_values([*MEMBER, "step"], key=_sort_keys)
    return tables.once(table, [*MEMBER, "step"], ["return"])


def _sort_keys(column: pd.Series) -> pd.Series:
    if column.name not in ("task", "algorithm"):
        return column
    return column.map(lambda name: _PLACES.get(name.partition("-")[0], "99") + name)


def is_late(table: pd.DataFrame) -> pd.Series:
    """Return which evaluations are from half of their policy's updates on."""
    return table["step"] >= table.groupby(MEMBER)["step"].transform("max") / 2


def scores(table: pd.DataFrame, score: str = "final") -> pd.DataFrame:
    """Return one of `SCORES` of every policy; a column `score` says which.

    A `late` mean is missing if one of its evaluations is, and stands in the row of the last one.
    """
    if score not in SCORES:
        raise ValueError(f"score must be one of {', '.join(SCORES)}, got {score!r}")
    table = evaluations(table)
    if score == "late":
        late = is_late(table)
        returns = table[late].groupby(MEMBER)["return"]
        table.loc[late, "return"] = returns.transform(lambda part: part.mean(skipna=False))
    values = table["return"].fillna(-np.inf) if score == "best" else table["step"]
    top = table.assign(value=values).groupby(MEMBER, sort=False)["value"].idxmax()
    return table.loc[top].assign(score=score).reset_index(drop=True)


def summary(table: pd.DataFrame, score: str = "final") -> pd.DataFrame:
    """Return statistics over seeds, one row per task, dataset and learner (or baseline).

    `mean` and `sd` (n - 1) are as in the paper; `iqm` is the interquartile mean, with a 95 %
    bootstrap interval from `low` to `high`. Policies that diverged are counted and enter no mean.
    """
    rows = []
    members = scores(evaluations(table, "upright"), score)
    for key, group in members.groupby(MEMBER[:3]):
        returns, first = group["return"].dropna(), group.iloc[0]
        iqm = interquartile_mean(returns)
        row = dict(zip(MEMBER[:3], key, strict=True)) | {"score": score}
        row |= {"mean": returns.mean(), "sd": returns.std()}
        row |= {"iqm": iqm.value, "low": iqm.low, "high": iqm.high}
        row |= {"seeds": len(returns), "diverged": len(group) - len(returns)}
        row |= {"step": first["step"], "scale": first["scale"], "upright": group["upright"].mean()}
        rows.append(row)
    return pd.DataFrame(rows).sort_values(["task", "mean"], ignore_index=True)


def improvement(
    table: pd.DataFrame, by: str, *, within: tuple[str, ...] = ("task",), score: str = "final"
) -> pd.DataFrame:
    """Return the matrix of P(a policy of the row's group has a higher return than the column's).

    Groups differ in the column `by`, such as `dataset` or `algorithm`. Policies are compared where
    they agree in the columns `within`, and the probabilities averaged; ties count half. The
    diagonal is NaN. Raise ValueError if a group has no policies where another has some.
    """
    members = scores(evaluations(table, by, *within), score).dropna(subset="return")
    members["stratum"] = members.groupby(list(within), dropna=False).ngroup()
    found = members.groupby(by, dropna=False)["stratum"].nunique()
    total = members["stratum"].nunique()
    for name in found.index[found < total]:
        rule = f"{name} must have runs in every {', '.join(within)} where another has some"
        raise ValueError(f"{rule}, got them in {found[name]} of {total}")
    members = members[[by, "stratum", "return"]]
    pairs = members.merge(members, on="stratum", suffixes=("", " over"))
    ahead = np.sign(pairs["return"] - pairs["return over"]) / 2 + 0.5
    keys = [pairs[by], pairs[f"{by} over"].rename("over"), pairs["stratum"]]
    ahead = ahead.groupby(keys, dropna=False, sort=False).mean()
    matrix = ahead.groupby([by, "over"], dropna=False, sort=False).mean().unstack()
    return matrix.where(~np.eye(len(matrix), dtype=bool))


def table_1(table: pd.DataFrame) -> pd.DataFrame:
    """Return the statistic of the paper's table 1, and means, one row per task and objective.

    `best over everything` is the highest return over datasets, seeds, learners and steps, which
    grows with the number of `policies`. `mean of finals` is the mean final return of the same
    policies; `best mean` is the highest mean over seeds of one dataset and learner.
    """
    rows, table = [], evaluations(table, "objective")
    learnt = table[~table["algorithm"].isin(BASELINES)]
    for (task, objective), tries in learnt.groupby(["task", "objective"], dropna=False, sort=False):
        last = scores(tries).dropna(subset="return")
        means = last.groupby(["dataset", "algorithm"])["return"].mean()
        row = {"task": task, "objective": objective, "best over everything": tries["return"].max()}
        row |= {"mean of finals": last["return"].mean(), "best mean": means.max()}
        rows.append(row | {"policies": len(last)})
    return pd.DataFrame(rows)
