"""The interactive parts of notebooks 03 and 06: ipywidgets that redraw a PNG."""

import ipywidgets as ui

from belib.coverage.maps import StateMap
from belib.widgets.coverage import CoverageMap as CoverageMap
from belib.widgets.game import EntropyGame as EntropyGame
from belib.widgets.rewards import RewardExplorer as RewardExplorer
from belib.widgets.rewards import flipbook as flipbook


def explorer(states: StateMap, *, alpha: float = 0.5) -> ui.Tab:
    """Return tabs: the reward on a dataset's states, and the discrete game."""
    tabs = [RewardExplorer(states, alpha=alpha), EntropyGame(alpha=alpha)]
    return ui.Tab(tabs, titles=["Reward", "Discrete game"])
