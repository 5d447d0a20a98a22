"""Reward-free agents that collect data, as URLB has them."""

from collections.abc import Sequence
from typing import Any

from belib.agents.apt import APT
from belib.agents.ddpg import DDPG
from belib.agents.rnd import RND
from belib.agents.smm import SMM
from belib.config import PretrainConfig
from belib.rewards import OBJECTIVES

AGENTS = {"apt": APT, "rnd": RND, "smm": SMM, "ddpg": DDPG}
"""The agents that an entry of `rewards.OBJECTIVES` can name."""


def agent_of(objective: str) -> type[DDPG] | None:
    """Return the class that collects for an objective; None for uniformly random actions."""
    name = OBJECTIVES[objective].agent
    return AGENTS[name] if name else None


def side_by_side(
    scale: str, objective: str, compare: Sequence[str], *, task: str = "", **given: Any
) -> list[PretrainConfig]:
    """The configs of an objective and of those to compare it with, each once; random actions last.

    Args:
        scale: of all.
        objective, compare: names of objectives.
        task: what the objective `task` learns, wherever it stands.
        given: further fields of `PretrainConfig`, the same for all.

    Raises TypeError and ValueError as `PretrainConfig` does.
    """
    asked = dict.fromkeys([objective, *compare])
    names = [*(name for name in asked if name != "random"), "random"]
    tasks = {name: task for name in names if name == "task" or "task" not in names}
    make = PretrainConfig.at_scale
    return [make(scale, objective=name, task=tasks.get(name, ""), **given) for name in names]
