"""What alpha does, live: to probabilities, to a density, to the reward, to a dataset's states."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from scipy import stats

from belib.figures.live import LiveFigure
from belib.figures.style import ACCENT, REWARD_COLORS, SHANNON, objective_color
from belib.rewards import behavioral_reward, shannon_reward
from belib.statemap import StateMap
from belib.weighting import Prelec, prelec_beta

_BLUE = objective_color("behavioral", 2.0)


class RewardView(LiveFigure):
    """Four panels that follow alpha, M and the unit of distance."""

    def __init__(self, states: StateMap):
        figure = Figure(figsize=(13, 8.8), dpi=80, layout="constrained")
        axes = figure.subplots(2, 2)
        title = figure.suptitle("α, β", x=0.01, ha="left", fontsize=20)
        self._weighting, self._density = _WeightingPanel(axes[0, 0]), _DensityPanel(axes[0, 1])
        self._reward, self._map = _RewardPanel(axes[1, 0]), _MapPanel(axes[1, 1], states)
        panels = (self._weighting, self._density, self._reward, self._map)
        self._title, self._distance = title, states.distance
        super().__init__(figure, [title, *(artist for each in panels for artist in each.moving)])

    def update(self, alpha: float, n_outcomes: float, unit: float = 1.0) -> bytes:
        """The figure as PNG, with beta conditioned on M = `n_outcomes` (e makes beta = 1).

        `unit` multiplies the states' distances: a representation chooses its own unit.
        """
        beta, color = prelec_beta(alpha, n_outcomes), objective_color("behavioral", alpha)
        weighting, distance = Prelec(alpha, beta), unit * self._distance
        said = ("neglected", "seen as it is", "overrated")[1 + (alpha < 1) - (alpha > 1)]
        self._title.set_text(f"α = {alpha:.2f},  β = {beta:.3g}:  what is rare is {said}")
        self._weighting.update(weighting, color)
        self._density.update(weighting, color)
        self._reward.update(alpha, beta, distance, color)
        self._map.update(behavioral_reward(distance, alpha=alpha, beta=beta))
        return self.png()


class _WeightingPanel:
    """w(p), both axes logarithmic, and its fixed point."""

    def __init__(self, ax: Axes):
        self._p = np.geomspace(1e-6, 1, 200)
        ax.plot(self._p, self._p, label="p itself (α = 1)", **SHANNON)
        (self._curve,) = ax.plot([], [], color=_BLUE, linewidth=4, label="w(p)")
        (self._fixed,) = ax.plot([], [], "o", color=ACCENT, markersize=11, label="w(p) = p")
        ax.set(xscale="log", yscale="log", xlabel="probability p", xlim=(1e-6, 1), ylim=(1e-6, 1))
        ax.set(ylabel="perceived w(p)", title="Probabilities")
        ax.legend(frameon=False, loc="upper left")
        self.moving = (self._curve, self._fixed)

    def update(self, weighting: Prelec, color: tuple) -> None:
        self._curve.set(data=(self._p, weighting(self._p)), color=color)
        fixed = weighting.fixed_point
        self._fixed.set_data([fixed], [fixed])


class _DensityPanel:
    """The standard normal density as it is perceived."""

    def __init__(self, ax: Axes):
        self._x = np.linspace(-4, 4, 201)
        self._density = stats.norm.pdf(self._x)
        ax.plot(self._x, self._density, label="itself (α = 1)", **SHANNON)
        (self._curve,) = ax.plot([], [], color=_BLUE, linewidth=4, label="perceived")
        ax.set(xlabel="x", ylim=(0, 1.3), ylabel="density", title="A normal density")
        ax.legend(frameon=False, loc="upper left", ncols=2)
        self.moving = (self._curve,)

    def update(self, weighting: Prelec, color: tuple) -> None:
        self._curve.set(data=(self._x, weighting(self._density)), color=color)


class _RewardPanel:
    """The reward over the distance, its peak if it has one, and where the dataset's states are."""

    def __init__(self, ax: Axes):
        self._distance = np.geomspace(1e-2, 1e3, 300)
        ax.plot(self._distance, shannon_reward(self._distance), label="SE", **SHANNON)
        across = ax.get_xaxis_transform()
        self._beyond = Rectangle((1, 0), 0, 1, facecolor="black", alpha=0.1, transform=across)
        ax.add_patch(self._beyond)
        (self._curve,) = ax.plot([], [], color=_BLUE, linewidth=4, label="BE")
        (self._peak,) = ax.plot([], [], "v", color=ACCENT, markersize=13, label="peak")
        (self._states,) = ax.plot([], [], color="0.35", linewidth=9, transform=across, alpha=0.6)
        self._states.set(solid_capstyle="butt", label="90 % of the states")
        ax.set(xscale="log", yscale="log", xlim=(1e-2, 1e3), ylim=(1e-4, 1e7))
        ax.set(xlabel="distance R", ylabel="reward", title="The reward")
        ax.legend(frameon=False, loc="upper left", ncols=2)
        self.moving = (self._beyond, self._curve, self._peak, self._states)

    def update(self, alpha: float, beta: float, distance: NDArray, color: tuple) -> None:
        reward = behavioral_reward(self._distance, alpha=alpha, beta=beta)
        top = reward.argmax()
        peak = slice(top, top + (top < len(reward) - 1))  # empty where the reward does not fall
        start = self._distance[top]
        self._beyond.set(x=start, width=self._distance[-1] - start)
        self._curve.set(data=(self._distance, reward), color=color)
        self._peak.set_data(self._distance[peak], 1.6 * reward[peak])
        self._states.set_data(np.quantile(distance, [0.05, 0.95]), [0.025, 0.025])


class _MapPanel:
    """A dataset's states, coloured by what each would earn, the best paid tenth ringed."""

    def __init__(self, ax: Axes, states: StateMap):
        order = np.argsort(states.distance)  # the most novel on top
        self._order, self._position = order, states.position[order]
        style = {"s": 16, "cmap": REWARD_COLORS, "vmin": 0, "vmax": 1, "linewidths": 0}
        self._points = ax.scatter(*self._position.T, c=np.zeros(len(order)), **style)
        ring = {"s": 50, "facecolors": "none", "edgecolors": ACCENT, "linewidths": 1.2}
        self._rings = ax.scatter([], [], **ring)
        self._title = ax.set_title("The best paid tenth")
        ax.set(xticks=[], yticks=[])
        ax.set_xlabel(states.source.replace("; ", "\n"), fontsize=13)
        ax.figure.colorbar(self._points, ax=ax, label="reward / highest")
        self.moving = (self._points, self._rings, self._title)

    def update(self, reward: NDArray) -> None:
        reward = reward[self._order]
        best = np.argsort(reward)[-len(reward) // 10 :]
        self._points.set_array(reward / reward.max())
        self._rings.set_offsets(self._position[best])
        self._title.set_text(f"The best paid tenth earns {reward[best].sum() / reward.sum():.0%}")
