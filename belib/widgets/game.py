"""The discrete game: a pmf on sliders, its perceived probabilities and its entropies."""

import math

import ipywidgets as ui
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from belib.entropy import behavioral_entropy, maximizing_pmf, renyi_entropy, shannon_entropy
from belib.figures.style import ACCENT, objective_color
from belib.weighting import Prelec, prelec_beta
from belib.widgets.rewards import LiveFigure

Q = 2.0  # the order of the Renyi entropy


class EntropyGame(LiveFigure):
    """Bars of a pmf over 3 to 8 outcomes, of w(p) and of entropies; a button climbs to the maximum.

    beta is conditioned on the number of outcomes M.
    """

    def __init__(self, *, alpha: float = 0.5):
        self.n_outcomes = ui.IntSlider(6, min=3, max=8, description="M")
        self.climb_button = ui.Button(description="climb", tooltip="to the most behavioral entropy")
        self.level_button = ui.Button(description="uniform")
        self.n_outcomes.observe(self._restart, "value")
        self.climb_button.on_click(self.climb)
        self.level_button.on_click(lambda _: self._move_to(np.ones(self.n_outcomes.value)))
        super().__init__(alpha, self.n_outcomes, self.climb_button, self.level_button)
        self.weights = ui.HBox(layout={"overflow": "visible", "margin": "8px 0"})
        self.said, self._moving = ui.HTML(), False
        self.children = [self.children[0], self.weights, self.said, self.image]
        self._restart()

    def _restart(self, _: object = None) -> None:
        """Show decreasing probabilities of the new number of outcomes."""
        pmf = 0.6 ** np.arange(self.n_outcomes.value)
        style = {"orientation": "vertical", "max": 1, "step": 0.001, "readout_format": ".2f"}
        style |= {"layout": {"width": "90px", "height": "150px", "overflow": "visible"}}
        values = (pmf / pmf.sum()).round(3).tolist()
        sliders = [ui.FloatSlider(p, description=f"{i}", **style) for i, p in enumerate(values, 1)]
        for slider in sliders:
            slider.observe(self.redraw, "value")
        self.weights.children = sliders
        self._draw(len(pmf))

    def _draw(self, n_outcomes: int) -> None:
        """Draw the axes."""
        figure = Figure(figsize=(13, 7.2), dpi=80, layout="constrained")
        top, bottom = figure.subplots(2, 1, height_ratios=(3, 2))
        outcome, log_m = 1 + np.arange(n_outcomes), math.log(n_outcomes)
        blue, red = objective_color("behavioral", 2.0), objective_color("renyi", Q)
        self._p = top.bar(outcome - 0.2, 0 * outcome, 0.38, color="0.6", label="p")
        self._w = top.bar(outcome + 0.2, 0 * outcome, 0.38, color=blue, label="w(p)")
        top.axhline(1 / n_outcomes, color="black", linestyle=":", label="uniform")
        top.set(xticks=outcome, xlabel="outcome", ylim=(0, 1), ylabel="probability")
        top.legend(frameon=False, loc="upper right", ncols=3)
        self._title = top.set_title("α", loc="left", fontsize=20)
        names = ("behavioral", f"Rényi, q = {Q:g}", "Shannon")
        self._entropies = bottom.barh(names, [0, 0, 0], color=(blue, red, "black"))
        self._nats = [bottom.text(0, place, "", va="center") for place in range(3)]
        end = bottom.axvline(log_m, color=ACCENT, linewidth=4)
        bottom.set(xlim=(0, 1.5 * log_m), xlabel="entropy (nats); the line is at log M")
        bottom.grid(False)
        bars = [*self._p, *self._w, *self._entropies]
        self.keep(figure, [*bars, end, self._title, *self._nats])

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
        alpha, log_m = self.alpha.value, math.log(len(pmf))
        blue = objective_color("behavioral", alpha)
        w = Prelec(alpha, prelec_beta(alpha, len(pmf)))(pmf)
        self._title.set_text(f"α = {alpha:.2f}:  the perceived chances sum to {w.sum():.2f}")
        values = behavioral_entropy(pmf, alpha=alpha), renyi_entropy(pmf, q=Q), shannon_entropy(pmf)
        for bar, height in zip((*self._p, *self._w), (*pmf, *w), strict=True):
            bar.set_height(height)
        for bar, text, nats in zip(self._entropies, self._nats, values, strict=True):
            bar.set_width(nats)
            text.set(x=nats, text=f" {nats:.3f}")
        for bar in (*self._w, self._entropies[0]):
            bar.set_color(blue)
        more = values[0] > log_m + 1e-6
        compared = "<b>more than the uniform pmf's {:.3f}</b>" if more else "uniform pmf: {:.3f}"
        self.said.value = f"Behavioral entropy {values[0]:.3f} nats, {compared.format(log_m)}"
        self.show()

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
