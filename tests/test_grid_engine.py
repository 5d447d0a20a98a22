"""What a killed engine leaves behind is ended and cleared; what failed is told."""

import os
import platform
import subprocess
import sys
import time

import psutil
import pytest

from belib import paths, runs
from belib.grid import Job, engine, work


@pytest.fixture
def sleeper():
    """Starts processes of a grid in a runs_dir, which are ended at the end if they still run."""
    started = []

    def start(runs_dir, code="pass"):
        words = f"import signal, time; {code}; print('on', flush=True); time.sleep(3600)"
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", words],
                env={**os.environ, engine.VARIABLE: str(runs_dir)},
                stdout=subprocess.PIPE,
            )
        )
        started[-1].stdout.readline()
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_processes_of_a_runs_dir_are_found_and_ended_by_id(tmp_path, sleeper, capsys):
    one, other = sleeper(tmp_path / "one"), sleeper(tmp_path / "other")
    assert [process.pid for process in engine.processes(tmp_path / "one")] == [one.pid]
    with engine.alone(tmp_path / "one"):
        assert not psutil.pid_exists(one.pid)
    assert f"Process {one.pid}, left by a killed engine, is ended" in capsys.readouterr().out
    assert psutil.Process(other.pid).is_running()


def test_processes_that_outlive_their_engine_are_ended_after_it(tmp_path, sleeper):
    with engine.alone(tmp_path):
        job = sleeper(tmp_path)
    assert not psutil.pid_exists(job.pid)


def test_what_does_not_end_when_asked_is_killed(tmp_path, sleeper, monkeypatch):
    monkeypatch.setattr(engine, "_GRACE", 0.2)
    process = sleeper(tmp_path, "signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    engine.end(engine.processes(tmp_path))
    assert not psutil.pid_exists(process.pid)


def test_an_engine_is_alone_until_it_is_dead(tmp_path):
    folder = work.workflow_folder(tmp_path)
    with engine.alone(tmp_path):
        message = f"workflow is in use by process {os.getpid()}"
        with pytest.raises(runs.InUseError, match=message), engine.alone(tmp_path):
            pytest.fail("two engines")
    (folder / runs.LOCK).write_text(f"process 12 on {platform.node()}")  # a killed one
    with engine.alone(tmp_path):
        pass


def test_an_engine_of_another_host_is_not_disturbed(tmp_path):
    folder = paths.writable_folder(work.workflow_folder(tmp_path))
    (folder / runs.LOCK).write_text("process 12 on elsewhere")
    message = "grid of process 12 on elsewhere, which cannot be seen .* remove .*/workflow/.lock"
    with pytest.raises(runs.InUseError, match=message), engine.alone(tmp_path):
        pytest.fail("two engines")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "a\nbelib.datasets.DatasetError: x has no card\nb",
            "belib.datasets.DatasetError: x has no card",
        ),
        ("KeyError: 'a'\n\nDuring handling, another:\nValueError: b\n", "KeyError: 'a'"),
        ("ValueError: of the first try\n--- 2026-01-01, process 3\nOSError: now", "OSError: now"),
        ("\x1b[0;31mRuntimeError\x1b[0m: in colour", "RuntimeError: in colour"),
        ("Killed\n", "Killed"),
        ("a\n/bin/bash: line 1: /a b: Is a directory", "/bin/bash: line 1: /a b: Is a directory"),
        ("sh: 1: python: not found\n", "sh: 1: python: not found"),
        ("10 steps\n", "no error line, it may have been killed; its last line: 10 steps"),
    ],
)
def test_the_first_error_line_of_a_log(text, found):
    assert engine.first_error(text) == found


def test_failures_name_the_job_its_log_and_its_error(tmp_path):
    jobs = [Job(name=f"collect/walker/{name}-s0") for name in ("done", "bad", "waits")]
    for name, text in (("done", ""), ("bad", "Traceback:\nDatasetError: no\n")):
        log = tmp_path / "logs" / "collect" / "walker" / f"{name}-s0.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(text)
    done = work.marker(jobs[0], tmp_path)
    done.parent.mkdir(parents=True)
    done.touch()
    told = engine.failures(jobs, tmp_path, time.time() - 60)
    assert "1 of 3 jobs failed, 1 did not run" in told
    assert "collect/walker/bad-s0\n" in told
    assert f"log: {tmp_path}/logs/collect/walker/bad-s0.log\n    DatasetError: no" in told
    assert engine.failures(jobs[:1], tmp_path, 0) == ""


def test_without_snakemake_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(engine.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install -c constraints.txt -e '.\[workflow\]'"):
        engine.check_installed()
