"""The whole experiment from a shell: `python -m belib.grid plan --scale paper`, or `make grid`."""

import argparse
import os
import sys
from pathlib import Path

import pandas as pd
import torch

from belib import grid, paths, runs
from belib.config.checks import AT_LEAST_ONE, AT_LEAST_ZERO, check_type
from belib.grid import engine, plan, work

EXIT_CODES = "Exit status: 0 all is finished, 1 jobs failed, 2 refused before anything ran."


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    whole = argparse.ArgumentParser(
        prog="python -m belib.grid", description=__doc__, epilog=EXIT_CODES
    )
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, words in (
        ("plan", "show jobs, hours and disk, and run nothing"),
        ("run", "run with Snakemake what is not finished; further options are Snakemake's"),
    ):
        command = commands.add_parser(name, help=words, description=words)
        command.add_argument("--scale", default="smoke", help="params/grid.<scale>.yaml")
        command.add_argument("--runs-dir", help="where everything goes; runs/<scale>")
        command.add_argument("--only", default="", help="targets: walker/behavioral-0.5 */td3")
        command.add_argument("--cores", type=int, default=os.cpu_count(), help="jobs at a time")
        command.add_argument("--gpus", type=int, default=_gpus(), help="that jobs may hold at once")
        command.add_argument("--profile", default="local", help="of workflow/profiles")
        command.add_argument("--checkpoint-minutes", type=float, default=5.0)
    job = commands.add_parser("job", help="do one job of the plan; what Snakemake calls")
    job.add_argument("name")
    job.add_argument("--runs-dir", required=True)
    return whole


def _gpus() -> int:
    """One at most: jobs of one machine share its first GPU, a cluster gives each its own."""
    return min(torch.cuda.device_count(), 1)


def show_plan(jobs: list[grid.Job], table: pd.DataFrame, cores: int) -> None:
    """Print the plan's table and the hours."""
    shown = plan.summary(table)
    with pd.option_context("display.width", 120, "display.float_format", "{:.2f}".format):
        print(shown.to_string(index=False))
    hours = table["minutes"].sum() / 60
    on_cores = f"of a core here, {hours / cores:.1f} on {cores} cores at best"
    print(
        f"{len(jobs)} jobs, {int(table['finished'].sum())} of them finished. What is left takes "
        f"about {hours:.1f} hours {'on the GPU here' if _gpus() else on_cores}"
    )


def run(arguments: argparse.Namespace, options: list[str]) -> int:
    """Check, clean up after a killed engine, and run; the exit status."""
    check_type("cores", arguments.cores, int, AT_LEAST_ONE)
    check_type("gpus", arguments.gpus, int, AT_LEAST_ZERO)
    check_type("checkpoint_minutes", arguments.checkpoint_minutes, float, AT_LEAST_ZERO)
    jobs = grid.select(grid.read(arguments.scale), arguments.only.replace(",", " ").split())
    runs_dir = paths.resolve(arguments.runs_dir or f"runs/{arguments.scale}").resolve()
    if arguments.command == "run":
        engine.check_installed()
        engine.check_paths(runs_dir, arguments.profile)
        work.check(jobs, runs_dir)
    torch.set_num_threads(1)  # as jobs have
    table = plan.costs(jobs, runs_dir)
    show_plan(jobs, table, arguments.cores)
    if arguments.command == "plan":
        print(plan.disk_needed(table, runs_dir))
        return 0
    plan.check_disk(table, runs_dir)
    with engine.alone(runs_dir):
        engine.mark(jobs, runs_dir)
        settings = {"checkpoint_minutes": arguments.checkpoint_minutes, "scale": arguments.scale}
        plan.write(jobs, table, runs_dir, gpus=arguments.gpus, **settings)
        if arguments.profile == "local":
            options = [
                "--cores",
                str(arguments.cores),
                *engine.local_resources(arguments.gpus),
                *options,
            ]
        return engine.run(jobs, runs_dir, profile=arguments.profile, options=options)


def main(words: list[str] | None = None) -> int:
    """Run a command line; its exit status."""
    known = parser()
    arguments, options = known.parse_known_args(words)
    if options and arguments.command != "run":  # whose further options are Snakemake's
        known.error(f"unrecognized arguments: {' '.join(options)}")
    if arguments.command == "job":
        runs_dir = Path(arguments.runs_dir)
        job, settings = plan.read_job(arguments.name, runs_dir)
        work.run(job, runs_dir, settings["checkpoint_minutes"])
        return 0
    try:
        return run(arguments, options)
    except (ValueError, TypeError, OSError, ImportError, runs.InUseError) as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
