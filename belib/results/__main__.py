"""Print the summary of all results in a folder: `python -m belib.results RUNS_DIR`."""

import sys
from pathlib import Path

import pandas as pd

from belib.results import collect, scores, summary
from belib.statistics import compare

KEYS = ["task", "algorithm", "objective"]


def main() -> None:
    """Run the command line; exit with a message if there are no results, or damaged ones."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: python -m belib.results RUNS_DIR")
    try:
        results = collect(Path(sys.argv[1]).absolute())
        table = summary(results).drop(columns="upright")
    except (ValueError, OSError) as error:
        sys.exit(str(error))
    print(table.to_string(index=False, float_format="{:.1f}".format))
    print_against_random(results)


def print_against_random(results: pd.DataFrame) -> None:
    """Print how each objective compares with random actions, if both have two or more datasets.

    A dataset's value is the mean `late` return of its policies.
    """
    late = scores(results, "late").dropna(subset=["objective", "return"])
    values = late.groupby([*KEYS, "dataset"])["return"].mean().groupby(KEYS)
    arms = {key: arm for key, arm in values if len(arm) > 1}
    for (task, learner, objective), arm in arms.items():
        random = arms.get((task, learner, "random"))
        if objective != "random" and random is not None:
            more = compare(arm, random)
            found = f"{arm.mean():.0f} from {len(arm)} datasets of the objective {objective}"
            other = f"{random.mean():.0f} from {len(random)} of random actions"
            interval = f"{more.value:.0f} more, 95 % interval {more.low:.0f} to {more.high:.0f}"
            print(f"\n{task}, {learner}: mean return {found}, {other} ({interval}).")
            print("This compares data at this scale; it says nothing of other objectives.")


if __name__ == "__main__":
    main()
