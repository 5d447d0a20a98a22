"""The grid as people run it: through Snakemake, killed, failing, and handed to SLURM."""

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import shlex
import stat
import subprocess
import sys
import time

import psutil
import pytest
import yaml

from belib import grid
from belib.grid import engine, plan, work
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


ODD = 'it\'s 1 {3} {name} [x] $HOME "ü" %20#'
"""A folder's name with all that shells, Snakemake, make and papermill read as their own."""


def test_snakemake_takes_the_whole_grid(tmp_path, capfd):
    words = ["run", "--scale", "smoke", "--runs-dir", str(tmp_path / ODD), "--dry-run"]
    assert main(words) == 0
    jobs = len(grid.read("smoke"))
    assert re.search(rf"^total +{jobs + 1}$", capfd.readouterr().out, re.MULTILINE)  # and `all`
    assert not (tmp_path / ODD / "datasets").exists()


@pytest.fixture
def said(tmp_path, monkeypatch):
    """Runs Snakemake with a Python, a project and a runs_dir in odd folders, on jobs that only say
    what they were called with; the words of each.
    """
    odd = tmp_path / ODD
    folder, root = work.workflow_folder(odd / "runs"), odd / "project"
    for module in ("belib", "belib.grid", "belib.gather", "papermill"):  # before the installed ones
        package = folder / module.replace(".", "/")
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        words = f"['{module}', *sys.argv[1:]]"
        text = f"import json, sys\nprint(json.dumps({words}), file=open('said', 'a'))\n"
        (package / "__main__.py").write_text(text)
    (odd / "python").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(odd / "python"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path[1:]))

    def run(*names, scale):
        entry = {"needs": [], "resources": {"mem_mb": 1, "runtime": 1, "gpu": 0}}
        content = {"runs_dir": str(odd / "runs"), "root": str(root), "scale": scale}
        content["jobs"] = dict.fromkeys(names, entry)
        (folder / plan.PLAN).write_text(json.dumps(content))
        assert engine.snakemake(odd / "runs", "local", ["--cores", "1"]) == 0
        return [json.loads(line) for line in (folder / "said").read_text().splitlines()]

    return run


def test_jobs_are_called_with_paths_as_they_are(said, tmp_path):
    runs_dir, root = str(tmp_path / ODD / "runs"), str(tmp_path / ODD / "project")
    found = said("collect/walker/a-s0+1", "coverage/walker", "report", scale="it's")
    report = f"{runs_dir}/report/it's"
    for words in found:
        if words[0] == "papermill":  # which formats the names of notebooks
            words[2:4] = [word.format() for word in words[2:4]]
    coverage = ["papermill", "--no-progress-bar", f"{root}/notebooks/06_coverage_plots.ipynb"]
    coverage += [
        "../logs/coverage/walker.ipynb",
        "-f",
        f"{root}/params/06_coverage_plots.it's.yaml",
    ]
    coverage += ["-r", "domain", "walker", "-r", "runs_dir", runs_dir]
    shown = ["papermill", "--no-progress-bar", f"{root}/notebooks/07_report.ipynb"]
    shown += ["../logs/report.ipynb", "-r", "source", report]
    assert sorted(found) == sorted(
        [
            ["belib.grid", "job", "--runs-dir", runs_dir, "collect/walker/a-s0+1"],
            ["belib.gather", runs_dir, report],
            coverage,
            shown,
        ]
    )


def test_make_hands_on_what_was_typed():
    given = {"RUNS_DIR": ODD, "ONLY": "*/td3 it's"}
    words = ["make", "-n", "grid-plan", *(f"{name}={value}" for name, value in given.items())]
    # of a make that runs the tests, nothing is handed on
    env = {
        key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))
    }
    options = {"cwd": ROOT, "env": env, "capture_output": True, "text": True, "check": True}
    told = subprocess.run(words, **options).stdout
    *_, only, value, option, found = shlex.split(told.splitlines()[-1])
    assert (only, value, option, found) == ("--only", given["ONLY"], "--runs-dir", ODD)


def test_what_cannot_run_is_refused_before_anything_is_written(tmp_path, capsys):
    for words, told in (
        (["--only", "walker/shanon"], "(nearest: '"),
        (["--scale", "papper"], "(nearest: '"),
        (["--cores", "0"], "cores must be at least 1, got 0"),
        (["--gpus", "-1"], "gpus must be at least 0, got -1"),
        (["--checkpoint-minutes", "nan"], "checkpoint_minutes must be at least 0 and finite"),
    ):
        assert main(["run", "--runs-dir", str(tmp_path / "runs"), *words]) == 2
        assert told in capsys.readouterr().err
    assert main(["run", "--runs-dir", str(tmp_path / ODD), "--profile", "slurm"]) == 2
    told = capsys.readouterr().err
    assert f"for the profile slurm, got {tmp_path / ODD}" in told
    assert not list(tmp_path.iterdir())


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
        "sbatch": f'printf "%s\\n" "$*" >>"{tmp_path}/submitted"; echo 7',
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
    """What a condition gives, once that is something."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.05)
    return found


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
        for each in engine.processes(runs_dir):
            with contextlib.suppress(psutil.Error):  # it has just ended
                if set(words) <= set(each.cmdline()):
                    yield each

    def jobs(*stages):
        names = [job.name for job in grid.read("smoke") if job.stage in stages]
        return [process for name in names for process in working("belib.grid", "job", name)]

    at_work = {"collect": "datasets/*/*/buffer/*.npz", "offline": "offline/*/*/*/*/config.yaml"}

    def held():
        """A job that is at work and, from now on, stopped."""
        for process in jobs(stage) if any(runs_dir.glob(at_work[stage])) else []:
            with contextlib.suppress(psutil.Error):
                process.suspend()
                if process.status() == psutil.STATUS_STOPPED:
                    return process
        return None

    left = wait_for(held)
    begun.kill()
    for process in (*working("snakemake"), *jobs("collect", "offline")):
        if process != left:
            with contextlib.suppress(psutil.Error):
                process.kill()
    begun.wait()
    assert left.is_running()
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
