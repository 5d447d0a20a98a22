"""A job's work, whether it is finished, and where its log and its marker are."""

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

from belib import results, runs, training
from belib.grid import NO_DATASET, Job


def workflow_folder(runs_dir: Path) -> Path:
    """Where Snakemake works: plan, markers, and its own notes."""
    return runs_dir / "workflow"


def marker(job: Job, runs_dir: Path) -> Path:
    """The file that tells Snakemake that a job is finished; nothing else is its output."""
    return workflow_folder(runs_dir) / "finished" / job.name


def log(job: Job, runs_dir: Path) -> Path:
    """What a job printed, all its tries; an executed notebook lies beside it."""
    return runs_dir / "logs" / f"{job.name}.log"


def folders(job: Job, runs_dir: Path) -> list[Path]:
    """Its members' folders."""
    if job.stage == "collect":
        return [config.folder(runs_dir) for config in job.configs]
    if is_baselines(job):
        names = [name.replace(" ", "-") for name in results.BASELINES]
        return [config.folder(runs_dir, name) for config in job.learning for name in names]
    return [config.folder(runs_dir) for config in job.learning]


def is_baselines(job: Job) -> bool:
    """Whether a job of the stage offline learns nothing."""
    return any(getattr(config, "dataset", "") == NO_DATASET for config in job.configs)


def finished(job: Job, runs_dir: Path) -> bool:
    """Whether all that the job makes is on disk, whoever made it."""
    if not job.configs:
        return marker(job, runs_dir).exists() and log(job, runs_dir).with_suffix(".ipynb").exists()
    if job.stage == "collect":
        members = zip(job.collecting, folders(job, runs_dir), strict=True)
        return all(training.is_collected(config, folder) for config, folder in members)
    steps = min(config.num_steps for config in job.learning)
    return all(training.last_step(folder) >= steps for folder in folders(job, runs_dir))


def check(jobs: Sequence[Job], runs_dir: Path) -> None:
    """ValueError where a folder was made with other params, which it names, as `runs` does."""
    for job in jobs:
        if not is_baselines(job):
            runs.check_folders(folders(job, runs_dir), job.configs)


def run(job: Job, runs_dir: Path, checkpoint_minutes: float) -> None:
    """Do what is left of a job's work; raises what `pretrain` and `train_offline` raise."""
    print(f"--- {time.strftime('%F %T')}, process {os.getpid()} on {platform.node()}", flush=True)
    if is_baselines(job):
        training.evaluate_baselines(job.learning, runs_dir=runs_dir)
        return
    stage = {"collect": training.pretrain, "offline": training.train_offline}[job.stage]
    stage(job.configs, runs_dir=runs_dir, checkpoint_minutes=checkpoint_minutes)
