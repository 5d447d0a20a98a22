"""Check and convert datasets from a shell: `python -m belib.datasets validate runs/datasets/*/*`.

validate lists every fault. card computes the card, writes it to card.json and prints it. relabel
computes the rewards of all tasks from physics states and caches them. export writes a Minari
dataset and needs the extra belib[minari].

Exit status: 0 no faults, 1 faults or an error, 2 wrong usage.
"""

import argparse
import json
import sys
from pathlib import Path

from belib import datasets
from belib.envs import domain_tasks


def run(path: Path, options: argparse.Namespace) -> bool:
    """Run a command for one dataset and print its result; return whether there are no faults."""
    faults: list[str] = []
    if options.command == "validate":
        faults = [f"{fault.file}: {fault.fault}" for fault in datasets.validate(path)]
    elif options.command == "card" and options.check:
        faults = [f"card.json: {fault}" for fault in datasets.check_card(path)]
    elif options.command == "card":
        print(json.dumps(datasets.write_card(path), indent=2))
    elif options.command == "export":
        made = datasets.export_minari(datasets.load(path), options.id, task=options.task)
        print(f"{path}: {made.total_steps} transitions in {made.spec.dataset_id}")
    else:
        dataset = datasets.load(path)
        for task in domain_tasks(dataset.domain):
            returns = [rows.sum() for rows in datasets.relabel(dataset, task)]
            extremes = f"{min(returns):.2f} to {max(returns):.2f}"
            print(f"{path}: {task}: returns of {len(returns)} episodes: {extremes}")
    if options.command == "validate" or options.check:
        print(*(f"{path}: {fault}" for fault in faults or ["no faults"]), sep="\n")
    return not faults


def main(arguments: list[str] | None = None) -> int:
    """Run a command line and return its exit status."""
    name, layout = "python -m belib.datasets", argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(name, description=__doc__, formatter_class=layout)
    parser.add_argument("command", choices=("validate", "card", "relabel", "export"))
    parser.add_argument("path", nargs="+", type=Path, help="dataset folder, which holds buffer/")
    parser.add_argument("--check", action="store_true", help="card: only compare it with the files")
    parser.add_argument("--id", help="export: Minari's id, by default belib/<domain>/<name>-v0")
    parser.add_argument("--task", help="export: task of the rewards, by default the stored ones")
    options, status = parser.parse_args(arguments), 0
    for option, command in (("check", "card"), ("id", "export"), ("task", "export")):
        if getattr(options, option) and options.command != command:
            parser.error(f"--{option} is an option of {command}, got {options.command}")
    for path in options.path:
        try:
            status |= not run(path.absolute(), options)
        except (ValueError, OSError, ImportError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
