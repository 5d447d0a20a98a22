"""Results: one tidy table, a row an evaluation, and the statistics over it.

`python -m belib.results RUNS_DIR` prints the summary of all results below a folder.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from belib import paths
from belib.config import OfflineConfig, PretrainConfig

COLUMNS = (
    "domain",
    "task",
    "dataset",
    "objective",
    "parameter",
    "algorithm",
    "seed",
    "step",
    "return",
    "episodes",
    "scale",
    "revision",
)
"""`return` is the mean over `episodes` evaluation episodes; `seed` is the learner's."""

BASELINES = ("zero action", "random policy")


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
        "algorithm": config.algorithm,
        "seed": config.seed,
        "step": step,
        "return": float(returns.mean()),
        "episodes": len(returns),
        "scale": config.scale,
        "revision": revision,
        **changes,
    }


def write(path: Path, table: pd.DataFrame) -> None:
    """Write a table of `COLUMNS` as CSV, whole or not at all."""
    paths.write_text(path, table.to_csv(index=False))


def collect(runs_dir: str | Path) -> pd.DataFrame:
    """All rows of the `results.csv` files below a folder; ValueError where there is none."""
    folder = paths.resolve(runs_dir)
    files = sorted(folder.glob("**/results.csv"))
    tables = [table for table in map(pd.read_csv, files) if len(table)]
    if not tables:
        raise ValueError(f"{folder} must hold results.csv files with rows, got none")
    return pd.concat([table.astype({"parameter": float}) for table in tables], ignore_index=True)


def final(table: pd.DataFrame) -> pd.DataFrame:
    """The last evaluation of each member: no choice of a best one."""
    member = ["task", "dataset", "algorithm", "seed"]
    _check_one_scale(table)
    return table.loc[table.groupby(member, dropna=False)["step"].idxmax()].reset_index(drop=True)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over seeds of the final returns, a row a policy.

    ValueError where the table mixes scales: their numbers do not belong in one statistic.
    """
    groups = final(table).groupby(["task", "dataset", "algorithm"], dropna=False, sort=False)
    found = groups["return"].agg(mean="mean", sd="std", seeds="count", least="min", most="max")
    details = groups[["step", "episodes", "scale"]].first()
    return found.join(details).reset_index().sort_values(["task", "mean"], ignore_index=True)


def _check_one_scale(table: pd.DataFrame) -> None:
    scales = sorted(table["scale"].unique())
    if len(scales) > 1:
        raise ValueError(f"results of one statistic must have one scale, got {', '.join(scales)}")


if __name__ == "__main__":
    with pd.option_context("display.width", 120, "display.float_format", "{:.1f}".format):
        print(summary(collect(sys.argv[1])).to_string(index=False))
