"""What the jobs of a grid cost, and the file in which they are handed to Snakemake."""

import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from belib import estimates, paths
from belib.config import OfflineConfig, PretrainConfig
from belib.grid import Job, work

PLAN = "plan.json"
CONFIGS = {"collect": PretrainConfig, "offline": OfflineConfig}

# A notebook of many datasets: maps of 170,000 states took 5 minutes and 1 GB (see notebook 06).
_NOTEBOOK = {"minutes": 20.0, "memory_gb": 3.0, "disk_gb": 0.1}

# A limit for the engine, not an estimate: a job that it ends goes on at the next try.
_LIMIT, _LEAST_MINUTES = 3.0, 30


def costs(jobs: Sequence[Job], runs_dir: Path) -> pd.DataFrame:
    """A row a job: stage, domain, members, finished, minutes, memory_gb, disk_gb, gpu.

    What is finished costs nothing. Times are of this machine, by `belib.estimates`.
    """
    rows = []
    for job in jobs:
        finished = work.finished(job, runs_dir)
        domain = job.name.split("/")[1] if "/" in job.name else ""
        row = {"job": job.name, "stage": job.stage, "domain": domain, "members": len(job.configs)}
        row |= {"finished": finished, "gpu": uses_gpu(job)}
        rows.append(row | (dict.fromkeys(_NOTEBOOK, 0.0) if finished else _cost(job)))
    return pd.DataFrame(rows)


def uses_gpu(job: Job) -> bool:
    """Whether a job has networks to train."""
    return any(getattr(config, "objective", "") != "random" for config in job.configs)


def _cost(job: Job) -> dict[str, float]:
    if not job.configs:
        return _NOTEBOOK
    found = estimates.estimate(job.configs)
    return {name: getattr(found, name) for name in _NOTEBOOK}


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """`costs` by stage and domain, and in total."""
    kinds = {"jobs": ("job", "count"), "finished": ("finished", "sum")}
    kinds |= {"members": ("members", "sum"), "hours": ("hours", "sum")}
    kinds |= {"memory_gb": ("memory_gb", "max"), "disk_gb": ("disk_gb", "sum")}
    table = table.assign(hours=table["minutes"] / 60)
    rows = table.groupby(["stage", "domain"], sort=False).agg(**kinds).reset_index()
    total = table.assign(stage="total", domain="").groupby(["stage", "domain"]).agg(**kinds)
    return pd.concat([rows, total.reset_index()], ignore_index=True)


def check_disk(table: pd.DataFrame, runs_dir: Path) -> None:
    """OSError where what is left of the jobs needs more disk than is free, by estimate."""
    there = next(folder for folder in (runs_dir, *runs_dir.parents) if folder.exists())
    free, needed = shutil.disk_usage(there).free / 1e9, table["disk_gb"].sum()
    if needed > free:
        raise OSError(
            f"{runs_dir} needs about {needed:.1f} GB for these jobs and {there} has {free:.1f} GB "
            "free: choose another runs_dir, or a part of the grid"
        )


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
    resources = {
        "mem_mb": math.ceil(1000 * row["memory_gb"]),
        "runtime": max(_LEAST_MINUTES, math.ceil(_LIMIT * row["minutes"])),
        "gpu": int(gpus > 0 and row["gpu"]),
    }
    configs = [asdict(config) for config in job.configs]
    return {"needs": job.needs, "resources": resources, "configs": configs}


def read_job(name: str, runs_dir: Path) -> tuple[Job, dict[str, Any]]:
    """A job of the plan that was written last, and the plan."""
    content = json.loads((work.workflow_folder(runs_dir) / PLAN).read_text())
    entry, stage = content["jobs"][name], name.partition("/")[0]
    configs = tuple(CONFIGS[stage].from_dict(each) for each in entry["configs"])
    return Job(name=name, configs=configs, needs=tuple(entry["needs"])), content
