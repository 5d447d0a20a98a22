"""Behavioral entropy: entropies, k-NN estimators, intrinsic rewards, and datasets for offline RL.

Implements, checks and extends Suttle, Suresh and Nieto-Granda, *Behavioral Entropy-Guided Dataset
Generation for Offline Reinforcement Learning* (ICLR 2025).

The modules of `__all__` are what is meant for use; each is imported when it is first asked for, so
that entropies and estimators of arrays cost neither torch nor MuJoCo. In a module, names without a
leading underscore that it defines, or lists in its own `__all__`, are public.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from belib import (
        agents,
        config,
        convergence,
        coverage,
        datasets,
        entropy,
        envs,
        estimates,
        estimators,
        figures,
        grid,
        knn,
        maximizers,
        offline,
        paths,
        quadrature,
        report,
        results,
        rewards,
        statemap,
        statistics,
        training,
        weighting,
        widgets,
    )

__all__ = [
    "agents",
    "config",
    "convergence",
    "coverage",
    "datasets",
    "entropy",
    "envs",
    "estimates",
    "estimators",
    "figures",
    "grid",
    "knn",
    "maximizers",
    "offline",
    "paths",
    "quadrature",
    "report",
    "results",
    "rewards",
    "statemap",
    "statistics",
    "training",
    "weighting",
    "widgets",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"belib.{name}")
    raise AttributeError(f"module 'belib' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
