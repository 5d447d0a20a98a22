"""How times grow: with members, batches, samples and points; exponents fitted, and their figure."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from coverage import points
from matplotlib.figure import Figure
from measuring import in_turn
from scipy import stats
from subjects import Sizes, configs_of, update_of

from belib.coverage import smallest_ball
from belib.estimators import shannon_entropy_knn
from belib.figures.style import ACCENT, caption, objective_color, use_style

Curve = tuple[str, str, int, Callable[[], object]]
"""What grows, whose time it is, how much of it there is, a call."""

TITLES = {
    "members": "an update, over members",
    "batch size": "an update, over its batch",
    "samples": "an entropy estimate, over samples",
    "points": "a smallest ball, over points",
}
STYLES = {
    "TD3": ("0.25", "o"),
    "APT+BE": (objective_color("behavioral", 0.9), "s"),
    "d = 4": ("0.6", "^"),
    "d = 24": ("0.25", "o"),
    "d = 78": (ACCENT, "s"),
}


def curves(sizes: Sizes) -> Iterator[Curve]:
    """All that is measured; a curve's calls follow one another."""
    members, batches = (1, 2, 4, 8, 16, 32), (64, 128, 256, 512, 1024, 2048)
    for name, label in (("td3", "TD3"), ("behavioral", "APT+BE")):
        of = partial(configs_of, name, sizes.laptop, precision="float32")
        for number in members[: sizes.curve]:
            yield "members", label, number, update_of(of(members=number))[0]
        (one,) = of(members=1)
        for batch in batches[: sizes.curve]:
            yield "batch size", label, batch, update_of([replace(one, batch_size=batch)])[0]
    for d, share in itertools.product((4, 24), (0.1, 0.3, 1, 3)[: sizes.curve]):
        x = np.random.default_rng(0).normal(size=(int(share * sizes.n), d))
        yield "samples", f"d = {d}", len(x), partial(shannon_entropy_knn, x, k=5)
    for d, share in itertools.product((24, 78), (0.1, 0.3, 1, 3, 10, 30)[: sizes.curve]):
        x = points("normal", int(share * sizes.n), d)
        yield "points", f"d = {d}", len(x), partial(smallest_ball, x)


def measured(sizes: Sizes, repeats: int) -> pd.DataFrame:
    """Columns `grows`, `whose`, `size`, `seconds`: the median of the repetitions."""
    rows = []
    for grows, whose, size, call in curves(sizes):
        (times,), _ = in_turn([call], repeats)
        rows.append({"grows": grows, "whose": whose, "size": size, "seconds": np.median(times)})
    return pd.DataFrame(rows)


def exponents(table: pd.DataFrame) -> pd.DataFrame:
    """Of time ~ size^exponent: least squares of the logarithms, with the standard error."""
    rows = []
    for (grows, whose), curve in table.groupby(["grows", "whose"], sort=False):
        fit = stats.linregress(np.log(curve["size"]), np.log(curve["seconds"]))
        row = {"grows": grows, "whose": whose, "exponent": fit.slope, "error": fit.stderr}
        rows.append({**row, "at_one": np.exp(fit.intercept)})
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame, fitted: pd.DataFrame, note: str) -> Figure:
    """A panel for each thing that grows: medians, and the power law fitted to each curve."""
    use_style()
    figure, axes = plt.subplots(2, 2, figsize=(15, 10))
    for ax, (grows, title) in zip(axes.flat, TITLES.items(), strict=True):
        for fit in fitted[fitted["grows"] == grows].itertuples():
            curve = table[(table["grows"] == grows) & (table["whose"] == fit.whose)]
            color, marker = STYLES[fit.whose]
            label = f"{fit.whose}: exponent {fit.exponent:.2f} ± {fit.error:.2f}"
            law = 1e3 * fit.at_one * curve["size"] ** fit.exponent
            ax.plot(curve["size"], law, color=color, linestyle="--", linewidth=1.5)
            points = {"color": color, "marker": marker, "linestyle": "none", "label": label}
            ax.plot(curve["size"], 1e3 * curve["seconds"], markersize=9, **points)
        shown = table[table["grows"] == grows]
        sizes = sorted(shown["size"].unique())
        sizes = sizes[:: -(-len(sizes) // 4)]
        ax.set(xscale="log", yscale="log", title=title, xlabel=grows, ylabel="ms")
        ax.set_ylim(top=1e4 * shown["seconds"].max())  # room for the legend
        ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
        ax.xaxis.set_minor_locator(plt.NullLocator())
        ax.legend(frameon=False, loc="upper left", fontsize=14)
    caption(
        axes[0, 0],
        "Time grows as a power of size. Points: medians of a few calls; dashed: least squares of "
        f"the logarithms, exponents with one standard error. {note}",
    )
    return figure
