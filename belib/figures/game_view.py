"""The discrete game, live: a pmf, how it is perceived, and what its entropies are."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from belib.entropy import behavioral_entropy, renyi_entropy, shannon_entropy
from belib.figures.live import LiveFigure
from belib.figures.style import ACCENT, objective_color
from belib.weighting import Prelec, prelec_beta

Q = 2.0
"""The order of the Renyi entropy shown."""


class GameView(LiveFigure):
    """Bars of p and w(p) over M outcomes, and three dials: Shannon, Renyi, behavioral entropy."""

    def __init__(self, n_outcomes: int):
        figure = Figure(figsize=(13, 7.2), dpi=80, layout="constrained")
        rows = figure.add_gridspec(2, 1, height_ratios=(3, 2))
        top, bottom = figure.add_subfigure(rows[0]), figure.add_subfigure(rows[1])
        ax = top.subplots()
        outcome = 1 + np.arange(n_outcomes)
        self._p = ax.bar(outcome - 0.2, 0 * outcome, 0.38, color="0.6", label="p")
        blue = objective_color("behavioral", 2.0)
        self._w = ax.bar(outcome + 0.2, 0 * outcome, 0.38, color=blue, label="w(p)")
        ax.axhline(1 / n_outcomes, color="black", linestyle=":", label="uniform")
        ax.set(xticks=outcome, xlabel="outcome", ylim=(0, 1), ylabel="probability")
        ax.legend(frameon=False, loc="upper right", ncols=3)
        self._title = ax.set_title("α", loc="left", fontsize=20)
        names = ("Shannon", f"Rényi, q = {Q:g}", "behavioral")
        axes = bottom.subplots(1, 3)
        pairs = zip(axes, names, strict=True)
        self._dials = [_Dial(ax, name, float(np.log(n_outcomes))) for ax, name in pairs]
        self.n_outcomes = n_outcomes
        needles = [artist for dial in self._dials for artist in dial.moving]
        super().__init__(figure, [*self._p, *self._w, self._title, *needles])

    def update(self, pmf: ArrayLike, alpha: float) -> bytes:
        """The figure as PNG for a pmf (M,), beta conditioned on M."""
        pmf, color = np.asarray(pmf, dtype=np.float64), objective_color("behavioral", alpha)
        w = Prelec(alpha, prelec_beta(alpha, self.n_outcomes))(pmf)
        for bars, heights in ((self._p, pmf), (self._w, w)):
            for bar, height in zip(bars, heights, strict=True):
                bar.set_height(height)
        for bar in self._w:
            bar.set_color(color)
        self._title.set_text(f"α = {alpha:.2f}:  the perceived chances sum to {w.sum():.2f}")
        entropies = (
            (shannon_entropy(pmf), "black"),
            (renyi_entropy(pmf, q=Q), objective_color("renyi", Q)),
            (behavioral_entropy(pmf, alpha=alpha), color),
        )
        for dial, (nats, own) in zip(self._dials, entropies, strict=True):
            dial.update(float(nats), own)
        return self.png()


class _Dial:
    """A half circle from 0 to 1.5 log M nats, a mark at log M, a needle."""

    def __init__(self, ax: Axes, name: str, log_m: float):
        self._end = 1.5 * log_m
        arc = np.linspace(0, np.pi, 100)
        ax.plot(np.cos(arc), np.sin(arc), color="0.8", linewidth=10, solid_capstyle="butt")
        x, y = self._point(log_m)
        ax.plot([0.9 * x, 1.1 * x], [0.9 * y, 1.1 * y], color=ACCENT, linewidth=4)
        ax.text(1.15 * x, 1.15 * y, "log M", ha="left", va="bottom", fontsize=13)
        ax.text(-1, -0.08, "0", ha="center", va="top", fontsize=13)
        (self._needle,) = ax.plot([], [], linewidth=5, solid_capstyle="round")
        self._text = ax.text(0, -0.12, "", ha="center", va="top")
        ax.set(xlim=(-1.5, 1.5), ylim=(-0.4, 1.2), aspect="equal", title=name)
        ax.set_axis_off()
        self.moving = (self._needle, self._text)

    def _point(self, nats: float) -> tuple[float, float]:
        angle = np.pi * (1 - min(nats / self._end, 1.0))
        return float(np.cos(angle)), float(np.sin(angle))

    def update(self, nats: float, color: str | tuple) -> None:
        x, y = self._point(nats)
        self._needle.set(data=([0, 0.85 * x], [0, 0.85 * y]), color=color)
        self._text.set_text(f"{nats:.3f} nats")
