"""The interactive map of notebook 06."""

import io

import ipywidgets as ui
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from belib.coverage import Embedding
from belib.figures.style import ACCENT, labelled, legend, of
from belib.widgets.alpha import WRAPPED

_FIXED = ("dataset", "objective", "parameter", "variant", "seed", "scale", "episode", *"xy")


class CoverageMap(ui.VBox):
    """A map with controls for datasets, colours and a rectangle, whose episodes are listed.

    Further columns of the embedding's points, such as task rewards, can be chosen as colours.
    """

    def __init__(self, embedding: Embedding):
        self.points = labelled(embedding.points)
        names = list(self.points["label"].cat.categories)
        colors = embedding.points.columns.difference(_FIXED, sort=False)
        self.datasets = ui.SelectMultiple(options=names, value=names, description="datasets")
        self.color = ui.Dropdown(options=["objective", *colors], description="colour")
        self.x, self.y = (self._side(axis) for axis in "xy")
        self.image = ui.Image(format="png", layout={"width": "100%", "max_width": "640px"})
        self.episodes = ui.HTML()
        controls = (self.datasets, self.color, self.x, self.y)
        for control in controls:
            control.observe(self.redraw, "value")
        self.redraw()
        parts = (controls, [self.image, self.episodes])
        super().__init__([ui.HBox(part, layout=WRAPPED) for part in parts])

    def redraw(self, _: object = None) -> None:
        """Redraw with the controls' values."""
        points = self.points[self.points["label"].isin(self.datasets.value)]
        self.image.value = self._png(points)
        inside = points["x"].between(*self.x.value) & points["y"].between(*self.y.value)
        groups = inside.groupby([points["dataset"], points["episode"]])
        table = groups.agg(inside="sum", share="mean").query("inside > 0").reset_index()
        title = f"<p>{inside.sum()} states of {len(table)} episodes inside. Most are in:</p>"
        table = table.sort_values("inside", ascending=False, kind="stable").head(12)
        table = table.to_html(index=False, border=0, float_format="{:.0%}".format)
        self.episodes.value = title + table

    def _png(self, chosen: pd.DataFrame) -> bytes:
        """Return all points in grey, the chosen ones in colour, and the rectangle."""
        figure = Figure(figsize=(8, 6), dpi=80, layout="constrained")
        ax, color = figure.add_subplot(), self.color.value
        size = float(np.clip(6000 / len(self.points), 1.5, 14))
        ax.scatter(self.points["x"], self.points["y"], s=size, color="0.85", linewidths=0)
        shades = {"hue": color, "palette": "viridis_r"}
        look = of(chosen, "label") if color == "objective" else shades
        sns.scatterplot(chosen, x="x", y="y", ax=ax, s=2 * size, linewidth=0, **look)
        legend(ax, fontsize=11, title=color)
        (x, right), (y, top) = self.x.value, self.y.value
        ax.add_patch(Rectangle((x, y), right - x, top - y, fill=False, ec=ACCENT, linewidth=2))
        ax.set_axis_off()
        figure.savefig(file := io.BytesIO(), format="png")
        return file.getvalue()

    def _side(self, axis: str) -> ui.FloatRangeSlider:
        """Return a slider for a side of the rectangle, set to the middle half of the points."""
        low, first, third, high = np.quantile(self.points[axis], (0, 0.25, 0.75, 1)).tolist()
        whole = {"min": low, "max": high, "step": (high - low) / 100, "value": (first, third)}
        quiet = {"readout": False, "continuous_update": False}
        return ui.FloatRangeSlider(description=f"rectangle {axis}", **whole, **quiet)
