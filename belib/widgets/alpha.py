"""Sliders for alpha's effect on probabilities, a density, the reward and a dataset; a game."""

import base64
import io
import math
from collections.abc import Sequence
from typing import Any

import ipywidgets as ui
import numpy as np
from IPython.display import HTML
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image
from scipy import stats

from belib.coverage.states import StateMap
from belib.entropy import behavioral_entropy, maximizing_pmf, renyi_entropy, shannon_entropy
from belib.figures.style import ACCENT, REWARD_COLORS, SHANNON, objective_color
from belib.rewards import behavioral_reward, shannon_reward
from belib.weighting import Prelec, prelec_beta

# Choices of M for beta; log M = 1 makes beta 1 for every alpha.
OUTCOMES = {"M = 2": 2, "M = 16": 16, "M = 64": 64, "M = 512": 512, "none: β = 1": math.e}
WRAPPED = {"flex_flow": "row wrap"}
Q = 2.0  # the order of the game's Renyi entropy
_BLUE: dict[str, Any] = {"color": objective_color("behavioral", 2.0), "linewidth": 4}
_P, _X, _R = np.geomspace(1e-6, 1, 200), np.linspace(-4, 4, 201), np.geomspace(1e-2, 1e3, 300)


class LiveFigure(ui.VBox):
    """Controls, alpha's slider first, over a picture that `redraw` makes of their values.

    Only `moving` artists are drawn again, in this order; the rest is drawn once. A whole redraw
    takes too long to follow a slider, nearly all of it for the axes.
    """

    def __init__(self, alpha: float, *controls: ui.Widget):
        limits = {"min": 0.1, "max": 5, "step": 0.05, "layout": {"width": "520px"}}
        self.alpha = ui.FloatSlider(alpha, description="α", **limits)
        self.image = ui.Image(format="png", layout={"width": "100%", "max_width": "1040px"})
        controls = (self.alpha, *controls)
        for control in controls:
            control.observe(self.redraw, "value")
        super().__init__([ui.HBox(controls, layout=WRAPPED), self.image])

    def keep(self, figure: Figure, moving: Sequence[Artist]) -> None:
        """Draw a figure without its moving artists, and keep it as their background."""
        self.canvas, self.moving = FigureCanvasAgg(figure), moving
        for artist in moving:
            artist.set_animated(True)
        self.canvas.draw()
        self._background = self.canvas.copy_from_bbox(figure.bbox)
        self.redraw()

    def redraw(self, _: object = None) -> None:
        """Move the artists to the controls' values, and `show` them."""
        raise NotImplementedError

    def show(self) -> None:
        """Draw the moving artists, as they are, into the picture."""
        self.canvas.restore_region(self._background)
        for artist in self.moving:
            artist.draw(self.canvas.renderer)
        pixels, file = np.asarray(self.canvas.buffer_rgba())[..., :3], io.BytesIO()
        Image.fromarray(pixels).save(file, "png", compress_level=1)
        self.image.value = file.getvalue()


class RewardExplorer(LiveFigure):
    """Four panels with sliders for alpha, M and a factor of all distances."""

    def __init__(self, states: StateMap, *, alpha: float = 0.5):
        self.n_outcomes = ui.Dropdown(options=OUTCOMES, value=512, description="β for")
        unit = {"min": -1, "max": 3, "step": 0.05, "readout_format": ".3g"}
        self.unit = ui.FloatLogSlider(1.0, description="distances ×", **unit)
        super().__init__(alpha, self.n_outcomes, self.unit)
        order = np.argsort(states.distance)  # the most novel on top
        self._distance, self._position = states.distance[order], states.position[order]
        figure = self._draw(states.source.replace("; ", "\n"))
        self.keep(figure, [artist for artist in vars(self).values() if isinstance(artist, Artist)])

    def _draw(self, source: str) -> Figure:
        """Return four panels; what moves are attributes, in the order of drawing."""
        figure = Figure(figsize=(13, 8.8), dpi=80, layout="constrained")
        (weighting, density), (reward, points) = figure.subplots(2, 2)
        self._title = figure.suptitle("α, β", x=0.01, ha="left", fontsize=20)
        weighting.plot(_P, _P, label="p itself (α = 1)", **SHANNON)
        (self._w,) = weighting.plot([], [], label="w(p), darker: larger α", **_BLUE)
        (self._fixed,) = weighting.plot([], [], "o", color=ACCENT, markersize=11, label="w(p) = p")
        weighting.set(xscale="log", yscale="log", xlim=(1e-6, 1), ylim=(1e-6, 1))
        weighting.set(xlabel="probability p", ylabel="perceived w(p)", title="Probabilities")

        density.plot(_X, stats.norm.pdf(_X), label="itself (α = 1)", **SHANNON)
        (self._perceived,) = density.plot([], [], label="perceived, darker: larger α", **_BLUE)
        density.set(xlabel="x", ylim=(0, 1.3), ylabel="density", title="A normal density")

        reward.plot(_R, shannon_reward(_R), label="SE", **SHANNON)
        self._beyond = reward.axvspan(1, 2, color="black", alpha=0.1, label="past the peak")
        (self._reward,) = reward.plot([], [], label="BE, darker: larger α", **_BLUE)
        (self._peak,) = reward.plot([], [], "v", color=ACCENT, markersize=13, label="peak")
        self._reach = reward.axvspan(1, 2, ymax=0.05, color="0.6", label="90 % of the states")
        reward.set(xscale="log", yscale="log", xlim=(1e-2, 1e3), ylim=(1e-4, 1e7))
        reward.set(xlabel="distance R", ylabel="reward", title="The reward")

        shades = {"c": 0 * self._distance, "cmap": REWARD_COLORS, "vmin": 0, "vmax": 1}
        self._points = points.scatter(*self._position.T, s=16, linewidths=0, **shades)
        self._rings = points.scatter([], [], s=50, fc="none", ec=ACCENT, linewidths=1.2)
        self._best = points.set_title("The best paid tenth")
        points.set(xticks=[], yticks=[])
        points.set_xlabel(source, fontsize=13)
        figure.colorbar(self._points, ax=points, label="reward / highest")
        for ax in (weighting, density, reward):
            ax.legend(frameon=False, loc="upper left")
        return figure

    def redraw(self, _: object = None) -> None:
        """Redraw with the controls' values."""
        alpha, distance = self.alpha.value, self.unit.value * self._distance
        beta = prelec_beta(alpha, self.n_outcomes.value)
        w, color = Prelec(alpha, beta), objective_color("behavioral", alpha)
        rare = ("neglected", "seen as it is", "overrated")[1 + (alpha < 1) - (alpha > 1)]
        self._title.set_text(f"α = {alpha:.2f},  β = {beta:.3g}:  what is rare is {rare}")
        self._w.set(data=(_P, w(_P)), color=color)
        fixed = 1 / self.n_outcomes.value
        self._fixed.set_data([fixed], [fixed])
        self._perceived.set(data=(_X, w(stats.norm.pdf(_X))), color=color)
        reward = behavioral_reward(_R, alpha=alpha, beta=beta)
        top = reward.argmax()
        peak = slice(top, top + (top < len(reward) - 1))
        self._reward.set(data=(_R, reward), color=color)
        self._peak.set_data(_R[peak], 1.6 * reward[peak])
        self._beyond.set(x=_R[top], width=_R[-1] - _R[top])
        low, high = np.quantile(distance, [0.05, 0.95])
        self._reach.set(x=low, width=high - low)
        earned = behavioral_reward(distance, alpha=alpha, beta=beta)
        best = np.argsort(earned)[-len(earned) // 10 :]
        self._points.set_array(earned / earned.max())
        self._rings.set_offsets(self._position[best])
        self._best.set_text(f"The best paid tenth earns {earned[best].sum() / earned.sum():.0%}")
        self.show()


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
        self._p = top.bar(outcome - 0.2, 0, 0.38, color="0.6", label="p")
        self._w = top.bar(outcome + 0.2, 0, 0.38, color=blue, label="w(p), darker: larger α")
        top.axhline(1 / n_outcomes, color="black", linestyle=":", label="uniform")
        top.set(xticks=outcome, xlabel="outcome", ylim=(0, 1), ylabel="probability")
        top.legend(frameon=False, loc="upper right", ncols=3)
        self._title = top.set_title("α", loc="left", fontsize=20)
        names = ("behavioral", f"Rényi, q = {Q:g}", "Shannon")
        self._entropies = bottom.barh(names, [0, 0, 0], color=(blue, red, "black"))
        self._nats = [bottom.text(1.2 * log_m, y, "", va="center") for y in range(3)]
        end = bottom.axvline(log_m, color=ACCENT, linewidth=4)
        bottom.set(xlim=(0, 1.5 * log_m), xlabel="entropy (nats); the line is at log M")
        bottom.grid(False)
        self.keep(figure, [*self._p, *self._w, *self._entropies, end, self._title, *self._nats])

    @property
    def pmf(self) -> NDArray[np.float64]:
        """Return (M,), the normalised values of the sliders; uniform if all are 0."""
        weights = np.array([slider.value for slider in self.weights.children])
        return weights / weights.sum() if weights.any() else np.full(len(weights), 1 / len(weights))

    def redraw(self, _: object = None, pmf: NDArray | None = None) -> None:
        """Redraw with the controls' values, or with another pmf (M,)."""
        if self._moving:
            return
        pmf = self.pmf if pmf is None else pmf
        alpha, log_m = self.alpha.value, math.log(len(pmf))
        blue = objective_color("behavioral", alpha)
        w = Prelec(alpha, prelec_beta(alpha, len(pmf)))(pmf)
        self._title.set_text(f"α = {alpha:.2f}:  the perceived chances sum to {w.sum():.2f}")
        values = behavioral_entropy(pmf, alpha=alpha), renyi_entropy(pmf, q=Q), shannon_entropy(pmf)
        for bar, height in zip((*self._p, *self._w), (*pmf, *w), strict=True):
            bar.set_height(height)
        for bar, text, nats in zip(self._entropies, self._nats, values, strict=True):
            bar.set_width(nats)
            text.set_text(f"{nats:.3f}")
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
            self.redraw(pmf=start + share * (pmf - start))
        self._moving = True  # several sliders, then one redraw
        for slider, p in zip(self.weights.children, pmf, strict=True):
            slider.value = round(float(p), 3)  # a multiple of the slider's step
        self._moving = False
        self.redraw()


_ON_INPUT = """this.nextElementSibling.value = this.value;
this.closest('figure').querySelectorAll('img').forEach(
    (img, i) => img.style.display = i === Math.round(10 * this.value) - 1 ? '' : 'none')"""


def flipbook(states: StateMap, n_outcomes: float) -> HTML:
    """Return a slider of alpha, from 0.1 to 5, over 50 pictures of a `RewardExplorer`, as HTML.

    It needs neither a kernel nor a network, and has about 2.3 MB.
    """
    explorer, pictures = RewardExplorer(states), []
    explorer.n_outcomes.value = n_outcomes
    for alpha in np.arange(1, 51) / 10:
        explorer.alpha.value = alpha
        png = Image.open(io.BytesIO(explorer.image.value))
        png.save(file := io.BytesIO(), "webp", quality=40)
        source = "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode()
        style = "max-width: 100%" if alpha == 0.5 else "max-width: 100%; display: none"
        pictures.append(f'<img src="{source}" alt="The reward at α = {alpha:g}" style="{style}">')
    control = f'type="range" min="0.1" max="5" step="0.1" value="0.5" oninput="{_ON_INPUT}"'
    slider = f'<label>α <input {control} style="width: 60%"> <output>0.5</output></label>'
    return HTML(f'<figure style="margin: 0">{slider}<br>{"".join(pictures)}</figure>')
