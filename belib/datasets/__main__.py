"""Look after datasets from a shell: `python -m belib.datasets validate runs/datasets/*/*`."""

import argparse
import json
import sys
from pathlib import Path

import pandas as pd

from belib.datasets import (
    DatasetError,
    check_card,
    export_minari,
    load,
    relabel,
    validate,
    write_card,
)
from belib.envs import domain_tasks

EXIT_CODES = "Exit status: 0 all is well, 1 faults were found or it failed, 2 wrong usage."


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    whole = argparse.ArgumentParser(
        prog="python -m belib.datasets", description=__doc__, epilog=EXIT_CODES
    )
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, words: str) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=words, description=words, epilog=EXIT_CODES)
        one.add_argument("path", nargs="+", type=Path, help="dataset folder, which holds buffer/")
        return one

    command("validate", "Check every rule of the format and list all faults; changes nothing.")
    card = command("card", "Compute the card, write it to card.json and print it.")
    card.add_argument("--check", action="store_true", help="only compare the card that is there")
    tasks = command("relabel", "Compute all tasks' rewards from physics states, and keep them.")
    tasks.add_argument("--processes", type=int, help="by default one a core where it is worth it")
    export = command("export", "Write it as a Minari dataset; needs the extra belib[minari].")
    export.add_argument("--id", help="Minari's name, by default belib/<domain>/<name>-v0")
    export.add_argument("--task", help="whose rewards, by default those stored in the episodes")
    return whole


def run(path: Path, arguments: argparse.Namespace) -> bool:
    """Do the command for one dataset; whether all is well."""
    if arguments.command == "validate":
        return _report(path, [fault._asdict() for fault in validate(path)])
    if arguments.command == "card":
        if arguments.check:
            return _report(path, [{"file": "card.json", "fault": f} for f in check_card(path)])
        print(json.dumps(write_card(path), indent=2))
        return True
    dataset = load(path)
    if arguments.command == "export":
        made = export_minari(dataset, arguments.id, task=arguments.task)
        print(f"{path}: {made.total_steps} transitions in {made.spec.dataset_id}")
        return True
    tasks, options = domain_tasks(dataset.domain), {"processes": arguments.processes}
    returns = {task: [r.sum() for r in relabel(dataset, task, **options)] for task in tasks}
    table = pd.DataFrame(returns).agg(["mean", "min", "max"])
    print(f"{path}: returns of {len(dataset.files)} episodes\n{table.round(2)}")
    return True


def _report(path: Path, faults: list[dict]) -> bool:
    if not faults:
        print(f"{path}: no faults")
        return True
    table = pd.DataFrame(faults).astype(object)
    with pd.option_context("display.max_colwidth", None):
        shown = table.where(table.notna(), "").to_string(index=False, justify="left")
    count = f"{len(faults)} fault" + "s" * (len(faults) > 1)
    print(f"{path}: {count}\n{shown}")
    return False


def main(words: list[str] | None = None) -> int:
    """Run a command line; its exit status."""
    arguments = parser().parse_args(words)
    well = True
    for path in arguments.path:
        try:
            well &= run(path.absolute(), arguments)
        except (DatasetError, ValueError, OSError, ImportError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            well = False
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
