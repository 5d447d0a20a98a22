"""The paper's claims about coverage, and what goes with it; its own measure is the volumetric one.

A dataset has one value and no learner; luck is the spread between datasets of one recipe.
"""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from belib.coverage import FEWEST_RECIPES
from belib.report.findings import (
    ALL_EQUAL,
    FEWEST_OF_FAMILY,
    LEVEL,
    NO_ORDER,
    NOT_RUN,
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
    row,
)
from belib.report.tables import Cell, Choice, Tables, coverage_cells, exploring, plain, side_by_side
from belib.statistics import rank_correlation

SOURCE = "appendix, volumetric coverage"

COVERAGE_ALONE = (
    "coverage-be",
    "coverage-q",
    "coverage-alpha",
    "coverage-rnd",
    "coverage-alpha-all",
)
"""Keys of statements that no returns bear on."""

OTHER_MEASURES = ("volumetric_scaled", "net", "shannon")
"""Beside the paper's own; no verdict hangs on them. (Cells of equal mass favour the many.)"""


def families(tables: Tables) -> Finding:
    """BE against RE, each parameter counting once."""
    statement = Statement(
        "coverage-be", "BE datasets cover more than RE datasets on average", SOURCE
    )
    sides = plain("behavioral"), plain("renyi")
    return _covers(tables, statement, *sides, "BE − RE", fewest=FEWEST_OF_FAMILY)


def small_q(tables: Tables) -> Finding:
    """RE with q below 1 against q above."""
    text = "RE datasets with q < 1 cover more than those with q > 1"
    sides = plain("renyi", high=1), plain("renyi", low=1)
    return _covers(tables, Statement("coverage-q", text, SOURCE), *sides, "q < 1 − q > 1")


def small_alpha(tables: Tables) -> Finding:
    """BE with alpha below 1 against alpha above, which the paper says of Quadruped only."""
    text = "On Quadruped, BE datasets with α < 1 cover more than those with α > 1"
    statement = Statement("coverage-alpha", text, SOURCE)
    return _small_alpha(_of_domain(tables, "quadruped"), statement)


def small_alpha_anywhere(tables: Tables, words: tuple[str, str]) -> Finding:
    """The same on all domains that were run, which the paper does not say."""
    text = "Do BE datasets with α < 1 cover more than those with α > 1, on all domains run?"
    statement = Statement("coverage-alpha-all", text, "the paper says it of Quadruped only", words)
    return _small_alpha(tables, statement)


def _small_alpha(tables: Tables, statement: Statement) -> Finding:
    sides = plain("behavioral", high=1), plain("behavioral", low=1)
    return _covers(tables, statement, *sides, "α < 1 − α > 1")


def rnd_covers_most(tables: Tables) -> Finding:
    """RND on Walker against the best of all others, which are more tries."""
    text = "On Walker, RND covers more than SE, SMM and every BE and RE"
    statement = Statement("coverage-rnd", text, SOURCE)
    ours, others = plain("rnd"), plain(("shannon", "behavioral", "renyi", "smm"))
    there = having(coverage_cells(_of_domain(tables, "walker")), ours, others)
    if not there:
        return statement.not_run("datasets of RND and others on Walker")
    (cell,) = there
    labels, means = cell.groups(others)
    what = f"RND − {labels[means.values.argmax()]}"
    found = row(cell, what, best(ours, others)(cell, 1 - LEVEL), ours, others)
    words = (
        f"RND covers {'more' if found['value'] > 0 else 'less'} than the best of the others. Were "
        f"all recipes equal it would be the best {luck(cell, ours, others):.0%} of the time."
    )
    verdict = on_all(statement, there, best(ours, others))
    decide = datasets_needed(there, ours, others) if verdict == UNDECIDED else ""
    table, sides = pd.DataFrame([found]), [found["value"] > 0]
    return Finding(statement, verdict, words, decide, table, ALL_EQUAL, sides)


def _of_domain(tables: Tables, domain: str) -> Tables:
    return replace(tables, coverage=tables.coverage[tables.coverage["domain"] == domain])


def _covers(
    tables: Tables,
    statement: Statement,
    ours: Choice,
    others: Choice,
    what: str,
    fewest: int = 1,
) -> Finding:
    found = compared(statement, coverage_cells(tables), ours, others, what, "domains", fewest)
    if found.verdict == NOT_RUN:
        return found
    quantity = difference(ours, others)
    cells = [each for name in OTHER_MEASURES for each in coverage_cells(tables, name)]
    estimates = [quantity(cell, 1 - LEVEL) for cell in having(cells, ours, others)]
    agree, clear = on([e.value > 0 for e in estimates]), on([e.low > 0 for e in estimates])
    against = on([e.high < 0 for e in estimates])
    words = (
        f"{found.words} Other measures ({', '.join(OTHER_MEASURES)}), on which no verdict hangs, "
        f"have it positive {agree} pairs of measure and domain, with an interval above zero "
        f"{clear}, below zero {against}."
    )
    return replace(found, words=words)


def coverage_and_returns(tables: Tables, cells: Sequence[Cell]) -> Finding:
    """The rank correlation over recipes of volumetric coverage and returns."""
    text = "Datasets that cover more (volumetric) are better to learn from, on all tasks"
    statement = Statement("coverage-returns", text, "appendix, as a suggestion")
    covered = {cell.domain: cell for cell in coverage_cells(tables)}
    there = [cell for cell in cells if cell.domain in covered]
    pairs = {cell.name: side_by_side(covered[cell.domain], cell) for cell in there}
    there = [cell for cell in there if len(pairs[cell.name]) >= FEWEST_RECIPES]
    if not there:
        return statement.not_run(f"{FEWEST_RECIPES} recipes with coverage and returns")
    quantity = lambda cell, c: rank_correlation(*pairs[cell.name].to_numpy().T, confidence=c)  # noqa: E731
    rows = [row(cell, "Spearman's ρ", quantity(cell, 1 - LEVEL), exploring) for cell in there]
    words = (
        f"Over {by_domain(there, lambda cell: str(len(pairs[cell.name])))} recipes Spearman's ρ is "
        "positive "
        f"{on([each['value'] > 0 for each in rows])} tasks; its interval lies above zero "
        f"{on([each['low'] > 0 for each in rows])}."
    )
    verdict = on_all(statement, there, quantity)
    decide = "More recipes, or another domain." if verdict == UNDECIDED else ""
    sides = [each["value"] > 0 for each in rows]
    return Finding(statement, verdict, words, decide, pd.DataFrame(rows), NO_ORDER, sides)
