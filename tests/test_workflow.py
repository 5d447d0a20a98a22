"""The grid as people run it: through Snakemake, killed, failing, and handed to SLURM."""

import hashlib
import importlib.util
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time

import pytest
import yaml

from belib import grid
from belib.grid import engine, work
from belib.grid.__main__ import main
from belib.paths import ROOT

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("snakemake") is None, reason="Snakemake is not installed"
)
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


def command(runs_dir, *options):
    words = [sys.executable, "-m", "belib.grid", "run", "--scale", "smoke"]
    return [*words, "--runs-dir", str(runs_dir), "--cores", "2", *options]


def run(runs_dir, *options):
    """The grid's exit status and all that it printed."""
    done = subprocess.run(
        command(runs_dir, *options),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env=ONE_THREAD,
    )
    return done.returncode, done.stdout


def test_snakemake_takes_the_whole_grid(tmp_path, capfd):
    words = ["run", "--scale", "smoke", "--runs-dir", str(tmp_path), "--dry-run"]
    assert main(words) == 0
    jobs = len(grid.read("smoke"))
    assert re.search(rf"^total +{jobs + 1}$", capfd.readouterr().out, re.MULTILINE)  # and `all`
    assert not (tmp_path / "datasets").exists()


def test_what_cannot_run_is_refused_before_anything_is_written(tmp_path, capsys):
    for words in (["--only", "walker/shanon"], ["--scale", "papper"]):
        assert main(["run", "--runs-dir", str(tmp_path / "runs"), *words]) == 2
        assert "(nearest: '" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("profile", ["local", "slurm"])
def test_profiles_keep_going_and_resume(profile):
    settings = yaml.safe_load((ROOT / "workflow/profiles" / profile / "config.yaml").read_text())
    assert settings["keep-going"] is settings["rerun-incomplete"] is True
    assert settings["retries"] >= 1


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A SLURM that takes every job, writes down what it is asked for, and lets it fail."""
    folder = tmp_path / "bin"
    folder.mkdir()
    scripts = {
        "sbatch": f'printf "%s\\n" "$*" >>{tmp_path}/submitted; echo 7',
        "squeue": 'echo "7|FAILED"',
        "scontrol": 'echo "MinJobAge = 300 sec"',
        "sinfo": 'printf "PARTITION\\nwork*\\n"',
        "sacct": "exit 1",
        "sacctmgr": "exit 1",
        "sshare": "exit 1",
        "scancel": "exit 0",
    }
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.usefixtures("slurm")
def test_slurm_is_asked_for_what_the_plan_says(tmp_path, capfd):
    words = ["run", "--runs-dir", str(tmp_path / "runs"), "--profile", "slurm", "--gpus", "1"]
    words += ["--only", "collect/walker/shannon-s0", "--slurm-status-command", "squeue"]
    words += ["--slurm-init-seconds-before-status-checks", "1", "--retries", "0"]
    assert main(words) == 1
    assert "1 of 1 jobs failed" in capfd.readouterr().out
    (submitted,) = (tmp_path / "submitted").read_text().splitlines()
    plan = json.loads((tmp_path / "runs/workflow/plan.json").read_text())
    resources = plan["jobs"]["collect/walker/shannon-s0"]["resources"]
    assert resources["gpu"] == 1
    asked = ["--cpus-per-task=1", "--gpus=1", f"--mem {resources['mem_mb']}"]
    for option in (*asked, f"-t {resources['runtime']}", "--export=ALL", "-p work"):
        assert option in submitted, submitted
    assert "--target-jobs 'collect:name=walker/shannon-s0'" in submitted


def contents(runs_dir):
    """The digest of every file that is the same whenever it is made: no logs, no Snakemake."""
    return {
        str(file.relative_to(runs_dir)): hashlib.sha256(file.read_bytes()).hexdigest()
        for folder in ("datasets", "offline")
        for file in sorted((runs_dir / folder).rglob("*"))
        if file.is_file() and file.name != "checkpoint.pt"
    }


def wait_for(condition, seconds=900):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.05)


PART = ("--only", "collect offline/walker/shannon-s0", "--checkpoint-minutes", "0.01")
"""Without notebooks, which make no bytes of their own, and without more of the same."""


def kill_during(stage, runs_dir):
    """Begin the grid and kill its engine and jobs, but for one of a stage, which is left over.

    It is held, or it could be done before the next engine looks for it.
    """
    begun = subprocess.Popen(
        command(runs_dir, *PART), cwd=ROOT, env=ONE_THREAD, stdout=subprocess.DEVNULL
    )

    def working(*words):
        found = ((each, each.cmdline()) for each in engine.processes(runs_dir))
        return [each for each, line in found if set(words) <= set(line)]

    def jobs(*stages):
        names = [job.name for job in grid.read("smoke") if job.stage in stages]
        return [process for name in names for process in working("belib.grid", "job", name)]

    at_work = {"collect": "datasets/*/*/buffer/*.npz", "offline": "offline/*/*/*/*/config.yaml"}
    wait_for(lambda: any(runs_dir.glob(at_work[stage])) and jobs(stage))
    left, *others = [*jobs(stage), *jobs(*{"collect", "offline"} - {stage})]
    left.suspend()
    for process in (begun, *working("snakemake"), *others):
        os.kill(process.pid, signal.SIGKILL)
    begun.wait()
    assert left.is_running()
    assert list((runs_dir / "workflow/.snakemake/locks").iterdir())
    return left


@pytest.mark.slow
def test_killed_at_any_moment_it_ends_in_the_same_bytes(tmp_path):
    """The engine dies with one job; its other job is there until the next engine ends it."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    status, told = run(whole, *PART)
    assert status == 0, told
    kill_during("collect", killed)
    left = kill_during("offline", killed)
    status, told = run(killed, *PART)
    assert status == 0, told
    assert f"Process {left.pid}, left by a killed engine, is ended" in told
    assert "lock is cleared: its engine (process" in told
    assert not engine.processes(killed)
    assert contents(killed) == contents(whole)
    status, told = run(killed, *PART)
    assert status == 0, told
    assert "Nothing to be done" in told


@pytest.mark.slow
def test_a_failed_job_is_told_and_the_rest_goes_on(tmp_path):
    targets = ["collect/walker/random-s0", "collect/walker/shannon-s0"]
    status, told = run(tmp_path, "--only", " ".join(targets))
    assert status == 0, told
    file = next(tmp_path.glob("datasets/walker/random-s0/buffer/*.npz"))
    file.write_bytes(file.read_bytes()[:1000])
    targets = ["offline/walker/random-s0/td3", "offline/walker/shannon-s0/crr"]
    status, told = run(tmp_path, "--only", " ".join(targets), "--retries", "0")
    assert status == 1
    assert "1 of 4 jobs failed, 0 did not run:\n  offline/walker/random-s0/td3\n" in told
    assert f"log: {tmp_path}/logs/offline/walker/random-s0/td3.log\n" in told
    assert f"DatasetError: {file}" in told
    good = next(job for job in grid.read("smoke") if job.name == targets[1])
    assert work.finished(good, tmp_path)
