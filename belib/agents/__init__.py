"""Agents that collect data, as URLB has them: reward-free ones, and DDPG, which learns a task."""

from collections.abc import Sequence
from typing import Any

from belib.agents.apt import APT
from belib.agents.ddpg import DDPG
from belib.agents.rnd import RND
from belib.agents.smm import SMM
from belib.config import PretrainConfig
from belib.rewards import OBJECTIVES

AGENTS = {"apt": APT, "rnd": RND, "smm": SMM, "ddpg": DDPG}
"""The agents of `rewards.OBJECTIVES`, by name."""


def agent_of(objective: str) -> type[DDPG] | None:
    """Return the agent class of an objective; None for uniformly random actions."""
    name = OBJECTIVES[objective].agent
    return AGENTS[name] if name else None


def side_by_side(
    scale: str, objective: str, compare: Sequence[str], *, task: str = "", **fields: Any
) -> list[PretrainConfig]:
    """Return configs of `objective` and those to compare, without repetitions; random is the last.

    `task` is the task of the objective "task". All configs have the `fields` of `PretrainConfig`.
    Raise TypeError and ValueError as `PretrainConfig` does.
    """
    names = [name for name in dict.fromkeys([objective, *compare]) if name != "random"] + ["random"]
    tasks = {name: task for name in names if name == "task" or "task" not in names}
    make = PretrainConfig.at_scale
    return [make(scale, objective=name, task=tasks.get(name, ""), **fields) for name in names]
