"""The stages: `pretrain` collects datasets, `train_offline` learns policies from them.

Members of one call are trained in lockstep, on a GPU if torch finds one. A run that is killed and
called again gives the same bytes (on a CPU, with the same number of threads). Calling a finished
run does nothing.
"""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import torch
from tqdm.auto import tqdm

from belib import datasets, envs, machine, results, runs
from belib.config import OfflineConfig, PretrainConfig
from belib.datasets import Dataset
from belib.rewards import OBJECTIVES
from belib.training.collection import Collection, lockstep
from belib.training.evaluation import Evaluator as Evaluator
from belib.training.evaluation import check_tasks as check_tasks
from belib.training.evaluation import evaluate_baselines as evaluate_baselines
from belib.training.evaluation import evaluate_online
from belib.training.evaluation import rollout as rollout
from belib.training.learning import Learning, check_data, identity

AnyWork = TypeVar("AnyWork", bound=runs.Work)


def pretrain(
    configs: PretrainConfig | Sequence[PretrainConfig],
    *,
    runs_dir: str | Path = "runs",
    checkpoint_minutes: float = 5.0,
    progress: bool = True,
) -> list[Path]:
    """Collect a dataset for each config; return their folders.

    Members with agents of the same class (behavioral, renyi and shannon; otherwise one objective)
    are trained in lockstep, one group after another. The policy of the objective `task`, the
    online reference, is evaluated at the end: see `results.online`.

    Args:
        configs: one config, or several that differ only in objective, alpha, q, task and seed.
        runs_dir: folder of the datasets, `datasets/<domain>/<name>/`; relative to the project.
        checkpoint_minutes: time between checkpoints; a killed run restarts from the last one.
        progress: whether to show a progress bar.

    Raise ValueError, before anything is run or written, for configs that cannot be members of one
    run, for an unknown domain, and for a dataset made with another config. Raise OSError for
    folders that are not writable, and `runs.InUseError` for those that another process uses.
    """
    configs = runs.listed(configs)
    runs.check_members(configs)
    _check_objectives(configs)
    folders = [config.folder(runs_dir) for config in configs]
    runs.check_folders(folders, configs)
    options = {"checkpoint_minutes": checkpoint_minutes, "progress": progress}
    for group in lockstep(configs):
        group_folders = [config.folder(runs_dir) for config in group]
        finished = [is_collected(c, folder) for c, folder in zip(group, group_folders, strict=True)]
        work = _execute(group, group_folders, finished, Collection, **options)
        if work is not None:
            _describe(work)
    return folders


def _check_objectives(configs: Sequence[PretrainConfig]) -> None:
    envs.primal_task(configs[0].domain)
    tasks = envs.domain_tasks(configs[0].domain)
    for config in configs:
        if config.task and config.task not in tasks:
            raise ValueError(f"task must be one of {', '.join(tasks)}, got {config.task!r}")


def _describe(work: Collection) -> None:
    """Evaluate online policies and write cards, last for the member with the checkpoint."""
    precision = work.learner.precision if work.learner else None
    members = list(zip(work.configs, work.folders, work.episodes, strict=True))
    for config, folder, episodes in reversed(members):
        if config.objective == "task":
            evaluate_online(config, folder)
        if episodes:
            datasets.write_card(folder, precision=precision)
        else:
            print(
                f"{folder.name}: no full episode was written in {config.num_steps} steps. The "
                "partial one is kept in the checkpoint: call with a larger num_steps to continue it"
            )


def is_collected(config: PretrainConfig, folder: Path) -> bool:
    """Return whether a dataset has all steps of its config."""
    card = datasets.read_card(folder)
    return card is not None and card["num_steps"] >= config.num_steps


def train_offline(
    configs: OfflineConfig | Sequence[OfflineConfig],
    *,
    runs_dir: str | Path = "runs",
    checkpoint_minutes: float = 5.0,
    progress: bool = True,
) -> pd.DataFrame:
    """Learn a policy for each config, in lockstep on one dataset; return their results.

    Args:
        configs: one config, or several that differ only in task and seed.
        runs_dir: folder of `datasets/`, and of results, `offline/<domain>/<dataset>/<variant>/`.
        checkpoint_minutes, progress: as for `pretrain`.

    Return a table of `results.COLUMNS`, one row per evaluation. Raise ValueError (DatasetError for
    the data) before the first update.
    """
    configs = runs.listed(configs)
    runs.check_members(configs)
    check_tasks(configs)
    folders = [config.folder(runs_dir) for config in configs]
    runs.check_folders(folders, configs)
    finished = [last_step(folder) >= configs[0].num_steps for folder in folders]
    source = configs[0].source(runs_dir)
    if source.exists() or not all(finished):  # finished runs do not need their data
        dataset = _finished_dataset(source)
        for state in runs.checkpoints(folders):
            with runs.restoring(folders[0]):
                check_data(state["data"], identity(dataset))
        make = partial(Learning, dataset=dataset)
        options = {"checkpoint_minutes": checkpoint_minutes, "progress": progress}
        _execute(configs, folders, finished, make, **options)
    return results.read(*(folder / "results.csv" for folder in folders))


def _finished_dataset(folder: Path) -> Dataset:
    """Return the dataset to learn from; DatasetError if its collection is not finished."""
    dataset = datasets.load(folder)
    if dataset.config() is not None and not datasets.is_described(dataset):
        raise datasets.DatasetError(
            f"{folder} has no card of all its {dataset.steps} steps: its collection is not "
            "finished. Finish it, or write the card of the present steps: "
            f"python -m belib.datasets card {folder}"
        )
    return dataset


def random_like(
    data: Sequence[datasets.Dataset], *, scale: str, runs_dir: str | Path
) -> datasets.Dataset:
    """Collect and return a dataset of random actions with as many steps as the given datasets.

    Raise ValueError for unequal sizes, also if a random dataset of another size exists already.
    """
    config = data[0].config() or PretrainConfig.at_scale(scale, domain=data[0].domain)
    changes = {"objective": "random", "task": "", "num_steps": data[0].steps}
    (folder,) = pretrain(replace(config, **changes), runs_dir=runs_dir)
    random = datasets.load(folder)
    sizes = {dataset.name: dataset.steps for dataset in (*data, random)}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"datasets compared must have equal sizes, got {sizes}")
    return random


def last_step(folder: Path) -> int:
    """Return the update of the last evaluation in a policy's folder, or 0."""
    file = folder / "results.csv"
    rows = results.read(file) if file.exists() else pd.DataFrame()
    return int(rows["step"].max()) if len(rows) else 0


def _execute(
    configs: Sequence[Any],
    folders: Sequence[Path],
    finished: Sequence[bool],
    make: Callable[[list[Any], list[Path]], AnyWork],
    **options: Any,
) -> AnyWork | None:
    """Run the members that are not finished, and return their work, or None.

    All members of an interrupted run continue together, also the finished members of a run that
    was killed while it wrote its last tables.
    """
    left = [folder for folder, done in zip(folders, finished, strict=True) if not done]
    checkpoint = runs.checkpoint_in(left[0]) if left else None
    names = {folder.name for folder in left} | set(checkpoint["members"] if checkpoint else [])
    pairs = [(c, f) for c, f in zip(configs, folders, strict=True) if f.name in names]
    done = [folder.name for folder in folders if folder.name not in names]
    if done:
        steps = f"{configs[0].num_steps} steps in {folders[0].parent}"
        print(f"{len(done)} members finished already, {steps}: {', '.join(done)}")
    if not pairs:
        return None
    run = runs.Run([config for config, _ in pairs], [folder for _, folder in pairs])
    work = make(run.configs, run.folders)
    run.advance(work, **options)
    return work


def train_groups(
    groups: Sequence[Sequence[OfflineConfig]], *, runs_dir: str | Path = "runs"
) -> pd.DataFrame:
    """Call `train_offline` for groups of members in parallel processes; return all results.

    On a GPU the groups run one after another. Groups may differ in dataset, algorithm and sizes,
    in which members of one group cannot.
    """
    # workers do not have the objectives and domains that this process registered
    added = OBJECTIVES.maps[0] or any(envs.is_registered(c.domain) for g in groups for c in g)
    alone = added or machine.device().type == "cuda"
    processes = 1 if alone else min(len(groups), os.cpu_count() or 1)
    context = multiprocessing.get_context("spawn")
    threads = (max(1, torch.get_num_threads() // processes),)
    train = partial(train_offline, runs_dir=runs_dir, progress=False)
    with ProcessPoolExecutor(processes, context, torch.set_num_threads, threads) as pool:
        parts = pool.map(train, groups) if processes > 1 else map(train, groups)
        tables = tqdm(parts, total=len(groups), desc="learning", unit=" groups")
        return pd.concat(tables, ignore_index=True)
