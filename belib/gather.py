"""Gather finished runs into the tables of a study.

    python -m belib.gather RUNS_DIR FOLDER

writes `offline.csv` (a row an evaluation), `datasets.csv` (a row a dataset: its configuration and
its card), `coverage.csv` (its measures) and `provenance.json` (what all have in common).
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from belib import coverage, datasets, machine, paths, results
from belib.arrays import whole_number
from belib.config import ALGORITHMS, OfflineConfig
from belib.datasets import Dataset
from belib.results import tables

FILES = ("offline.csv", "datasets.csv", "coverage.csv", "provenance.json")
"""The last one is written last: a folder without it is not finished."""

SIZE = 2_000
"""States drawn from every dataset for the measures of coverage."""

VOLUMETRIC = "volumetric"
"""The paper's measure of coverage."""

_DATASET = ["domain", "dataset"]
_RECIPE = ["objective", "parameter", "seed", "variant", "intrinsic_reward_scale", "steps"]
_VARYING = ("domain", "dataset", "task", "seed")
_POLICY = ["domain", "algorithm", "dataset", "task", "seed"]


@dataclass(frozen=True)
class Tables:
    """What `gather` wrote. Rows that are there twice count once; ValueError where they differ."""

    offline: pd.DataFrame
    datasets: pd.DataFrame
    coverage: pd.DataFrame
    provenance: dict[str, Any]

    def __post_init__(self) -> None:
        results.evaluations(self.offline, *results.COLUMNS)
        integers = ["seed", "steps"]
        rows = tables.checked(self.datasets, names=_DATASET, integers=integers, others=_RECIPE)
        described = tables.once(rows, _DATASET, _RECIPE)
        measured = tables.checked(self.coverage, names=_DATASET, numbers=[VOLUMETRIC], empty=True)
        object.__setattr__(self, "datasets", described.fillna({"variant": ""}))
        object.__setattr__(self, "coverage", tables.once(measured, _DATASET, [VOLUMETRIC]))

    @property
    def baselines(self) -> pd.DataFrame:
        """The rows of doing nothing and of random actions."""
        rows = results.evaluations(self.offline)
        return rows[rows["algorithm"].isin(results.BASELINES)]

    @property
    def learners(self) -> list[str]:
        """The learners, those that learnt from most datasets first."""
        learnt = self.offline[~self.offline["algorithm"].isin(results.BASELINES)]
        counts = learnt.drop_duplicates(["algorithm", *_DATASET])["algorithm"].value_counts()
        places = {name: ALGORITHMS.index(name.partition("-")[0]) for name in counts.index}
        return sorted(counts.index, key=lambda name: (-counts[name], places[name], name))


def load(folder: str | Path) -> Tables:
    """Read the tables of a folder; ValueError names the file that is missing or damaged."""
    folder = paths.resolve(folder)
    missing = [name for name in FILES if not (folder / name).exists()]
    if missing:
        raise ValueError(f"{folder} must hold {', '.join(FILES)}, {missing[0]} is missing")
    text = ["dataset", "variant", "label", "intrinsic_reward_scale", "git_revision", "sha256"]
    described, measured = (tables.read_csv(folder / name, text=text) for name in FILES[1:3])
    provenance = paths.read_json(folder / FILES[3], ["scale", "learning", "not finished"])
    try:
        return Tables(results.read(folder / FILES[0]), described, measured, provenance)
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from error


def gather(runs_dir: str | Path, to: str | Path, *, size: int = SIZE) -> Path:
    """Write `FILES` of all finished datasets and policies below `runs_dir` into a folder.

    What is not finished is left out and named in `provenance.json`. Data made of other datasets
    are left out. Raises ValueError where runs cannot be compared.
    """
    folder, to = paths.resolve(runs_dir), paths.resolve(to)
    size = whole_number("size", size, least=1)
    finished, waiting = _collected(folder)
    learnt, learning, unfinished = _learnt(folder)
    described = pd.DataFrame([describe(dataset) for dataset in finished])
    sizes = described.loc[described["variant"] == "", "num_steps"].unique()
    if len(sizes) > 1:
        raise ValueError(f"datasets of no variant must have equal num_steps, got {sizes.tolist()}")
    scales = {*described["scale"], *learnt["scale"], *learnt["data_scale"].dropna()}
    if (to / FILES[3]).exists():
        scales.add(paths.read_json(to / FILES[3], ["scale"])["scale"])
    if len(scales) > 1:
        raise ValueError(f"scales must not be mixed in {to}, got {', '.join(sorted(scales))}")
    provenance = {
        "scale": scales.pop(),
        "learning": learning,
        "coverage": {"size": size, "seed": 0, "scaling": "robust"},
        "not finished": {"datasets": waiting, "policies": unfinished},
        "processor": machine.processor(),
        "revision": paths.git_revision(),
    }
    paths.writable_folder(to)
    for name, table in zip(FILES, (learnt, described, measure(finished, size=size)), strict=False):
        paths.write_text(to / name, table.to_csv(index=False))
    paths.write_text(to / FILES[3], json.dumps(provenance, indent=1, allow_nan=False) + "\n")
    return to


def describe(dataset: Dataset) -> dict[str, Any]:
    """Return a row of `datasets.csv`: a dataset's settings, its card and its mean reward."""
    config, card = dataset.config(), datasets.read_card(dataset.folder)
    if config is None or card is None:
        raise ValueError(f"{dataset.folder} must be a collected dataset, got no config.yaml")
    settings = {k: v for k, v in asdict(config).items() if k not in config.unused_fields}
    metrics = tables.read_csv(dataset.folder / "metrics.csv", optional=["intrinsic_reward"])
    rewards = metrics.get("intrinsic_reward", pd.Series(dtype=float)).mean()
    settings["precision"] = card.get("precision", config.precision)
    facts = pd.json_normalize({**card, **settings}, sep="_").iloc[0].to_dict()
    known = {"dataset": facts.pop("name"), **facts, "variant": config.variant}
    return {**known, "intrinsic_reward": float(f"{rewards:.5g}")}


def measure(found: Sequence[Dataset], *, size: int = SIZE) -> pd.DataFrame:
    """Return a row a dataset: `coverage.measures` and the paper's volumetric coverage.

    Datasets are compared within a domain. `volumetric` is the last radius of
    `coverage.volumetric_coverage` over the largest, on raw observations, as the paper very likely
    has it; `volumetric_scaled` on scaled ones.
    """
    parts = []
    for domain in sorted({dataset.domain for dataset in found}):
        own = [dataset for dataset in found if dataset.domain == domain]
        points = min(size, *(dataset.steps for dataset in own))
        table = coverage.measures(coverage.draw_states(own, size=points), halves=0)
        growing = coverage.volumetric_coverage(own)
        last = growing.groupby(["scaling", "dataset"], sort=False)["coverage"].last()
        table["volumetric"], table["volumetric_scaled"] = last["none"], last["robust"]
        parts.append(table.rename_axis("dataset").reset_index().assign(domain=domain))
    return pd.concat(parts, ignore_index=True).round(5)


def _collected(folder: Path) -> tuple[list[Dataset], list[str]]:
    """Return the datasets that were collected, and the names of those that still are."""
    domains = sorted(path.name for path in folder.glob("datasets/*") if path.is_dir())
    collected = [data for name in domains for data in datasets.find_datasets(folder, name)]
    collected = [data for data in collected if data.provenance() is None]
    finished = [data for data in collected if datasets.is_described(data)]
    if not finished:
        raise ValueError(f"{folder / 'datasets'} must hold a finished dataset, got none")
    return finished, [f"{data.domain}/{data.name}" for data in collected if data not in finished]


def _learnt(folder: Path) -> tuple[pd.DataFrame, dict[str, Any], list[str]]:
    """Return rows of finished policies and baselines, learners' settings, unfinished policies."""
    table, learners, unfinished = results.collect(folder), {}, []
    last = table.groupby(_POLICY)["step"].max()
    for file in sorted(folder.glob("offline/*/*/*/*/config.yaml")):
        config = OfflineConfig.from_yaml(file)
        policy = (config.domain, config.variant, config.dataset, config.task, config.seed)
        if last.get(policy, 0) < config.num_steps:
            unfinished.append("/".join(map(str, policy)))
            continue
        shared = {name: value for name, value in asdict(config).items() if name not in _VARYING}
        before = learners.setdefault(config.variant, shared)
        differ = [name for name in shared if shared[name] != before[name]]
        if differ:
            rule = f"policies of {config.variant} must have the same {differ[0]}"
            raise ValueError(f"{rule}, got another in {file}")
    names = table[_POLICY].astype(str).agg("/".join, axis=1)
    finished = table[~names.isin(unfinished)].round({"return": 2, "upright": 3})
    if finished["algorithm"].isin(results.BASELINES).all():
        raise ValueError(f"{folder / 'offline'} must hold a finished policy, got none")
    for name in results.BASELINES:
        missing = {*finished["task"]} - {*finished.loc[finished["algorithm"] == name, "task"]}
        if missing:
            rule = f"every task must have the baseline {name!r}, got none for {min(missing)}"
            raise ValueError(f"{rule}: call belib.training.evaluate_baselines")
    return finished.reset_index(drop=True), learners, unfinished


def main() -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m belib.gather", description=__doc__)
    parser.add_argument("runs_dir", type=Path, help="holds datasets/ and offline/")
    parser.add_argument("folder", type=Path, help=f"where {', '.join(FILES)} go")
    parser.add_argument("--size", type=int, default=SIZE, help="states a dataset for coverage")
    args = parser.parse_args()
    try:
        print(gather(args.runs_dir.absolute(), args.folder.absolute(), size=args.size))
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
