"""One process a dataset; checkpoints that load anywhere and say what they cost."""

import multiprocessing
import os
import platform
import signal
import time

import pytest
import torch

from belib import runs
from belib.config import PretrainConfig
from belib.runs import InUseError

FORK = multiprocessing.get_context("fork")


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


def test_a_killed_process_holds_nothing(tmp_path, holder):
    process, _ = holder
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert (tmp_path / "one" / ".lock").exists()
    with runs.locked([tmp_path / "one"]):
        assert f"process {os.getpid()} " in (tmp_path / "one" / ".lock").read_text()
    assert not list((tmp_path / "one").iterdir())


def test_two_runs_of_one_process_are_kept_apart(tmp_path):
    with (
        runs.locked([tmp_path / "one"]),
        pytest.raises(InUseError, match=f"process {os.getpid()}"),
        runs.locked([tmp_path / "one"]),
    ):
        pytest.fail("two at once")


def test_locks_are_removed_at_the_end_and_after_an_error(tmp_path):
    folders = [tmp_path / "b", tmp_path / "a"]
    with runs.locked(folders):
        assert all((folder / ".lock").exists() for folder in folders)
    with pytest.raises(ZeroDivisionError), runs.locked(folders):
        raise ZeroDivisionError
    assert not any(list(folder.iterdir()) for folder in folders)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="cannot write in"), runs.locked([tmp_path / "file" / "one"]):
        pass


def test_a_checkpoint_says_what_it_cost(tmp_path):
    begun = time.monotonic()
    saved = runs.save_checkpoint([tmp_path], {"weights": torch.zeros(1000), "step": 3})
    assert saved.size == (tmp_path / "checkpoint.pt").stat().st_size > 4000
    assert 0 < saved.seconds <= time.monotonic() - begun


@pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_checkpoint_loads_safely_and_on_the_cpu(tmp_path, kind):
    """Tensors and plain values only; those of a GPU come to the CPU."""
    weights = torch.arange(3.0, device=kind)
    runs.save_checkpoint([tmp_path], {"weights": weights, "step": 3})
    state = runs.open_folders([tmp_path], [PretrainConfig(scale="test")])
    assert state["weights"].device.type == "cpu"
    assert state["weights"].tolist() == [0, 1, 2]
    assert state["members"] == [tmp_path.name]


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
    folder, config = tmp_path / "one", PretrainConfig(scale="test")
    folder.mkdir()
    runs.save_checkpoint([folder], {"weights": torch.zeros(1000), "step": 3})
    SPOILT[kind](folder / "checkpoint.pt")
    for read in (
        lambda: runs.members(folder),
        lambda: runs.checkpoint(folder),
        lambda: list(runs.checkpoints([folder])),
        lambda: runs.open_folders([folder], [config]),
    ):
        with pytest.raises(ValueError, match=r"one/checkpoint.pt must be a .*checkpoint"):
            read()


def test_a_state_of_something_else_is_named(tmp_path):
    for error in (KeyError("learner"), RuntimeError("size mismatch"), TypeError("None")):
        with (
            pytest.raises(ValueError, match=r"checkpoint.pt must hold the state of this run, got"),
            runs.restoring(tmp_path),
        ):
            raise error
