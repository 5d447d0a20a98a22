"""Offline learners as in ExORL."""

from belib.offline.cql import CQL
from belib.offline.td3 import BC, CRR, TD3, TD3BC

LEARNERS = {"td3": TD3, "td3_bc": TD3BC, "bc": BC, "cql": CQL, "crr": CRR}
"""The learner of each of `config.ALGORITHMS`."""
