"""The style of all figures: the look of each objective, legends, captions."""

import textwrap
from collections.abc import Mapping
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgba
from matplotlib.ticker import MaxNLocator


class Look(NamedTuple):
    """How an objective looks; the marker is for printing in grey and for colour-blind readers."""

    label: str
    color: str  # a colour, or with a parameter a colour map, darker for larger values
    marker: str
    symbol: str = ""  # of the parameter
    grid: tuple[float, ...] = ()  # the paper's values of the parameter; shades are equally spaced


# All objectives, in the order of legends. An objective without an entry is grey, and last.
LOOKS = {
    "shannon": Look("SE", "black", "X"),
    "behavioral": Look("BE", "Blues", "o", "α", (0.2, 0.5, 0.7, 0.9, 1.5, 2.0, 3.0, 5.0)),
    "renyi": Look("RE", "OrRd", "s", "q", (0.2, 0.5, 0.7, 0.9, 1.1, 2.0, 3.0, 5.0)),
    "rnd": Look("RND", "0.25", "^"),
    "smm": Look("SMM", "0.5", "D"),
    "random": Look("random actions", "#a5854f", "P"),
    "task": Look("online", "tab:green", "*"),
}
ALPHAS, QS = LOOKS["behavioral"].grid, LOOKS["renyi"].grid

ACCENT = "#d94801"  # of highlights: distinct from blues and greys, also for colour-blind readers
REWARD_COLORS = ListedColormap(plt.get_cmap("Blues")(np.linspace(0.25, 1, 256)))  # dark: high
SHANNON: dict[str, Any] = {"linestyle": ":", "color": "black", "linewidth": 3}  # and references
_RECIPE = ["objective", "parameter", "variant"]


def use_style() -> None:
    """Set the style of all figures; call it once, in a notebook's set-up cell."""
    axes = {"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True}
    grid = {"axes.grid.axis": "y", "grid.color": "0.9", "figure.constrained_layout.use": True}
    sns.set_theme(context="talk", style="ticks", font_scale=0.8, rc={**axes, **grid})


def look(objective: str | None) -> Look:
    """Return the look of an objective, a grey one without an entry in `LOOKS`."""
    return LOOKS.get(str(objective), Look(str(objective), "0.62", "v"))


def objective_color(objective: str | None, parameter: Any = None) -> tuple:
    """Return an RGBA colour; the middle of the objective's colour map without a parameter."""
    _, color, _, _, grid = look(objective)
    if not grid:
        return to_rgba(color)
    at = np.median(grid) if pd.isna(parameter) else parameter
    return plt.get_cmap(color)(np.interp(at, grid, np.linspace(0.35, 1, len(grid))))


def objective_label(name: str | None, parameter: float | None = None, variant: str = "") -> str:
    """Return `SE`, `BE α = 0.5`, or with a dataset's variant `RE q = 2, signed`."""
    label, _, _, symbol, _ = look(name)
    if not pd.isna(parameter):
        label += f" {symbol} = {parameter:g}" if symbol else f" {parameter:g}"
    return label if pd.isna(variant) or not variant else f"{label}, {variant.replace('-', ', ')}"


def recipes(table: pd.DataFrame) -> pd.Series:
    """Return each row's label, from its `objective`, `parameter` and, if any, `variant`."""
    rows = table.reindex(columns=_RECIPE).to_numpy()
    return pd.Series([objective_label(*row) for row in rows], table.index, dtype=object)


def of(table: pd.DataFrame, hue: str = "recipe", *, lines: bool = False) -> dict[str, Any]:
    """Return seaborn's hues for a column of labels; for `lines` dashes and markers, too."""
    rows = table.drop_duplicates(hue).dropna(subset=hue).set_index(hue).reindex(columns=_RECIPE)
    rows["rank"] = [[*LOOKS, name].index(name) for name in rows["objective"]]
    rows = rows.sort_values(["rank", "parameter", "variant", hue], na_position="first")
    names, order = rows["objective"], list(rows.index)
    palette = dict(zip(order, map(objective_color, names, rows["parameter"]), strict=True))
    drawn: dict[str, Any] = {"hue": hue, "hue_order": order, "palette": palette}
    if not lines:
        return drawn
    dashes = [(1, 1) if name == "shannon" else "" for name in names]
    markers = [look(name).marker for name in names]
    return drawn | {"style": hue, "style_order": order, "dashes": dashes, "markers": markers}


def labelled(table: pd.DataFrame) -> pd.DataFrame:
    """Add each row's `recipe`, and its dataset's `label`, unique and in the order of legends.

    The label is the `recipe`, with the seed or the name if several share it; without an objective
    it is the name. Rows of the dataset `none`, of baselines, have none.
    """
    rows = table[table["dataset"] != "none"].drop_duplicates("dataset").set_index("dataset")
    recipe = recipes(rows).where(rows["objective"].notna(), rows.index)
    label = recipe
    for name in (rows.index.str.split("-").str[-1], rows.index):  # s0, else the whole name
        label = label.mask(label.duplicated(keep=False), recipe + " (" + name + ")")
    order = of(rows.assign(label=label), "label")["hue_order"]
    names, recipe = table["dataset"].map(label), table["dataset"].map(recipe)
    return table.assign(recipe=recipe, label=pd.Categorical(names, order))


def panels(count: int, width: float = 4.8, height: float = 4.5, **shared: Any) -> np.ndarray:
    """Return `count` Axes of a width and height, in rows of at most four."""
    lines = -(-count // 4)
    columns = -(-count // lines)
    size = (width * columns, height * lines)
    axes = plt.subplots(lines, columns, squeeze=False, figsize=size, **shared)[1].flatten()
    for ax in axes[count:]:
        ax.remove()
    return axes[:count]


def over_steps(table: pd.DataFrame, panel: str, **look: Any) -> np.ndarray:
    """Plot `value` over `step` as lines from 0: one Axes per value of the column `panel`.

    `look` are seaborn's options; hues and styles without an order have that of the table.
    """
    look = {f"{name}_order": table[look[name]].unique() for name in ("hue", "style")} | look
    groups = table.groupby(panel, sort=False)
    axes = panels(len(groups), 5)
    for ax, (title, rows) in zip(axes, groups, strict=True):
        sns.lineplot(rows, x="step", y="value", ax=ax, estimator=None, **look)
        ax.set(xlabel="environment steps", ylabel="", title=title.replace("_", " "))
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.xaxis.set_major_formatter("{x:,.0f}")
        from_zero(ax)
    return legend(axes)


def curves(x: Any, lines: Mapping[str, Mapping[tuple, Any]], **labels: Any) -> np.ndarray:
    """Plot `lines[title][objective, parameter]` over x: one Axes per title, SE dotted.

    `labels` are the Axes' properties, such as `xlabel`.
    """
    axes = panels(len(lines), 7, 5)
    for ax, (title, values) in zip(axes, lines.items(), strict=True):
        for recipe, y in values.items():
            dotted = SHANNON if recipe[0] == "shannon" else {}
            look = {"color": objective_color(*recipe), "label": objective_label(*recipe)}
            ax.plot(x, y, **look | dotted)
        ax.set(title=title, **labels)
    return legend(axes)


def from_zero(ax: Axes) -> None:
    """Begin or end the value axis at 0."""
    ax.axhline(0, color="none").sticky_edges.y.append(0)


def legend(axes: Any, **options: Any) -> Any:
    """Put one legend of all Axes beside the last of the first row; return the Axes."""
    rows, entries = np.atleast_2d(axes), {}
    for ax in rows.flat:
        handles, labels = ax.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
        ax.legend_ = None  # seaborn's
    options = {"loc": "upper left", "bbox_to_anchor": (1, 1), "fontsize": 13} | options
    options |= {"frameon": False, "ncols": 1 + len(entries) // 12}
    rows[0, -1].legend(entries.values(), entries.keys(), **options)
    return axes


def caption(axes: Axes, text: str) -> None:
    """Write `text` under the figure, wrapped; it is also the picture's alternative text."""
    figure, text = axes.figure.get_figure(root=True), " ".join(text.split())
    lines = textwrap.fill(text, int(figure.get_figwidth() * 11))
    figure.text(0.01, -0.02, lines, va="top", fontsize=12, color="0.25")
    # IPython reads the metadata, and screen readers the alternative text
    vars(figure)["_repr_mimebundle_"] = lambda **_: ({}, {"image/png": {"alt": text}})
