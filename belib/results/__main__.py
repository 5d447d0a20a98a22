"""Print the summary of all results in a folder: `python -m belib.results RUNS_DIR`."""

import argparse
import sys
from pathlib import Path

import pandas as pd

from belib.results import collect, summary


def main() -> None:
    """Run the command line; exit with a message if there are no results, or damaged ones."""
    parser = argparse.ArgumentParser(prog="python -m belib.results", description="Print a summary.")
    parser.add_argument("runs_dir", type=Path, help="holds offline/")
    try:
        table = summary(collect(parser.parse_args().runs_dir.absolute()))
    except (ValueError, OSError) as error:
        sys.exit(str(error))
    with pd.option_context("display.width", 120, "display.float_format", "{:.1f}".format):
        print(table.drop(columns="upright").to_string(index=False))


if __name__ == "__main__":
    main()
