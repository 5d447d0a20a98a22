"""The interactive parts of notebooks 03 and 06: plain ipywidgets, each redraw one PNG.

They work in any front end that has ipywidgets, without an extension of ours; where there is no
front end, nothing is shown and nothing waits. tests/browser drives them in JupyterLab.
"""

from belib.widgets.coverage import CoverageMap
from belib.widgets.rewards import EntropyGame, RewardExplorer, explorer

__all__ = ["CoverageMap", "EntropyGame", "RewardExplorer", "explorer"]
