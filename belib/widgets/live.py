"""Figures that follow a slider: a full redraw takes too long, nearly all of it for the axes."""

import io
from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image


class LiveFigure:
    """A figure whose `moving` artists are drawn, in this order, over the rest, drawn once."""

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
