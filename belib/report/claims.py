"""The paper's claims, a function each, tested on the committed tables.

A value is that of a dataset, the mean over its learner seeds: statements about objectives are
statements about datasets. Where an objective has one dataset only, luck is taken to be as large as
between the datasets of those that have several (`Cell.noise`).
"""

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from belib.figures.style import task_label
from belib.report.findings import (
    ALL_EQUAL,
    LEVEL,
    UNDECIDED,
    Finding,
    Statement,
    best,
    by_domain,
    compared,
    datasets_needed,
    difference,
    having,
    luck,
    on,
    on_all,
    opposite,
    relevant,
    row,
    times_as_many,
)
from belib.report.tables import (
    Cell,
    Choice,
    longer,
    plain,
)
from belib.results import PAPER_TABLE_1
from belib.statistics import Estimate, jumps, order_test

LEARNT_RENYI = plain("renyi", high=2)
"""RE with the q from whose datasets the paper learns; those of 2, 3 and 5 it only collects."""

MORE_DATA = {
    "walker_stand": True,
    "walker_walk": False,
    "walker_run": True,
    "quadruped_walk": False,
    "quadruped_run": False,
}
"""Where the paper's TD3 gained by three million steps of SE instead of 500,000."""

NAMES = {
    "behavioral": "BE",
    "renyi": "RE",
    "shannon": "SE",
    "rnd": "RND",
    "smm": "SMM",
    "random": "random actions",
}


def family(objective: str) -> Choice:
    """All plain datasets of an objective from which the paper learns."""
    return LEARNT_RENYI if objective == "renyi" else plain(objective)


def beats(cells: Sequence[Cell], other: str) -> Finding:
    """BE's best alpha against the recipe of another objective."""
    text = f"BE (its best α) does better than {NAMES[other]} on all tasks"
    statement = Statement(f"be-{other}", text, "section 5, table 1")
    return _best(statement, cells, plain("behavioral"), plain(other), NAMES[other])


def beats_renyi(cells: Sequence[Cell]) -> Finding:
    """BE's best alpha against RE's best q, each task in the direction that the paper found."""
    text = "BE (its best α) does better than RE (its best q) on 4 of 5 tasks, all but Walker run"
    statement = Statement("be-renyi", text, "section 5, table 1")
    behind = PAPER_TABLE_1.index[PAPER_TABLE_1["BE"] < PAPER_TABLE_1["RE"]]
    known = [cell for cell in cells if cell.name in PAPER_TABLE_1.index]
    return _best(statement, known, plain("behavioral"), LEARNT_RENYI, "RE", behind)


def _best(
    statement: Statement,
    cells: Sequence[Cell],
    ours: Choice,
    others: Choice,
    name: str,
    behind: Collection[str] = (),
) -> Finding:
    """Best against best; the paper has BE behind in the cells named."""
    there = having(cells, ours, others)
    if not there:
        return statement.not_run(f"datasets of BE and {name}")
    ahead = best(ours, others)
    claimed = lambda cell, c: (opposite(ahead) if cell.name in behind else ahead)(cell, c)  # noqa: E731
    rows = [_best_row(cell, ours, others, name) for cell in there]
    best_of = "'s best q" if name == "RE" else ""
    won, clear = ([each[key] > 0 for each in rows] for key in ("value", "low"))
    by_luck = by_domain(there, lambda cell: f"{luck(cell, ours, others):.0%}")
    words = (
        f"BE's best α is above {name}{best_of} {on(won)} tasks. Were all recipes equal it would "
        f"be there {by_luck} of the time, as the best of more tries. The "
        f"interval that pays for this choice lies above zero {on(clear)} tasks."
    )
    verdict = on_all(statement, there, claimed)
    decide = datasets_needed(there, ours, others) if verdict == UNDECIDED else ""
    sides = [claimed(cell, 1 - LEVEL).value > 0 for cell in there]
    return Finding(statement, verdict, words, decide, pd.DataFrame(rows), ALL_EQUAL, sides)


def _best_row(cell: Cell, ours: Choice, others: Choice, name: str) -> dict:
    best_recipes = []
    for choice in (ours, others):
        labels, means = cell.groups(choice)
        best_recipes.append(f"{labels[means.values.argmax()]} ({means.values.max():.0f})")
    found = row(cell, " − ".join(best_recipes), best(ours, others)(cell, 1 - LEVEL), ours, others)
    known = PAPER_TABLE_1.reindex([cell.name])
    return {**found, "paper": float((known["BE"] - known[name]).iloc[0])}


def smooth_in_alpha(cells: Sequence[Cell]) -> Finding:
    """Whether neighbouring alphas have returns more alike than the order of chance."""
    text = "Returns on BE datasets vary smoothly in α"
    return _ordered(Statement("smooth-alpha", text, "section 5"), cells, "behavioral", smooth=True)


def unstable_in_q(cells: Sequence[Cell]) -> Finding:
    """Whether neighbouring q differ by more than datasets of one recipe, without order."""
    text = "Returns on RE datasets are unstable in q"
    return _ordered(Statement("unstable-q", text, "section 5"), cells, "renyi", smooth=False)


def _ordered(
    statement: Statement, cells: Sequence[Cell], objective: str, *, smooth: bool
) -> Finding:
    """Smooth: the order of the parameter says something.

    Unstable: steps are larger than luck's, and no smaller than in half of all other orders.
    """
    choice = plain(objective)
    there = having(cells, choice, fewest=4)
    if not there:
        return statement.not_run(f"{objective} datasets of four parameters")
    found = [jumps(cell.groups(choice)[1], cell.noise) for cell in there]
    ratio, p_order = order_test(_equally_many(there, choice))
    side = LEVEL / 2  # a verdict can be wrong on either
    jumpy = [p < side / len(there) for _, p in found]
    is_smooth = p_order < side
    is_unstable = any(jumpy) and p_order > 0.5  # a large smooth curve has large steps, too
    holds, fails = (is_smooth, is_unstable) if smooth else (is_unstable, is_smooth)
    verdict = statement.words[0] if holds else statement.words[1] if fails else UNDECIDED
    rows = [
        row(cell, "squared steps over luck's", Estimate(jump, np.nan, np.nan, p), choice)
        for cell, (jump, p) in zip(there, found, strict=True)
    ]
    words = (
        f"Von Neumann's ratio is {ratio:.2g} (about 2 where the order of the parameter says "
        f"nothing, towards 0 where all is smooth); {p_order:.1%} of all orders have one as low, "
        f"where smooth means {side:.1%} or less and unstable more than half. Neighbours differ by "
        f"more than datasets of one recipe do {on(jumpy)} tasks (p below {side / len(there):.2g})."
    )
    decide = (
        "More datasets of each parameter, so that steps stand out of the spread between datasets "
        "of one recipe."
    )
    decide = decide if verdict == UNDECIDED else ""
    return Finding(statement, verdict, words, decide, pd.DataFrame(rows), "steps of luck alone")


def _equally_many(cells: Sequence[Cell], choice: Choice) -> np.ndarray:
    """Means of equally many datasets a parameter, so that all are equally noisy: (T, P)."""
    rows = []
    for cell in cells:
        own = cell.units[choice(cell.units)].sort_values("seed")
        groups = own.groupby("parameter")
        few = groups.head(groups.size().min())
        rows.append(few.groupby("parameter")["value"].mean())
    return pd.concat(rows, axis=1).dropna().T.to_numpy()


def large_q_is_poor(cells: Sequence[Cell]) -> Finding:
    """RE with q < 1, each counting once, against q > 1."""
    statement = Statement("large-q", "Returns on RE datasets with q > 1 are poor", "section 5")
    return compared(
        statement, cells, plain("renyi", high=1), plain("renyi", low=1), "q < 1 − q > 1"
    )


def more_data(cells: Sequence[Cell]) -> Finding:
    """The datasets of more steps against those of SE, each task in the direction of the paper."""
    text = (
        "Six times as many steps of SE are better for TD3 on Walker stand and run, and worse on "
        "Walker walk and on Quadruped"
    )
    statement = Statement("more-data", text, "section 5, the 3M datasets")
    many, few = longer("shannon"), plain("shannon")
    there = having([cell for cell in cells if cell.name in MORE_DATA], many, few)
    if not there:
        return statement.not_run("a dataset of SE with more steps than the others")
    ahead = difference(many, few)
    claimed = lambda cell, c: (ahead if MORE_DATA[cell.name] else opposite(ahead))(cell, c)  # noqa: E731
    rows = [row(c, "more − SE", ahead(c, 1 - LEVEL), many, few) for c in there]
    verdict = on_all(statement, there, claimed)
    missing = ", ".join(map(task_label, sorted({*MORE_DATA} - {cell.name for cell in there})))
    words = f"More steps give more return {on([each['value'] > 0 for each in rows])} tasks."
    words += f" Not run: {missing}." if missing else ""
    much = [relevant(cell, few) for cell in there]
    decide = times_as_many(rows, much) if verdict == UNDECIDED else ""
    sides = [claimed(cell, 1 - LEVEL).value > 0 for cell in there]
    return Finding(statement, verdict, words, decide, pd.DataFrame(rows), sides=sides)
