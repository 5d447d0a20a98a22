"""Print the summary of all results in a folder: `python -m belib.results RUNS_DIR`."""

import sys
from pathlib import Path

import pandas as pd

from belib.results import collect, summary

try:
    table = summary(collect(Path(sys.argv[1]).absolute())).drop(columns="upright")
except (IndexError, ValueError, OSError) as error:
    sys.exit(f"python -m belib.results RUNS_DIR: {error}")
with pd.option_context("display.width", 120, "display.float_format", "{:.1f}".format):
    print(table.to_string(index=False))
