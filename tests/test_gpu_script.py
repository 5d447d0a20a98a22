"""The script for a GPU runs on a CPU, at sizes of seconds."""

import importlib.util

import pandas as pd

from belib.paths import ROOT


def test_the_script_for_a_gpu_runs_without_one(tmp_path):
    spec = importlib.util.spec_from_file_location("gpu", ROOT / "benchmarks" / "gpu.py")
    gpu = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gpu)
    gpu.main(["--cpu", "--tiny", "--out", str(tmp_path / "gpu.csv")])
    assert "tiny sizes, not a measurement" in (tmp_path / "gpu.csv").read_text()
    table = pd.read_csv(tmp_path / "gpu.csv", comment="#")
    assert set(table["what"]) == {"update", "collection"}
    assert (table["ms"] > 0).all()
