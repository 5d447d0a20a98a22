"""Times and memory of smallest balls and joint maps at the paper's sizes, on one thread.

`python benchmarks/coverage.py ball tsne` measures these methods and replaces their rows in
results/coverage.csv; without names it measures all. Each case has a process of its own.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version

import numpy as np
import pandas as pd
from measuring import RESULTS
from threadpoolctl import threadpool_limits

from belib.coverage import States, embed, smallest_ball
from belib.machine import processor
from belib.paths import git_revision, write_text

FILE = RESULTS / "coverage.csv"
PACKAGES = {"ball": ("numpy", "scipy"), "phate": ("phate",), "tsne": ("openTSNE",)}
BALL_TARGETS = {24: 1.5, 78: 4.0}  # seconds, by dimension
MAP_TARGETS = {"phate": 240, "tsne": 1200}  # seconds of the paper's 170,000 states
CASES = [  # method, points, balls, n, d, repetitions
    *[("ball", kind, 1, 100_000, d, 5) for d in (24, 78) for kind in ("normal", "sphere", "walk")],
    *[("ball", "walk", 10, 100_000, d, 3) for d in (24, 78)],
    *[(method, "walk", 0, n, 24, 1) for method in MAP_TARGETS for n in (8_500, 34_000, 170_000)],
]


def points(kind: str, n: int, d: int) -> np.ndarray:
    """Return points (n, d): normal, on a sphere, or a branching walk like episodes."""
    random = np.random.default_rng(0)
    x = random.normal(size=(n, d))
    if kind == "sphere":
        return x / np.linalg.norm(x, axis=1, keepdims=True)
    if kind == "walk":
        for start in range(0, n, 1000):
            part = x[start : start + 1000] / 10
            x[start : start + 1000] = part.cumsum(0) + (x[random.integers(start)] if start else 0)
    return x


def measure(method: str, kind: str, balls: int, n: int, d: int, repeats: int) -> dict[str, object]:
    """Return seconds and peak memory of a joint map, or of balls of growing numbers of points."""
    x, seconds = points(kind, n, d), []
    states = States(x, pd.DataFrame({"dataset": "walks", "step": np.arange(n)}))
    for _ in range(repeats):
        start, support = time.perf_counter(), None
        for end in np.linspace(0, n, balls + 1).astype(int)[1:]:
            support = smallest_ball(x[:end], start=support).support
        if method != "ball":
            with tempfile.TemporaryDirectory() as folder:
                embed(states, method=method, runs_dir=folder)
        seconds.append(time.perf_counter() - start)
    target = {0: MAP_TARGETS.get(method) if n == 170_000 else None, 1: BALL_TARGETS.get(d)}
    return {
        **{"method": method, "n": n, "d": d, "threads": 1, "repetitions": repeats},
        "what": {0: "joint map", 1: f"{kind}, one ball", 10: f"{kind}, ten balls"}[balls],
        **dict(zip(("least", "seconds", "most"), np.quantile(seconds, (0, 0.5, 1)), strict=True)),
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "target_s": target.get(balls),
        "versions": " ".join(f"{name} {version(name)}" for name in PACKAGES[method]),
        "machine": f"{processor()}, {multiprocessing.cpu_count()} cores",
        "revision": git_revision(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", metavar="method", help=", ".join(PACKAGES))
    parser.add_argument("--largest", type=int, default=170_000, help="points, at most")
    given = parser.parse_args()
    for case in CASES:
        if case[0] in (given.methods or PACKAGES) and case[3] <= given.largest:
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(1, context, threadpool_limits, (1,)) as pool:
                table = pd.DataFrame([pool.submit(measure, *case).result()]).round(3)
            print(table.to_string(header=False), flush=True)
            if FILE.exists():
                table = pd.concat([pd.read_csv(FILE), table])
            keys = ["method", "what", "n", "d"]
            table = table.drop_duplicates(keys, keep="last").sort_values(keys).convert_dtypes()
            write_text(FILE, table.to_csv(index=False))
