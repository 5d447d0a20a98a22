"""Offline learners as in ExORL."""

from importlib import import_module

from belib.actor_critic import ActorCritic
from belib.config import ALGORITHMS

LEARNERS: dict[str, type[ActorCritic]] = {
    name: getattr(import_module(f"belib.offline.{name}"), name.replace("_", "").upper())
    for name in ALGORITHMS
}
"""The learner of each of `config.ALGORITHMS`: module `td3_bc` defines class `TD3BC`."""
