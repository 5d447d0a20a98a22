"""The stages: `pretrain` collects datasets, `train_offline` learns policies from them.

Members are trained in lockstep, on a GPU if torch finds one. A run that is killed and called again
gives the same bytes (on a CPU, with as many threads). Calling a finished run does nothing.
"""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from tqdm.auto import tqdm

from belib import datasets, envs, machine, paths, results, runs
from belib.config import OfflineConfig, PretrainConfig
from belib.rewards import OBJECTIVES
from belib.training.collection import Collection
from belib.training.collection import lockstep as lockstep
from belib.training.evaluation import check_tasks as check_tasks
from belib.training.evaluation import evaluate_baselines as evaluate_baselines
from belib.training.evaluation import rollout as rollout
from belib.training.learning import DATA, Learning


def pretrain(
    configs: PretrainConfig | Sequence[PretrainConfig],
    *,
    runs_dir: str | Path = "runs",
    checkpoint_minutes: float = 5.0,
    progress: bool = True,
) -> list[Path]:
    """Collect a dataset for each config; return their folders.

    Members with agents of one class (behavioral, renyi and shannon; otherwise one objective) are
    trained in lockstep, one group after another. The objective `task` is the online reference,
    whose policy is evaluated at the end: see `results.online`.

    Args:
        configs: one, or several that differ only in objective, alpha, q, renyi_form, task and seed.
        runs_dir: folder of the datasets, `datasets/<domain>/<name>/`; relative to the project.
        checkpoint_minutes: time between checkpoints; a killed run restarts from the last one.
        progress: whether to show a progress bar.

    Raise ValueError, before anything is run or written, for configs that cannot be members of one
    run, for an unknown domain or task, and for a dataset made with another config. Raise OSError
    for folders that are not writable, and BlockingIOError for those that another process uses.
    """
    return _run(configs, runs_dir, Collection, checkpoint_minutes, progress)


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

    Return a table of `results.COLUMNS`, one row per evaluation. Raise what `pretrain` raises, and
    DatasetError for the data, before the first update.
    """

    def learning(configs: list[OfflineConfig], folders: list[Path]) -> Learning:
        folder = Path(runs_dir, "datasets", configs[0].domain, configs[0].dataset)
        return Learning(configs, folders, datasets.load(folder))

    folders = _run(configs, runs_dir, learning, checkpoint_minutes, progress)
    return results.read(*(folder / "results.csv" for folder in folders))


def is_finished(config: PretrainConfig | OfflineConfig, folder: Path) -> bool:
    """Return whether a folder has all steps of a dataset, or the last evaluation of a policy.

    A policy is not finished if its dataset has another card since: it was extended or made anew.
    """
    if isinstance(config, PretrainConfig):
        card = datasets.read_card(folder)
        return card is not None and card["num_steps"] >= config.num_steps
    file, data = folder / "results.csv", folder / DATA
    if not (file.exists() and results.read(file)["step"].max() >= config.num_steps):
        return False
    card = datasets.read_card(folder.parents[4] / "datasets" / config.domain / config.dataset)
    had = paths.read_json(data, ["sha256"])["sha256"] if data.exists() else None
    return card is None or had in (None, card["sha256"])


def _run(
    configs: Any,
    runs_dir: str | Path,
    make: Callable[[list[Any], list[Path]], runs.Work],
    checkpoint_minutes: float,
    progress: bool,
) -> list[Path]:
    """Run the members that are not finished, one lockstep group after another; return all folders.

    All members of a killed run continue together, also those that wrote their last tables.
    """
    configs = runs.members(configs)
    check_tasks(configs)
    folders = [config.folder(runs_dir) for config in configs]
    runs.check_folders(folders, configs)
    for group in lockstep(configs):
        members = {config.folder(runs_dir): config for config in group}
        left = [folder for folder, config in members.items() if not is_finished(config, folder)]
        if left and (checkpoint := runs.checkpoint_in(left[0])):
            left = [f for f in members if f in left or f.name in checkpoint["members"]]
        if done := [folder.name for folder in members if folder not in left]:
            print(f"{len(done)} members finished already: {', '.join(done)}")
        if left:
            work = make([members[folder] for folder in left], left)
            runs.advance(work, checkpoint_minutes=checkpoint_minutes, progress=progress)
    return folders


def random_like(
    data: Sequence[datasets.Dataset], *, scale: str, runs_dir: str | Path
) -> list[datasets.Dataset]:
    """Collect and return datasets of random actions, one per seed and of the given ones' size.

    Sizes are the cards' `num_steps`, which may count an unfinished episode that is not on disk.
    Random datasets of the scale's size have no label. Raise ValueError, before anything is
    collected, for unequal sizes, also if a random dataset of another size exists already.
    """
    cards = [datasets.read_card(d.folder) or datasets.write_card(d.folder) for d in data]
    foreign = PretrainConfig.at_scale(scale, domain=data[0].domain)
    same = {"objective": "random", "task": "", "num_steps": cards[0]["num_steps"]}
    same |= {"label": ""} if cards[0]["num_steps"] == foreign.num_steps else {}
    configs = {c.seed: replace(c, **same) for c in (d.config() or foreign for d in data)}
    cards += filter(None, (datasets.read_card(c.folder(runs_dir)) for c in configs.values()))
    sizes = {card["name"]: card["num_steps"] for card in cards}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"datasets compared must have equal sizes, got {sizes}")
    return [datasets.load(folder) for folder in pretrain([*configs.values()], runs_dir=runs_dir)]


def in_parallel(
    stage: Callable[..., Any], groups: Sequence[Sequence[Any]], *, runs_dir: str | Path = "runs"
) -> list[Any]:
    """Call `pretrain` or `train_offline` for groups of members; return a list of the results.

    Groups run in processes, one per core. On a GPU, or if this process has registered objectives or
    domains, one follows another. They may differ in dataset, algorithm and sizes. Only a single
    group has a progress bar of steps. To continue a run, give the same groups.
    """
    configs = [config for group in groups for config in group]
    check_tasks(configs)
    runs.check_folders([config.folder(runs_dir) for config in configs], configs)
    alone = OBJECTIVES.maps[0] or envs.DOMAINS.maps[0] or machine.device().type == "cuda"
    processes = 1 if alone else max(1, min(len(groups), os.cpu_count() or 1))
    context = multiprocessing.get_context("spawn")
    threads = (max(1, torch.get_num_threads() // processes),)
    run = partial(stage, runs_dir=runs_dir, progress=len(groups) == 1)
    with ProcessPoolExecutor(processes, context, torch.set_num_threads, threads) as pool:
        parts = pool.map(run, groups) if processes > 1 else map(run, groups)
        return list(tqdm(parts, total=len(groups), desc="groups", unit=" groups"))
