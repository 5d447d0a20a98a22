"""Rates of a CUDA card: measured by benchmarks/gpu.py where that was run, otherwise assumed."""

from pathlib import Path

import pandas as pd

from belib import paths, runs
from belib.config import ALGORITHMS, OfflineConfig, PretrainConfig
from belib.envs import domain_tasks
from belib.estimates.rates import Rates
from belib.estimates.shapes import count

ASSUMED = {
    "H100": Rates(
        # Dense peaks of NVIDIA's data sheet (SXM): 67 TFLOP/s in float32, 989 in bfloat16, of which
        # large products reach about 60 %; 3.35 TB/s, of which passes reach about 80 %. (tf32, with
        # 495, is counted as float32.)
        products={
            "square float32": ((5e5, 1e13), (3e7, 3e13), (2e9, 4e13)),
            "thin float32": ((2e5, 2e12), (3e6, 1e13), (5e7, 2e13)),
            "square bfloat16": ((5e5, 4e13), (3e7, 2e14), (2e9, 6e14)),
            "thin bfloat16": ((2e5, 4e12), (3e6, 2e13), (5e7, 6e13)),
        },
        passes=((1e5, 5e11), (1e8, 2.7e12)),
        draw=1e-11,
        order=1e-10,
        overhead=2.5e-6,  # a small kernel in a captured graph
        write=1e9,
        source="assumed: H100",
        overlaps=True,
    )
}
"""Published numbers of machines that nobody has measured here: an estimate with them says so."""


TABLE = paths.ROOT / "results" / "gpu.csv"


def card_rates(file: Path = TABLE) -> Rates:
    """The assumed rates, held against the updates of a table of benchmarks/gpu.py if there is one.

    Args:
        file: its first line names the card; columns what, name, members, precision, domain, ms.
    """
    rates = ASSUMED["H100"]
    if not file.exists():
        return rates
    with open(file) as opened:
        card = opened.readline().split(";")[1].strip()
    table = pd.read_csv(file, comment="#")
    known = table[(table["what"] == "update") & (table["precision"] == "bfloat16")]
    pairs = sorted(_held_against(rates, each) for _, each in known.iterrows())
    return rates._replace(factor=tuple(pairs), source=f"from what was measured on {card}")


def _held_against(rates: Rates, measured: pd.Series) -> tuple[float, float]:
    """Computed seconds an operator, and measured over computed seconds, of a row's update."""
    update = count(_configs(measured)).update
    computed = rates.plain(update)
    return computed / sum(n for _, n in update), measured["ms"] / 1e3 / computed


def _configs(measured: pd.Series) -> list[runs.Config]:
    """The members of a row: paper-sized, all of one kind."""
    options = {"domain": measured["domain"], "precision": measured["precision"]}
    if measured["name"] in ALGORITHMS:
        one = OfflineConfig(algorithm=measured["name"], **options)
    else:
        task = domain_tasks(measured["domain"])[0] if measured["name"] == "task" else ""
        one = PretrainConfig(objective=measured["name"], task=task, **options)
    return [one] * int(measured["members"])
