"""Offline learners, as ExORL has them."""

from belib.offline.bc import BC
from belib.offline.cql import CQL
from belib.offline.crr import CRR
from belib.offline.td3 import TD3
from belib.offline.td3_bc import TD3BC

LEARNERS = {"td3": TD3, "td3_bc": TD3BC, "bc": BC, "cql": CQL, "crr": CRR}
"""The learner of each of `config.ALGORITHMS`."""
