"""One table of speed: ours, a package from PyPI, the machine's limit, the target, and growth.

`make bench`, or `python benchmarks/bench.py`, writes results/bench.csv, bench_scaling.csv and
bench.png in 2 to 4 minutes on 2 idle cores. Rows are medians of times taken in turn, after a
warm-up: ours, the peer's, and that of a call which measures the machine's limit. A time is the
median of calls one after the other for 0.2 s, as updates are in a run. A limit is

- products: the FLOPs counted in one of our updates, at the rate of a 1024^3 product;
- mj_step: MuJoCo's own function for the same actions, called from Python.

The first line has the load average: on a busy machine ratios are more reliable than times.
"""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import scaling
import torch
from measuring import RESULTS, in_turn, provenance, write_table
from subjects import Sizes, Subject, searches, simulation, updates
from threadpoolctl import threadpool_limits

QUICK = Sizes(paper=64, laptop=32, members=2, n=300, steps=20, curve=3)
"""Sizes of a test that takes seconds; its numbers mean nothing."""

LEAST = 0.2  # seconds of calls one after the other, of which a time is the median

COLUMNS = (
    *("what", "setting", "unit", "ours", "least", "most", "peer", "its", "over peer"),
    *("limit", "at the limit", "of limit", "target", "reached"),
)


def row(subject: Subject, repeats: int) -> dict:
    """Return milliseconds and two ratios: `over peer` (above 1: we are faster) and `of limit`."""
    others = [subject.peer and subject.peer[1], subject.limit and subject.limit.call]
    times, _ = in_turn([subject.ours, *filter(None, others)], repeats, least=LEAST)
    ours, *medians = 1e3 * np.median(times, axis=1)
    low, high = 1e3 * times[0].min(), 1e3 * times[0].max()
    made = {"what": subject.what, "setting": subject.setting, "unit": "ms"}
    made |= {"ours": ours, "least": low, "most": high}
    if subject.peer:
        theirs = subject.peer_times * medians.pop(0)
        made |= {"peer": subject.peer[0], "its": theirs, "over peer": theirs / ours}
    if subject.limit:
        limit = subject.limit.times * medians.pop(0)
        made |= {"limit": subject.limit.kind, "at the limit": limit, "of limit": limit / ours}
    if subject.target:
        column, least = subject.target
        reached = "yes" if made[column] >= least else "no"
        made |= {"target": f"{column} >= {least:g}", "reached": reached}
    return made


def rows(sizes: Sizes, repeats: int, folder: Path, head: str) -> Iterator[dict]:
    """Yield all rows, and draw the figure."""
    for subjects in (updates, simulation, searches):
        for subject in subjects(sizes):
            yield row(subject, repeats)
    table = scaling.measured(sizes, min(repeats, 3))
    write_table("bench_scaling", table, head, folder)
    note = f"Updates: width {sizes.laptop}, float32, Walker; {torch.get_num_threads()} threads."
    scaling.draw(table, note).savefig(folder / "bench.png", dpi=80, bbox_inches="tight")
    yield from scaling.exponents(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, once: a test")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the table and figure")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    packages = ("numpy", "scipy", "scikit-learn", "torch", "mujoco", "dm_control")
    head, lines = provenance(*packages), []
    print(head)
    sizes, repeats = (QUICK, 1) if options.quick else (Sizes(), 5)
    with threadpool_limits(options.threads):
        for line in rows(sizes, repeats, options.out, head):
            text = f"{line['what']}; {line['setting']}: {line['ours']:.3g} {line['unit']}"
            print(text, flush=True)
            lines.append(line)
    table = pd.DataFrame(lines, columns=COLUMNS)
    write_table("bench", table, head, options.out)
    print(table.drop(columns=["least", "most"]).to_string(float_format="%.3g", na_rep=""))


if __name__ == "__main__":
    main()
