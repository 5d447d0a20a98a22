"""Reward-free agents that collect data, as URLB has them."""

import inspect
import math
from collections.abc import Sequence
from typing import Any

from belib.config import PretrainConfig
from belib.rewards import OBJECTIVES, peak_distance
from belib.weighting import prelec_beta

_APT = (
    "$R$ is the mean distance from a state to its $k = {k}$ nearest{itself} in a batch of "
    "{batch_size}, in a representation of {representation_dim} numbers that is itself being "
    "learnt: its unit changes, so the reward's size says little."
)
_TEXTS = {
    "behavioral": "**Behavioral entropy.** The agent is paid $r = R\\, e^{{-\\beta L^\\alpha}} "
    "L^\\alpha$ with $L = \\log(1 + R)$, $\\alpha = {alpha:g}$ and $\\beta = (\\log "
    "{representation_dim})^{{1 - \\alpha}} = {beta:.4g}$. {bend} " + _APT,
    "renyi": "**Rényi entropy.** The agent is paid the q-logarithm $r = ((1 + R)^{{1 - q}} - 1) / "
    "(1 - q)$ with $q = {q:g}$; $q = 1$ would be Shannon's. " + _APT,
    "shannon": "**Shannon entropy.** The agent is paid $r = \\log(1 + R)$. " + _APT,
    "rnd": "**Random network distillation.** The agent is paid where a predictor of a fixed random "
    "network still errs: the squared error over the running standard deviation of all errors. What "
    "has been seen often is predicted well and pays little.",
    "smm": "**State marginal matching.** Each episode has one of {skill_dim} skills. The agent is "
    "paid for states that an autoencoder reconstructs badly, and by what a discriminator of skills "
    "makes of them. The error sums over unscaled sensors, so fast joints decide it, and nothing "
    "keeps the reward near 1.",
    "random": "**Nothing.** Actions are uniformly random: the floor for all that learn.",
    "task": "**A task.** The agent is paid {task}'s own reward: an online reference, not an "
    "exploring agent.",
}


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


def explain(config: PretrainConfig) -> str:
    """What a config's objective pays for, in Markdown with its numbers."""
    beta = prelec_beta(config.alpha, config.representation_dim)
    itself = ", itself among them," if config.convention == "urlb" else ""
    numbers = {**vars(config), "beta": beta, "bend": _bend(config, beta), "itself": itself}
    return (_TEXTS.get(config.objective) or _own_text(config)).format(**numbers)


def _own_text(config: PretrainConfig) -> str:
    """For an objective that is not ours: its name, its parameter and its function's summary."""
    parameter = "" if config.parameter is None else f", parameter {config.parameter:g}"
    reward = OBJECTIVES[config.objective].reward(config)
    summary = (inspect.getdoc(getattr(reward, "func", reward)) or "").partition("\n\n")[0]
    words = f"**{config.objective}{parameter}.** {summary}".replace("{", "{{").replace("}", "}}")
    return f"{words} {_APT}"


def _bend(config: PretrainConfig, beta: float) -> str:
    """Whether the reward falls at distances that there are: the representation is in (-1, 1)^d."""
    peak = peak_distance(alpha=config.alpha, beta=beta)
    largest = 2 * math.sqrt(config.representation_dim)
    if peak == math.inf:
        return "It grows with $R$ everywhere."
    if peak > largest:
        return (
            f"It would fall beyond $R = {peak:.0f}$, but no two representations are farther apart "
            f"than {largest:.0f}: as far as distances go, it grows."
        )
    return (
        f"It falls beyond $R = {peak:.1f}$, and distances go up to {largest:.0f}: the most novel "
        "states are not the best paid."
    )
