"""Times and memory of the smallest ball and of joint maps at the paper's sizes, on one thread.

`python benchmarks/coverage.py` writes results/coverage.csv; with names of rows' methods (`ball`,
`phate`, `tsne`) it measures those only and keeps the others' rows. A row has a process of
its own.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from measuring import RESULTS

from belib.coverage import States, embed, smallest_ball
from belib.machine import processor
from belib.paths import git_revision, write_text

FILE = RESULTS / "coverage.csv"
POINTS = ("normal", "sphere", "walk")


def points(kind: str, n: int, d: int) -> np.ndarray:
    """(n, d): normal; on one sphere; or a walk that branches from where it was, as episodes do."""
    random = np.random.default_rng(0)
    x = random.normal(size=(n, d))
    if kind == "sphere":
        return x / np.linalg.norm(x, axis=1, keepdims=True)
    if kind == "walk":
        length = 1000
        for start in range(0, n, length):
            part = x[start : start + length] / 10
            x[start : start + length] = part.cumsum(0) + (x[random.integers(start)] if start else 0)
    return x


def ball(kind: str, n: int, d: int) -> float:
    """Seconds of one ball, checked against the dual bound."""
    x = points(kind, n, d)
    start = time.perf_counter()
    found = smallest_ball(x)
    seconds = time.perf_counter() - start
    low = np.sqrt(found.weights @ np.square(x[found.support] - found.center).sum(1))
    assert found.radius <= low * (1 + 1e-10)
    return seconds


def growing_ball(kind: str, n: int, d: int) -> float:
    """Seconds of ten balls, of each tenth more of the points, each from the last one's support."""
    x, support = points(kind, n, d), None
    start = time.perf_counter()
    for end in np.linspace(0, n, 11).astype(int)[1:]:
        support = smallest_ball(x[:end], start=support).support
    return time.perf_counter() - start


def joint_map(method: str, n: int, d: int) -> float:
    """Seconds of one map of branching walks."""
    rows = pd.DataFrame({"dataset": "walks", "step": np.arange(n)})
    with tempfile.TemporaryDirectory() as folder:
        sample = States(points("walk", n, d), rows)
        return embed(sample, method=method, runs_dir=Path(folder)).record["seconds"]


def alone(measure: Callable[[], float], repeats: int) -> tuple[list[float], float]:
    """Seconds of each repetition, and their peak memory in GiB, in a process of their own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_measured, measure, repeats).result()


def _measured(measure: Callable[[], float], repeats: int) -> tuple[list[float], float]:
    seconds = [measure() for _ in range(repeats)]
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


CASES = {
    "ball": [
        *[(f"{kind}, one ball", partial(ball, kind), 100_000, 24, 1.5, 5) for kind in POINTS],
        *[(f"{kind}, one ball", partial(ball, kind), 100_000, 78, 4.0, 5) for kind in POINTS],
        ("walk, ten balls", partial(growing_ball, "walk"), 100_000, 24, None, 3),
        ("walk, ten balls", partial(growing_ball, "walk"), 100_000, 78, None, 3),
    ],
    "phate": [
        ("joint map", partial(joint_map, "phate"), 8_500, 24, None, 1),
        ("joint map", partial(joint_map, "phate"), 34_000, 24, None, 1),
        ("joint map", partial(joint_map, "phate"), 170_000, 24, 240, 1),
    ],
    "tsne": [
        ("joint map", partial(joint_map, "tsne"), 8_500, 24, None, 1),
        ("joint map", partial(joint_map, "tsne"), 34_000, 24, None, 1),
        ("joint map", partial(joint_map, "tsne"), 170_000, 24, 1200, 1),
    ],
}
PACKAGES = {"ball": ("numpy", "scipy"), "phate": ("phate",), "tsne": ("openTSNE",)}


def main(methods: list[str], largest: int) -> None:
    """Measure, and replace the rows of what was measured."""
    for method in methods or list(CASES):
        for what, measure, n, d, target, repeats in CASES[method]:
            if n > largest:
                continue
            seconds, memory = alone(partial(measure, n, d), repeats)
            row = {
                "method": method,
                "what": what,
                "n": n,
                "d": d,
                "seconds": round(float(np.median(seconds)), 3),
                "least": round(min(seconds), 3),
                "most": round(max(seconds), 3),
                "repetitions": repeats,
                "peak_gib": round(memory, 2),
                "target_s": target,
                "threads": 1,
                "versions": " ".join(f"{each} {version(each)}" for each in PACKAGES[method]),
                "machine": f"{processor()}, {multiprocessing.cpu_count()} cores",
                "revision": git_revision(),
            }
            print(row, flush=True)
            table, key = pd.DataFrame([row]), ["method", "what", "n", "d"]
            if FILE.exists():
                table = pd.concat([pd.read_csv(FILE), table])
            table = table.drop_duplicates(key, keep="last").sort_values(key)
            write_text(FILE, table.convert_dtypes().to_csv(index=False))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", metavar="method", help=", ".join(CASES))
    parser.add_argument("--largest", type=int, default=170_000, help="points, at most")
    arguments = parser.parse_args()
    main(arguments.methods, arguments.largest)
