"""The interactive map of notebook 06."""

from typing import Any

import ipywidgets as ui
import numpy as np
from numpy.typing import NDArray

from belib.coverage import Embedding, Sample, episodes_inside, scale
from belib.figures.coverage import dataset_label, described
from belib.figures.map_view import map_png
from belib.figures.style import objective_color
from belib.knn import knn_distances

_FIXED = ("dataset", "objective", "parameter", "seed", "scale", "episode", "row", "step", "x", "y")
_LISTED = 12  # episodes


class CoverageMap(ui.VBox):
    """A map on which to choose datasets and colours, and a rectangle whose episodes are listed.

    Args:
        sample: what was embedded.
        embedding: its map; columns of its points beside the sample's own, such as task rewards,
            are offered as colours.
        k: neighbours of the density, in the space of the features as they were embedded.
    """

    def __init__(self, sample: Sample, embedding: Embedding, *, k: int = 5):
        self._sample, self._embedding, self._k = sample, embedding, k
        self.points = points = embedding.points
        self._described = dict(described(points))
        names = {dataset_label(*item): item[0] for item in self._described.items()}
        tasks = [name for name in points.columns if name not in _FIXED]
        self.datasets = ui.SelectMultiple(
            options=names, value=sample.names, rows=min(8, len(names)), description="datasets"
        )
        self.color = ui.Dropdown(
            options=["objective", "time", "k-NN density", *tasks], description="colour"
        )
        self.x, self.y = (self._side(axis) for axis in "xy")
        self.image = ui.Image(format="png", layout={"width": "100%", "max_width": "640px"})
        self.episodes = ui.HTML()
        self._controls = (self.datasets, self.color, self.x, self.y)
        for each in self._controls:
            each.observe(self.redraw, "value")
        self._colors: dict[str, NDArray] = {}
        self.redraw()
        below = ui.HBox([self.image, self.episodes], layout={"flex_flow": "row wrap"})
        super().__init__([ui.HBox(self._controls, layout={"flex_flow": "row wrap"}), below])

    def redraw(self, _: object = None) -> None:
        """Show what the controls say."""
        chosen, color, x, y = (each.value for each in self._controls)
        shown = self.points["dataset"].isin(chosen).to_numpy()
        if color not in self._colors:
            self._colors[color] = self._values(color)
        key: Any = {"time": "environment step", "k-NN density": "log density"}.get(color, color)
        if color == "objective":
            named = {n: known for n, known in self._described.items() if n in chosen}
            key = {dataset_label(n, known): self._color(n) for n, known in named.items()}
        self.image.value = map_png(self.points, shown, self._colors[color], key, x, y)
        inside = episodes_inside(self.points[shown], x, y)
        rest = len(inside) - _LISTED
        more = f"<p>and {rest} more</p>" if rest > 0 else ""
        shares = inside.assign(share=inside["share"].map("{:.0%}".format)).head(_LISTED)
        title = f"<p>{inside['inside'].sum()} states of {len(inside)} episodes inside</p>"
        self.episodes.value = title + shares.to_html(index=False, border=0) + more

    def _color(self, name: str) -> tuple:
        known = self._described[name]
        return objective_color(known["objective"], known["parameter"])

    def _side(self, axis: str) -> ui.FloatRangeSlider:
        """A slider for a side of the rectangle: at first the middle half of the points."""
        low, first, third, high = np.quantile(self.points[axis], (0, 0.25, 0.75, 1)).tolist()
        return ui.FloatRangeSlider(
            value=(first, third),
            min=low,
            max=high,
            step=(high - low) / 100,
            description=f"rectangle {axis}",
            readout=False,
            continuous_update=False,
        )

    def _values(self, color: str) -> NDArray:
        """RGBA (n, 4) by objective, or numbers (n,)."""
        if color == "objective":
            rgba = {name: self._color(name) for name in self._described}
            return np.array([rgba[name] for name in self.points["dataset"]])
        if color == "time":
            return self.points["step"].to_numpy()
        if color == "k-NN density":
            features = scale(self._sample.features, self._embedding.record["scaling"])
            with np.errstate(divide="ignore"):  # equal points; drawn in the colour of the bad
                log_f = -features.shape[1] * np.log(knn_distances(features, k=self._k)[:, -1])
            return np.where(np.isfinite(log_f), log_f, np.nan)
        return self.points[color].to_numpy()
