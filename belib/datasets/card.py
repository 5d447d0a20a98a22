"""A dataset's card: computed from its files, never typed."""

import hashlib
import json
import math
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from belib import paths, tables
from belib.datasets.dataset import Dataset, content_sha256, load
from belib.datasets.episodes import DatasetError, read_episode, read_object
from belib.datasets.relabelling import task_rewards
from belib.envs import domain_tasks

CARD = "card.json"

_NEEDED = ("num_steps", "steps", "episodes", "returns", "sha256")
_NEEDED += ("versions", "git_revision", "card_sha256")

# Entries that cannot be computed again from the files.
_OF_ITS_MAKING = ("precision", "versions", "git_revision", "card_sha256")


def write_card(folder: Path, *, precision: str | None = None) -> dict[str, Any]:
    """Compute a dataset's card from its files and configuration, write it and return it.

    Args:
        folder: the dataset's.
        precision: of the products of the agent that collected it, if that is known.
    """
    card = _facts(load(folder))
    card["precision"] = precision
    card["versions"] = {
        "python": platform.python_version(),
        **{name: version(name) for name in ("belib", "dm_control", "mujoco", "numpy", "torch")},
    }
    card["git_revision"] = paths.git_revision()
    card["card_sha256"] = _digest(card)
    paths.write_text(folder / CARD, json.dumps(card, indent=2) + "\n")
    return card


def read_card(folder: Path) -> dict[str, Any] | None:
    """A dataset's card, None where it has none yet; DatasetError for a file of anything else."""
    file = folder / CARD
    return read_object(file, _NEEDED) if file.exists() else None


def is_described(dataset: Dataset) -> bool:
    """Whether a card tells of all its steps; not while it is collected, or extended."""
    card = read_card(dataset.folder)
    return card is not None and card["steps"] == dataset.steps


def check_card(folder: Path) -> list[str]:
    """What in a dataset's card is not what its files give; raises DatasetError as `load` does."""
    dataset = load(folder)
    try:
        card = read_card(dataset.folder)
    except DatasetError as error:
        return [str(error).replace(f"{dataset.folder / CARD} ", "it ")]
    if card is None:
        return ["there is none"]
    facts = _facts(dataset)
    faults = [
        f"{name} must be {facts.get(name)!r}, got {card.get(name)!r}"
        for name in {**facts, **card}
        if name not in _OF_ITS_MAKING and not _same(facts.get(name), card.get(name))
    ]
    if not faults and card.get("card_sha256") != _digest(card):
        faults = ["it was changed after it was written: card_sha256 is not that of the rest"]
    return faults


def origin(dataset: Dataset) -> dict[str, Any]:
    """What made the data; for merged data, what all sources have in common, else None."""
    names = ("objective", "parameter", "variant", "seed", "scale")
    config, provenance = dataset.config(), dataset.provenance()
    if config is not None:
        return {name: getattr(config, name) for name in names}
    sources = (provenance or {}).get("sources", [{}])
    found = {name: [source.get(name) for source in sources] for name in names}
    return {name: v[0] if all(x == v[0] for x in v) else None for name, v in found.items()}


def _facts(dataset: Dataset) -> dict[str, Any]:
    """The card's part that files and configuration determine."""
    config, collected = dataset.config(), dataset.provenance() is None
    episode = read_episode(dataset.files[-1])
    return {
        "name": dataset.name,
        "domain": dataset.domain,
        **origin(dataset),
        "num_steps": config.num_steps if config and collected else dataset.steps,
        "episodes": len(dataset.files),
        "steps": dataset.steps,
        "obs_dim": episode["observation"].shape[1],
        "action_dim": episode["action"].shape[1],
        **_returns(dataset, has_physics="physics" in episode),
        "random_actions": _random_share(dataset),
        "physics_errors": _physics_errors(dataset),
        "sha256": content_sha256(dataset),
    }


def _returns(dataset: Dataset, *, has_physics: bool) -> dict[str, Any]:
    """Rewards a step and returns an episode, of each task that the data have rewards of."""
    if not (has_physics or (dataset.folder / "rewards").exists()):
        return {"mean_reward": {}, "returns": {}}
    tasks = domain_tasks(dataset.domain)
    labels = [rows[1:] for rows in task_rewards(dataset, tasks)]
    returns = np.array([rows.sum(0) for rows in labels])
    rewards = np.concatenate(labels).mean(0)
    return {
        "mean_reward": dict(zip(tasks, rewards.tolist(), strict=True)),
        "returns": {
            task: {"mean": float(r.mean()), "min": float(r.min()), "max": float(r.max())}
            for task, r in zip(tasks, returns.T, strict=True)
        },
    }


def _random_share(dataset: Dataset) -> float | None:
    """Share of uniformly random actions; None where nothing says it."""
    config = dataset.config()
    if config is not None and config.objective == "random":
        return 1.0
    if config is None or dataset.provenance() is not None:
        return None
    return min(config.random_steps, dataset.steps) / dataset.steps


def _physics_errors(dataset: Dataset) -> int | None:
    """Episodes that a simulation error ended; None for data without a `metrics.csv`."""
    file = dataset.folder / "metrics.csv"
    if not file.exists():
        return None
    metrics = tables.read_csv(file, optional=["physics_errors"])
    return int(metrics["physics_errors"].sum()) if "physics_errors" in metrics else 0


def _same(one: Any, other: Any) -> bool:
    """Equality, of floats up to the rounding of another machine's sums."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return one == other


def _digest(card: dict[str, Any]) -> str:
    """SHA-256 of all of a card but its own digest."""
    rest = {name: value for name, value in card.items() if name != "card_sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
