"""Behavioral entropy: entropies, k-NN estimators, intrinsic rewards, and datasets for offline RL.

Implements, checks and extends Suttle, Suresh and Nieto-Granda, *Behavioral Entropy-Guided Dataset
Generation for Offline Reinforcement Learning* (ICLR 2025).

Modules and names without a leading underscore are public. `belib.entropy` imports the module when
it is first used: entropies and estimators of arrays need neither torch nor MuJoCo.
"""

import importlib
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """Import and return the module `belib.<name>`. Raise AttributeError if there is none."""
    try:
        return importlib.import_module(f"belib.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"belib.{name}":  # the module exists; a package that it needs does not
            raise
        raise AttributeError(f"module 'belib' has no attribute {name!r}") from None
