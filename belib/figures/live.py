"""Figures that follow a slider: the fixed part is drawn once, what moves is redrawn on top of it.

A whole redraw takes a fifth of a second or more, nearly all of it for axes that do not change. The
figures belong to no window and need no front end: `png` is all that they give.
"""

import io
from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image


class LiveFigure:
    """A figure whose `moving` artists are drawn, in this order, over all the others."""

    def __init__(self, figure: Figure, moving: Sequence[Artist]):
        self.canvas, self.moving = FigureCanvasAgg(figure), moving
        for artist in moving:
            artist.set_animated(True)
        self.canvas.draw()
        self._background = self.canvas.copy_from_bbox(figure.bbox)

    def png(self) -> bytes:
        """The figure as its artists now are."""
        self.canvas.restore_region(self._background)
        for artist in self.moving:
            artist.draw(self.canvas.renderer)
        pixels = np.asarray(self.canvas.buffer_rgba())[..., :3]
        file = io.BytesIO()
        Image.fromarray(np.ascontiguousarray(pixels)).save(file, "png", compress_level=1)
        return file.getvalue()
