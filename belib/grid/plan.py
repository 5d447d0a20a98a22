"""What the jobs of a grid cost, and the file in which they are handed to Snakemake."""

import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd

from belib import cost, paths
from belib.config import OfflineConfig, PretrainConfig
from belib.grid import Job, work

PLAN = "plan.json"
CONFIGS = {"collect": PretrainConfig, "offline": OfflineConfig}

COSTS = ("minutes", "memory_gb", "disk_gb")

# Notebook 06 takes 1, 4 and 20 minutes at the three scales, after 8, 41 and 72 jobs.
_NOTEBOOK_MINUTES_A_JOB, _NOTEBOOK_GB = 0.25, 3.0

# Limits for the engine: times the estimate. A job that is ended goes on at the next try.
_TIME_LIMIT, _LEAST_MINUTES, _MEMORY_LIMIT = 3.0, 30, 1.5


def costs(jobs: Sequence[Job], runs_dir: Path) -> pd.DataFrame:
    """A row a job: stage, domain, members, finished, trains, minutes, GB.

    What is finished costs nothing. `minutes` are of this machine with the threads that torch has.
    """
    rows, steps = [], {}
    for job in jobs:
        if job.stage == "collect":
            steps |= {(c.domain, c.dataset): c.num_steps for c in job.configs}
        finished = work.finished(job, runs_dir)
        domain = job.name.split("/")[1] if "/" in job.name else ""
        row = {"job": job.name, "stage": job.stage, "domain": domain, "members": len(job.configs)}
        trains = any(getattr(config, "objective", "") != "random" for config in job.configs)
        row |= {"finished": finished, "trains": trains}
        rows.append(row | (dict.fromkeys(COSTS, 0.0) if finished else _cost(job, steps)))
    return pd.DataFrame(rows)


def _cost(job: Job, steps: dict[tuple[str, str], int]) -> dict[str, float]:
    """Of one job, by `belib.cost`; `steps` are of datasets, by domain and name."""
    if not job.configs:
        minutes = _NOTEBOOK_MINUTES_A_JOB * len(job.needs)
        return dict(zip(COSTS, (minutes, _NOTEBOOK_GB, 0.1), strict=True))
    configs = job.configs
    size = steps.get((configs[0].domain, configs[0].dataset))
    if work.is_baselines(job):  # as long as two evaluations, of two policies
        configs = [replace(config, num_steps=2, eval_every=1) for config in configs]
    return cost.estimate(configs, dataset_steps=size or 0)._asdict()


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """`costs` by stage and domain, and in total."""
    kinds = {"jobs": ("job", "count"), "finished": ("finished", "sum")}
    kinds |= {name: (name, "sum") for name in ("members", "hours")}
    kinds |= {"memory_gb": ("memory_gb", "max"), "disk_gb": ("disk_gb", "sum")}
    table = table.assign(hours=table["minutes"] / 60)
    rows = table.groupby(["stage", "domain"], sort=False).agg(**kinds).reset_index()
    total = table.assign(stage="total", domain="").groupby(["stage", "domain"]).agg(**kinds)
    return pd.concat([rows, total.reset_index()], ignore_index=True)


def check_disk(table: pd.DataFrame, runs_dir: Path) -> None:
    """OSError where what is left of the jobs needs more disk than is free, by estimate."""
    needed, free, _ = _disk(table, runs_dir)
    if needed > free:
        raise OSError(
            f"{disk_needed(table, runs_dir)}: choose another runs_dir, or a part of the grid"
        )


def disk_needed(table: pd.DataFrame, runs_dir: Path) -> str:
    """What is left of the jobs writes, and what is free, in words."""
    needed, free, there = _disk(table, runs_dir)
    return (
        f"{runs_dir} needs about {needed:.1f} GB for these jobs and {there} has {free:.1f} GB free"
    )


def _disk(table: pd.DataFrame, runs_dir: Path) -> tuple[float, float, Path]:
    """GB needed and free, and the folder that is there."""
    there = next(folder for folder in (runs_dir, *runs_dir.parents) if folder.exists())
    return table["disk_gb"].sum(), shutil.disk_usage(there).free / 1e9, there


def write(
    jobs: Sequence[Job], table: pd.DataFrame, runs_dir: Path, *, gpus: int, **settings: Any
) -> None:
    """Write the jobs, with their configs as they are now, for Snakemake and for `read_job`.

    Params that are edited while the engine runs change nothing of what it runs.
    """
    rows = table.set_index("job")
    entries = {job.name: _entry(job, rows.loc[job.name], gpus) for job in jobs}
    content = {"runs_dir": str(runs_dir), "root": str(paths.ROOT), **settings, "jobs": entries}
    paths.write_text(work.workflow_folder(runs_dir) / PLAN, json.dumps(content, indent=1) + "\n")


def _entry(job: Job, row: pd.Series, gpus: int) -> dict[str, Any]:
    minutes = row["minutes"]
    resources = {
        "mem_mb": math.ceil(1000 * _MEMORY_LIMIT * row["memory_gb"]),
        "runtime": max(_LEAST_MINUTES, math.ceil(_TIME_LIMIT * minutes)),
        "gpu": int(gpus > 0 and row["trains"]),
    }
    configs = [asdict(config) for config in job.configs]
    return {"needs": job.needs, "resources": resources, "configs": configs}


def read_job(name: str, runs_dir: Path) -> tuple[Job, dict[str, Any]]:
    """A job of the plan that was written last, and the plan."""
    content = json.loads((work.workflow_folder(runs_dir) / PLAN).read_text())
    entry, stage = content["jobs"][name], name.partition("/")[0]
    configs = tuple(CONFIGS[stage].from_dict(each) for each in entry["configs"])
    return Job(name=name, configs=configs, needs=tuple(entry["needs"])), content
