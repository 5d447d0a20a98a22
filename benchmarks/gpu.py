"""One card, at most 6 minutes: is it right, how fast, and how long would the paper's grid take.

`python benchmarks/gpu.py` writes results/gpu.csv with the card's name. It compares losses on the
card with those on the CPU and captured steps with eager ones, times an update of every collector
and learner at the paper's shapes, collects Walker data for a minute, and adds the hours up line by
line, in bfloat16 (a grid computes in it where its params have `precision: bfloat16`; the paper's
scale has float32). `--cpu --tiny` runs the same code at sizes of seconds, to see that it runs: no
number of that means anything.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import torch
from torch import Tensor, nn

from belib import engine, machine
from belib.agents import APT, agent_of
from belib.config import OfflineConfig, PretrainConfig, expand, read_grid
from belib.cost import environment_seconds, practice
from belib.offline import LEARNERS
from belib.paths import ROOT, git_revision, write_text
from belib.streams import Streams
from belib.training.collection import Collection

COLLECTORS, OFFLINE = ("behavioral", "rnd", "smm"), ("td3", "cql", "crr")
MEMBERS, DOMAINS = (1, 5, 15, 17, 32), ("walker", "quadruped")
TARGETS = {("behavioral", 1): 1.2, ("behavioral", 17): 8, ("td3", 15): 3, ("cql", 15): 9}
TINY = {"hidden_dim": 16, "batch_size": 32}
FILL, FLOATS = Streams.fill, ("float32", "tf32")


def make(name: str, members: int, device: torch.device, domain: str = "walker", **sizes: Any):
    """Return an engine with members of one collector or learner, and random transitions."""
    sizes["domain"] = domain
    if name in LEARNERS:
        configs = [OfflineConfig(algorithm=name, seed=seed, **sizes) for seed in range(members)]
    else:
        task = f"{domain}_walk" if name == "task" else ""
        one = PretrainConfig(objective=name, task=task, **sizes)
        configs = [replace(one, seed=seed) for seed in range(members)]
    return practice(configs, 3000, device)


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def as_on_cpu(self: Streams, numbers: Tensor, distribution: Any) -> Tensor:
    """Noise that a CPU would draw, so that card and CPU can be compared."""
    return numbers.copy_(FILL(self, torch.empty(numbers.shape), distribution))


def agreement(name: str, device: torch.device, precision: str, **sizes: Any) -> dict:
    """Largest differences of metrics after 8 updates: card from CPU, captured from eager."""
    sizes = {**sizes, "precision": precision}
    with patch.object(Streams, "fill", as_on_cpu):
        runs = [make(name, 2, d, **sizes) for d in (device, torch.device("cpu"), device)]
        for work in runs[:2]:
            for _ in range(8):
                work.step()
        with patch.object(engine, "capture", lambda step, device: step):
            for _ in range(8):
                runs[2].step()
    captured, cpu, eager = (work.latest() for work in runs)
    row = {"what": "agreement", "name": name, "members": 2, "precision": precision}
    for other, found in (("from_cpu", cpu), ("from_eager", eager)):
        pairs = [(captured[key], found[key]) for key in captured]
        row[other] = max(float(((a - b).abs() / (1 + b.abs())).max()) for a, b in pairs)
    return row


@contextmanager
def quick_weights() -> Iterator[None]:
    """Normal weights for orthogonal ones, which take most of the minutes and change no time."""
    with patch.object(nn.init, "orthogonal_", lambda x, generator: x.normal_(generator=generator)):
        yield


def milliseconds(call: Callable[[], Any], device: torch.device, calls: int) -> float:
    """Median of five rounds of some calls, a call; what a card was given to do is waited for."""
    found = []
    for _ in range(5):
        wait(device)
        begun = time.perf_counter()
        for _ in range(calls):
            call()
        wait(device)
        found.append(1e3 * (time.perf_counter() - begun) / calls)
    return statistics.median(found)


def times(name: str, members: int, device: torch.device, calls: int, **sizes: Any) -> dict:
    """Of an update, captured where there is a card, and of actions for ten observations each."""
    with quick_weights():
        work = make(name, members, device, **sizes)
    for _ in range(5):
        work.step()
    obs = torch.zeros(members, 10, work.replay.obs_dim)
    act = lambda: work.learner.act(obs, explore=False)  # noqa: E731
    return {"ms": milliseconds(work.step, device, calls), "act_ms": milliseconds(act, device, 10)}


def update_rows(device: torch.device, members: tuple[int, ...], **sizes: Any) -> Iterator[dict]:
    """Every collector and learner in bfloat16 at all members, in the other precisions at few."""
    cases = [(n, m, "bfloat16", "walker") for n in (*COLLECTORS, *OFFLINE) for m in members]
    few = [("behavioral", members[-2]), ("td3", members[-3])] if len(members) > 2 else [("td3", 1)]
    cases += [(n, m, p, "walker") for n, m in few for p in FLOATS]
    cases += [(n, members[-1] // 2, "bfloat16", "walker") for n in ("task", "td3_bc", "bc")]
    quadruped = [("behavioral", 17), ("rnd", 1), ("smm", 1), ("task", 2)]
    quadruped += [(n, 10) for n in OFFLINE]
    cases += [(n, min(m, members[-1]), "bfloat16", "quadruped") for n, m in quadruped]
    for name, count, precision, domain in cases:
        options = {"domain": domain, "precision": precision, **sizes}
        row = {"what": "update", "name": name, "members": count, "precision": precision}
        row |= times(name, count, device, 1 if sizes else 4, **options)
        target = TARGETS.get((name, count)) if domain == "walker" and not sizes else None
        yield {**row, "domain": domain, "target_ms": target}


def collection_row(device: torch.device, members: int, seconds: float, **sizes: Any) -> dict:
    """Real Walker data by APT's members for some seconds: milliseconds an environment step."""
    sizes = {"random_steps": 400, "num_steps": 50_000, "precision": "bfloat16", **sizes}
    configs = [PretrainConfig(seed=seed, **sizes) for seed in range(members)]
    with tempfile.TemporaryDirectory() as folder:
        work = Collection(configs, [Path(folder) / config.dataset for config in configs])
        while work.step < 450:  # learning, and captured
            work.advance()
        wait(device)
        first, begun = work.step, time.perf_counter()
        while time.perf_counter() - begun < seconds:
            work.advance()
        wait(device)
        ms = 1e3 * (time.perf_counter() - begun) / (work.step - first)
    row = {"what": "collection", "name": "behavioral", "members": members}
    return {**row, "precision": "bfloat16", "domain": "walker", "ms": ms}


def grid_rows(table: pd.DataFrame) -> Iterator[dict]:
    """Hours of each part of the paper's grid, from ms of an update, of acting, of steps here."""
    measured = table[(table["what"] == "update") & (table["precision"] == "bfloat16")]
    lines = read_grid("paper")["datasets"]
    datasets = [config for line in lines for config in expand(line, PretrainConfig())]
    for domain in DOMAINS:
        configs = [c for c in datasets if c.domain == domain and c.objective != "random"]
        own = measured[measured["domain"] == domain]
        _, collect, play = (1e3 * seconds for seconds in environment_seconds(domain))
        groups = {(agent_of(c.objective), c.num_steps): [] for c in configs}
        for config in configs:
            groups[agent_of(config.objective), config.num_steps].append(config)
        for (agent, steps), group in groups.items():
            name = "behavioral" if agent is APT else group[0].objective
            m, act, ms = len(group), *in_ms(own, name, len(group))
            # Every second step's update runs while its environments step.
            pair = 2 * act + m * collect + max(ms, m * collect)
            text = f"{steps} steps / 2 x (2 x {act:.3f} + {m} x {collect:.3f} + "
            text += f"the longer of that and {ms:.2f})"
            yield hours_row(f"collect {domain}, {agent.__name__} x {m}", text, steps / 2 * pair)
        tasks, policies = (3, 15) if domain == "walker" else (2, 10)
        for name in OFFLINE:
            act, ms = in_ms(own, name, policies)
            # 18 datasets, of which one has 200,000 updates and twice as many evaluations
            text = f"19 x 100,000 updates x {ms:.2f} ms"
            what = f"{domain}, {name} x {policies} ({tasks} tasks, 5 seeds)"
            yield hours_row(f"learn {what}", text, 19e5 * ms)
            text = f"19 x 10 evaluations x 1000 x ({act:.3f} + 10 x {policies} x {play:.3f})"
            step = act + 10 * policies * play
            yield hours_row(f"evaluate {what}", text, 19 * 10 * 1000 * step)


def in_ms(measured: pd.DataFrame, name: str, members: int) -> tuple[float, float]:
    """Acting and updating, of the fewest measured members that are enough, or in proportion."""
    own = measured[measured["name"] == name].set_index("members")[["act_ms", "ms"]].sort_index()
    enough = own[own.index >= members]
    found = enough.iloc[0] if len(enough) else own.iloc[-1] * members / own.index[-1]
    return float(found["act_ms"]), float(found["ms"])


def hours_row(name: str, arithmetic: str, ms: float) -> dict:
    hours = ms / 3.6e6
    print(f"{hours:7.2f} h  {name}: {arithmetic}", flush=True)
    return {"what": "grid", "name": name, "hours": hours}


def run(device: torch.device, tiny: bool) -> pd.DataFrame:
    """All rows; printed as they are found."""
    sizes = dict(TINY) if tiny else {}
    small = sizes or {"hidden_dim": 256, "batch_size": 256}
    rows = []
    for name in (*COLLECTORS, *OFFLINE):
        for precision in ("float32",) if tiny else ("float32", "bfloat16"):
            rows.append(agreement(name, device, precision, **small))
            print(rows[-1], flush=True)
    for row in update_rows(device, (1, 2) if tiny else MEMBERS, **sizes):
        rows.append(row)
        print({key: value for key, value in row.items() if value is not None}, flush=True)
    rows.append(collection_row(device, 2 if tiny else 17, 0.5 if tiny else 60, **sizes))
    print(rows[-1], flush=True)
    grid = list(grid_rows(pd.DataFrame(rows)))
    print(f"{sum(row['hours'] for row in grid):7.2f} h  in all, with `precision: bfloat16`")
    return pd.DataFrame(rows + grid)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu", action="store_true", help="on the CPU, in the card's place")
    parser.add_argument("--tiny", action="store_true", help="sizes of seconds: does it run?")
    parser.add_argument("--out", type=Path, help="instead of a card's results/gpu.csv")
    options = parser.parse_args(arguments)
    if not options.cpu and not torch.cuda.is_available():
        parser.error("no CUDA card was found: --cpu --tiny shows that the script runs")
    device = torch.device("cpu" if options.cpu else "cuda")
    card = "CPU" if options.cpu else torch.cuda.get_device_name()
    begun = time.perf_counter()
    with patch.object(machine, "device", lambda: device):
        table = run(device, options.tiny)
    scale = "tiny sizes, not a measurement" if options.tiny else "the paper's sizes"
    minutes = (time.perf_counter() - begun) / 60
    head = f"# belib {git_revision()}; {card}; torch {torch.__version__}; {scale}; "
    head += f"{minutes:.1f} minutes\n"
    out = options.out or (None if options.cpu or options.tiny else ROOT / "results" / "gpu.csv")
    if out:
        write_text(out, head + table.to_csv(index=False, float_format="%.4g"))


if __name__ == "__main__":
    main()
