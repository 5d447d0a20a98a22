"""Files are whole or as they were, whatever happens while they are written."""

import errno
import multiprocessing
import re
import time

import numpy as np
import pytest

from belib import paths


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.ENOSPC, "disk is full")])
def test_after_an_error_the_old_file_is_there_alone_and_is_named(tmp_path, error):
    file = tmp_path / "file.npz"
    file.write_bytes(b"old")

    def write(opened):
        opened.write(b"part")
        raise error

    with pytest.raises((KeyboardInterrupt, OSError)) as raised:
        paths.write_atomic(file, write)
    assert str(file) in raised.value.__notes__[0]
    assert (file.read_bytes(), [*tmp_path.iterdir()]) == (b"old", [file])
    paths.write_atomic(file, lambda opened: opened.write(b"new"))
    assert (file.read_bytes(), [*tmp_path.iterdir()]) == (b"new", [file])


def write_for_ever(path):
    for i in range(10**9):
        paths.write_atomic(path, lambda opened, i=i: opened.write(bytes([i % 256]) * 200_000))


def test_a_killed_writer_leaves_a_whole_file(tmp_path):
    path = tmp_path / "file"
    for delay in np.random.default_rng(0).uniform(0, 0.1, 5):
        writer = multiprocessing.get_context("fork").Process(target=write_for_ever, args=(path,))
        writer.start()
        while not path.exists():  # however slow the disk is
            assert writer.is_alive()
            time.sleep(0.001)
        time.sleep(delay)
        writer.kill()
        writer.join()
        content = path.read_bytes()
        assert content == content[:1] * 200_000
    assert all(re.fullmatch(r"file|\.file\.\d+\.tmp", p.name) for p in tmp_path.iterdir())


def write_often(path):
    for _ in range(50):
        paths.write_text(path, "whole")


def test_processes_that_write_one_file_do_not_meet(tmp_path):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(write_often, [tmp_path / "file"] * 2)
    assert (tmp_path / "file").read_text() == "whole"
    assert len([*tmp_path.iterdir()]) == 1
