"""Plan the experiment of a scale, run it with Snakemake, continue it after a kill.

    python workflow/grid.py plan --scale paper    # jobs, hours and memory; runs nothing
    python workflow/grid.py run --scale smoke     # further options are Snakemake's

Exit status: 0 finished, 1 jobs failed, 2 refused before anything ran.
"""

import argparse
import logging
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import papermill
import torch
from jobs import Job, folders, is_finished, read, select

from belib import cost, paths, runs, training
from belib.config import read_yaml
from belib.config.checks import check_type
from belib.gather import gather

HERE = Path(__file__).resolve().parent


def plan(jobs: Sequence[Job], runs_dir: Path) -> pd.DataFrame:
    """Return one row per job: whether it is finished, what it needs, and its remaining cost.

    A notebook is assumed to take a quarter of a minute for each job before it (measured: about 1
    and 4 after 8 and 41 jobs), and is executed again after any of them. Datasets' jobs come first.
    """
    sizes = {(c.domain, c.dataset): c.num_steps for job in reversed(jobs) for c in job.configs}
    rows, finished = [], set()
    for job in jobs:
        configs, remaining = job.configs, cost.Cost(0.25 * len(job.needs), 3.0)
        if is_finished(job, runs_dir) and (configs or finished.issuperset(job.needs)):
            finished.add(job.name)
            remaining = cost.Cost(0.0, 0.0)
        elif configs:
            if job.stage == "baselines":  # as long as two evaluations
                configs = [replace(config, num_steps=2, eval_every=1) for config in configs]
            size = sizes[configs[0].domain, configs[0].dataset]
            remaining = cost.estimate(configs, dataset_steps=size)
        row = {"job": job.name, "stage": job.stage, "domain": [*job.name.split("/"), ""][1]}
        row |= {"members": len(configs), "finished": job.name in finished, **remaining._asdict()}
        learners = [config for config in configs if getattr(config, "objective", "") != "random"]
        row["learns"] = len(learners) > 0 and job.stage != "baselines"
        rows.append(row | {"needs": " ".join(name for name in job.needs if name not in finished)})
    return pd.DataFrame(rows).set_index("job")


def show(table: pd.DataFrame, cores: int) -> None:
    """Print a plan by stage and domain, and its total hours."""
    table = table.assign(jobs=1, hours=table["minutes"] / 60)
    sums = dict.fromkeys(("jobs", "finished", "members", "hours"), "sum")
    groups = table.groupby(["stage", "domain"], sort=False).agg({**sums, "memory_gb": "max"})
    print(groups.round(2).to_string())
    hours, done = table["hours"].sum(), table["finished"].sum()
    on = "on the GPU" if torch.cuda.is_available() else f"of a core, {hours / cores:.1f} on {cores}"
    print(f"{len(table)} jobs, {done} finished. The rest takes about {hours:.1f} hours {on}")


def run(table: pd.DataFrame, runs_dir: Path, given: argparse.Namespace, options: list[str]) -> int:
    """Run a plan's jobs with Snakemake, from a copy of the params; return the exit status."""
    from snakemake.cli import main as snakemake  # the extra `workflow`

    logging.getLogger("snakemake").propagate = False  # the root logger would print it again
    folder, table = runs_dir / "workflow", table[~table["finished"]]
    command = [sys.executable, HERE / "grid.py", "job", "--scale", given.scale, "--runs-dir"]
    command += [runs_dir, "--checkpoint-minutes", given.checkpoint_minutes, "--only"]
    with runs.locked([folder]):
        shutil.copytree(paths.PARAMS, folder / "params", dirs_exist_ok=True)
        for name in table.index:
            (folder / "finished" / name).unlink(missing_ok=True)
        table = table.assign(
            mem_mb=(1500 * table["memory_gb"]).astype(int),
            runtime=(3 * table["minutes"]).clip(lower=30).astype(int),
            gpu=(table["learns"] & (given.gpus > 0)).astype(int),
            command=[shlex.join(map(str, [*command, name])) for name in table.index],
        )
        paths.write_text(folder / "plan.csv", table.to_csv())
        arguments = ["--nolock", "--snakefile", HERE / "Snakefile", "--directory", folder]
        arguments += ["--profile", HERE / "profiles" / given.profile]
        if given.profile == "local":
            memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 10**6
            arguments += ["--cores", given.cores, "--resources", f"mem_mb={memory}"]
            arguments += [f"gpu={given.gpus}"]
        return snakemake([*map(str, arguments), *options])  # it exits with its status


def work(job: Job, runs_dir: Path, given: argparse.Namespace) -> None:
    """Finish a job, after waiting for any process of a killed engine that still works on it."""
    options = {"runs_dir": runs_dir, "checkpoint_minutes": given.checkpoint_minutes}
    stages = {"collect": training.pretrain, "offline": training.train_offline}
    with runs.locked([runs_dir / "workflow" / "jobs" / job.name], wait=True):
        if job.stage in stages:
            stages[job.stage](job.configs, **options)
        elif job.stage == "baselines":
            training.evaluate_baselines(job.configs, runs_dir=runs_dir)
        elif job.stage == "coverage":
            values = read_yaml(paths.PARAMS / f"06_coverage_plots.{given.scale}.yaml")
            values |= {"domain": job.name.split("/")[1], "runs_dir": str(runs_dir)}
            execute("06_coverage_plots", values, runs_dir / f"logs/{job.name}.ipynb")
        else:
            variant = "observation" if given.scale in ("gate", "study") else ""  # see docs/study.md
            source = gather(runs_dir, runs_dir / "report" / given.scale)
            values = {"source": str(source), "variant": variant}
            execute("07_report", values, runs_dir / "logs/report.ipynb")


def execute(name: str, values: dict[str, object], to: Path) -> None:
    """Execute a notebook of the project with parameters, into the file `to`."""
    source = paths.ROOT / "notebooks" / f"{name}.ipynb"
    papermill.execute_notebook(source, to, parameters=values, progress_bar=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("command", choices=("plan", "run", "job"), help="Snakemake calls job")
    parser.add_argument("--scale", default="smoke", help="params/grid.<scale>.yaml")
    parser.add_argument("--runs-dir", help="output folder, by default runs/<scale>")
    parser.add_argument("--only", default="", help="targets: walker/behavioral-0.5 */td3")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="jobs at a time")
    gpus = min(torch.cuda.device_count(), 1)  # jobs of one machine share its first GPU
    parser.add_argument("--gpus", type=int, default=gpus, help="GPUs that jobs may use")
    parser.add_argument("--profile", default="local", help="of workflow/profiles")
    parser.add_argument("--checkpoint-minutes", type=float, default=5.0)
    given, options = parser.parse_known_args(arguments)
    if options and given.command != "run":
        parser.error(f"unrecognized arguments: {' '.join(options)}")
    runs_dir = paths.resolve(given.runs_dir or f"runs/{given.scale}").resolve()
    if given.command == "job":
        paths.PARAMS = runs_dir / "workflow" / "params"
        work(next(job for job in read(given.scale) if job.name == given.only), runs_dir, given)
        return 0
    try:
        check_type("cores", given.cores, int, "at least 1")
        jobs = select(read(given.scale), given.only.replace(",", " ").split())
        for job in jobs:
            if given.command == "run" and job.stage in ("collect", "offline"):
                runs.check_folders(folders(job, runs_dir), job.configs)
        torch.set_num_threads(1)  # as in jobs
        table = plan(jobs, runs_dir)
        show(table, given.cores)
        if given.command == "plan" or table["finished"].all():
            return 0
        return run(table, runs_dir, given, options)
    except (ValueError, TypeError, OSError, ImportError) as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
