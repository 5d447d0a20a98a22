"""What the benchmarks share: a table's first line, times taken in turn, the table's file."""

import multiprocessing
import os
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from belib.machine import processor
from belib.paths import ROOT, git_revision, write_text

RESULTS = ROOT / "results"


def provenance(*packages: str) -> str:
    """Return a table's first line: commit, machine, load average and versions.

    Call it before measuring, since the load is the last minute's.
    """
    cores, threads = multiprocessing.cpu_count(), torch.get_num_threads()
    machine = f"{cores} cores, {processor()}, {threads} threads"
    load = f"load average {os.getloadavg()[0]:.1f} at the start"
    python = f"Python {platform.python_version()}"
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return f"# belib {git_revision()}; {machine}, {load}; {python}, {versions}"


def write_table(name: str, table: pd.DataFrame, head: str, folder: Path = RESULTS) -> None:
    """Write `<folder>/<name>.csv`: the first line, then the table with 4 digits."""
    write_text(folder / f"{name}.csv", head + "\n" + table.to_csv(index=False, float_format="%.4g"))


def in_turn(
    functions: Sequence[Callable[[], object]],
    repeats: int,
    *,
    warm_up: int = 1,
    least: float = 0.0,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[NDArray[np.float64], list]:
    """Call functions in turn, so that a busy moment affects all of them.

    Return seconds (functions, repeats), and the last answer of each function. A time is the median
    of calls for `least` seconds: a short call after another function's finds no data in caches.
    """
    seconds = np.empty((len(functions), warm_up + repeats))
    answers: list = [None] * len(functions)
    for repeat in range(warm_up + repeats):
        for index, function in enumerate(functions):
            times: list[float] = []
            while not times or sum(times) < least:
                begin = clock()
                answers[index] = function()
                times.append(clock() - begin)
            seconds[index, repeat] = np.median(times)
    return seconds[:, warm_up:], answers
