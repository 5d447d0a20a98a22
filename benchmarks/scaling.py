"""Growth of times with members, batches, samples and points: exponents and a figure."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import seaborn as sns
from coverage import points
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter
from measuring import in_turn
from scipy import stats
from subjects import Sizes, configs_of, update_of

from belib.coverage import smallest_ball
from belib.estimators import shannon_entropy_knn
from belib.figures.style import caption, use_style


def curves(sizes: Sizes) -> Iterator[tuple[str, str, int, Callable[[], object]]]:
    """Yield what grows, the name of the curve, the size and the timed call."""
    members, batches = (1, 2, 4, 8, 16, 32), (64, 128, 256, 512, 1024, 2048)
    for name, label in (("td3", "TD3"), ("behavioral", "APT+BE")):
        of = partial(configs_of, name, sizes.laptop, precision="float32")
        for number in members[: sizes.curve]:
            yield "members", label, number, update_of(of(members=number))
        (one,) = of(members=1)
        for batch in batches[: sizes.curve]:
            yield "batch size", label, batch, update_of([replace(one, batch_size=batch)])
    for d, share in itertools.product((4, 24), (0.1, 0.3, 1, 3)[: sizes.curve]):
        x = np.random.default_rng(0).normal(size=(int(share * sizes.n), d))
        yield "samples", f"d = {d}", len(x), partial(shannon_entropy_knn, x, k=5)
    for d, share in itertools.product((24, 78), (0.1, 0.3, 1, 3, 10, 30)[: sizes.curve]):
        x = points("normal", int(share * sizes.n), d)
        yield "points", f"d = {d}", len(x), partial(smallest_ball, x)


def measured(sizes: Sizes, repeats: int) -> pd.DataFrame:
    """Return a table of `grows`, `whose`, `size` and median `seconds`."""
    rows = []
    for grows, whose, size, call in curves(sizes):
        (times,), _ = in_turn([call], repeats)
        rows.append({"grows": grows, "whose": whose, "size": size, "seconds": np.median(times)})
    return pd.DataFrame(rows)


def exponents(table: pd.DataFrame) -> Iterator[dict]:
    """Yield exponents of time ~ size^exponent by least squares of logarithms, +- 1 s.e."""
    for (grows, whose), curve in table.groupby(["grows", "whose"], sort=False):
        fit = stats.linregress(np.log(curve["size"]), np.log(curve["seconds"]))
        row = {"what": f"growth with {grows}", "setting": whose, "unit": "exponent"}
        low, high = fit.slope - fit.stderr, fit.slope + fit.stderr
        yield row | {"ours": fit.slope, "least": low, "most": high}


def draw(table: pd.DataFrame, note: str) -> Figure:
    """Plot one panel per quantity that grows, on logarithmic axes."""
    use_style()
    free = {"sharex": False, "sharey": False}
    options = {"kind": "line", "col_wrap": 2, "facet_kws": free, "markers": True, "dashes": False}
    table = table.assign(ms=1e3 * table["seconds"])
    panels = sns.relplot(
        table, x="size", y="ms", col="grows", hue="whose", style="whose", **options
    )
    panels.set(xscale="log", yscale="log").set_titles("time over {col_name}")
    for axis in (axis for ax in panels.axes for axis in (ax.xaxis, ax.yaxis)):
        axis.set_major_locator(LogLocator(subs=(1, 3)))
        axis.set_major_formatter(EngFormatter(sep=""))
        axis.set_minor_formatter(NullFormatter())
    caption(panels.axes[0], f"Points: medians of a few calls. Exponents are in bench.csv. {note}")
    return panels.figure
