"""What a statement looks like once it was tested, and the rules by which verdicts are given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import pandas as pd

from belib.figures.style import task_label
from belib.report.tables import Cell, Choice
from belib.statistics import (
    Estimate,
    Means,
    Noise,
    best_against_best,
    contrast,
    repetitions_needed,
)

REPRODUCED, NOT = "reproduced", "not reproduced"
YES, NO = "yes", "no"
UNDECIDED, NOT_RUN = "undecided at this scale", "not run"

LEVEL = 0.05
"""The chance of a verdict where there is nothing, for each statement on its own."""

RELEVANT = 0.1
"""The difference, as a share of the other side's mean, that a study should be able to see."""

FEWEST_OF_FAMILY = 3
"""Parameters of an objective that can stand for it on average."""

Quantity = Callable[[Cell, float], Estimate]
"""What is estimated in a cell, at a confidence; positive where the statement holds."""

ALL_EQUAL = "all recipes equal"
"""What a p-value is the chance under where the best of several was chosen."""

NO_ORDER = "no correlation"

Case = TypeVar("Case")
"""A cell, or several."""

NO_NOISE = "Two or more datasets of some recipe: without them there is no measure of luck."


@dataclass(frozen=True)
class Statement:
    """What is claimed or asked."""

    key: str
    text: str
    source: str
    """Where the paper says so, or that it does not ask."""
    words: tuple[str, str] = (REPRODUCED, NOT)
    """The verdicts where the data bear it out, and where they refute it."""

    def not_run(self, needed: str) -> "Finding":
        """The finding where what is needed is missing."""
        return Finding(self, NOT_RUN, "Nothing in these tables tests it.", f"It takes {needed}.")


@dataclass(frozen=True)
class Finding:
    """A statement, the verdict, what was found, and what would decide it.

    `rows` has a row a comparison: `where` (a task or measure), `what`, `value`, `low`, `high` (95 %
    interval), `p`, `datasets` (of either side), `seeds` (of the learner, in each value), and may
    have what the `paper` found. `null` is what `p` is the chance under; `sides`, where the claim
    has a side, has for each task whether the estimate is on it.
    """

    statement: Statement
    verdict: str
    words: str
    decide: str = ""
    rows: pd.DataFrame = field(default_factory=pd.DataFrame)
    null: str = "no difference"
    sides: Sequence[bool] = ()


def row(cell: Cell, what: str, found: Estimate, *sides: Choice) -> dict:
    """A row of `Finding.rows`."""
    counts = [str(int(side(cell.units).sum())) for side in sides]
    known = {"datasets": " / ".join(counts), "seeds": cell.seeds}
    return {"where": cell.name, "what": what, **found._asdict(), **known}


def having(cells: Sequence[Cell], *choices: Choice, fewest: int = 1) -> list[Cell]:
    """The cells in which each choice finds so many recipes."""
    return [cell for cell in cells if all(len(cell.groups(c)[0]) >= fewest for c in choices)]


def best(ours: Choice, others: Choice) -> Quantity:
    """The best mean of some recipes less that of others, by `statistics.best_against_best`."""

    def quantity(cell: Cell, confidence: float) -> Estimate:
        (_, one), (_, two) = cell.groups(ours), cell.groups(others)
        return best_against_best(one, two, cell.noise, confidence=confidence)

    return quantity


def difference(ours: Choice, others: Choice, *, times: float = 1.0) -> Quantity:
    """`times` the mean over some recipes, each counting once, less the mean over others."""

    def quantity(cell: Cell, confidence: float) -> Estimate:
        (_, one), (_, two) = cell.groups(ours), cell.groups(others)
        groups = Means(
            np.concatenate([one.values, two.values]), np.concatenate([one.counts, two.counts])
        )
        sizes = len(one.counts), len(two.counts)
        weights = np.repeat([times / sizes[0], -1 / sizes[1]], sizes)
        return contrast(groups, weights, cell.noise, confidence=confidence)

    return quantity


def opposite(quantity: Quantity) -> Quantity:
    """The same with its sign changed."""

    def changed(cell: Cell, confidence: float) -> Estimate:
        found = quantity(cell, confidence)
        return found._replace(value=-found.value, low=-found.high, high=-found.low)

    return changed


def on_all(
    statement: Statement,
    cells: Sequence[Case],
    quantity: Callable[[Case, float], Estimate],
    *,
    above: float = 0.0,
) -> str:
    """The verdict on a statement that all cells, or other cases, should bear out.

    Borne out where every cell's 95 % interval lies above `above`; refuted where one lies below, at
    a confidence that allows for as many tries as there are cells; undecided otherwise.
    """
    if all(quantity(cell, 1 - LEVEL).low > above for cell in cells):
        return statement.words[0]
    if any(quantity(cell, 1 - LEVEL / len(cells)).high < above for cell in cells):
        return statement.words[1]
    return UNDECIDED


def on_any(statement: Statement, found: Sequence[Estimate], relevant: Sequence[float]) -> str:
    """The verdict on whether any of several differences is there.

    It is where a p-value is below the level over their number; it is not where all 95 % intervals
    lie within what is `relevant`.
    """
    if any(each.p < LEVEL / len(found) for each in found):
        return statement.words[0]
    pairs = zip(found, relevant, strict=True)
    if all(-much < each.low and each.high < much for each, much in pairs):
        return statement.words[1]
    return UNDECIDED


def luck(cell: Cell, ours: Choice, others: Choice) -> float:
    """The chance that the best of our recipes is above the best of others where all are equal."""
    counts = [cell.groups(choice)[1].counts for choice in (ours, others)]
    one, two = (Means(np.zeros(len(each)), each) for each in counts)
    return best_against_best(one, two, Noise(1.0, 1)).p


def compared(
    statement: Statement,
    cells: Sequence[Cell],
    ours: Choice,
    others: Choice,
    what: str,
    places: str = "tasks",
    fewest: int = 1,
) -> Finding:
    """Whether the mean over some recipes is above that over others, each recipe counting once.

    Where there are at least so many recipes of either side.
    """
    there = having(cells, ours, others, fewest=fewest)
    if not there:
        return statement.not_run(f"datasets for {what}")
    quantity = difference(ours, others)
    rows = [row(cell, what, quantity(cell, 1 - LEVEL), ours, others) for cell in there]
    verdict = on_all(statement, there, quantity)
    clear, against = on([r["low"] > 0 for r in rows]), on([r["high"] < 0 for r in rows])
    words = (
        f"The difference {what} is positive {on([r['value'] > 0 for r in rows])} {places}; its "
        f"interval lies above zero {clear}, below zero {against}."
    )
    much = [relevant(cell, others) for cell in there]
    decide = times_as_many(rows, much) if verdict == UNDECIDED else ""
    sides = [r["value"] > 0 for r in rows]
    return Finding(statement, verdict, words, decide, pd.DataFrame(rows), sides=sides)


def relevant(cell: Cell, others: Choice) -> float:
    """The difference that a study should be able to see, from the mean of a side's recipes."""
    if cell.logarithms:
        return float(np.log1p(RELEVANT))
    return RELEVANT * abs(float(cell.groups(others)[1].values.mean()))


def times_as_many(rows: Sequence[dict], much: Sequence[float]) -> str:
    """How many times as many datasets make intervals as narrow as what is `relevant`, in words."""
    halves = [(each["high"] - each["low"]) / 2 for each in rows]
    if not np.isfinite(halves).all():
        return NO_NOISE
    if not all(much):
        return "Data from which something is learnt: a mean is zero."
    wide = [half / each for half, each in zip(halves, much, strict=True)]
    if max(wide) <= 1:
        return f"Larger differences: intervals are within {RELEVANT:.0%} of the means already."
    return (
        f"Intervals of {RELEVANT:.0%} to both sides take about {max(2, round(max(wide) ** 2))} "
        f"times as many datasets ({task_label(rows[int(np.argmax(wide))]['where'])}, the noisiest)."
    )


def datasets_needed(cells: Sequence[Cell], ours: Choice, others: Choice) -> str:
    """How many datasets of each recipe would show a `RELEVANT` difference of bests, in words."""
    needed = {}
    for cell in cells:
        (_, one), (_, two) = cell.groups(ours), cell.groups(others)
        much = relevant(cell, others)
        if cell.noise.df and much:
            sizes = len(one.counts), len(two.counts)
            needed[cell.name] = repetitions_needed(*sizes, cell.noise, much)
    if not needed:
        return NO_NOISE
    each = ", ".join(f"{count} ({task_label(name)})" for name, count in needed.items())
    return (
        f"To tell a difference of {RELEVANT:.0%} from luck, with the spread between datasets that "
        f"was found here, takes about this many datasets of each recipe: {each}."
    )


def by_domain(cells: Sequence[Cell], words: Callable[[Cell], str]) -> str:
    """What is said of the cells of each domain, once where all agree: `7 (Walker), 4 (Hopper)`."""
    said = {cell.domain: words(cell) for cell in cells}
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return ", ".join(f"{each} ({domain.capitalize()})" for domain, each in said.items())


def freedom(cells: Sequence[Cell]) -> str:
    """The degrees of freedom of the spread between datasets, in words."""
    return f"{by_domain(cells, lambda cell: str(cell.noise.df))} degrees of freedom"


def spreads_in_words(cells: Sequence[Cell]) -> list[str]:
    """For each task the sd between datasets of one recipe, and between learner seeds on one."""
    return [
        f"{task_label(cell.name)} {number(cell.between.sd)} and {number(cell.within.sd)}"
        for cell in cells
    ]


def number(value: float) -> str:
    """Whole numbers from 10 on, two digits below; `unknown` for NaN."""
    if np.isnan(value):
        return "unknown"
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"


def on(holds: Sequence[bool]) -> str:
    """`on 2 of 3`."""
    return f"on {sum(map(bool, holds))} of {len(holds)}"
