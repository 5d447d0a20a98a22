"""Time updates and a collection on one GPU, in at most 6 minutes.

`python benchmarks/gpu.py` writes results/gpu.csv with the GPU's name: times of an update of every
collector and learner at the paper's shapes, and of steps of a real Walker collection. `--cpu
--tiny` tests the script in seconds; its numbers mean nothing. `pytest -m gpu tests`
compares a GPU's numbers with a CPU's. `make grid-plan` on a GPU estimates the hours of a grid.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import torch
from torch import nn

from belib import machine
from belib.config import OfflineConfig, PretrainConfig
from belib.cost import practice
from belib.offline import LEARNERS
from belib.paths import ROOT, git_revision, write_text
from belib.training.collection import Collection

COLLECTORS, OFFLINE = ("behavioral", "rnd", "smm"), ("td3", "cql", "crr")
MEMBERS = (1, 5, 15, 17, 32)
TARGETS = {("behavioral", 1): 1.2, ("behavioral", 17): 8, ("td3", 15): 3, ("cql", 15): 9}
TINY = {"hidden_dim": 16, "batch_size": 32}


def milliseconds(call: Callable[[], Any], calls: int) -> float:
    """Return milliseconds per call, the median of five rounds; wait for a GPU's queue."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        if machine.device().type == "cuda":
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin) / calls)
    return statistics.median(times)


def update_row(name: str, members: int, precision: str, domain: str, **sizes: Any) -> dict:
    """Time an update, captured on a GPU, and actions for ten observations per member."""
    sizes |= {"domain": domain, "precision": precision}
    if name in LEARNERS:
        one = OfflineConfig(algorithm=name, **sizes)
    else:
        task = f"{domain}_walk" if name == "task" else ""
        one = PretrainConfig(objective=name, task=task, **sizes)
    # orthogonal weights would take minutes; normal ones do not change the times
    normal = lambda x, generator: x.normal_(generator=generator)  # noqa: E731
    with patch.object(nn.init, "orthogonal_", normal):
        engine = practice([replace(one, seed=seed) for seed in range(members)], 3000)
    obs = torch.zeros(members, 10, engine.replay.obs_dim)
    act = partial(engine.learner.act, obs, explore=False)
    for _ in range(5):  # the graph is captured
        engine.step()
    row = {"what": "update", "name": name, "members": members, "precision": precision}
    row |= {"domain": domain, "ms": milliseconds(engine.step, 4), "act_ms": milliseconds(act, 10)}
    return row | {"target_ms": TARGETS.get((name, members)) if domain == "walker" else None}


def cases(members: tuple[int, ...]) -> Iterator[tuple[str, int, str, str]]:
    """Yield all collectors and learners in bfloat16, and a few cases in other precisions."""
    most = members[-1]
    yield from ((n, m, "bfloat16", "walker") for n in (*COLLECTORS, *OFFLINE) for m in members)
    yield from ((n, most // 2, "bfloat16", "walker") for n in ("task", "td3_bc", "bc"))
    few = (("behavioral", 17), ("td3", 15))
    yield from ((n, min(m, most), p, "walker") for n, m in few for p in ("float32", "tf32"))
    quadruped = [("behavioral", 17), ("rnd", 1), ("smm", 1), ("task", 2)]
    quadruped += [(name, 10) for name in OFFLINE]
    yield from ((n, min(m, most), "bfloat16", "quadruped") for n, m in quadruped)


def collection_row(members: int, seconds: float, **sizes: Any) -> dict:
    """Collect Walker data with APT for some seconds; return milliseconds per environment step."""
    sizes = {"random_steps": 400, "num_steps": 50_000, "precision": "bfloat16", **sizes}
    configs = [PretrainConfig(seed=seed, **sizes) for seed in range(members)]
    with tempfile.TemporaryDirectory() as folder:
        work = Collection(configs, [Path(folder) / config.dataset for config in configs])
        while work.engine._steps < 5:  # learning, and captured
            work.advance()
        first, begin = work.step, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            work.advance()
        ms = 1e3 * (time.perf_counter() - begin) / (work.step - first)
    row = {"what": "collection", "name": "behavioral", "members": members, "ms": ms}
    return row | {"precision": "bfloat16", "domain": "walker"}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu", action="store_true", help="on the CPU instead of a GPU")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, to test the script")
    parser.add_argument("--out", type=Path, help="instead of results/gpu.csv")
    given = parser.parse_args(arguments)
    if not given.cpu and not torch.cuda.is_available():
        parser.error("no GPU was found: --cpu --tiny shows that the script runs")
    name = "CPU" if given.cpu else torch.cuda.get_device_name()
    scale, sizes = "the paper's sizes", {}
    if given.tiny:
        scale, sizes = "tiny sizes, not a measurement", TINY
    rows = []
    with patch.object(machine, "device", lambda: torch.device("cpu" if given.cpu else "cuda")):
        for case in cases((1, 2) if given.tiny else MEMBERS):
            rows.append(update_row(*case, **sizes))
            print(rows[-1], flush=True)
        rows.append(collection_row(*((2, 0.5) if given.tiny else (17, 60)), **sizes))
    head = f"# belib {git_revision()}; {name}; torch {torch.__version__}; {scale}\n"
    tried = given.cpu or given.tiny
    out = given.out or Path(tempfile.gettempdir() if tried else ROOT / "results") / "gpu.csv"
    write_text(out, head + pd.DataFrame(rows).to_csv(index=False, float_format="%.4g"))


if __name__ == "__main__":
    main()
