"""The discrete game: a pmf on sliders, its perceived probabilities and its entropies."""

import math

import ipywidgets as ui
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from belib.entropy import behavioral_entropy, maximizing_pmf, renyi_entropy, shannon_entropy
from belib.figures.style import ACCENT, objective_color
from belib.weighting import Prelec, prelec_beta
from belib.widgets.rewards import WIDE, WRAPPED, LiveFigure, alpha_slider

Q = 2.0  # the order of the Renyi entropy


class GameView(LiveFigure):
    """Bars of p and w(p) over M outcomes, and of the Shannon, Renyi and behavioral entropy."""

    def __init__(self, n_outcomes: int):
        figure = Figure(figsize=(13, 7.2), dpi=80, layout="constrained")
        top, bottom = figure.subplots(2, 1, height_ratios=(3, 2))
        outcome, blue = 1 + np.arange(n_outcomes), objective_color("behavioral", 2.0)
        self._p = top.bar(outcome - 0.2, 0 * outcome, 0.38, color="0.6", label="p")
        self._w = top.bar(outcome + 0.2, 0 * outcome, 0.38, color=blue, label="w(p)")
        top.axhline(1 / n_outcomes, color="black", linestyle=":", label="uniform")
        top.set(xticks=outcome, xlabel="outcome", ylim=(0, 1), ylabel="probability")
        top.legend(frameon=False, loc="upper right", ncols=3)
        self._title = top.set_title("α", loc="left", fontsize=20)
        names, log_m = ("behavioral", f"Rényi, q = {Q:g}", "Shannon"), math.log(n_outcomes)
        colors = (blue, objective_color("renyi", Q), "black")
        self._entropies = bottom.barh(names, [0, 0, 0], color=colors)
        self._nats = [bottom.text(0, place, "", va="center") for place in range(3)]
        end = bottom.axvline(log_m, color=ACCENT, linewidth=4)
        bottom.set(xlim=(0, 1.5 * log_m), xlabel="entropy (nats); the line is at log M")
        bottom.grid(False)
        bars = [*self._p, *self._w, *self._entropies]
        super().__init__(figure, [*bars, end, self._title, *self._nats])

    def update(self, pmf: NDArray[np.float64], alpha: float) -> bytes:
        """Return the figure as PNG for a pmf (M,), beta conditioned on M."""
        blue, w = objective_color("behavioral", alpha), Prelec(alpha, prelec_beta(alpha, len(pmf)))
        self._title.set_text(f"α = {alpha:.2f}:  the perceived chances sum to {w(pmf).sum():.2f}")
        values = behavioral_entropy(pmf, alpha=alpha), renyi_entropy(pmf, q=Q), shannon_entropy(pmf)
        for bar, height in zip((*self._p, *self._w), (*pmf, *w(pmf)), strict=True):
            bar.set_height(height)
        for bar, text, nats in zip(self._entropies, self._nats, values, strict=True):
            bar.set_width(nats)
            text.set(x=nats, text=f" {nats:.3f}")
        for bar in (*self._w, self._entropies[0]):
            bar.set_color(blue)
        return self.png()


class EntropyGame(ui.VBox):
    """Sliders for a pmf over 3 to 8 outcomes and alpha, and a button that climbs to the maximum."""

    def __init__(self, *, n_outcomes: int = 6, alpha: float = 0.5):
        self.alpha = alpha_slider(alpha)
        self.n_outcomes = ui.IntSlider(n_outcomes, min=3, max=8, description="M")
        self.climb_button = ui.Button(description="climb", tooltip="to the most behavioral entropy")
        self.level_button = ui.Button(description="uniform")
        self.weights = ui.HBox(layout={"overflow": "visible", "margin": "8px 0"})
        self.said, self.image, self._moving = ui.HTML(), ui.Image(format="png", layout=WIDE), False
        self.alpha.observe(self.redraw, "value")
        self.n_outcomes.observe(self._restart, "value")
        self.climb_button.on_click(self.climb)
        self.level_button.on_click(lambda _: self._move_to(np.ones(self.n_outcomes.value)))
        self._restart()
        top = [self.alpha, self.n_outcomes, self.climb_button, self.level_button]
        super().__init__([ui.HBox(top, layout=WRAPPED), self.weights, self.said, self.image])

    @property
    def pmf(self) -> NDArray[np.float64]:
        """Return (M,), the normalised values of the sliders; uniform if all are 0."""
        weights = np.array([slider.value for slider in self.weights.children])
        return weights / weights.sum() if weights.any() else np.full(len(weights), 1 / len(weights))

    def redraw(self, _: object = None) -> None:
        """Redraw with the controls' values."""
        if not self._moving:
            self._show(self.pmf)

    def _show(self, pmf: NDArray) -> None:
        self.image.value = self._view.update(pmf, self.alpha.value)
        entropy, log_m = behavioral_entropy(pmf, alpha=self.alpha.value), math.log(len(pmf))
        more = entropy > log_m + 1e-6
        compared = "<b>more than the uniform pmf's {:.3f}</b>" if more else "uniform pmf: {:.3f}"
        self.said.value = f"Behavioral entropy {entropy:.3f} nats, {compared.format(log_m)}"

    def climb(self, _: object = None) -> None:
        """Move, animated, to the pmf with the most entropy."""
        self._move_to(maximizing_pmf(self.n_outcomes.value, alpha=self.alpha.value, start=self.pmf))

    def _move_to(self, pmf: NDArray) -> None:
        """Show pmfs on the way to a pmf, then move all sliders to it.

        Sliders move once: of several values, a slow page may send an old one back.
        """
        start, pmf = self.pmf, pmf / pmf.sum()
        for share in np.linspace(0, 1, 12)[1:-1]:
            self._show(start + share * (pmf - start))
        self._moving = True  # several sliders, then one redraw
        for slider, p in zip(self.weights.children, pmf, strict=True):
            slider.value = round(float(p), 3)  # a multiple of the slider's step
        self._moving = False
        self.redraw()

    def _restart(self, _: object = None) -> None:
        """Show decreasing probabilities of the new number of outcomes."""
        pmf = 0.6 ** np.arange(self.n_outcomes.value)
        style = {"orientation": "vertical", "max": 1, "step": 0.001, "readout_format": ".2f"}
        style |= {"layout": {"width": "90px", "height": "150px", "overflow": "visible"}}
        values = (pmf / pmf.sum()).round(3).tolist()
        sliders = [ui.FloatSlider(p, description=f"{i}", **style) for i, p in enumerate(values, 1)]
        for slider in sliders:
            slider.observe(self.redraw, "value")
        self.weights.children, self._view = sliders, GameView(len(pmf))
        self.redraw()
