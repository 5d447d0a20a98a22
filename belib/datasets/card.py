"""A dataset's card, computed from its files."""

import contextlib
import hashlib
import json
import math
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from belib import paths, rewards
from belib.datasets.dataset import Dataset, load
from belib.datasets.relabelling import task_rewards
from belib.envs import domain_tasks
from belib.results import tables

CARD = "card.json"

_REQUIRED = ("num_steps", "steps", "episodes", "returns", "sha256")
_REQUIRED += ("versions", "git_revision", "card_sha256")

# Entries that cannot be computed again from the files.
_NOT_RECOMPUTED = ("precision", "versions", "git_revision", "card_sha256")


def write_card(folder: Path, *, precision: str | None = None) -> dict[str, Any]:
    """Compute a dataset's card from its files and configuration, write it and return it.

    `precision` is that of the agent's matrix products, by default the existing card's.
    """
    card, packages = _facts(load(folder)), ("belib", "dm_control", "mujoco", "numpy", "torch")
    with contextlib.suppress(ValueError):  # a damaged card is replaced
        precision = precision or (read_card(folder) or {}).get("precision")
    card["precision"] = precision
    card["versions"] = {"python": platform.python_version(), **{p: version(p) for p in packages}}
    card["git_revision"] = paths.git_revision()
    card["card_sha256"] = _digest(card)
    paths.write_text(folder / CARD, json.dumps(card, indent=2) + "\n")
    return card


def read_card(folder: Path) -> dict[str, Any] | None:
    """Return a dataset's card, None without a card.json; raise ValueError for a malformed one."""
    file = folder / CARD
    return paths.read_json(file, _REQUIRED) if file.exists() else None


def is_described(dataset: Dataset) -> bool:
    """Return whether the card covers all steps; it does not while a dataset grows."""
    card = read_card(dataset.folder)
    return card is not None and card["steps"] == dataset.steps


def check_card(folder: Path) -> list[str]:
    """List differences between a card and its files; a card of an earlier version may lack entries.

    Raise ValueError as `load` and `read_card` do.
    """
    dataset = load(folder)
    card = read_card(dataset.folder)
    if card is None:
        return ["there is none"]
    facts = _facts(dataset)
    faults = [
        f"{name} must be {facts.get(name)!r}, got {value!r}"
        for name, value in card.items()
        if name not in _NOT_RECOMPUTED and not _same(facts.get(name), value)
    ]
    if not faults and card["card_sha256"] != _digest(card):
        faults = ["it was changed after it was written: card_sha256 is not that of the rest"]
    return faults


def origin(dataset: Dataset) -> dict[str, Any]:
    """Return objective, parameter, variant, seed and scale; None where merged sources differ."""
    names = ("objective", "parameter", "variant", "seed", "scale")
    config, provenance = dataset.config(), dataset.provenance()
    if config is not None:
        return {name: getattr(config, name) for name in names}
    sources = (provenance or {}).get("sources") or [{}]
    same = {name: all(s.get(name) == sources[0].get(name) for s in sources) for name in names}
    return {name: sources[0].get(name) if same[name] else None for name in names}


def task_returns(data: Sequence[Dataset]) -> pd.DataFrame:
    """Return the return of every episode under every task, one row per episode and task."""
    rows = []
    for dataset in data:
        tasks = domain_tasks(dataset.domain)
        named = {"dataset": dataset.name, **origin(dataset)}
        for episode in task_rewards(dataset, tasks):
            for task, total in zip(tasks, episode.sum(0), strict=True):
                rows.append({**named, "task": task, "return": total})
    return pd.DataFrame(rows)


def identity(dataset: Dataset) -> dict[str, Any]:
    """Return name, origin, size and content of a dataset.

    `sha256` covers the names, types, shapes and numbers of all arrays in order. File names and
    compression do not change it.
    """
    digest = hashlib.sha256()
    for episode in dataset.episodes():
        for key, array in sorted(episode.items()):
            digest.update(f"{key} {array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    size = {"episodes": len(dataset.files), "steps": dataset.steps, "sha256": digest.hexdigest()}
    return {"name": dataset.name, "domain": dataset.domain, **origin(dataset), **size}


def _facts(dataset: Dataset) -> dict[str, Any]:
    """Return the entries that files and configuration determine."""
    config, steps, first = dataset.config(), dataset.steps, next(dataset.episodes())
    collected = config if dataset.provenance() is None else None
    obs_dim, action_dim = (first[key].shape[1] for key in ("observation", "action"))
    facts: dict[str, Any] = identity(dataset) | (rewards.facts(config, obs_dim) if config else {})
    facts["num_steps"] = collected.num_steps if collected else steps
    facts |= {"obs_dim": obs_dim, "action_dim": action_dim}
    facts |= {"mean_reward": {}, "returns": {}, "random_actions": None, "physics_errors": None}
    if "physics" in first or (dataset.folder / "rewards").exists():
        tasks = domain_tasks(dataset.domain)
        episodes = [rows[1:] for rows in task_rewards(dataset, tasks)]
        returns = np.array([rows.sum(0) for rows in episodes])
        means = np.concatenate(episodes).mean(0).tolist()
        facts["mean_reward"] = dict(zip(tasks, means, strict=True))
        for task, column in zip(tasks, returns.T, strict=True):
            summary = {"mean": column.mean(), "min": column.min(), "max": column.max()}
            facts["returns"][task] = {name: float(value) for name, value in summary.items()}
    if config is not None and config.objective == "random":
        facts["random_actions"] = 1.0
    elif collected is not None:
        facts["random_actions"] = min(collected.random_steps, steps) / steps
    if (metrics := dataset.folder / "metrics.csv").exists():
        table = tables.read_csv(metrics, optional=["physics_errors"])
        facts["physics_errors"] = int(table.get("physics_errors", np.zeros(1)).sum())
    return facts


def _same(one: Any, other: Any) -> bool:
    """Return whether values are equal; floats may differ by rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return one == other


def _digest(card: dict[str, Any]) -> str:
    """Return the SHA-256 of a card without `card_sha256`."""
    rest = {name: value for name, value in card.items() if name != "card_sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
