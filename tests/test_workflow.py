"""The grid as people run it: through Snakemake, killed, failing, and handed to SLURM."""

import contextlib
import hashlib
import importlib.util
import os
import re
import shlex
import stat
import subprocess
import sys
import time

import pandas as pd
import psutil
import pytest
from grid import main
from jobs import read

from belib import runs
from belib.paths import ROOT

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("snakemake") is None, reason="Snakemake is not installed"
)
ODD = 'it\'s 1 {3} {name} [x] $HOME "ü" %20#'
"""A folder's name with all that shells, Snakemake, make and papermill give a meaning."""


def start(runs_dir, *options, **changes):
    """Start the grid at scale smoke with two jobs at a time."""
    words = [sys.executable, "workflow/grid.py", "run", "--runs-dir", runs_dir, "--cores", "2"]
    env = {**os.environ, "OMP_NUM_THREADS": "1", **changes}
    files = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen([*words, *options], cwd=ROOT, env=env, text=True, **files)


def run(runs_dir, *options, **changes):
    """The grid's exit status and all that it printed."""
    process = start(runs_dir, *options, **changes)
    told, _ = process.communicate()
    return process.returncode, told


def test_snakemake_takes_the_whole_grid_in_a_folder_of_any_name(tmp_path):
    status, told = run(tmp_path / ODD, "--dry-run", "--gpus", "1")
    assert status == 0, told
    jobs = read("smoke")
    assert re.search(rf"^total +{len(jobs) + 1}$", told, re.MULTILINE)  # and `all`
    assert not (tmp_path / ODD / "datasets").exists()
    assert (tmp_path / ODD / "workflow" / "params" / "grid.smoke.yaml").exists()
    table = pd.read_csv(tmp_path / ODD / "workflow" / "plan.csv", index_col="job")
    assert table.index.tolist() == [job.name for job in jobs]
    for name, row in table.iterrows():
        assert shlex.split(row["command"])[-1] == name
        assert row["mem_mb"] >= 1000
        assert row["runtime"] >= 30
        assert row["gpu"] == any(
            word in name for word in ("offline", "shannon", "beh", "baselines")
        )


def test_what_cannot_run_is_refused_before_anything_is_written(tmp_path, make_dataset, capsys):
    make_dataset()  # at another scale
    data = tmp_path / "datasets"
    for words, told in (
        (["--only", "walker/shanon"], "(nearest: '"),
        (["--scale", "papper"], "scale must be one of"),
        (["--cores", "0"], "cores must be at least 1, got 0"),
        (["--only", "collect/walker/random"], "another configuration (scale: test there, smoke"),
    ):
        assert main(["run", "--runs-dir", str(tmp_path), *words]) == 2
        assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [data]
    with pytest.raises(SystemExit):
        main(["plan", "--scale", "smoke", "--oly", "walker"])
    assert "unrecognized arguments: --oly walker" in capsys.readouterr().err


def test_a_second_engine_is_refused(tmp_path):
    with runs.locked([tmp_path / "workflow"]):
        status, told = run(tmp_path, "--only", "collect/walker/random-s0")
    assert status == 2
    assert f"workflow is in use by process {os.getpid()}" in told


@pytest.mark.slow  # Snakemake's plugin waits for the queue
def test_slurm_is_asked_for_what_the_plan_says(tmp_path):
    """By a SLURM that takes every job, writes down what it is asked for, and lets it fail."""
    scripts = {"sbatch": f'printf "%s\\n" "$*" >>"{tmp_path}/submitted"; echo 7'}
    scripts |= {"squeue": 'echo "7|FAILED"', "scontrol": 'echo "MinJobAge = 300 sec"'}
    scripts |= {"sinfo": 'printf "PARTITION\\nwork*\\n"', "scancel": "exit 0"}
    scripts |= dict.fromkeys(("sacct", "sacctmgr", "sshare"), "exit 1")
    (tmp_path / "bin").mkdir()
    for name, script in scripts.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / name).chmod(stat.S_IRWXU)
    words = ["--profile", "slurm", "--gpus", "1", "--only", "collect/walker/shannon-s0"]
    words += ["--slurm-status-command", "squeue", "--retries", "0"]
    words += ["--slurm-init-seconds-before-status-checks", "1"]
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    status, told = run(tmp_path / "runs", *words, PATH=path)
    assert status == 1, told
    (submitted,) = (tmp_path / "submitted").read_text().splitlines()
    plan = pd.read_csv(tmp_path / "runs/workflow/plan.csv", index_col="job")
    row = plan.loc["collect/walker/shannon-s0"]
    asked = ["--cpus-per-task=1", "--gpus=1", f"--mem {row['mem_mb']}", f"-t {row['runtime']}"]
    for option in (*asked, "-p work"):
        assert option in submitted, submitted
    assert "--target-jobs 'job:name=collect/walker/shannon-s0'" in submitted


def contents(runs_dir):
    """Digests of the files that are the same whenever they are made: no logs, no Snakemake."""
    return {
        str(file.relative_to(runs_dir)): hashlib.sha256(file.read_bytes()).hexdigest()
        for folder in ("datasets", "offline")
        for file in sorted((runs_dir / folder).rglob("*"))
        if file.is_file() and file.name not in ("checkpoint.pt", runs.LOCK)
    }


PART = ("--only", "collect/walker/random-s0 */shannon-s0/td3", "--checkpoint-minutes", "0.01")


def kill_during(stage, runs_dir):
    """Begin the grid; once a job of a stage has written, kill the engine, and leave the job.

    The job is stopped, so that it cannot end before the next engine meets it.
    """
    engine = start(runs_dir, *PART)
    at_work = {"collect": "datasets/*/*/buffer/*.npz", "offline": "offline/*/*/*/*/config.yaml"}
    left = None
    while not left:
        assert engine.poll() is None, engine.communicate()
        time.sleep(0.05)
        for process in psutil.Process(engine.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it has just ended
                job = any(word.startswith(f"{stage}/") for word in process.cmdline())
                if job and process.name() != "bash" and any(runs_dir.glob(at_work[stage])):
                    process.suspend()
                    left = process
    for process in (*psutil.Process(engine.pid).children(recursive=True), engine):
        with contextlib.suppress(psutil.Error):
            if process != left:
                process.kill()
    engine.wait()
    assert left.status() == psutil.STATUS_STOPPED
    return left


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["collect", "offline"])
def test_killed_at_any_moment_it_ends_in_the_same_bytes(stage, tmp_path):
    """The engine dies; one job is left, and the next engine's job waits for it."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    status, told = run(whole, *PART)
    assert status == 0, told
    left = kill_during(stage, killed)
    engine = start(killed, *PART)
    waits = f"is in use by process {left.pid} on "
    while not any(waits in log.read_text() for log in (killed / "logs").rglob("*.log")):
        assert engine.poll() is None, engine.communicate()
        time.sleep(0.1)
    left.resume()
    told, _ = engine.communicate()
    assert engine.returncode == 0, told
    assert contents(killed) == contents(whole)
    status, told = run(killed, *PART)
    assert status == 0, told
    assert "about 0.0 hours" in told


@pytest.mark.slow
def test_a_failed_job_is_told_and_the_rest_goes_on(tmp_path):
    targets = ["collect/walker/random-s0", "collect/walker/shannon-s0"]
    status, told = run(tmp_path / ODD, "--only", " ".join(targets))
    assert status == 0, told
    file = next((tmp_path / ODD).glob("datasets/walker/random-s0/buffer/*.npz"))
    file.write_bytes(file.read_bytes()[:1000])
    targets = ["offline/walker/random-s0/td3", "offline/walker/shannon-s0/crr"]
    status, told = run(tmp_path / ODD, "--only", " ".join(targets), "--retries", "0")
    assert status == 1
    assert f"DatasetError: {file}" in told
    finished = tmp_path / ODD / "workflow" / "finished"
    assert (finished / targets[1]).exists()
    assert not (finished / targets[0]).exists()
