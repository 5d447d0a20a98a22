"""The interactive parts of notebooks 03 and 06: ipywidgets that redraw a PNG."""

from belib.widgets.alpha import EntropyGame as EntropyGame
from belib.widgets.alpha import RewardExplorer as RewardExplorer
from belib.widgets.alpha import flipbook as flipbook
from belib.widgets.coverage import CoverageMap as CoverageMap
