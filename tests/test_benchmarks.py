"""The benchmark runs and writes what it says; its numbers are for quiet machines."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from belib.paths import ROOT


@pytest.mark.slow
def test_the_whole_benchmark_runs_at_tiny_sizes(tmp_path):
    command = [sys.executable, "benchmarks/bench.py", "--quick", "--threads", "1"]
    done = subprocess.run([*command, "--out", tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    head = (tmp_path / "bench.csv").read_text().splitlines()[0]
    for part in ("# belib ", " cores", "1 threads", "load average", "torch "):
        assert part in head
    table = pd.read_csv(tmp_path / "bench.csv", comment="#")
    assert (table["ours"].notna()).all()
    timed = table[table["unit"] == "ms"]
    assert (timed["ours"] > 0).all()
    np.testing.assert_allclose(timed["over peer"], timed["its"] / timed["ours"], rtol=2e-3)
    np.testing.assert_allclose(timed["of limit"], timed["at the limit"] / timed["ours"], rtol=2e-3)
    assert set(table.loc[table["target"].notna(), "reached"]) <= {"yes", "no"}
    assert (table["unit"] == "exponent").sum() == 8
    assert (tmp_path / "bench.png").stat().st_size > 10_000
    grown = pd.read_csv(tmp_path / "bench_scaling.csv", comment="#")
    assert (grown["seconds"] > 0).all()


def test_the_script_for_a_gpu_runs_without_one(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import gpu

    few = list(gpu.cases((1, 2)))[::6]
    monkeypatch.setattr(gpu, "cases", lambda members: few)
    gpu.main(["--cpu", "--tiny", "--out", str(tmp_path / "gpu.csv")])
    assert "tiny sizes, not a measurement" in (tmp_path / "gpu.csv").read_text()
    table = pd.read_csv(tmp_path / "gpu.csv", comment="#")
    assert set(table["what"]) == {"update", "collection"}
    assert (table["ms"] > 0).all()
