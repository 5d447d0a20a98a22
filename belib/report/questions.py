"""Our own questions, which the paper's design does not answer, a function each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import pandas as pd

from belib.coverage import FEWEST_RECIPES
from belib.figures.style import learner_label, task_label
from belib.report.claims import NAMES, family
from belib.report.findings import (
    ALL_EQUAL,
    FEWEST_OF_FAMILY,
    LEVEL,
    NO,
    NO_ORDER,
    UNDECIDED,
    YES,
    Finding,
    Statement,
    best,
    compared,
    datasets_needed,
    difference,
    freedom,
    having,
    on,
    on_all,
    on_any,
    relevant,
    row,
    spreads_in_words,
    times_as_many,
)
from belib.report.tables import Cell, exploring, plain, rescaled, side_by_side, unscaled
from belib.statistics import rank_correlation, spread_ratio

ASKED = {"source": "not asked in the paper", "words": (YES, NO)}


AVERAGES = {
    "shannon": (
        "a figure of the appendix shows averages; section 5 has SE competitive on Walker walk with "
        "TD3, and equal on Quadruped run"
    ),
    "renyi": "a figure of the appendix shows averages; section 5 has RE worse on Quadruped run",
}


def spread(cells: Sequence[Cell]) -> Finding:
    """The sd between datasets of one recipe over that between learner seeds on one dataset."""
    text = "Do datasets of one objective differ by more than learner seeds on one do, on all tasks?"
    statement = Statement("spread", text, **ASKED)
    there = [cell for cell in cells if cell.between.df and cell.within.df]
    if not there:
        return statement.not_run("two datasets of one recipe, and two learner seeds")
    quantity = lambda cell, c: spread_ratio(cell.between, cell.within, cell.seeds, confidence=c)  # noqa: E731
    rows = [row(c, "sd of datasets / of seeds", quantity(c, 1 - LEVEL), exploring) for c in there]
    both = "; ".join(spreads_in_words(there))
    words = (
        f"Standard deviations of datasets' means, and of learner seeds on one dataset: {both}. "
        f"With {there[0].seeds} seeds a mean, equal datasets would have "
        f"{there[0].seeds ** -0.5:.2f} "
        "of the seeds' spread; the rest is their own, whose ratio to the seeds' stands below "
        "and would have to lie above 1. An F test finds such a part "
        f"{on([r['p'] < LEVEL for r in rows])} tasks ({freedom(there)} between datasets)."
    )
    verdict = on_all(statement, there, quantity, above=1.0)
    decide = "More datasets of more recipes." if verdict == UNDECIDED else ""
    sides = [each["value"] > 1 for each in rows]
    table = pd.DataFrame(rows)
    return Finding(statement, verdict, words, decide, table, "no part of their own", sides)


def average(cells: Sequence[Cell], other: str) -> Finding:
    """BE on average over its alphas against another objective on average."""
    text = f"Is BE, on average over its α, better than {NAMES[other]} on all tasks?"
    statement = Statement(f"average-{other}", text, AVERAGES[other], (YES, NO))
    families = [family("behavioral"), *([family(other)] if other == "renyi" else [])]
    there = having(cells, *families, fewest=FEWEST_OF_FAMILY)
    return compared(statement, there, family("behavioral"), family(other), f"BE − {NAMES[other]}")


def objectives_differ(cells: Sequence[Cell]) -> Finding:
    """Every two objectives on average over their parameters, those with several datasets each.

    Nothing is chosen, so that intervals are narrower than a best recipe's; the number of pairs is
    allowed for. The table has those with a p below the level.
    """
    statement = Statement("objectives", "Do objectives differ, each on average?", **ASKED)
    pairs = [
        (cell, f"{NAMES[one]} − {NAMES[other]}", family(one), family(other))
        for cell in cells
        for one, other in combinations(NAMES, 2)
        if all(_datasets(cell, name) > 1 for name in (one, other))
    ]
    found = _any_difference(statement, pairs)
    if not len(found.rows):
        return statement.not_run("two objectives with two datasets each")
    shown = found.rows[found.rows["p"] < LEVEL].reset_index(drop=True)
    few = f"Those {len(shown)} with p below {LEVEL} are listed" if len(shown) else "None has p"
    words = f"{found.words} {few}{'' if len(shown) else f' below {LEVEL}'}."
    return replace(found, words=words, rows=shown)


def _datasets(cell: Cell, objective: str) -> int:
    return int(family(objective)(cell.units).sum())


def better_than_random(cells: Sequence[Cell]) -> Finding:
    """The best exploring recipe against data of random actions."""
    text = "Is any exploring dataset better to learn from than random actions, on all tasks?"
    statement = Statement("random", text, **ASKED)
    there = having(cells, exploring, plain("random"))
    if not there:
        return statement.not_run("exploring datasets, and one of random actions")
    quantity = best(exploring, plain("random"))
    rows, above = [], []
    for cell in there:
        labels, means = cell.groups(exploring)
        random = cell.groups(plain("random"))[1].values[0]
        what = f"{labels[means.values.argmax()]} ({means.values.max():.0f}) − random ({random:.0f})"
        rows.append(row(cell, what, quantity(cell, 1 - LEVEL), exploring, plain("random")))
        above.append(f"{task_label(cell.name)} {sum(means.values > random)} of {len(labels)}")
    words = f"Recipes with a mean above that of random data: {', '.join(above)}."
    verdict = on_all(statement, there, quantity)
    decide = datasets_needed(there, exploring, plain("random")) if verdict == UNDECIDED else ""
    sides = [each["value"] > 0 for each in rows]
    return Finding(statement, verdict, words, decide, pd.DataFrame(rows), ALL_EQUAL, sides)


def size_of_reward(cells: Sequence[Cell]) -> Finding:
    """BE with its reward divided by its running size against BE as it is, an alpha at a time."""
    text = "Does the size of BE's reward matter, its shape unchanged?"
    pairs = [
        (cell, f"α = {alpha:g}: rms − none", rescaled(alpha), unscaled(alpha))
        for cell in having(cells, rescaled(), unscaled())
        for alpha in _alphas(cell)
        if having([cell], rescaled(alpha), unscaled(alpha))
    ]
    return _any_difference(Statement("size", text, **ASKED), pairs)


def shape_of_reward(cells: Sequence[Cell]) -> Finding:
    """Alphas against each other where all rewards have one size."""
    text = "Does the shape of BE's reward (its α) matter, its size made equal?"
    pairs = [
        (cell, f"rms: α = {one:g} − {other:g}", rescaled(one), rescaled(other))
        for cell in having(cells, rescaled(), fewest=2)
        for one, other in combinations(_alphas(cell), 2)
    ]
    return _any_difference(Statement("shape", text, **ASKED), pairs)


def _alphas(cell: Cell) -> list[float]:
    return sorted(cell.units.loc[rescaled()(cell.units), "parameter"].unique())


def _any_difference(statement: Statement, pairs: Sequence[tuple]) -> Finding:
    """Whether any of the pairs (cell, what, ours, others) differs."""
    if not pairs:
        return statement.not_run("datasets whose reward was divided by its running size")
    found = [difference(ours, others)(cell, 1 - LEVEL) for cell, _, ours, others in pairs]
    rows = [
        row(cell, what, each, ours, others)
        for (cell, what, ours, others), each in zip(pairs, found, strict=True)
    ]
    much = [relevant(cell, others) for cell, _, _, others in pairs]
    verdict = on_any(statement, found, much)
    bound = LEVEL / len(pairs)
    words = (
        f"The largest of {len(pairs)} differences is {max(abs(e.value) for e in found):.3g}; "
        f"p-values below {bound:.2g}, which allows for their number: "
        f"{on([each.p < bound for each in found])}."
    )
    decide = times_as_many(rows, much) if verdict == UNDECIDED else ""
    return Finding(statement, verdict, words, decide, pd.DataFrame(rows))


def learners_agree(cells: Sequence[Cell], others: Mapping[str, Sequence[Cell]]) -> Finding:
    """Rank correlations over recipes of the returns of two learners."""
    text, source = (
        "Do learners agree on which dataset is good?",
        "section 5: trends hold across all",
    )
    statement = Statement("learners", text, source, (YES, NO))
    pairs = [
        (cell, learner, side_by_side(cell, other))
        for learner, theirs in others.items()
        for cell in cells
        for other in theirs
        if other.name == cell.name
    ]
    pairs = [each for each in pairs if len(each[2]) >= FEWEST_RECIPES]
    if not pairs:
        return statement.not_run(f"a second learner on {FEWEST_RECIPES} of the recipes")
    quantity = lambda pair, c: rank_correlation(*pair[-1].to_numpy().T, confidence=c)  # noqa: E731
    found = [quantity(pair, 1 - LEVEL) for pair in pairs]
    rows = [
        {
            **row(cell, f"Spearman's ρ with {learner_label(learner)}", each),
            "datasets": str(len(shared)),
        }
        for (cell, learner, shared), each in zip(pairs, found, strict=True)
    ]
    words = f"The interval of ρ lies above zero {on([each.low > 0 for each in found])} cases."
    verdict = on_all(statement, pairs, quantity)
    decide = "The other learners on all datasets." if verdict == UNDECIDED else ""
    sides = [each.value > 0 for each in found]
    return Finding(statement, verdict, words, decide, pd.DataFrame(rows), NO_ORDER, sides)
