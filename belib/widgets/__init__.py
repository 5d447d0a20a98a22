"""The interactive parts of notebooks 03 and 06: ipywidgets that redraw a PNG."""

from belib.widgets.coverage import CoverageMap as CoverageMap
from belib.widgets.game import EntropyGame as EntropyGame
from belib.widgets.rewards import RewardExplorer as RewardExplorer
from belib.widgets.rewards import flipbook as flipbook
