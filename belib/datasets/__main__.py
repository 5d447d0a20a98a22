"""Check and convert datasets from a shell: `python -m belib.datasets validate runs/datasets/*/*`.

validate lists every fault. card computes the card, writes it to card.json and prints it. relabel
computes the rewards of all tasks from physics states, and caches dm_control's. export writes a
Minari dataset and needs the extra belib[minari].

Exit status: 0 no faults, 1 faults or an error, 2 wrong usage.
"""

import argparse
import json
import sys
from pathlib import Path

from belib import datasets
from belib.envs import primal_task


def run(command: str, path: Path) -> str:
    """Run a command for one dataset; return its result, or raise DatasetError for its faults."""
    if command == "card":
        return json.dumps(datasets.write_card(path), indent=2)
    if command == "validate":
        if faults := datasets.validate(path):
            raise datasets.DatasetError(f"\n{path}: ".join(faults))
        return f"{path}: no faults"
    dataset = datasets.load(path)
    if command == "export":
        made = datasets.export_minari(dataset)
        return f"{path}: {made.total_steps} transitions in {made.spec.dataset_id}"
    rewards = datasets.relabel(dataset, primal_task(dataset.domain))
    return f"{path}: the rewards of all tasks of {len(rewards)} episodes are computed"


def main(arguments: list[str] | None = None) -> int:
    """Run a command line and return its exit status."""
    parser = argparse.ArgumentParser("python -m belib.datasets", description=__doc__)
    parser.add_argument("command", choices=("validate", "card", "relabel", "export"))
    parser.add_argument("path", nargs="+", type=Path, help="dataset folder, which holds buffer/")
    options, status = parser.parse_args(arguments), 0
    for path in options.path:
        try:
            print(run(options.command, path.absolute()))
        except (ValueError, OSError, ImportError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
