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
    subprocess.run([*command, "--out", tmp_path], cwd=ROOT, check=True)
    table = pd.read_csv(tmp_path / "bench.csv", comment="#")
    timed = table[table["unit"] == "ms"]
    assert (timed["ours"] > 0).all()
    np.testing.assert_allclose(timed["over peer"], timed["its"] / timed["ours"], rtol=2e-3)
    np.testing.assert_allclose(timed["of limit"], timed["at the limit"] / timed["ours"], rtol=2e-3)
    assert (table["unit"] == "exponent").sum() == 8
    assert (tmp_path / "bench.png").stat().st_size > 10_000
