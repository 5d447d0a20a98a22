"""Made-up tables of a study, with effects that are known: SYNTHETIC numbers, not results."""

import json

import numpy as np
import pandas as pd

from belib import results
from belib.config import OfflineConfig, PretrainConfig
from belib.figures.style import ALPHAS
from belib.gather import Tables

TASKS = ("walker_stand", "walker_walk", "walker_run")
QS = (0.2, 0.5, 0.7, 0.9, 1.1)


def grid(repeated=3):
    """Every recipe of the laptop experiment `repeated` times, and BE with rewards of unit size."""
    recipes = [
        *({"objective": "behavioral", "alpha": alpha} for alpha in ALPHAS),
        *({"objective": "renyi", "q": q} for q in QS),
        *({"objective": name} for name in ("shannon", "rnd", "smm", "random")),
        {"alpha": 0.5, "label": "rms", "intrinsic_reward_scale": "rms"},
    ]
    return [{**recipe, "seed": seed} for recipe in recipes for seed in range(repeated)]


def tables(
    effect=lambda config, task: 0.0,
    *,
    between=30.0,
    within=40.0,
    seed=0,
    seeds=5,
    learners=("td3",),
    tasks=TASKS,
    covered=lambda config: 0.0,
    datasets=None,
    steps=(5_000, 10_000),
) -> Tables:
    """Returns 400 + effect(config, task) + a dataset's own part + a learner seed's.

    Args:
        between, within: standard deviations of these two parts.
        covered: what is added to a dataset's coverage, 0.5 with an sd of 0.05.
    """
    random = np.random.default_rng(seed)
    sizes = {"scale": "synthetic", "num_steps": 50_000}
    configs = [PretrainConfig(**(sizes | options)) for options in datasets or grid()]
    rows = [
        row(OfflineConfig(domain=task.partition("_")[0], task=task, seed=i), name, 0, value + i)
        for task in tasks
        for i in range(seeds)
        for name, value in {"zero action": 120.0, "random policy": 140.0}.items()
    ]
    for config in configs:
        for task in (task for task in tasks if task.startswith(config.domain)):
            level = 400 + effect(config, task) + random.normal(0, between)
            for learner in learners:
                for i, value in enumerate(level + random.normal(0, within, seeds)):
                    known = {"domain": config.domain, "task": task, "dataset": config.dataset}
                    policy = OfflineConfig(**known, seed=i)
                    for step in steps:
                        last = round(value * step / steps[-1], 2)
                        rows.append(row(policy, learner, step, last, config, precision="float32"))
    described = pd.DataFrame([_described(config) for config in configs])
    measures = {
        name: [0.5 + covered(config) + random.normal(0, 0.05) for config in configs]
        for name in ("volumetric", "volumetric_scaled", "net", "cells", "shannon")
    }
    measures["radius_none"] = [90 * value for value in measures["volumetric"]]
    measures["volumetric"] = [x / max(measures["volumetric"]) for x in measures["volumetric"]]
    known = described[["dataset", "domain", "objective", "parameter", "seed", "scale"]]
    learning = {"num_steps": 10_000, "batch_size": 256, "hidden_dim": 256, "eval_episodes": 10}
    provenance = {"scale": "synthetic", "learning": dict.fromkeys(learners, learning)}
    provenance |= {"not finished": {"datasets": [], "policies": []}, "processor": "none"}
    return Tables(pd.DataFrame(rows), described, known.assign(**measures).round(5), provenance)


def row(policy, algorithm, step, value, config=None, **changes):
    changes |= {"algorithm": algorithm, "scale": "synthetic"}
    changes |= {} if config else {"dataset": "none"}
    return results.row(policy, config, step, np.array([value]), "none", **changes)


def _described(config):
    same = ("dataset", "domain", "objective", "parameter", "label", "seed", "scale", "num_steps")
    row = {name: getattr(config, name) for name in (*same, "intrinsic_reward_scale")}
    row |= {"variant": row.pop("label"), "steps": row.pop("num_steps")}
    return row | {"intrinsic_reward": 1.0, "git_revision": "none"}


def write(made: Tables, folder) -> None:
    """Write the files that `gather.load` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("offline", "datasets", "coverage"):
        (folder / f"{name}.csv").write_text(getattr(made, name).to_csv(index=False))
    (folder / "provenance.json").write_text(json.dumps(made.provenance, indent=1) + "\n")


def example() -> Tables:
    """BE with α < 1 is a little better, RE with q > 1 and SMM are poor."""

    def effect(config, task):
        poor = {"smm": -250, "random": -180, "renyi": -200 * (config.q > 1)}
        return poor.get(config.objective, 40 * (config.alpha < 1))

    made = tables(effect, learners=("td3", "crr"), tasks=TASKS[:2], seeds=3, between=20.0)
    rows = made.offline
    left = (rows["algorithm"] == "crr") & (rows["objective"] == "behavioral")
    return made._replace(offline=rows[~left])
