"""The script that is prepared for a card runs, on a CPU at sizes of seconds."""

import importlib.util

import pandas as pd
import pytest

from belib.paths import ROOT


def test_the_script_for_a_card_runs_without_one(tmp_path, capsys):
    spec = importlib.util.spec_from_file_location("gpu", ROOT / "benchmarks" / "gpu.py")
    gpu = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gpu)
    gpu.main(["--cpu", "--tiny", "--out", str(tmp_path / "gpu.csv")])
    assert "tiny sizes, not a measurement" in (tmp_path / "gpu.csv").read_text()
    table = pd.read_csv(tmp_path / "gpu.csv", comment="#")
    assert set(table["what"]) == {"agreement", "update", "collection", "grid"}
    agreed = table[table["what"] == "agreement"]
    assert (agreed["from_cpu"] == 0).all()  # on a card, within rounding
    assert (agreed["from_eager"] == 0).all()
    hours = table["hours"].sum()
    printed = float(capsys.readouterr().out.strip().splitlines()[-1].split(" h ")[0])
    assert printed == pytest.approx(hours, rel=1e-3)  # files keep 4 digits
