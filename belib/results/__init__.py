"""Results: one tidy table, a row an evaluation, and the statistics over it.

`python -m belib.results RUNS_DIR` prints the summary of all results below a folder.
"""

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from belib import paths
from belib.config import ALGORITHMS, OfflineConfig, PretrainConfig
from belib.results import tables
from belib.statistics import bootstrap, interquartile_mean, probability_of_improvement

COLUMNS = ("domain", "task", "dataset", "objective", "parameter", "algorithm", "seed", "step")
COLUMNS += ("return", "episodes", "upright", "status", "scale", "data_scale", "revision")
COLUMNS += ("precision", "variant")
"""`return` is the mean over `episodes` evaluation episodes of the mean action; `upright` is the
share of their starts with an upright torso; `seed` is the learner's; `status` is `ok`, or
`diverged` with a `return` that is missing; `scale` is the learner's, `data_scale` its dataset's;
`precision` is that of the networks' products, missing for baselines; `variant` is what tells the
dataset from others of its objective and parameter."""

TEXT = ("domain", "task", "dataset", "objective", "algorithm", *COLUMNS[-6:])
"""The columns of text, also where a name or a revision consists of digits."""

ONLINE = "online.csv"
"""The row of a policy that learnt its task online, in the folder of the data it collected."""

BASELINES = ("zero action", "random policy")
SCORES = ("final", "best")
"""The last evaluation of a policy; or its best one, which nobody could have chosen without it."""

MEMBER = ["task", "dataset", "algorithm", "seed"]

KINDS: dict[str, Any] = {
    "names": MEMBER[:3],
    "integers": ["seed", "step"],
    "numbers": ["return"],
    "optional": ["parameter", "episodes", "upright"],
}
"""Of columns, for `tables.checked`."""

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


def row(
    config: OfflineConfig,
    collected: PretrainConfig | None,
    step: int,
    returns: np.ndarray,
    revision: str,
    **changes: Any,
) -> dict[str, Any]:
    """The row of one evaluation: the returns (E,) of a member after `step` updates."""
    return {
        "domain": config.domain,
        "task": config.task,
        "dataset": config.dataset,
        "objective": None if collected is None else collected.objective,
        "parameter": None if collected is None else collected.parameter,
        "algorithm": config.variant,
        "seed": config.seed,
        "step": step,
        "return": float(returns.mean()),
        "episodes": len(returns),
        "upright": np.nan,
        "status": "ok",
        "scale": config.scale,
        "data_scale": None if collected is None else collected.scale,
        "revision": revision,
        "precision": None,
        "variant": (collected.variant or None) if collected else None,
        **changes,
    }


def online(runs_dir: str | Path, scale: str) -> dict[str, float]:
    """For each task that was learnt online at a scale, the mean final return over seeds."""
    files = sorted(paths.resolve(runs_dir).glob(f"datasets/*/*/{ONLINE}"))
    found = read(*files).query("scale == @scale") if files else pd.DataFrame()
    return {} if found.empty else evaluations(found).groupby("task")["return"].mean().to_dict()


def write(path: Path, table: pd.DataFrame) -> None:
    """Write a table of `COLUMNS` as CSV, whole or not at all."""
    paths.write_text(path, table.to_csv(index=False))


def read(*files: Path) -> pd.DataFrame:
    """The rows of files `results.csv` or `online.csv`; ValueError that names one of anything else.

    A file has none before the first evaluation. Those of early versions have no `status`,
    `upright`, `precision` and `variant`, which are missing then.
    """
    later = ("status", "upright", "precision", "variant")
    needed = [name for name in COLUMNS if name not in later]
    table = tables.read_csv(*files, text=TEXT, empty=True, others=needed, **KINDS)
    return table.reindex(columns=[*COLUMNS, *(name for name in table if name not in COLUMNS)])


def collect(runs_dir: str | Path) -> pd.DataFrame:
    """All rows of the `results.csv` files in `<runs_dir>/offline`; ValueError for none."""
    folder = paths.resolve(runs_dir) / "offline"
    files = sorted(folder.glob("**/results.csv"))
    found = read(*files) if files else pd.DataFrame()
    if found.empty:
        raise ValueError(f"{folder} must hold results.csv files with rows, got none")
    return found


def evaluations(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Each evaluation once, in one order, whatever was joined, sorted, filtered or added.

    Policies are in the order of tasks (the paper's first), datasets, learners and seeds, their
    evaluations in that of steps. Rows that repeat an evaluation, as where the same results were
    joined twice, count once.

    Args:
        table: rows of `COLUMNS`, of which it needs `MEMBER`, `step`, `return` and both scales.
        columns: others that must be there.

    Raises ValueError for other tables, for several scales, whose numbers do not belong in one
    statistic, and where a policy has two returns at one step: they are of two runs.
    """
    table = tables.checked(table, others=["scale", "data_scale", *columns], **KINDS)
    for name in ("scale", "data_scale"):
        scales = sorted(table[name].dropna().astype(str).unique())
        if len(scales) > 1:
            found = ", ".join(scales)
            raise ValueError(f"results of one statistic must have one {name}, got {found}")
    keys = list(table[[*MEMBER, "step"]].itertuples(index=False, name=None))
    order = sorted(range(len(keys)), key=lambda row: _place(*keys[row]))
    return tables.once(table.iloc[order], [*MEMBER, "step"], ["return"])


def _place(task: str, dataset: str, learner: str, *numbers: int) -> tuple:
    """Where an evaluation stands among others."""
    known = list(PAPER_TABLE_1.index)
    first = known.index(task) if task in known else len(known)
    name = learner.partition("-")[0]
    rank = ALGORITHMS.index(name) if name in ALGORITHMS else len(ALGORITHMS)
    return first, task, dataset, rank, learner, *numbers


def final(table: pd.DataFrame) -> pd.DataFrame:
    """Return the last evaluation of each member: no choice of a best one. See `evaluations`."""
    last = evaluations(table).drop_duplicates(MEMBER, keep="last")
    return last.assign(score="final").reset_index(drop=True)


def best(table: pd.DataFrame) -> pd.DataFrame:
    """Return the best evaluation of each member, chosen by the very returns that it reports."""
    table = evaluations(table)
    values = table.assign(value=table["return"].fillna(-np.inf))
    top = values.groupby(MEMBER, sort=False)["value"].idxmax()
    return table.loc[top].assign(score="best").reset_index(drop=True)


def scores(table: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return a row a member, `final` or `best`, with a column `score` that says which."""
    if score not in SCORES:
        raise ValueError(f"score must be one of {', '.join(SCORES)}, got {score!r}")
    return final(table) if score == "final" else best(table)


def summary(table: pd.DataFrame, score: str = "final") -> pd.DataFrame:
    """Return statistics over seeds, a row a learner, dataset and task, or a baseline.

    `mean` and `sd` (n - 1) are the paper's; `iqm` is the interquartile mean with a 95 % bootstrap
    interval from `low` to `high`. Policies that diverged are counted and are in no mean.
    ValueError as of `evaluations`, such as for several scales.
    """
    rows = []
    members = scores(evaluations(table, "episodes", "upright"), score)
    for key, group in members.groupby(MEMBER[:3]):
        runs = [group["return"].dropna().to_numpy()]
        low, high = bootstrap(runs, interquartile_mean)
        row = dict(zip(MEMBER[:3], key, strict=True)) | {"score": score}
        row |= {"mean": group["return"].mean(), "sd": group["return"].std()}
        row |= {"iqm": float(interquartile_mean(runs)), "low": low, "high": high}
        row |= {"seeds": len(runs[0]), "diverged": len(group) - len(runs[0])}
        first = group[["step", "episodes", "scale"]].iloc[0].to_dict()
        rows.append({**row, "upright": group["upright"].mean(), **first})
    return pd.DataFrame(rows).sort_values(["task", "mean"], ignore_index=True)


def improvement(
    table: pd.DataFrame, by: str, *, within: tuple[str, ...] = ("task",), score: str = "final"
) -> pd.DataFrame:
    """Return the matrix of P(a run of the row's group has a higher return than the column's).

    Args:
        table: rows of `COLUMNS` of one scale.
        by: the column of what is compared, such as `dataset` or `algorithm`.
        within: runs are compared where they agree in these columns, and the chances averaged.
        score: `final` or `best`.

    Ties count half. ValueError where a group lacks runs that another has.
    """
    members = scores(evaluations(table, by, *within), score).dropna(subset="return")
    strata = members[list(within)].apply(lambda row: ", ".join(map(str, row)), axis=1)
    runs = {}
    for name, group in members.groupby(by, dropna=False, sort=False):
        parts = {stratum: rows.to_numpy() for stratum, rows in group.groupby(strata)["return"]}
        missing = [stratum for stratum in strata.unique() if stratum not in parts]
        if missing:
            raise ValueError(f"{name} must have runs wherever another has, got none of {missing}")
        runs[name] = [parts[stratum] for stratum in strata.unique()]
    matrix = pd.DataFrame(np.nan, index=list(runs), columns=list(runs))
    for one, two in permutations(runs, 2):
        matrix.loc[one, two] = probability_of_improvement(runs[one], runs[two])
    return matrix.rename_axis(index=by, columns="over")


def table_1(table: pd.DataFrame) -> pd.DataFrame:
    """Return the paper's table 1 beside what it leaves out, a row a task and objective.

    `best over everything` is the highest evaluation of any dataset, seed, learner and step: it
    grows with the number of tries, `policies`. `mean of finals` is over the same policies, and
    `best mean` is the highest mean over seeds of any one dataset and learner.
    """
    rows, table = [], evaluations(table, "objective")
    learnt = table[~table["algorithm"].isin(BASELINES)]
    for (task, objective), tries in learnt.groupby(["task", "objective"], dropna=False, sort=False):
        last = final(tries).dropna(subset="return")
        means = last.groupby(["dataset", "algorithm"])["return"].mean()
        row = {"task": task, "objective": objective, "best over everything": tries["return"].max()}
        row |= {"mean of finals": last["return"].mean(), "best mean": means.max()}
        rows.append(row | {"policies": len(last), "scale": tries["scale"].iloc[0]})
    return pd.DataFrame(rows)
