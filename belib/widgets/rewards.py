"""The interactive part of notebook 03: rewards on a dataset's states, and the discrete game."""

import math
import time

import ipywidgets as ui
import numpy as np
from numpy.typing import NDArray

from belib.entropy import behavioral_entropy
from belib.figures.game_view import GameView
from belib.figures.reward_view import RewardView
from belib.maximizers import maximizing_pmf
from belib.statemap import StateMap

OUTCOMES = {"M = 2": 2, "M = 16": 16, "M = 64": 64, "M = 512": 512, "none: β = 1": math.e}
"""What beta can be conditioned on; log M = 1 makes it 1 for every alpha."""

_WIDE = {"width": "100%", "max_width": "1040px"}


def _alpha_slider(value: float) -> ui.FloatSlider:
    if not 0.1 <= value <= 5:  # a slider would move it without a word
        raise ValueError(f"alpha must be between 0.1 and 5, got {value}")
    layout = ui.Layout(width="520px")
    return ui.FloatSlider(value, min=0.1, max=5, step=0.05, description="α", layout=layout)


class RewardExplorer(ui.VBox):
    """Sliders for alpha, M and the unit of distance over a `RewardView` of a dataset's states."""

    def __init__(self, states: StateMap, *, alpha: float = 0.5):
        self.alpha = _alpha_slider(alpha)
        self.n_outcomes = ui.Dropdown(options=OUTCOMES, value=512, description="β for")
        self.unit = ui.FloatLogSlider(
            1.0, min=-1, max=3, step=0.05, description="distances ×", readout_format=".3g"
        )
        self.image = ui.Image(format="png", layout=_WIDE)
        self._view = RewardView(states)
        controls = (self.alpha, self.n_outcomes, self.unit)
        for each in controls:
            each.observe(self.redraw, "value")
        self.redraw()
        super().__init__([ui.HBox(controls, layout={"flex_flow": "row wrap"}), self.image])

    def redraw(self, _: object = None) -> None:
        """Show what the controls say."""
        self.image.value = self._view.update(
            self.alpha.value, self.n_outcomes.value, self.unit.value
        )


class EntropyGame(ui.VBox):
    """Sliders for a pmf over 3 to 8 outcomes and for alpha, and a button that climbs."""

    def __init__(self, *, n_outcomes: int = 6, alpha: float = 0.5):
        self.alpha = _alpha_slider(alpha)
        self.n_outcomes = ui.IntSlider(n_outcomes, min=3, max=8, description="M")
        self.climb_button = ui.Button(description="climb", tooltip="to the most behavioral entropy")
        self.level_button = ui.Button(description="uniform")
        self.weights = ui.HBox(layout={"overflow": "visible", "margin": "8px 0"})
        self.said = ui.HTML()
        self.image = ui.Image(format="png", layout=_WIDE)
        self.alpha.observe(self.redraw, "value")
        self.n_outcomes.observe(self._restart, "value")
        self.climb_button.on_click(self.climb)
        self.level_button.on_click(lambda _: self._move_to(np.ones(self.n_outcomes.value)))
        self._restart()
        top = [self.alpha, self.n_outcomes, self.climb_button, self.level_button]
        wrapped = ui.HBox(top, layout={"flex_flow": "row wrap"})
        super().__init__([wrapped, self.weights, self.said, self.image])

    @property
    def pmf(self) -> NDArray[np.float64]:
        """(M,): the sliders' values over their sum; uniform where all are 0."""
        weights = np.array([slider.value for slider in self.weights.children])
        return weights / weights.sum() if weights.any() else np.full(len(weights), 1 / len(weights))

    def redraw(self, _: object = None) -> None:
        """Show what the controls say."""
        self.image.value = self._view.update(self.pmf, self.alpha.value)
        entropy = behavioral_entropy(self.pmf, alpha=self.alpha.value)
        log_m = math.log(self.n_outcomes.value)
        more = entropy > log_m + 1e-6
        self.said.value = f"Behavioral entropy {entropy:.3f} nats, " + (
            f"<b>more than the uniform pmf's {log_m:.3f}</b>"
            if more
            else f"of {log_m:.3f} if uniform"
        )

    def climb(self, _: object = None) -> None:
        """Move, in steps that one can follow, to the pmf with the most entropy."""
        pmf = maximizing_pmf(self.n_outcomes.value, alpha=self.alpha.value, start=self.pmf)
        self._move_to(pmf)

    def _move_to(self, pmf: NDArray, steps: int = 12) -> None:
        """Draw the way to a pmf, then set the sliders, once: the browser answers every setting."""
        start, pmf = self.pmf, pmf / pmf.sum()
        for share in np.linspace(0, 1, steps)[1:-1]:
            passed = (1 - share) * start + share * pmf
            self.image.value = self._view.update(passed, self.alpha.value)
            time.sleep(0.02)
        for slider, p in zip(self.weights.children, pmf, strict=True):
            slider.unobserve(self.redraw, "value")
            slider.value = round(float(p), 3)  # a step of the slider, lest the answer differ
            slider.observe(self.redraw, "value")
        self.redraw()

    def _restart(self, _: object = None) -> None:
        """New sliders, falling from first to last, and a new view for this number of outcomes."""
        m = self.n_outcomes.value
        layout = ui.Layout(width="90px", height="150px", overflow="visible")
        style = {
            "orientation": "vertical",
            "min": 0,
            "max": 1,
            "readout_format": ".2f",
            "step": 0.001,
            "layout": layout,
        }
        weights = 0.6 ** np.arange(m)
        self.weights.children = [
            ui.FloatSlider(round(weight, 3), description=f"{number}", **style)
            for number, weight in enumerate(weights / weights.sum(), 1)
        ]
        for slider in self.weights.children:
            slider.observe(self.redraw, "value")
        self._view = GameView(m)
        self.redraw()


def explorer(states: StateMap, *, alpha: float = 0.5) -> ui.Tab:
    """Both: the reward on a dataset's states, and the discrete game; alpha from 0.1 to 5."""
    tabs = [RewardExplorer(states, alpha=alpha), EntropyGame(alpha=alpha)]
    return ui.Tab(tabs, titles=["Reward", "Discrete game"])
