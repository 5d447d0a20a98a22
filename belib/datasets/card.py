"""A dataset's card, computed from its files, and the check of all files."""

import hashlib
import json
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from belib import envs, paths, rewards
from belib.datasets.files import Dataset, DatasetError, load, read_episode
from belib.datasets.relabelling import read_rewards, task_rewards

CARD = "card.json"


def write_card(
    folder: str | Path, *, precision: str | None = None, num_steps: int | None = None
) -> dict[str, Any]:
    """Compute a dataset's card from its files and configuration, write it and return it.

    `precision` is that of the agent's matrix products, `num_steps` the steps of the collection with
    its unfinished episode; by default those of the existing card, or all steps on disk.
    """
    folder, packages = paths.resolve(folder), ["belib", "dm_control", "mujoco", "numpy", "torch"]
    before = read_card(folder) or {}
    card = _facts(load(folder), num_steps or before.get("num_steps", 0))
    packages += ["gymnasium"] * card["domain"].startswith("gymnasium-")
    card["precision"] = precision or before.get("precision")
    card["versions"] = {"python": platform.python_version(), **{p: version(p) for p in packages}}
    card["git_revision"] = paths.git_revision()
    paths.write_text(folder / CARD, json.dumps(card, indent=2) + "\n")
    return card


def read_card(folder: str | Path) -> dict[str, Any] | None:
    """Return a dataset's card, None without a card.json; raise ValueError for a malformed one."""
    file = paths.resolve(folder) / CARD
    keys = ["num_steps", "steps", "episodes", "returns", "sha256"]
    return paths.read_json(file, keys) if file.exists() else None


def origin(dataset: Dataset) -> dict[str, Any]:
    """Return objective, parameter, variant, seed, scale: None if unknown or if sources differ."""
    names = ("objective", "parameter", "variant", "seed", "scale")
    config, provenance = dataset.config(), dataset.provenance() or {}
    if config is not None:
        return {name: getattr(config, name) for name in names}
    sources = provenance.get("sources") or [{}]
    values = {name: [source.get(name) for source in sources] for name in names}
    return {name: v[0] if v == v[:1] * len(v) else None for name, v in values.items()}


def task_returns(data: Sequence[Dataset]) -> pd.DataFrame:
    """Return the return of every episode under every task, one row per episode and task."""
    rows = []
    for dataset in data:
        tasks = envs.domain_tasks(dataset.domain)
        named = {"dataset": dataset.name, **origin(dataset)}
        for episode in task_rewards(dataset, tasks):
            for task, total in zip(tasks, episode.sum(0), strict=True):
                rows.append({**named, "task": task, "return": total})
    return pd.DataFrame(rows)


def identity(dataset: Dataset) -> dict[str, Any]:
    """Return name, origin and size of a dataset, and the SHA-256 of all arrays in order."""
    digest = hashlib.sha256()
    for episode in dataset.episodes():
        for key, array in sorted(episode.items()):
            digest.update(f"{key} {array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    size = {"episodes": len(dataset.files), "steps": dataset.steps, "sha256": digest.hexdigest()}
    return {"name": dataset.name, "domain": dataset.domain, **origin(dataset), **size}


def _facts(dataset: Dataset, num_steps: int) -> dict[str, Any]:
    """Return the entries that files and configuration determine.

    The files have at most `num_steps`, and the configuration at least.
    """
    config, made, first = dataset.config(), dataset.provenance(), next(dataset.episodes())
    facts: dict[str, Any] = identity(dataset)
    facts |= rewards.facts(config, first["observation"].shape[1]) if config else {}
    most = config.num_steps if config and not made else dataset.steps
    facts["num_steps"] = min(most, max(dataset.steps, num_steps))
    facts |= {"mean_reward": {}, "returns": {}, "physics_errors": None}
    if "physics" in first or (dataset.folder / "rewards").exists():
        tasks = envs.domain_tasks(dataset.domain)
        episodes = [rows[1:] for rows in task_rewards(dataset, tasks)]
        returns = np.array([rows.sum(0) for rows in episodes])
        means = np.concatenate(episodes).mean(0)
        facts["mean_reward"] = dict(zip(tasks, means.tolist(), strict=True))
        for task, r in zip(tasks, returns.T, strict=True):
            facts["returns"][task] = {"mean": r.mean(), "min": r.min(), "max": r.max()}
    if (metrics := dataset.folder / "metrics.csv").exists() and metrics.read_text().strip():
        facts["physics_errors"] = int(pd.read_csv(metrics).get("physics_errors", np.zeros(1)).sum())
    return facts


def validate(folder: str | Path) -> list[str]:
    """Return all faults of a dataset, one text per file, sorted; change nothing.

    Each text has the file, and the rule and first row of its faults. Readers raise for the same
    faults, except for leftovers of interrupted writes and a card that does not fit. The card is
    checked only if nothing else is wrong.

    Raise ValueError for an unknown domain.
    """
    folder = paths.resolve(folder)
    dataset = Dataset(folder, folder.parent.name, tuple(sorted(folder.glob("buffer/[!.]*"))))
    sizes = dict(envs.domain_sizes(dataset.domain))
    leftovers = folder.rglob(f".*{paths.TEMPORARY}")
    faults = {f"{file} was left by an interrupted write and may be removed" for file in leftovers}
    faults |= _error(load, folder) | _error(dataset.config) | _error(dataset.provenance)
    for file in dataset.files:
        faults |= _error(_read, file, dataset.domain, sizes)
    faults = faults or _error(_check_card, folder)
    return sorted(fault.replace(f"{folder}/", "") for fault in faults)


def _error(check: Callable, *arguments: Any) -> set[str]:
    """Return the message of the error that a check raises, if any."""
    try:
        check(*arguments)
    except (ValueError, TypeError, OSError) as error:
        return {str(error)}
    return set()


def _read(file: Path, domain: str, sizes: dict[str, int]) -> None:
    episode, rewards = read_episode(file, sizes), file.parents[1] / "rewards"
    if rewards.exists():
        read_rewards(rewards / file.name, episode, envs.primal_task(domain))


def _check_card(folder: Path) -> None:
    """Raise DatasetError if a card contradicts the files; floats are compared to 9 digits."""
    if card := read_card(folder):
        both = [json.dumps(entries) for entries in (_facts(load(folder), card["num_steps"]), card)]
        facts, card = (json.loads(t, parse_float=lambda x: f"{float(x):.9g}") for t in both)
        wrong = [name for name in card if facts.get(name, card[name]) != card[name]]
        if wrong:
            faults = (f"{name} must be {facts[name]}, got {card[name]}" for name in wrong)
            raise DatasetError(f"{folder / CARD}: {'; '.join(faults)}")
