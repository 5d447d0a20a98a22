"""TD3 (Fujimoto et al. 2018) as ExORL has it: every step updates the actor, which has no target."""

from belib.actor_critic import ActorCritic
from belib.config import OfflineConfig


class TD3(ActorCritic):
    """The shared actor-critic with two critics that share nothing."""

    config: OfflineConfig
    shared_trunk = False
