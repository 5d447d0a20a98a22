"""The stages: `pretrain` collects datasets, `train_offline` learns policies from them.

Members of one call are trained in lockstep, on a CUDA card where torch finds one. A run that is
killed at any moment and called again ends in the same bytes (on CPU, with the same number of
threads); a finished one does nothing.
"""

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from tqdm.auto import tqdm

from belib import datasets, envs, machine, paths, results, runs
from belib.config import OfflineConfig, PretrainConfig
from belib.rewards import OBJECTIVES
from belib.training import loop
from belib.training.collection import Collection, lockstep
from belib.training.evaluation import Evaluator
from belib.training.learning import Learning, check_data, identity, offline_folder
from belib.training.online import evaluate_online
from belib.training.rollout import rollout

__all__ = [
    "Evaluator",
    "check_tasks",
    "evaluate_baselines",
    "is_collected",
    "last_step",
    "pretrain",
    "rollout",
    "train_groups",
    "train_offline",
]


def pretrain(
    configs: PretrainConfig | Sequence[PretrainConfig],
    *,
    runs_dir: str | Path = "runs",
    checkpoint_minutes: float = 5.0,
    progress: bool = True,
) -> list[Path]:
    """Collect a dataset a config; returns their folders.

    Members whose agents have the same networks (behavioral, renyi and shannon; each other
    objective's seeds) are trained in lockstep, one such group after another. The policy of the
    objective `task`, the online reference, is evaluated at the end: see `results.online`.

    Args:
        configs: one config, or several that differ only in objective, alpha, q, task and seed.
        runs_dir: where datasets go, under `datasets/<domain>/<name>/`; relative to the project.
        checkpoint_minutes: time between checkpoints; a killed run repeats what came after the last.
        progress: whether to show a progress bar.

    Raises, before anything is run or written, ValueError for configs that do not go together, for
    an unknown domain, or for a dataset that another config made; OSError where nothing can be
    written.
    """
    configs = [configs] if isinstance(configs, PretrainConfig) else list(configs)
    runs.check_members(configs)
    _check_objectives(configs)
    folders = [datasets.dataset_folder(runs_dir, c.domain, c.dataset) for c in configs]
    runs.check_folders(folders, configs)
    options = {"checkpoint_minutes": checkpoint_minutes, "progress": progress}
    folder_of = dict(zip(configs, folders, strict=True))
    for group in lockstep(configs):
        _collect([(config, folder_of[config]) for config in group], **options)
    return folders


def _check_objectives(configs: Sequence[PretrainConfig]) -> None:
    envs.primal_task(configs[0].domain)
    known = envs.domain_tasks(configs[0].domain)
    for config in configs:
        if config.task and config.task not in known:
            raise ValueError(f"task must be one of {', '.join(known)}, got {config.task!r}")


def _collect(group: Sequence[tuple[PretrainConfig, Path]], **options: Any) -> None:
    """One lockstep run of the members of a group that are not finished."""
    finished = [is_collected(config, folder) for config, folder in group]
    pending = runs.pending([folder for _, folder in group], finished)
    for _, folder in group:
        if folder not in pending and (card := datasets.read_card(folder)):
            print(f"{folder.name}: finished already, {card['num_steps']} steps in {folder.parent}")
    if not pending:
        return
    configs, folders = zip(*(pair for pair in group if pair[1] in pending), strict=True)
    names = ", ".join(folder.name for folder in folders)
    work = loop.run(Collection(configs, folders), configs, folders, names, "steps", **options)
    # The first one's, which has the checkpoint, comes last.
    for config, folder, episodes in reversed(
        list(zip(configs, folders, work.episodes, strict=True))
    ):
        if config.objective == "task":
            evaluate_online(config, folder)
        if episodes:
            datasets.write_card(folder, precision=work.agent and work.agent.precision)
        else:
            print(
                f"{folder.name}: no full episode was written in {configs[0].num_steps} steps. The "
                "partial one is kept in the checkpoint: call with a larger num_steps to continue it"
            )


def is_collected(config: PretrainConfig, folder: Path) -> bool:
    """Whether a dataset has all steps of its config, so that `pretrain` would do nothing."""
    card = datasets.read_card(folder)
    return card is not None and card["num_steps"] >= config.num_steps


def train_offline(
    configs: OfflineConfig | Sequence[OfflineConfig],
    *,
    runs_dir: str | Path = "runs",
    checkpoint_minutes: float = 5.0,
    progress: bool = True,
) -> pd.DataFrame:
    """Learn a policy a config, the members in lockstep on one dataset; returns their results.

    Args:
        configs: one config, or several that differ only in task and seed.
        runs_dir: holds `datasets/`; results go under `offline/<domain>/<dataset>/<variant>/`.
        checkpoint_minutes, progress: as for `pretrain`.

    Returns a table of `results.COLUMNS`, a row an evaluation. Raises ValueError (DatasetError for
    the data) before time is spent.
    """
    configs = [configs] if isinstance(configs, OfflineConfig) else list(configs)
    runs.check_members(configs)
    config = configs[0]
    check_tasks(configs)
    folders = [offline_folder(runs_dir, c, c.dataset, c.variant) for c in configs]
    runs.check_folders(folders, configs)
    finished = [last_step(folder) >= config.num_steps for folder in folders]
    pending = runs.pending(folders, finished)
    source = datasets.dataset_folder(runs_dir, config.domain, config.dataset)
    # What is finished can do without its data.
    dataset = _finished_dataset(source) if pending or source.exists() else None
    done = [folder for folder in folders if folder not in pending]
    if done and dataset is not None:
        for state in runs.checkpoints(done):
            with runs.restoring(done[0]):
                check_data(state["data"], identity(dataset))
    names = f"{config.variant} on {config.dataset}"
    if done:
        finished = f"{len(done)} members finished already"
        print(f"{names}: {finished}, {config.num_steps} updates in {folders[0].parent}")
    if pending and dataset is not None:
        left = [c for c, folder in zip(configs, folders, strict=True) if folder in pending]
        names = f"{names}, {len(pending)} members"
        work = Learning(left, pending, dataset)
        options = {"checkpoint_minutes": checkpoint_minutes, "progress": progress}
        loop.run(work, left, pending, names, "updates", **options)
    return results.read(*(folder / "results.csv" for folder in folders))


def train_groups(
    groups: Sequence[Sequence[OfflineConfig]], *, runs_dir: str | Path = "runs"
) -> pd.DataFrame:
    """`train_offline` for independent groups of members, side by side in processes, one a core.

    A card has them one after another: members fill it. Groups differ in what members cannot:
    dataset, algorithm, sizes. Returns all their results.
    """
    together = machine.device().type == "cuda" or not _known_elsewhere(groups)
    processes = 1 if together else min(len(groups), os.cpu_count() or 1)
    options: dict[str, Any] = {"mp_context": multiprocessing.get_context("spawn")}
    options |= {"initializer": torch.set_num_threads}
    options |= {"initargs": (machine.threads_each(processes),)}
    train = partial(train_offline, runs_dir=runs_dir, progress=False)
    with ProcessPoolExecutor(processes, **options) as pool:
        found = pool.map(train, groups) if processes > 1 else map(train, groups)
        tables = tqdm(found, total=len(groups), desc="learning", unit=" groups")
        return pd.concat(tables, ignore_index=True)


def _known_elsewhere(groups: Sequence[Sequence[OfflineConfig]]) -> bool:
    """Whether a worker process can do the work: it lacks what this process registered."""
    added = OBJECTIVES.maps[0] or any(envs.is_registered(c.domain) for g in groups for c in g)
    return not added


def evaluate_baselines(
    configs: OfflineConfig | Sequence[OfflineConfig], *, runs_dir: str | Path = "runs"
) -> pd.DataFrame:
    """The returns of doing nothing and of uniform actions, for the tasks and seeds of `configs`.

    No policy's return means much without them: Quadruped pays about 500 for lying still if it lands
    on its feet, so that their mean is 500 times the share of starts that are `upright`. So they
    begin in the very states in which policies of the same seeds begin after `num_steps` updates.

    Raises ValueError for tasks of other domains, and for configs that differ in `num_steps` or
    `eval_episodes`.
    """
    configs = [configs] if isinstance(configs, OfflineConfig) else list(configs)
    check_tasks(configs)
    for name in ("num_steps", "eval_episodes"):
        found = sorted({getattr(config, name) for config in configs})
        if len(found) > 1:
            raise ValueError(f"baselines must have one {name}, got {', '.join(map(str, found))}")
    steps = configs[0].num_steps
    tasks, seeds = [c.task for c in configs], [c.seed for c in configs]
    evaluator = Evaluator(tasks, seeds, configs[0].eval_episodes)
    policies = (evaluator.zero_policy(), evaluator.random_policy())
    revision, tables = paths.git_revision(), []
    for algorithm, policy in zip(results.BASELINES, policies, strict=True):
        returns = evaluator(policy, steps)
        for config, own, upright in zip(configs, returns, evaluator.upright, strict=True):
            changes = {"algorithm": algorithm, "dataset": "none", "upright": float(upright)}
            row = results.row(config, None, steps, own, revision, **changes)
            folder = offline_folder(runs_dir, config, "none", algorithm.replace(" ", "-"))
            tables.append(pd.DataFrame([row]))
            results.write(paths.writable_folder(folder) / "results.csv", tables[-1])
    return pd.concat(tables, ignore_index=True)


def _finished_dataset(folder: Path) -> datasets.Dataset:
    """The dataset to learn from; DatasetError for one whose collection is not finished."""
    dataset = datasets.load(folder)
    if dataset.config() is not None and not datasets.is_described(dataset):
        raise datasets.DatasetError(
            f"{folder} has no card of all its {dataset.steps} steps: its collection is not "
            "finished. Finish it, or write the card of what is there: "
            f"python -m belib.datasets card {folder}"
        )
    return dataset


def check_tasks(configs: Sequence[OfflineConfig]) -> None:
    """Raise ValueError for a domain or task that is not there, or a task of another domain."""
    for config in configs:
        envs.primal_task(config.domain)
        domain, _ = envs.split_task(config.task)
        if domain != config.domain:
            raise ValueError(f"task must be one of the domain {config.domain}, got {config.task!r}")


def last_step(folder: Path) -> int:
    """The update of the last evaluation in a policy's folder, 0 without one."""
    file = folder / "results.csv"
    rows = results.read(file) if file.exists() else pd.DataFrame()
    return int(rows["step"].max()) if len(rows) else 0
