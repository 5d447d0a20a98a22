"""TD3 (Fujimoto et al. 2018) as in ExORL: no delayed actor updates, no target actor."""

from belib.actor_critic import ActorCritic
from belib.config import OfflineConfig


class TD3(ActorCritic):
    """The actor-critic with two critics that share no layer."""

    config: OfflineConfig
    shared_trunk = False
