"""The interactive map of notebook 06."""

import io

import ipywidgets as ui
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from belib.coverage import Embedding, States, episodes_inside, scale
from belib.figures.style import ACCENT, OUTSIDE, labelled, of
from belib.knn import knn_distances

_FIXED = ("dataset", "objective", "parameter", "variant", "seed", "scale", "episode", "row", "step")
_LISTED = 12  # episodes
_BARS = {"time": "environment step", "k-NN density": "log density"}


class CoverageMap(ui.VBox):
    """A map with controls for datasets, colours and a rectangle, whose episodes are listed.

    Args:
        sample: the embedded states.
        embedding: their map; additional columns of its points, such as task rewards, can be chosen
            as colours.
        k: neighbours for the density, in the space of the embedded features.
    """

    def __init__(self, sample: States, embedding: Embedding, *, k: int = 5):
        self._sample, self._embedding, self._k = sample, embedding, k
        self._labels = labelled(embedding.points).set_index("dataset")["label"]
        self.points = embedding.points.assign(label=embedding.points["dataset"].map(self._labels))
        names = {label: dataset for dataset, label in self._labels.items()}
        tasks = [name for name in embedding.points.columns if name not in (*_FIXED, *"xy")]
        self.datasets = ui.SelectMultiple(
            options=names, value=sample.names, rows=min(8, len(names)), description="datasets"
        )
        self.color = ui.Dropdown(options=["objective", *_BARS, *tasks], description="colour")
        self.x, self.y = (self._side(axis) for axis in "xy")
        self.image = ui.Image(format="png", layout={"width": "100%", "max_width": "640px"})
        self.episodes = ui.HTML()
        self._controls = (self.datasets, self.color, self.x, self.y)
        for control in self._controls:
            control.observe(self.redraw, "value")
        self._colors: dict[str, NDArray] = {}
        self.redraw()
        below = ui.HBox([self.image, self.episodes], layout={"flex_flow": "row wrap"})
        super().__init__([ui.HBox(self._controls, layout={"flex_flow": "row wrap"}), below])

    def redraw(self, _: object = None) -> None:
        """Redraw with the controls' values."""
        chosen = self.points["dataset"].isin(self.datasets.value)
        self.image.value = self._png(chosen.to_numpy())
        inside = episodes_inside(self.points[chosen], self.x.value, self.y.value)
        rest = len(inside) - _LISTED
        more = f"<p>and {rest} more</p>" if rest > 0 else ""
        shares = inside.assign(share=inside["share"].map("{:.0%}".format)).head(_LISTED)
        title = f"<p>{inside['inside'].sum()} states of {len(inside)} episodes inside</p>"
        self.episodes.value = title + shares.to_html(index=False, border=0) + more

    def _png(self, chosen: NDArray[np.bool_]) -> bytes:
        """Return all points in grey, the chosen ones in colour, and the rectangle."""
        figure = Figure(figsize=(8, 6), dpi=80, layout="constrained")
        FigureCanvasAgg(figure)
        ax, color = figure.add_subplot(), self.color.value
        size = float(np.clip(6000 / len(self.points), 1.5, 14))
        ax.scatter(self.points["x"], self.points["y"], s=size, color="0.85", linewidths=0)
        points, colors = self.points[chosen], self._values(color)[chosen]
        shades = {"cmap": "viridis_r", "plotnonfinite": True} if colors.ndim == 1 else {}
        drawn = ax.scatter(points["x"], points["y"], c=colors, s=2 * size, linewidths=0, **shades)
        if colors.ndim == 1:
            figure.colorbar(drawn, label=_BARS.get(color, color))
        else:
            for label, rgba in of(points, "label")["palette"].items():
                ax.scatter([], [], color=[rgba], label=label)
            ax.legend(**{**OUTSIDE, "fontsize": 11})
        (x, right), (y, top) = self.x.value, self.y.value
        side = {"facecolor": "none", "edgecolor": ACCENT, "linewidth": 2}
        ax.add_patch(Rectangle((x, y), right - x, top - y, **side))
        ax.set(xticks=[], yticks=[])
        ax.grid(False)
        ax.spines[:].set_visible(False)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png")
        return buffer.getvalue()

    def _side(self, axis: str) -> ui.FloatRangeSlider:
        """Return a slider for a side of the rectangle, set to the middle half of the points."""
        low, first, third, high = np.quantile(self.points[axis], (0, 0.25, 0.75, 1)).tolist()
        whole = {"min": low, "max": high, "step": (high - low) / 100, "value": (first, third)}
        quiet = {"readout": False, "continuous_update": False}
        return ui.FloatRangeSlider(description=f"rectangle {axis}", **whole, **quiet)

    def _values(self, color: str) -> NDArray:
        """Return a colour's RGBA (n, 4), or its numbers (n,)."""
        if color not in self._colors:
            self._colors[color] = self._computed(color)
        return self._colors[color]

    def _computed(self, color: str) -> NDArray:
        if color == "objective":
            return np.array(self.points["label"].map(of(self.points, "label")["palette"]).tolist())
        if color != "k-NN density":
            return self.points["step" if color == "time" else color].to_numpy()
        features = scale(self._sample.features, self._embedding.record["scaling"])
        with np.errstate(divide="ignore"):  # equal points have no density
            log_f = -features.shape[1] * np.log(knn_distances(features, k=self._k)[:, -1])
        return np.where(np.isfinite(log_f), log_f, np.nan)
