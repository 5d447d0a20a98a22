"""The grid as people run it: through Snakemake, killed, failing, and handed to SLURM."""

import contextlib
import os
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
from test_pretrain import contents

from belib import runs
from belib.paths import ROOT

snakemake = pytest.importorskip("snakemake.cli", reason="Snakemake is not installed")
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


def test_the_plan_is_written_for_snakemake(tmp_path, an_hour, monkeypatch):
    asked = []
    monkeypatch.setattr(snakemake, "main", lambda words: asked.extend(words) or 0)
    assert main(["run", "--runs-dir", str(tmp_path / ODD), "--gpus", "1", "--dry-run"]) == 0
    assert asked[-2:] == ["gpu=1", "--dry-run"]
    assert (tmp_path / ODD / "workflow" / "params" / "grid.smoke.yaml").exists()
    table = pd.read_csv(tmp_path / ODD / "workflow" / "plan.csv", index_col="job")
    assert table.index.tolist() == [job.name for job in read("smoke")]
    assert [shlex.split(command)[-1] for command in table["command"]] == table.index.tolist()
    assert set(table["mem_mb"]) == {3000, 4500}
    assert set(table["runtime"]) == {30, 180}
    learns = table.index.str.contains("offline|shannon|beh")
    assert (table["gpu"] == learns).all()


def test_what_cannot_run_is_refused_before_anything_is_written(tmp_path, make_dataset, capsys):
    make_dataset()  # at another scale
    data = tmp_path / "datasets"
    for words, told in (
        (["--only", "walker/shanon"], "(nearest: '"),
        (["--scale", "papper"], "04_pretrain.papper.yaml"),
        (["--cores", "0"], "cores must be at least 1, got 0"),
        (["--only", "collect/walker/random"], "another configuration (scale: test there, smoke"),
    ):
        assert main(["run", "--runs-dir", str(tmp_path), *words]) == 2
        assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [data]
    with pytest.raises(SystemExit):
        main(["plan", "--scale", "smoke", "--oly", "walker"])
    assert "unrecognized arguments: --oly walker" in capsys.readouterr().err


def test_a_second_engine_is_refused(tmp_path, an_hour, capsys):
    with runs.locked([tmp_path / "workflow"]):
        assert main(["run", "--runs-dir", str(tmp_path)]) == 2
    assert f"workflow is in use by process {os.getpid()}" in capsys.readouterr().err


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
    name = "collect/walker/shannon-s0"
    words = f"--profile slurm --gpus 1 --only {name} --slurm-status-command squeue --retries 0"
    words += " --slurm-init-seconds-before-status-checks 1"
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    status, told = run(tmp_path / "runs", *words.split(), PATH=path)
    assert status == 1, told
    (submitted,) = (tmp_path / "submitted").read_text().splitlines()
    row = pd.read_csv(tmp_path / "runs/workflow/plan.csv", index_col="job").loc[name]
    asked = ["--cpus-per-task=1", "--gpus=1", f"--mem {row['mem_mb']}", f"-t {row['runtime']}"]
    for option in (*asked, "-p work", f"--target-jobs 'job:name={name}'"):
        assert option in submitted, submitted


PART = ("--only", "collect/walker/random-s0 */shannon-s0/td3", "--checkpoint-minutes", "0.01")


@pytest.mark.slow
@pytest.mark.parametrize("written", ["datasets/*/*/buffer/*.npz", "offline/*/*/*/*/config.yaml"])
def test_killed_at_any_moment_it_ends_in_the_same_bytes(written, tmp_path):
    """The engine and its jobs are killed once a file of the stage is there."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    status, told = run(whole, *PART)
    assert status == 0, told
    engine = start(killed, *PART)
    while not any(killed.glob(written)):
        assert engine.poll() is None, engine.communicate()
        time.sleep(0.05)
    for process in (engine, *psutil.Process(engine.pid).children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # it has just ended
            process.kill()
    engine.wait()
    status, told = run(killed, *PART)
    assert status == 0, told
    for name in ("datasets", "offline"):
        assert contents(killed / name) == contents(whole / name)
    assert "about 0.0 hours" in run(killed, *PART)[1]


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
