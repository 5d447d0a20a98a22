"""From a folder of runs to the few tidy tables that are committed."""

import json
import math
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from belib import coverage, datasets, machine, paths, results, tables
from belib.arrays import whole_number
from belib.config import OfflineConfig, PretrainConfig
from belib.datasets import Dataset

FILES = ("offline.csv", "datasets.csv", "coverage.csv", "provenance.json")
"""The last one is written last: a folder without it is not finished."""

Span = tuple[float, float]
"""Seconds of the clock, begin and end."""

SIZE = 2_000
"""States drawn from each dataset for the measures of coverage."""

_OWN = ("dataset", "task", "seed", "domain")  # in what policies of one table differ
_PACKAGES = ("belib", "dm_control", "mujoco", "numpy", "scipy", "torch")


def commit_results(runs_dir: str | Path, to: str | Path, *, size: int = SIZE) -> Path:
    """Write `FILES` of all finished datasets and policies below `runs_dir` into a folder.

    `offline.csv` has `results.COLUMNS`, without those that are the same in all rows, which stand in
    `provenance.json` beside configurations, seeds, revisions, versions and times. `datasets.csv`
    has a row a dataset, `coverage.csv` the measures of `size` states of each. What is not finished
    is left out and named in `provenance.json`. Each file is written whole or not at all.

    Raises ValueError where scales or sizes of plain datasets are mixed, where policies of one
    learner differ in what they should have in common, where there is nothing, where a task lacks
    its baselines, or where the folder holds another scale.
    """
    folder, to = paths.resolve(runs_dir), paths.resolve(to)
    size = whole_number("size", size, least=1)
    found, waiting = _collected(folder)
    learnt, learning, unfinished = _learnt(folder)
    described = pd.DataFrame([describe(dataset) for dataset in found])
    _check_sizes(found)
    scale = _one_scale(described, learnt, to)
    measured = measure(found, size=size)
    constant, rows = without_constants(learnt)
    provenance = {
        "scale": scale,
        "constant": constant,
        "collection": _collection(found),
        "learning": learning,
        "hours": {"collecting": _hours(map(_span, found)), "learning": _hours(_learning(folder))},
        "coverage": {"size": size, "seed": 0, "scaling": "robust"},
        "seeds": {
            "collection": sorted(described["seed"].unique().tolist()),
            "learners": sorted(learnt["seed"].unique().tolist()),
        },
        "not finished": {"datasets": waiting, "policies": unfinished},
        "machine": this_machine(),
        "revision": paths.git_revision(),
        "collected with": _versions(found),
    }
    paths.writable_folder(to)
    for name, table in zip(FILES[:3], (rows, described, measured), strict=True):
        paths.write_text(to / name, table.to_csv(index=False))
    paths.write_text(to / FILES[3], json.dumps(provenance, indent=1, allow_nan=False) + "\n")
    return to


def describe(dataset: Dataset) -> dict[str, Any]:
    """What a dataset's card, configuration and metrics say of it, a row of `datasets.csv`."""
    card, config = _card(dataset), _config(dataset)
    metrics = tables.read_csv(dataset.folder / "metrics.csv", optional=["intrinsic_reward"])
    intrinsic = metrics.get("intrinsic_reward", pd.Series(dtype=float)).mean()
    begin, end = _span(dataset)
    known = ("domain", "objective", "parameter", "seed", "scale", "steps", "episodes")
    return {
        "dataset": dataset.name,
        **{name: card[name] for name in known},
        "label": config.label,
        "intrinsic_reward_scale": config.intrinsic_reward_scale,
        "random_actions": card["random_actions"],
        "physics_errors": card["physics_errors"],
        "intrinsic_reward": float(f"{intrinsic:.5g}"),
        "minutes": round((end - begin) / 60, 1),
        **{f"return_{task}": round(own["mean"], 2) for task, own in card["returns"].items()},
        "revision": card["git_revision"],
        "sha256": card["sha256"],
    }


def measure(found: Sequence[Dataset], *, size: int = SIZE) -> pd.DataFrame:
    """Coverage of each dataset, a row: `coverage.measures` and the paper's volumetric coverage.

    Datasets are compared within a domain. `volumetric` is the last radius of
    `coverage.volumetric_coverage` over the largest, on raw observations, as the paper very likely
    has it; `volumetric_scaled` on scaled ones.
    """
    parts = []
    for domain in sorted({dataset.domain for dataset in found}):
        own = [dataset for dataset in found if dataset.domain == domain]
        fewest = min(dataset.steps for dataset in own)
        table = coverage.measures(coverage.draw_states(own, size=min(size, fewest)), halves=0)
        growing = coverage.volumetric_coverage(own)
        last = growing.groupby(["scaling", "dataset"], sort=False)["coverage"].last()
        table["volumetric"], table["volumetric_scaled"] = last["none"], last["robust"]
        kept = ["objective", "parameter", "seed", "scale", "points", *coverage.MEASURES]
        kept = [name for name in (*kept, "volumetric", "volumetric_scaled") if name in table]
        parts.append(table[kept].rename_axis("dataset").reset_index().assign(domain=domain))
    return pd.concat(parts, ignore_index=True).round(5)


def this_machine() -> dict[str, Any]:
    """Processor, cores, and the versions of what was used here."""
    return {
        "processor": machine.processor(),
        "threads": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }


def _collected(folder: Path) -> tuple[list[Dataset], list[str]]:
    """The datasets that were collected, and the names of those that still are.

    What was made of others is neither: its episodes are in the tables already.
    """
    domains = sorted(path.name for path in folder.glob("datasets/*") if path.is_dir())
    found = [each for domain in domains for each in datasets.find_datasets(folder, domain)]
    found = [each for each in found if each.provenance() is None]
    done = [each for each in found if datasets.is_described(each)]
    if not done:
        raise ValueError(f"{folder / 'datasets'} must hold a finished dataset, got none")
    waiting = [f"{each.domain}/{each.name}" for each in found if each not in done]
    return done, waiting


def _card(dataset: Dataset) -> dict[str, Any]:
    card = datasets.read_card(dataset.folder)
    assert card is not None, "a dataset without a card is not finished"
    return card


def _config(dataset: Dataset) -> PretrainConfig:
    """How a dataset was collected; ValueError for one that is data alone."""
    config = dataset.config()
    if config is None:
        raise ValueError(f"{dataset.folder} must be a collected dataset, got no config.yaml")
    return config


def _learnt(folder: Path) -> tuple[pd.DataFrame, dict[str, Any], list[str]]:
    """Rows of finished policies and baselines, the learners' configurations, what is not finished.

    ValueError where policies of one learner differ in more than dataset, task, seed and domain.
    """
    table, learners, unfinished = results.collect(folder), {}, []
    last = table.groupby(["domain", "algorithm", *_OWN[:3]])["step"].max()
    for file in sorted(folder.glob("offline/*/*/*/*/config.yaml")):
        config = OfflineConfig.from_yaml(file)
        key = (config.domain, config.variant, config.dataset, config.task, config.seed)
        if last.get(key, 0) < config.num_steps:
            unfinished.append("/".join(map(str, key)))
            continue
        shared = {name: value for name, value in asdict(config).items() if name not in _OWN}
        before = learners.setdefault(config.variant, shared)
        for name in (name for name in shared if shared[name] != before[name]):
            raise ValueError(
                f"policies of {config.variant} must have the same {name}, got {before[name]} and "
                f"{shared[name]} in {file.parent}"
            )
    names = table[["domain", "algorithm", *_OWN[:3]]].astype(str).agg("/".join, axis=1)
    done = table[~names.isin(unfinished)].round({"return": 2, "upright": 3})
    if done["algorithm"].isin(results.BASELINES).all():
        raise ValueError(f"{folder / 'offline'} must hold a finished policy, got none")
    _check_baselines(done)
    return done.reset_index(drop=True), learners, unfinished


def _check_baselines(table: pd.DataFrame) -> None:
    """ValueError for tasks without rows of doing nothing and of random actions."""
    for name in results.BASELINES:
        there = table.loc[table["algorithm"] == name, "task"]
        missing = sorted({*table["task"]} - {*there})
        if missing:
            raise ValueError(
                f"every task must have the baseline {name!r}, got none for {', '.join(missing)}: "
                "call belib.training.evaluate_baselines with the policies' configurations"
            )


def _span(dataset: Dataset) -> Span:
    """When a dataset was collected, by the times of its episodes."""
    times = [file.stat().st_mtime for file in dataset.files]
    return min(times), max(times)


def _learning(folder: Path) -> Iterator[Span]:
    """When each learner learnt from each dataset, since it was first started."""
    for group in folder.glob("offline/*/*/*"):
        begun = [file.stat().st_mtime for file in group.glob("*/config.yaml")]
        ended = [file.stat().st_mtime for file in group.glob("*/results.csv")]
        if begun and ended:
            yield min(begun), max(ended)


def _hours(spans: Iterable[Span]) -> float:
    """How long any of them went on: what went on at once counts once."""
    total, until = 0.0, -math.inf
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return round(total / 3600, 2)


def _check_sizes(found: Sequence[Dataset]) -> None:
    """ValueError where datasets without a label were to have different numbers of steps."""
    plain = [(each, _config(each).num_steps) for each in found if not _config(each).label]
    for dataset, steps in plain:
        if steps != plain[0][1]:
            raise ValueError(
                f"datasets without a label must have equal num_steps, got {plain[0][1]} in "
                f"{plain[0][0].folder} and {steps} in {dataset.folder}"
            )


def _one_scale(described: pd.DataFrame, learnt: pd.DataFrame, to: Path) -> str:
    """The scale of all of it; ValueError for several, or where the folder has another."""
    found = {*described["scale"], *learnt["scale"], *learnt["data_scale"].dropna()}
    if len(found) > 1:
        raise ValueError(f"scales must not be mixed in one table, got {', '.join(sorted(found))}")
    (scale,) = found
    file = to / FILES[3]
    there = paths.read_json(file, ["scale"])["scale"] if file.exists() else scale
    if there != scale:
        raise ValueError(f"{to} holds results of scale {there}, and these are of scale {scale}")
    return scale


def without_constants(table: pd.DataFrame) -> tuple[dict[str, Any], pd.DataFrame]:
    """What is the same in all rows, None where it is missing, and the columns that are left."""
    same = [name for name in table if table[name].nunique(dropna=False) == 1]
    constant = table[same].iloc[0].to_dict()
    known = {name: None if pd.isna(value) else value for name, value in constant.items()}
    return known, table.drop(columns=same)


def _collection(found: Sequence[Dataset]) -> dict[str, Any]:
    """What all datasets have in common, and each one's own settings."""
    configs = {f"{dataset.domain}/{dataset.name}": _config(dataset) for dataset in found}
    rows = {name: asdict(config) for name, config in configs.items()}
    first: Mapping[str, Any] = next(iter(rows.values()))
    same = {key for key in first if all(row[key] == first[key] for row in rows.values())}
    skipped = {name: {*same, *config.unused_fields} for name, config in configs.items()}
    return {
        "common": {key: first[key] for key in first if key in same},
        "datasets": {
            name: {key: value for key, value in row.items() if key not in skipped[name]}
            for name, row in rows.items()
        },
    }


def _versions(found: Sequence[Dataset]) -> list[dict[str, Any]]:
    """The revisions and versions with which the datasets were collected, each once."""
    cards = [_card(dataset) for dataset in found]
    kinds = [{"revision": card["git_revision"], **card["versions"]} for card in cards]
    return [kind for place, kind in enumerate(kinds) if kind not in kinds[:place]]
