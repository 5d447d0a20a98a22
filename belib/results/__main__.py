"""Print the summary of all results in a folder: `python -m belib.results RUNS_DIR`."""

import sys
from pathlib import Path

import pandas as pd

from belib.results import collect, summary


def main() -> None:
    """Run the command line; exit with a message if there are no results, or damaged ones."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: python -m belib.results RUNS_DIR")
    try:
        table = summary(collect(Path(sys.argv[1]).absolute())).drop(columns="upright")
    except (ValueError, OSError) as error:
        sys.exit(str(error))
    with pd.option_context("display.width", 120, "display.float_format", "{:.1f}".format):
        print(table.to_string(index=False))


if __name__ == "__main__":
    main()
