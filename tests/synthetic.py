"""Made-up tables of a study, with effects that are known: SYNTHETIC numbers, not results."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from belib import results
from belib.config import OfflineConfig, PretrainConfig
from belib.figures.style import ALPHAS
from belib.gather import Tables

TASKS = ("walker_stand", "walker_walk", "walker_run")
QS = (0.2, 0.5, 0.7, 0.9, 1.1)


def grid(repeated=3):
    """The datasets of the laptop experiment: three recipes `repeated` times, all others once."""
    seeds = range(repeated)
    return [
        *({"objective": "shannon", "seed": seed} for seed in seeds),
        *({"objective": "behavioral", "alpha": alpha} for alpha in ALPHAS),
        *({"objective": "behavioral", "seed": seed} for seed in seeds[1:]),
        *({"objective": "renyi", "q": q} for q in QS),
        *({"objective": "rnd", "seed": seed} for seed in seeds),
        {"objective": "smm"},
        {"objective": "random"},
        *(
            {"alpha": alpha, "label": "rms", "intrinsic_reward_scale": "rms"}
            for alpha in (0.5, 2.0, 5.0)
        ),
    ]


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
    configs = [PretrainConfig(**{**sizes, **each}) for each in datasets or grid()]
    rows = [_baseline(task, own, name) for task in tasks for own in range(seeds) for name in _FLOOR]
    for config in configs:
        for task in (task for task in tasks if task.startswith(config.domain)):
            level = 400 + effect(config, task) + random.normal(0, between)
            for learner in learners:
                values = level + random.normal(0, within, seeds)
                for own, value in enumerate(values):
                    known = {"domain": config.domain, "task": task, "seed": own}
                    learnt = OfflineConfig(dataset=config.dataset, scale="synthetic", **known)
                    for step in steps:
                        found = np.array([round(value * step / steps[-1], 2)])
                        named = {"algorithm": learner, "precision": "float32"}
                        row = results.row(learnt, config, step, found, "none", **named)
                        rows.append(row)
    offline = pd.DataFrame(rows)
    described = pd.DataFrame([_described(config) for config in configs])
    known = ["dataset", "domain", "objective", "parameter", "seed", "scale"]
    covers = {
        name: [0.5 + covered(each) + random.normal(0, 0.05) for each in configs]
        for name in ("volumetric", "volumetric_scaled", "net", "cells", "shannon")
    }
    measured = described[known].assign(**covers).round(5)
    return Tables(offline, described, measured, _provenance(learners))


_FLOOR = {"zero action": 120.0, "random policy": 140.0}


def _baseline(task, seed, name):
    domain = task.partition("_")[0]
    config = OfflineConfig(domain=domain, task=task, seed=seed, scale="synthetic")
    changes = {"algorithm": name, "dataset": "none"}
    return results.row(config, None, 0, np.array([_FLOOR[name] + seed]), "none", **changes)


def _described(config):
    return {
        "dataset": config.dataset,
        "domain": config.domain,
        "objective": config.objective,
        "parameter": config.parameter,
        "variant": config.label,
        "seed": config.seed,
        "scale": config.scale,
        "steps": config.num_steps,
        "intrinsic_reward_scale": config.intrinsic_reward_scale,
        "intrinsic_reward": 1.0,
        "git_revision": "none",
    }


def _provenance(learners):
    learning = {"num_steps": 10_000, "batch_size": 256, "hidden_dim": 256, "eval_episodes": 10}
    return {
        "scale": "synthetic",
        "learning": dict.fromkeys(learners, learning),
        "not finished": {"datasets": [], "policies": []},
        "processor": "none",
    }


def write(made: Tables, folder) -> None:
    """Write the files that `gather.load` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("offline", "datasets", "coverage"):
        (folder / f"{name}.csv").write_text(getattr(made, name).to_csv(index=False))
    (folder / "provenance.json").write_text(json.dumps(made.provenance, indent=1) + "\n")


def example() -> Tables:
    """What `tests/data/study` holds: BE with α < 1 a little better, RE with q > 1 and SMM poor."""

    def effect(config, task):
        poor = {"smm": -250, "random": -180, "renyi": -200 * (config.q > 1)}
        return poor.get(config.objective, 40 * (config.alpha < 1))

    made = tables(effect, learners=("td3", "crr"), tasks=TASKS[:2], seeds=3, between=20.0)
    rows = made.offline
    left = (rows["algorithm"] == "crr") & (rows["objective"] == "behavioral")
    return replace(made, offline=rows[~left])


if __name__ == "__main__":
    write(example(), Path(__file__).parent / "data" / "study" / "synthetic")
