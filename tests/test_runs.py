"""One process a run; checkpoints that load anywhere; the loop that all stages share."""

import errno
import itertools
import multiprocessing
import os
import platform
import signal
import time
from types import SimpleNamespace

import pytest
import torch

from belib import runs
from belib.config import PretrainConfig
from belib.runs import InUseError, Run

FORK = multiprocessing.get_context("fork")


class Steps:
    """Work that counts its steps."""

    name = "counting"

    def __init__(self, stop=None):
        self.step, self.stop, self.weights = 0, stop, torch.zeros(1000)

    def advance(self):
        if self.step == self.stop:
            raise KeyboardInterrupt
        self.step += 1

    def state(self):
        return {"step": self.step, "weights": self.weights}

    def restore(self, state):
        self.step, self.weights = state["step"], state["weights"]

    def write_tables(self):
        pass

    def postfix(self):
        return {}


def advance(folder, work, num_steps=30, **options):
    run = run_in(folder, num_steps)
    run.advance(work, **{"checkpoint_minutes": 5, "progress": False, **options})


def run_in(folder, num_steps=30):
    return Run([PretrainConfig(scale="test", num_steps=num_steps)], [folder])


def hold(folders, ready, end):
    with runs.locked(folders):
        ready.set()
        end.wait(60)


@pytest.fixture
def holder(tmp_path):
    """Another process that works in `one`; killed at the end if it still runs."""
    ready, end = FORK.Event(), FORK.Event()
    process = FORK.Process(target=hold, args=([tmp_path / "one"], ready, end))
    process.start()
    assert ready.wait(60)
    yield process, end
    process.kill()
    process.join()


def test_a_second_process_is_refused_by_the_id_of_the_first(tmp_path, holder):
    process, end = holder
    message = rf"one is in use by process {process.pid} on {platform.node()}: wait"
    for folders in ([tmp_path / "one"], [tmp_path / "other", tmp_path / "one"]):
        with pytest.raises(InUseError, match=message), runs.locked(folders):
            pytest.fail("two at once")
    assert not (tmp_path / "other" / ".lock").exists()  # what it had got it gave back
    end.set()
    process.join()
    with runs.locked([tmp_path / "one"]):
        pass


def test_a_process_that_waits_comes_next(tmp_path, holder, capsys):
    process, end = holder
    FORK.Process(target=lambda: (time.sleep(0.3), end.set())).start()
    with runs.locked([tmp_path / "one"], wait=True):
        assert end.is_set()
    assert f"in use by process {process.pid} on" in capsys.readouterr().out


def test_a_killed_process_holds_nothing(tmp_path, holder):
    process, _ = holder
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert (tmp_path / "one" / ".lock").exists()
    with runs.locked([tmp_path / "one"]):
        assert f"process {os.getpid()} " in (tmp_path / "one" / ".lock").read_text()
    assert not list((tmp_path / "one").iterdir())


def test_locks_hold_within_a_process_and_are_removed_after_an_error(tmp_path):
    folders = [tmp_path / "b", tmp_path / "a"]
    with runs.locked(folders):
        assert all((folder / ".lock").exists() for folder in folders)
        with pytest.raises(InUseError, match=f"{os.getpid()}"), runs.locked(folders[:1]):
            pytest.fail("two at once")
    with pytest.raises(ZeroDivisionError), runs.locked(folders):
        raise ZeroDivisionError
    assert not any(list(folder.iterdir()) for folder in folders)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="cannot write in"), runs.locked([tmp_path / "file" / "one"]):
        pass


@pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_checkpoint_loads_safely_and_on_the_cpu(tmp_path, kind):
    """Tensors and plain values only; those of a GPU come to the CPU."""
    work = Steps()
    work.weights = torch.arange(3.0, device=kind)
    advance(tmp_path / "one", work)
    state = run_in(tmp_path / "one").open()
    assert state["weights"].device.type == "cpu"
    assert state["weights"].tolist() == [0, 1, 2]
    assert (state["members"], state["step"]) == (["one"], 30)


SPOILT = {
    "empty": lambda file: file.write_bytes(b""),
    "cut": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "without its last byte": lambda file: file.write_bytes(file.read_bytes()[:-1]),
    "a web page": lambda file: file.write_text("<html>403 Forbidden</html>"),
    "a list": lambda file: torch.save([1, 2], file),
    "no members": lambda file: torch.save({"step": 3}, file),
    "another format": lambda file: torch.save({"step": 3, "members": ["one"]}, file),
    "members of no list": lambda file: torch.save({"step": 3, "members": "one"}, file),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_a_damaged_checkpoint_is_named_by_every_reader(tmp_path, kind):
    folder = tmp_path / "one"
    advance(folder, Steps())
    SPOILT[kind](folder / "checkpoint.pt")
    for read in (lambda: advance(folder, Steps()), lambda: [*runs.checkpoints([folder])]):
        with pytest.raises(ValueError, match=r"one/checkpoint.pt must be a .*checkpoint"):
            read()


def test_a_state_of_something_else_is_named(tmp_path):
    for error in (KeyError("learner"), RuntimeError("size mismatch"), TypeError("None")):
        with (
            pytest.raises(ValueError, match=r"checkpoint.pt must hold the state of this run, got"),
            runs.restoring(tmp_path),
        ):
            raise error


@pytest.fixture
def counting_clock(monkeypatch):
    """The clock goes on by a second when it is looked at: at each step, twice in a save."""
    monkeypatch.setattr(runs, "time", SimpleNamespace(monotonic=itertools.count().__next__))


@pytest.mark.usefixtures("counting_clock")
def test_checkpoints_take_a_fiftieth_of_the_time_at_most(tmp_path, monkeypatch):
    saved, save = [], Run.save
    monkeypatch.setattr(Run, "save", lambda run, work: saved.append(work.step) or save(run, work))
    advance(tmp_path / "one", Steps(), 200, checkpoint_minutes=0.0)
    # One a step was asked for. A step takes a second, and so does each of these.
    assert saved == [0, 1, 52, 103, 154, 200]


@pytest.mark.usefixtures("counting_clock")
def test_an_interrupted_run_continues_from_its_checkpoint(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runs, "CHECKPOINT_SHARE", 10.0)
    with pytest.raises(KeyboardInterrupt):
        advance(tmp_path / "one", Steps(stop=20), checkpoint_minutes=0.1)
    with pytest.raises(ValueError, match=r"num_steps must be at least 1\d, which .*one has"):
        advance(tmp_path / "one", Steps(), 5)
    advance(tmp_path / "one", work := Steps())
    assert work.step == 30
    assert "counting: continued from step 1" in capsys.readouterr().out


def test_a_full_disk_stops_a_run_which_goes_on_when_there_is_space(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    work = Steps()
    work.write_tables = lambda: monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"checkpoint.pt.*free space and run again"):
        advance(tmp_path / "one", work)
    monkeypatch.undo()
    assert run_in(tmp_path / "one").open()["step"] == 0
    advance(tmp_path / "one", work := Steps())
    assert work.step == 30


def test_a_log_gets_one_line_of_progress(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(runs, "_IN_LOG", True)
    advance(tmp_path / "one", Steps(), progress=True)
    written = capfd.readouterr().err
    assert written.count("\n") == 1
    assert "30/30" in written
