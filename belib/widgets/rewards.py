"""Sliders for alpha's effect on probabilities, a density, the reward and a dataset."""

import base64
import io
import math
from collections.abc import Sequence
from typing import Any

import ipywidgets as ui
import numpy as np
from IPython.display import HTML
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from scipy import stats

from belib.coverage.maps import StateMap
from belib.figures.style import ACCENT, REWARD_COLORS, SHANNON, objective_color
from belib.rewards import behavioral_reward, shannon_reward
from belib.weighting import Prelec, prelec_beta

# Choices of M for beta; log M = 1 makes beta 1 for every alpha.
OUTCOMES = {"M = 2": 2, "M = 16": 16, "M = 64": 64, "M = 512": 512, "none: β = 1": math.e}
WIDE, WRAPPED = {"width": "100%", "max_width": "1040px"}, {"flex_flow": "row wrap"}
_BLUE: dict[str, Any] = {"color": objective_color("behavioral", 2.0), "linewidth": 4}
_P, _X, _R = np.geomspace(1e-6, 1, 200), np.linspace(-4, 4, 201), np.geomspace(1e-2, 1e3, 300)


class LiveFigure:
    """A figure that draws only its `moving` artists again, in this order; the rest is drawn once.

    A whole redraw takes too long to follow a slider, nearly all of it for the axes.
    """

    def __init__(self, figure: Figure, moving: Sequence[Artist]):
        self.canvas, self.moving = FigureCanvasAgg(figure), moving
        for artist in moving:
            artist.set_animated(True)
        self.canvas.draw()
        self._background = self.canvas.copy_from_bbox(figure.bbox)

    def png(self) -> bytes:
        """Return the figure with its current artists as PNG."""
        self.canvas.restore_region(self._background)
        for artist in self.moving:
            artist.draw(self.canvas.renderer)
        pixels, file = np.asarray(self.canvas.buffer_rgba())[..., :3], io.BytesIO()
        Image.fromarray(pixels).save(file, "png", compress_level=1)
        return file.getvalue()


class RewardView(LiveFigure):
    """Four panels that follow alpha, M and the unit of distance."""

    def __init__(self, states: StateMap):
        figure = Figure(figsize=(13, 8.8), dpi=80, layout="constrained")
        (weighting, density), (reward, points) = figure.subplots(2, 2)
        self._title = figure.suptitle("α, β", x=0.01, ha="left", fontsize=20)
        order = np.argsort(states.distance)  # the most novel on top
        self._distance, self._position = states.distance[order], states.position[order]
        self._draw_weighting(weighting, density)
        self._draw_reward(reward)
        self._draw_states(points, states.source)
        moving = [artist for artist in vars(self).values() if isinstance(artist, Artist)]
        super().__init__(figure, moving)

    def _draw_weighting(self, weighting: Axes, density: Axes) -> None:
        """Draw w(p), on logarithmic axes, with its fixed point; the perceived normal density."""
        weighting.plot(_P, _P, label="p itself (α = 1)", **SHANNON)
        (self._w,) = weighting.plot([], [], label="w(p)", **_BLUE)
        (self._fixed,) = weighting.plot([], [], "o", color=ACCENT, markersize=11, label="w(p) = p")
        weighting.set(xscale="log", yscale="log", xlim=(1e-6, 1), ylim=(1e-6, 1))
        weighting.set(xlabel="probability p", ylabel="perceived w(p)", title="Probabilities")
        density.plot(_X, stats.norm.pdf(_X), label="itself (α = 1)", **SHANNON)
        (self._perceived,) = density.plot([], [], label="perceived", **_BLUE)
        density.set(xlabel="x", ylim=(0, 1.3), ylabel="density", title="A normal density")
        for ax in (weighting, density):
            ax.legend(frameon=False, loc="upper left")

    def _draw_reward(self, ax: Axes) -> None:
        """Draw the reward over the distance, its peak, and the range of the states' distances."""
        ax.plot(_R, shannon_reward(_R), label="SE", **SHANNON)
        self._beyond = ax.axvspan(1, 2, color="black", alpha=0.1, label="past the peak")
        (self._reward,) = ax.plot([], [], label="BE", **_BLUE)
        (self._peak,) = ax.plot([], [], "v", color=ACCENT, markersize=13, label="peak")
        self._reach = ax.axvspan(1, 2, ymax=0.05, color="0.6", label="90 % of the states")
        ax.set(xscale="log", yscale="log", xlim=(1e-2, 1e3), ylim=(1e-4, 1e7))
        ax.set(xlabel="distance R", ylabel="reward", title="The reward")
        ax.legend(frameon=False, loc="upper left", ncols=2)

    def _draw_states(self, ax: Axes, source: str) -> None:
        """Draw the states in the colour of their reward, the best-paid tenth ringed."""
        shades = {"c": 0 * self._distance, "cmap": REWARD_COLORS, "vmin": 0, "vmax": 1}
        self._points = ax.scatter(*self._position.T, s=16, linewidths=0, **shades)
        self._rings = ax.scatter([], [], s=50, fc="none", ec=ACCENT, linewidths=1.2)
        self._best = ax.set_title("The best paid tenth")
        ax.set(xticks=[], yticks=[])
        ax.set_xlabel(source.replace("; ", "\n"), fontsize=13)
        ax.figure.colorbar(self._points, ax=ax, label="reward / highest")

    def update(self, alpha: float, n_outcomes: float, unit: float = 1.0) -> bytes:
        """Return the figure as PNG, with beta conditioned on M = `n_outcomes` (e makes beta = 1).

        `unit` multiplies the states' distances, since their unit depends on the representation.
        """
        beta, color = prelec_beta(alpha, n_outcomes), objective_color("behavioral", alpha)
        w, distance = Prelec(alpha, beta), unit * self._distance
        rare = ("neglected", "seen as it is", "overrated")[1 + (alpha < 1) - (alpha > 1)]
        self._title.set_text(f"α = {alpha:.2f},  β = {beta:.3g}:  what is rare is {rare}")
        self._w.set(data=(_P, w(_P)), color=color)
        self._fixed.set_data([w.fixed_point], [w.fixed_point])
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
        return self.png()


_ON_INPUT = """this.nextElementSibling.value = this.value;
this.closest('figure').querySelectorAll('img').forEach(
    (img, i) => img.style.display = i === Math.round(10 * this.value) - 1 ? '' : 'none')"""


def flipbook(states: StateMap, n_outcomes: float, *, alpha: float = 0.5) -> HTML:
    """Return a slider of alpha over 50 pictures of a `RewardView`, from 0.1 to 5, as HTML.

    It needs neither a kernel nor a network, and has about 2.3 MB.
    """
    view, pictures = RewardView(states), []
    for shown in np.arange(1, 51) / 10:
        png = Image.open(io.BytesIO(view.update(shown, n_outcomes)))
        png.save(file := io.BytesIO(), "webp", quality=40)
        source = "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode()
        style = "" if round(10 * shown) == round(10 * alpha) else "display: none"
        text = f"The reward at α = {shown:g}"
        pictures.append(f'<img src="{source}" alt="{text}" style="max-width: 100%; {style}">')
    control = f'type="range" min="0.1" max="5" step="0.1" value="{alpha:.1f}" oninput="{_ON_INPUT}"'
    slider = f'<label>α <input {control} style="width: 60%"> <output>{alpha:.1f}</output></label>'
    return HTML(f'<figure style="margin: 0">{slider}<br>{"".join(pictures)}</figure>')


def alpha_slider(value: float) -> ui.FloatSlider:
    """Return a slider from 0.1 to 5."""
    limits = {"min": 0.1, "max": 5, "step": 0.05}
    return ui.FloatSlider(value, description="α", layout={"width": "520px"}, **limits)


class RewardExplorer(ui.VBox):
    """Sliders for alpha, M and the unit of distance over a `RewardView` of a dataset's states."""

    def __init__(self, states: StateMap, *, alpha: float = 0.5):
        self.alpha = alpha_slider(alpha)
        self.n_outcomes = ui.Dropdown(options=OUTCOMES, value=512, description="β for")
        unit = {"min": -1, "max": 3, "step": 0.05, "readout_format": ".3g"}
        self.unit = ui.FloatLogSlider(1.0, description="distances ×", **unit)
        self.image = ui.Image(format="png", layout=WIDE)
        self._view, self._controls = RewardView(states), (self.alpha, self.n_outcomes, self.unit)
        for control in self._controls:
            control.observe(self.redraw, "value")
        self.redraw()
        super().__init__([ui.HBox(self._controls, layout=WRAPPED), self.image])

    def redraw(self, _: object = None) -> None:
        """Redraw with the controls' values."""
        self.image.value = self._view.update(*(control.value for control in self._controls))
