"""Snakemake over the jobs of a grid: what a killed one left is ended first, what failed is told."""

import importlib.util
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from belib import paths, runs
from belib.grid import Job, work

VARIABLE = "BELIB_GRID"
"""In the environment of every process of a grid: its runs_dir."""

SNAKEFILE = paths.ROOT / "workflow" / "Snakefile"
_GRACE = 10.0  # seconds between asking a process to end and ending it
_ROUNDS = 3

# The first line of a log that says what went wrong, as Python and Snakemake's shells write it.
_PYTHON = r"(?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt|Killed)\b"
_SHELL = r"\S*sh: (?:line )?\d+: "
_ERROR = re.compile(rf"^(?:{_PYTHON}|{_SHELL}).*", re.MULTILINE)
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


@contextmanager
def alone(runs_dir: Path) -> Iterator[None]:
    """Be the only engine of a runs_dir, with nothing left of one that was killed.

    Its processes are ended, not waited for: no engine would see their result, and their work is
    continued from checkpoints. Raises InUseError where an engine runs, here, or on another host, of
    which this one cannot see whether it still does.
    """
    folder = work.workflow_folder(runs_dir)
    file = folder / runs.LOCK
    before = file.read_text() if file.exists() else ""
    host = before.rpartition(" on ")[2]
    if host not in ("", platform.node()):
        raise runs.InUseError(
            f"{runs_dir} is the grid of {before}, which cannot be seen from {platform.node()}. "
            f"If it does not run any more, remove {file}"
        )
    with runs.locked([folder]):
        end_all(runs_dir)
        try:
            yield
        finally:
            end_all(runs_dir)


def end_all(runs_dir: Path) -> None:
    """End what runs for a grid in `runs_dir`, and what a dying Snakemake begins meanwhile."""
    for _ in range(_ROUNDS):
        if left := processes(runs_dir):
            end(left)


def processes(runs_dir: Path) -> list[psutil.Process]:
    """What runs on this host for a grid in `runs_dir`, but for this process and its parents."""
    own, found = {os.getpid(), *(each.pid for each in psutil.Process().parents())}, []
    for process in psutil.process_iter():
        try:
            if process.pid not in own and process.environ().get(VARIABLE) == str(runs_dir):
                found.append(process)
        except psutil.Error:  # it has just ended, or is another user's
            continue
    return found


def end(left: Sequence[psutil.Process]) -> None:
    """End processes by their ids, at first by asking."""
    for process in left:
        try:
            words = " ".join(process.cmdline())[-100:]
            print(f"Process {process.pid}, left by a killed engine, is ended: {words}")
            process.terminate()
        except psutil.NoSuchProcess:
            continue
    _, alive = psutil.wait_procs(left, timeout=_GRACE)
    for process in alive:
        process.kill()
    psutil.wait_procs(alive, timeout=_GRACE)


def mark(jobs: Sequence[Job], runs_dir: Path) -> None:
    """Let markers say what is on disk: new for what is finished, removed for what is not.

    A new one is as old as what it stands for, so that nothing after it runs again.
    """
    for job in jobs:
        file, done = work.marker(job, runs_dir), work.finished(job, runs_dir)
        if done and not file.exists():
            paths.writable_folder(file.parent)
            file.touch()
            made = max((_changed(folder) for folder in work.folders(job, runs_dir)), default=0.0)
            os.utime(file, (made, made))
        elif file.exists() and not done:
            print(f"{job.name} is marked as finished and is not: it runs again")
            file.unlink()


def _changed(folder: Path) -> float:
    found = [folder / name for name in ("card.json", "results.csv") if (folder / name).exists()]
    return max(file.stat().st_mtime for file in found)


def snakemake(runs_dir: Path, profile: str, options: Sequence[str]) -> int:
    """Run Snakemake on the plan in `runs_dir`; its exit status. Signals are passed on to it."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE)]
    command += ["--directory", str(work.workflow_folder(runs_dir))]
    command += ["--profile", str(SNAKEFILE.parent / "profiles" / profile), *options]
    process = subprocess.Popen(command, env={**os.environ, VARIABLE: str(runs_dir)})
    before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # Snakemake has had it too, and ends its jobs
                continue
    finally:
        signal.signal(signal.SIGTERM, before)


def check_installed() -> None:
    """ImportError or FileNotFoundError that says what is missing and how to get it."""
    if importlib.util.find_spec("snakemake") is None:
        raise ImportError(
            "the grid needs Snakemake: `make grid` installs it, and so does\n"
            "    pip install -c constraints.txt -e '.[workflow]'"
        )
    if not SNAKEFILE.exists():
        raise FileNotFoundError(f"the grid runs in the project's repository: no {SNAKEFILE}")


def check_paths(runs_dir: Path, profile: str) -> None:
    """ValueError for a path that would mean something to the shells of a cluster's executor.

    Snakemake's do not quote it; on this machine, `workflow/Snakefile` sees to any.
    """
    for path in map(str, (sys.executable, SNAKEFILE, runs_dir)):
        if profile != "local" and shlex.quote(path) != path:
            rule = "without spaces, quotes, braces and the like"
            raise ValueError(f"paths must be {rule} for the profile {profile}, got {path}")


def local_resources(gpus: int) -> list[str]:
    """Snakemake's options that keep jobs on this machine within its memory and GPUs."""
    memory = psutil.virtual_memory().total // 10**6
    return ["--resources", f"mem_mb={memory}", f"gpu={gpus}"]


def failures(jobs: Sequence[Job], runs_dir: Path, begun: float) -> str:
    """What failed since `begun` (s), with its log and first error line; empty where all is done."""
    left = [job for job in jobs if not work.marker(job, runs_dir).exists()]
    failed = [job for job in left if _tried(work.log(job, runs_dir), begun)]
    if not left:
        return ""
    lines = [f"{len(failed)} of {len(jobs)} jobs failed, {len(left) - len(failed)} did not run:"]
    for job in failed:
        log = work.log(job, runs_dir)
        lines += [f"  {job.name}", f"    log: {log}", f"    {first_error(log.read_text())}"]
    return "\n".join(lines)


def _tried(log: Path, begun: float) -> bool:
    return log.exists() and log.stat().st_mtime >= begun


def first_error(text: str) -> str:
    """The first error line of the last try in a log."""
    text = _COLOR.sub("", text).rpartition("\n--- ")[2]
    found = _ERROR.search(text)
    if found:
        return found[0][: 2 * shutil.get_terminal_size((120, 24)).columns]
    lines = text.strip().splitlines()
    return f"no error line, it may have been killed; its last line: {lines[-1] if lines else ''}"


def run(jobs: Sequence[Job], runs_dir: Path, *, profile: str, options: Sequence[str]) -> int:
    """Snakemake on jobs whose plan is written; the failures are printed. 0 where all is done."""
    begun = time.time()
    status = snakemake(runs_dir, profile, options)
    if {"-n", "--dry-run", "--dryrun"}.intersection(options):
        return status
    told = failures(jobs, runs_dir, begun)
    print(told or f"All {len(jobs)} jobs are finished: {runs_dir}")
    return 1 if told or status else 0
