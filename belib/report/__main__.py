"""`python -m belib.report RUNS_DIR FOLDER`: finished runs into the tables that are committed."""

import argparse
import sys
from pathlib import Path

from belib.report.gather import FILES, SIZE, commit_results


def main() -> int:
    """The command line; its exit status."""
    words = argparse.ArgumentParser(prog="python -m belib.report", description=__doc__)
    words.add_argument("runs_dir", type=Path, help="holds datasets/ and offline/")
    words.add_argument("folder", type=Path, help=f"where {', '.join(FILES)} go")
    words.add_argument("--size", type=int, default=SIZE, help="states a dataset for coverage")
    given = words.parse_args()
    try:
        to = commit_results(given.runs_dir.absolute(), given.folder.absolute(), size=given.size)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    for name in FILES:
        print(f"{to / name}: {(to / name).stat().st_size / 1000:.0f} KB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
