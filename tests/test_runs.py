"""One process per run; checkpoints that load anywhere; the loop that all stages share."""

import multiprocessing
import platform
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from belib import runs
from belib.config import PretrainConfig

FORK = multiprocessing.get_context("fork")


class Steps(runs.Work):
    """Work that counts its steps."""

    SAVED = ("step", "weights")
    name = "counting"

    def __init__(self, folder, num_steps=30):
        self.configs, self.folders = [PretrainConfig(scale="test", num_steps=num_steps)], [folder]
        self.step, self.weights = 0, torch.arange(3.0)

    def advance(self):
        self.step += 1


def advance(work, **options):
    runs.advance(work, **{"checkpoint_minutes": 5, "progress": False, **options})


def hold(folders, ready, end):
    with runs.locked(folders):
        ready.set()
        end.wait(60)


def test_a_second_process_is_refused_or_waits(tmp_path, capsys):
    ready, end = FORK.Event(), FORK.Event()
    process = FORK.Process(target=hold, args=([tmp_path / "one"], ready, end), daemon=True)
    process.start()
    assert ready.wait(60)
    message = rf"one is in use by process {process.pid} on {platform.node()}: wait"
    with pytest.raises(BlockingIOError, match=message):
        runs.locked([tmp_path / "aaa", tmp_path / "one"]).__enter__()
    runs.locked([tmp_path / "aaa"]).__enter__()  # the lock that it had is released
    FORK.Process(target=lambda: (time.sleep(0.3), end.set())).start()
    with runs.locked([tmp_path / "one"], wait=True):
        assert end.is_set()
    assert f"in use by process {process.pid} on" in capsys.readouterr().out


def test_whoever_waits_for_a_lock_gets_it_next(tmp_path):
    """Also in one process; flock knows open files, not processes."""
    log = []

    def come_and_go(name):
        with runs.locked([tmp_path / "lock"], wait=True):
            log.append(name)
            time.sleep(0.02)
            log.append(name)

    with ThreadPoolExecutor() as pool:
        list(pool.map(come_and_go, range(4)))
    assert log[::2] == log[1::2], "each goes before the next comes"
    assert sorted(log[::2]) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_checkpoint_loads_safely_and_on_the_cpu(tmp_path, kind):
    """Tensors and plain values only; those of a GPU come to the CPU."""
    work = Steps(tmp_path / "one")
    work.weights = work.weights.to(kind)
    advance(work)
    state = runs.checkpoint_in(tmp_path / "one")
    assert state["weights"].device.type == "cpu"
    assert state["weights"].tolist() == [0, 1, 2]
    assert (state["members"], state["step"]) == (["one"], 30)


def test_a_damaged_checkpoint_is_refused_by_name(tmp_path):
    advance(Steps(tmp_path / "one"))
    file = tmp_path / "one" / "checkpoint.pt"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(ValueError, match=r"one/checkpoint.pt must be a .*checkpoint"):
        advance(Steps(tmp_path / "one"))
    torch.save({"step": 3, "members": ["one"], "format": 2}, file)
    with pytest.raises(ValueError, match=r"one/checkpoint.pt must have format 3, got 2"):
        advance(Steps(tmp_path / "one"))


@pytest.mark.usefixtures("frequent_checkpoints")
def test_checkpoints_take_a_fiftieth_of_the_time_at_most(tmp_path, monkeypatch):
    saved, save = [], runs.save
    monkeypatch.setattr(runs, "CHECKPOINT_SHARE", 0.02)
    monkeypatch.setattr(runs, "save", lambda work: saved.append(work.step) or save(work))
    advance(Steps(tmp_path / "one", 200), checkpoint_minutes=0.0)
    # One a step was asked for. A step takes a second, and so does each of these.
    assert saved == [0, 1, 52, 103, 154, 200]
