"""Gather finished runs into the tables of a study: `python -m belib.gather RUNS_DIR FOLDER`.

It writes `offline.csv` (one row per evaluation), `datasets.csv` (one row per dataset: its settings
and its card), `coverage.csv` (its measures) and `provenance.json` (scale, settings, processor).
"""

import argparse
import glob
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from belib import coverage, datasets, machine, paths, results, training
from belib.config import OfflineConfig
from belib.datasets import Dataset
from belib.results import tables

SIZE = 2_000  # states drawn from every dataset
MEASURES = ("volumetric", "volumetric_scaled", "net", "shannon")
"""Measures of coverage on which claims are tested. The first, the paper's, and the second are the
last `coverage` of `coverage.volumetric_coverage` for raw and for robustly scaled states."""

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
    exploration: pd.DataFrame = pd.DataFrame()  # what benchmarks/exploration.py wrote, if anything

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


def load(source: str | Path) -> Tables:
    """Read the tables of a folder, or of all folders of a pattern (`results/study/*`) together.

    `volumetric` is over the largest of all folders; other measures of coverage compare datasets of
    one folder. Raise ValueError for a damaged file, where rows of one dataset or policy differ, and
    for folders of several scales or settings.
    """
    place = paths.resolve(source)
    folders = [Path(name) for name in sorted(glob.glob(str(place)))] or [place]
    rules = {"names": _DATASET, "integers": ["seed", "steps"], "others": _RECIPE}
    described = tables.read_csv(*(f / "datasets.csv" for f in folders), text=_TEXT, **rules)
    rules = {"names": _DATASET, "numbers": [*MEASURES, "radius_none"]}
    measured = tables.read_csv(*(folder / "coverage.csv" for folder in folders), **rules)
    largest = measured.groupby("domain")["radius_none"].transform("max")
    measured["volumetric"] = (measured["radius_none"] / largest).round(5)
    files = [file for f in folders if (file := f / "exploration.csv").exists()]
    seen = tables.read_csv(*files, names=["dataset"]) if files else pd.DataFrame({"dataset": []})
    seen = tables.once(seen, ["dataset"], [*seen.columns.drop("dataset")])
    keys = ["scale", "learning", "not finished", "processor"]
    made = [paths.read_json(folder / "provenance.json", keys) for folder in folders]
    if any(one[key] != made[0][key] for one in made for key in keys[:2]):
        raise ValueError(f"folders of {source} must share scale and settings of learners")
    both = {k: [n for one in made for n in one["not finished"][k]] for k in made[0]["not finished"]}
    processors = ", ".join(dict.fromkeys(one["processor"] for one in made))
    return Tables(
        results.evaluations(results.read(*(folder / "offline.csv" for folder in folders))),
        tables.once(described, _DATASET, _RECIPE).fillna({"variant": ""}),
        tables.once(measured, _DATASET, MEASURES),
        made[0] | {"not finished": both, "processor": processors},
        seen,
    )


def gather(runs_dir: str | Path, to: str | Path) -> Path:
    """Write the tables of all finished datasets and policies below `runs_dir` into a folder.

    `provenance.json` names what is not finished. Data made of other datasets are left out.
    Raise ValueError where runs cannot be compared, and for a folder with tables of another scale.
    """
    runs, to = paths.resolve(runs_dir), paths.make_folder(to)
    places = sorted(runs.glob("datasets/*/"))
    data = [d for place in places for d in datasets.find_datasets(runs, place.name)]
    data = [d for d in data if d.config() and d.provenance() is None]
    whole = [d for d in data if (datasets.read_card(d.folder) or {}).get("steps") == d.steps]
    finished = [d for d in whole if (c := d.config()) and training.is_finished(c, d.folder)]
    learnt, learning, unfinished = _learnt(runs)
    if not (finished and learning):
        raise ValueError(f"{runs} must hold a finished dataset and policy, got none")
    described = pd.json_normalize([_described(dataset) for dataset in finished], sep="_")
    scales = {*described["scale"], *learnt["scale"], *learnt["data_scale"].dropna()}
    if (to / "provenance.json").exists():
        scales.add(paths.read_json(to / "provenance.json", ["scale"])["scale"])
    sizes = {*described.loc[described["variant"] == "", "num_steps"]}
    for name, values in (("scale", scales), ("num_steps of plain datasets", sizes)):
        if len(values) > 1:
            raise ValueError(f"{name} must be one in all runs and in {to}, got {sorted(values)}")
    waiting = [f"{d.domain}/{d.name}" for d in data if d not in finished]
    stopped = {"datasets": waiting, "policies": unfinished}
    provenance = {"scale": scales.pop(), "learning": learning, "not finished": stopped}
    provenance |= {"processor": machine.processor(), "revision": paths.git_revision()}
    rows = {"offline": learnt, "datasets": described, "coverage": _measured(finished)}
    for name, table in rows.items():
        paths.write_text(to / f"{name}.csv", table.to_csv(index=False))
    paths.write_text(to / "provenance.json", json.dumps(provenance, indent=1) + "\n")
    return to


def _described(dataset: Dataset) -> dict[str, Any]:
    """Return the settings of a dataset, its card and its mean intrinsic reward."""
    c = dataset.config()
    assert c is not None  # `gather` takes collected datasets with a card
    settings = {k: v for k, v in asdict(c).items() if k in _RECIPE or k not in c.unused_fields}
    settings |= datasets.read_card(dataset.folder) or {}
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


def _learnt(runs: Path) -> tuple[pd.DataFrame, dict[str, Any], list[str]]:
    """Return rows of finished policies and baselines, learners' settings, unfinished policies."""
    table, learning, unfinished = results.collect(runs).set_index(_POLICY, drop=False), {}, []
    for file in sorted(runs.glob("offline/*/*/*/*/config.yaml")):
        config = OfflineConfig.from_yaml(file)
        policy = (config.domain, config.variant, config.dataset, config.task, config.seed)
        shared = {name: value for name, value in asdict(config).items() if name not in _POLICY}
        if not training.is_finished(config, file.parent):
            unfinished.append(policy)
        elif learning.setdefault(config.variant, shared) != shared:
            raise ValueError(f"policies of {config.variant} must share settings, got {file}")
    table = table[~table.index.isin(unfinished)].round({"return": 2, "upright": 3})
    return table, learning, ["/".join(map(str, policy)) for policy in unfinished]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m belib.gather", description=__doc__)
    parser.add_argument("runs_dir", type=os.path.abspath, help="holds datasets/ and offline/")
    parser.add_argument("to", type=os.path.abspath, help="the folder of the tables")
    print(gather(**vars(parser.parse_args())))
