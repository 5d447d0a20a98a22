"""One table of it all: ours, the peer from PyPI, the physical limit, the target; how it grows.

`make bench`, or `python benchmarks/bench.py`, writes results/bench.csv, bench_scaling.csv and
bench.png in about 2 minutes on 2 idle cores. Rows are medians of calls taken in turn, after one to
warm up: ours, the peer's, and the call that shows what the machine can do. A limit is

- products: the FLOPs counted in one of our updates, at the rate of a 1024^3 product;
- memory: the bytes that have to be read and written, at the rate of a large copy;
- mj_step, mj_ stages: MuJoCo's own functions for the same states, called from Python.

The load average stands in the first line: on a busy machine times say little, ratios a little more.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import scaling
import torch
from measuring import RESULTS, in_turn, provenance, write_table
from subjects import MISSING, Sizes, Subject, searches, simulation, updates
from threadpoolctl import threadpool_limits

from belib.config import PretrainConfig
from belib.training.collection import Collection

QUICK = Sizes(paper=64, laptop=32, members=2, n=300, steps=20, curve=3)
"""Everything once, in seconds: a test that the benchmark runs, whose numbers mean nothing."""

COLUMNS = (
    *("what", "setting", "unit", "ours", "least", "most", "peer", "its", "over peer"),
    *("limit", "at the limit", "of limit", "target", "reached"),
)


def row(subject: Subject, repeats: int) -> dict:
    """Milliseconds, and the two ratios: above 1 `over peer`, we are faster; `of limit` is below."""
    others = [subject.peer and subject.peer[1], subject.limit and subject.limit.call]
    times, _ = in_turn([subject.ours, *filter(None, others)], repeats)
    ours, *found = 1e3 * np.median(times, axis=1)
    low, high = 1e3 * times[0].min(), 1e3 * times[0].max()
    made = {"what": subject.what, "setting": subject.setting, "unit": "ms"}
    made |= {"ours": ours, "least": low, "most": high}
    if subject.peer:
        theirs = subject.peer_times * found.pop(0)
        made |= {"peer": subject.peer[0], "its": theirs, "over peer": theirs / ours}
    if subject.limit:
        limit = subject.limit.times * found.pop(0)
        made |= {"limit": subject.limit.kind, "at the limit": limit, "of limit": limit / ours}
    if subject.target:
        column, least = subject.target
        made |= {"target": f"{column} >= {least:g}", "reached": yes(made[column] >= least)}
    return made


def yes(reached: bool) -> str:
    """As the table says it."""
    return "yes" if reached else "no"


def collection_row(sizes: Sizes) -> dict:
    """The share of a laptop-sized collection that is neither update nor policy: at most 15 %."""
    shape = {"hidden_dim": sizes.laptop, "batch_size": sizes.laptop, "k": 5}
    begins = {"random_steps": 2 * sizes.steps, "num_steps": 4 * sizes.steps}
    config, inside = PretrainConfig(**shape, **begins), []
    with tempfile.TemporaryDirectory() as folder:
        collection = Collection([config], [Path(folder)])
        for name in ("update", "act"):
            setattr(collection.learner, name, timed(getattr(collection.learner, name), inside))
        for _ in range(config.random_steps):
            collection.advance()
        inside.clear()
        begin = time.perf_counter()
        for _ in range(2 * sizes.steps):
            collection.advance()
        whole = time.perf_counter() - begin
    share = 1 - sum(inside) / whole
    setting = f"batch and hidden {sizes.laptop}, APT+BE, {2 * sizes.steps} steps of Walker"
    made = {"what": "collection outside of updates and policy", "setting": setting}
    made |= {"unit": "share of time", "ours": share}
    return made | {"target": "ours <= 0.15", "reached": yes(share <= 0.15)}


def timed(function: Callable, seconds: list[float]) -> Callable:
    """The function, which then adds its times to a list."""

    def call(*args: object, **options: object) -> object:
        begin = time.perf_counter()
        found = function(*args, **options)
        seconds.append(time.perf_counter() - begin)
        return found

    return call


def exponent_rows(fitted: pd.DataFrame) -> Iterator[dict]:
    """The fitted exponents, with one standard error to both sides."""
    for fit in fitted.itertuples():
        made = {"what": f"growth with {fit.grows}", "setting": fit.whose, "unit": "exponent"}
        low, high = fit.exponent - fit.error, fit.exponent + fit.error
        yield made | {"ours": fit.exponent, "least": low, "most": high}


def rows(sizes: Sizes, repeats: int, folder: Path, head: str) -> Iterator[dict]:
    """All rows; draws the figure on the way."""
    for subjects in (updates, simulation, searches):
        for subject in subjects(sizes):
            yield row(subject, repeats)
    yield collection_row(sizes)
    table = scaling.measured(sizes, min(repeats, 3))
    fitted = scaling.exponents(table)
    write_table("bench_scaling", table, head, folder)
    note = f"Updates: width {sizes.laptop}, float32, Walker; {torch.get_num_threads()} threads."
    figure = scaling.draw(table, fitted, note)
    figure.savefig(folder / "bench.png", dpi=80, bbox_inches="tight")
    yield from exponent_rows(fitted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, once: a test")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the table and figure")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    packages = ("numpy", "scipy", "scikit-learn", "torch", "mujoco", "dm_control")
    head, found = provenance(*packages), []
    print(head)
    sizes, repeats = (QUICK, 1) if options.quick else (Sizes(), options.repeats)
    with threadpool_limits(options.threads):
        for each in rows(sizes, repeats, options.out, head):
            shown = f"{each['what']}; {each['setting']}: {each['ours']:.3g} {each['unit']}"
            print(shown, flush=True)
            found.append(each)
    table = pd.DataFrame(found, columns=COLUMNS)
    missing = f"; not installed: {', '.join(MISSING)}" if MISSING else ""
    write_table("bench", table, head + missing, options.out)
    print(table.drop(columns=["least", "most"]).to_string(float_format="%.3g", na_rep=""))


if __name__ == "__main__":
    main()
