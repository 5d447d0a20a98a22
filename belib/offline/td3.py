"""TD3 (Fujimoto et al. 2018) as ExORL has it: every step updates the actor, which has no target.

The losses are those of `belib.actor_critic`; other learners override them.
"""

from belib.actor_critic import ActorCritic
from belib.config import OfflineConfig


class TD3(ActorCritic):
    """The actor-critic with two critics that share no layer."""

    config: OfflineConfig
    shared_trunk = False
