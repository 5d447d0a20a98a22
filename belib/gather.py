"""Gather finished runs into the tables of a study: `python -m belib.gather RUNS_DIR FOLDER`.

It writes `offline.csv` (one row per evaluation), `datasets.csv` (one row per dataset: its settings
and its card), `coverage.csv` (its measures) and `provenance.json` (what all have in common). Rows
that are there stay: tables grow as runs finish, also on several machines.
"""

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from belib import coverage, datasets, machine, paths, results
from belib.config import OfflineConfig
from belib.datasets import Dataset
from belib.results import tables

SIZE = 2_000  # states drawn from every dataset
MEASURES = ("volumetric", "volumetric_scaled", "net", "shannon")
"""Measures of coverage on which claims are tested, the first as in the paper: the last radius of
`coverage.volumetric_coverage`, raw."""

_DATASET = ["domain", "dataset"]
_RECIPE = ["objective", "parameter", "seed", "variant", "intrinsic_reward_scale", "steps"]
_TEXT = ["dataset", "variant", "label", "intrinsic_reward_scale", "git_revision", "sha256"]
_POLICY = ["domain", "algorithm", "dataset", "task", "seed"]


class Tables(NamedTuple):
    """What `gather` wrote."""

    offline: pd.DataFrame
    datasets: pd.DataFrame
    coverage: pd.DataFrame
    provenance: dict[str, Any]

    @property
    def baselines(self) -> pd.DataFrame:
        """The rows of doing nothing and of random actions."""
        return self.offline[self.offline["algorithm"].isin(results.BASELINES)]

    @property
    def learners(self) -> list[str]:
        """The learners, those that learnt from most datasets first."""
        learnt = self.offline[~self.offline["algorithm"].isin(results.BASELINES)]
        learnt = learnt.drop_duplicates(["algorithm", *_DATASET])
        return learnt["algorithm"].value_counts().index.tolist()


def load(folder: str | Path) -> Tables:
    """Read the tables of a folder, rows that are there twice once.

    Raise ValueError for a damaged file, and where rows of one dataset or policy differ.
    """
    folder = paths.resolve(folder)
    rules = {"names": _DATASET, "integers": ["seed", "steps"], "others": _RECIPE}
    described = tables.read_csv(folder / "datasets.csv", text=_TEXT, **rules)
    measured = tables.read_csv(folder / "coverage.csv", names=_DATASET, numbers=MEASURES)
    return Tables(
        results.evaluations(results.read(folder / "offline.csv")),
        tables.once(described, _DATASET, _RECIPE).fillna({"variant": ""}),
        tables.once(measured, _DATASET, MEASURES),
        paths.read_json(folder / "provenance.json", ["scale", "learning", "not finished"]),
    )


def gather(runs_dir: str | Path, to: str | Path) -> Path:
    """Add all finished datasets and policies below `runs_dir` to the tables in a folder.

    They replace rows of equal names. Coverage compares datasets that are read together, so its
    table has these alone. What is not finished is named in `provenance.json`. Data made of other
    datasets are left out. Raise ValueError where runs cannot be compared.
    """
    runs, to = paths.resolve(runs_dir), paths.make_folder(to)
    domains = sorted(folder.name for folder in runs.glob("datasets/*/"))
    data = [dataset for name in domains for dataset in datasets.find_datasets(runs, name)]
    data = [dataset for dataset in data if dataset.config() and dataset.provenance() is None]
    finished = [dataset for dataset in data if datasets.is_described(dataset)]
    waiting = [f"{dataset.domain}/{dataset.name}" for dataset in data if dataset not in finished]
    before = load(to) if (to / "provenance.json").exists() else None
    learnt, learning, unfinished = _learnt(runs, before.provenance["learning"] if before else {})
    if not (finished and learning):
        raise ValueError(f"{runs} must hold a finished dataset and policy, got none")
    described = pd.json_normalize([_described(dataset) for dataset in finished], sep="_")
    if before:
        learnt = _added(before.offline, learnt, _POLICY)
        described = _added(before.datasets, described, _DATASET)
    scales = {*described["scale"], *learnt["scale"], *learnt["data_scale"].dropna()}
    sizes = {*described.loc[described["variant"] == "", "num_steps"]}
    for name, values in (("scale", scales), ("num_steps of plain datasets", sizes)):
        if len(values) > 1:
            raise ValueError(f"{name} must be one in all runs and in {to}, got {sorted(values)}")
    provenance = {"scale": scales.pop(), "learning": learning}
    provenance["not finished"] = {"datasets": waiting, "policies": unfinished}
    provenance["processor"] = ", ".join(described["processor"].dropna().unique())
    rows = {"offline": learnt, "datasets": described, "coverage": _measured(finished)}
    for name, table in rows.items():
        paths.write_text(to / f"{name}.csv", table.to_csv(index=False))
    paths.write_text(to / "provenance.json", json.dumps(provenance, indent=1) + "\n")
    return to


def _added(before: pd.DataFrame, rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return rows after those from before that have other keys."""
    stay = ~before.set_index(keys).index.isin(rows.set_index(keys).index)
    return pd.concat([before[stay], rows], ignore_index=True)


def _described(dataset: Dataset) -> dict[str, Any]:
    """Return the settings of a dataset, its card, its mean intrinsic reward, this processor."""
    config: Any = dataset.config()  # `gather` takes collected datasets with a card
    settings = {k: v for k, v in asdict(config).items() if k not in config.unused_fields}
    settings |= {"processor": machine.processor(), **(datasets.read_card(dataset.folder) or {})}
    metrics = tables.read_csv(dataset.folder / "metrics.csv", optional=["intrinsic_reward"])
    reward = metrics.get("intrinsic_reward", pd.Series(dtype=float)).mean()
    return {"dataset": dataset.name, **settings, "intrinsic_reward": reward}


def _measured(data: list[Dataset]) -> pd.DataFrame:
    """Return measures of coverage, one row per dataset, compared within a domain."""
    parts, size = [], min(SIZE, *(dataset.steps for dataset in data))
    for domain in sorted({dataset.domain for dataset in data}):
        group = [dataset for dataset in data if dataset.domain == domain]
        table = coverage.measures(coverage.draw_states(group, size=size), halves=0)
        balls = coverage.volumetric_coverage(group).groupby(["scaling", "dataset"])["coverage"]
        table["volumetric"], table["volumetric_scaled"] = map(balls.last().get, ("none", "robust"))
        parts.append(table.rename_axis("dataset").reset_index().assign(domain=domain))
    return pd.concat(parts, ignore_index=True).round(5)


def _learnt(runs: Path, learning: dict[str, Any]) -> tuple[pd.DataFrame, dict, list[str]]:
    """Return rows of finished policies and baselines, all learners' settings, other policies."""
    table, unfinished = results.collect(runs).set_index(_POLICY, drop=False), []
    for file in sorted(runs.glob("offline/*/*/*/*/config.yaml")):
        config = OfflineConfig.from_yaml(file)
        policy = (config.domain, config.variant, config.dataset, config.task, config.seed)
        if policy not in table.index or table.loc[[policy], "step"].max() < config.num_steps:
            unfinished.append(policy)
            continue
        shared = {name: value for name, value in asdict(config).items() if name not in _POLICY}
        if learning.setdefault(config.variant, shared) != shared:
            raise ValueError(f"policies of {config.variant} must share settings, got {file}")
    table = table[~table.index.isin(unfinished)].round({"return": 2, "upright": 3})
    return table, learning, ["/".join(map(str, policy)) for policy in unfinished]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m belib.gather", description=__doc__)
    parser.add_argument("runs_dir", type=os.path.abspath, help="holds datasets/ and offline/")
    parser.add_argument("to", type=os.path.abspath, help="the folder of the tables")
    print(gather(**vars(parser.parse_args())))
