"""The paper's claims and our questions, tested on the tables of `belib.gather`.

The unit is the dataset. Noise is the spread between datasets of one recipe, pooled over the recipes
that were collected several times and taken to be equal for all.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from IPython.display import Markdown

from belib import statistics
from belib.figures.style import learner_label
from belib.gather import VOLUMETRIC, Tables
from belib.results import PAPER_TABLE_1
from belib.statistics import Interval, Means, Noise
from belib.study.claims import CLAIMS, SIDES, TEXTS, Claim
from belib.study.claims import PAPER as PAPER
from belib.study.claims import QUESTIONS as QUESTIONS
from belib.study.units import MEASURES, noise, paired, spread, units
from belib.study.units import means as means
from belib.study.units import policies as policies
from belib.study.units import recipes as recipes
from belib.study.units import spreads as spreads

TABLE_1 = {f"BE − {name}": PAPER_TABLE_1["BE"] - PAPER_TABLE_1[name] for name in PAPER_TABLE_1}
TABLE_1["BE − RE q < 2"] = TABLE_1["BE − RE"]
"""Differences of the paper's table 1."""

ONE_SIDED = {
    "order": "squared steps / noise",
    "disorder": "squared steps / noise",
    "rank": "rank correlation with ",
    "spread": "sd of datasets / of seeds",
}
"""What tests of one side estimate."""

LEVEL = 0.05
"""The chance of a verdict where there is no effect, for each claim."""

RELEVANT = 0.1
"""The difference that a study should see, as a share of the other side's mean."""

COLUMNS = ("claim", "task", "sides", "what", "value", "low", "high", "low_all", "high_all", "p")
COLUMNS += ("p_if_equal", "paper", "expected", "on_its_side", "relevant", "needed", "datasets")
COLUMNS += ("verdict",)

UNDECIDED, NOT_RUN = "undecided", "not run"


def study(
    tables: Tables,
    *,
    learner: str | None = None,
    score: str = "final",
    logarithms: bool = False,
    coverage: str = VOLUMETRIC,
    claims: Sequence[Claim] = CLAIMS,
) -> pd.DataFrame:
    """Test claims: return a row a claim, task and comparison.

    `low` to `high` is a 95 % interval; `low_all` to `high_all` allows for all rows of the claim.
    `p_if_equal` is the chance that our best is ahead where all recipes are equal, `needed` how many
    datasets of every recipe give intervals of `RELEVANT` to both sides, `paper` the paper's value.

    Args:
        learner: by default the one that learnt from most datasets.
        score: see `results.scores`.
        logarithms: of returns, whose spread need not grow with their size.
        coverage: one of `MEASURES`.
        claims: rows like those of `CLAIMS`.
    """
    learner = learner or tables.learners[0]
    if learner not in tables.learners:
        raise ValueError(f"learner must be one of {', '.join(tables.learners)}, got {learner!r}")
    values = units(tables, score, logarithms=logarithms)
    sides = {side for claim in claims for pair in claim.comparisons for side in pair.split(" − ")}
    values = values.assign(**{side: values.eval(SIDES[side]) for side in sides})
    tested = [_tested(claim, values, learner, coverage) for claim in claims]
    return pd.concat(tested, ignore_index=True).reindex(columns=[*COLUMNS])


def _tested(claim: Claim, values: pd.DataFrame, learner: str, coverage: str) -> pd.DataFrame:
    cases = list(_cases(claim, values, learner, coverage))
    rows = [_row(claim, case, len(cases)) for case in cases]
    if cases and claim.test in ("order", "disorder"):
        ratio, p = statistics.order_test(_equally_many(cases))
        rows += [{"task": "all", "what": "von Neumann ratio", "value": ratio, "p": p}]
    table = pd.DataFrame(rows or [{"what": claim.sides}]).assign(claim=claim.key)
    yes, no = ("yes", "no") if claim.key in QUESTIONS else ("reproduced", "not reproduced")
    words = {True: yes, False: no, None: UNDECIDED}
    return table.assign(verdict=words[verdict(claim, table)] if cases else NOT_RUN)


def summary(tests: pd.DataFrame) -> pd.DataFrame:
    """Return a row a claim: on how many tasks the estimate is on its side, and the verdict."""
    groups = tests.groupby("claim", sort=False)
    sides = groups["on_its_side"].agg(lambda own: f"{int(own.sum())} of {own.count()}")
    table = pd.DataFrame({"claim": [TEXTS[key] for key in sides.index]}, sides.index)
    return table.assign(on_its_side=sides.replace("0 of 0", ""), verdict=groups["verdict"].first())


def elsewhere(tables: Tables, claims: Sequence[Claim] = CLAIMS) -> pd.DataFrame:
    """Return the verdicts that differ on other returns or measures of coverage, a column each."""
    options: dict[str, dict[str, Any]] = {"main": {}, "best evaluations": {"score": "best"}}
    learnt = tables.offline[tables.offline["algorithm"].isin(tables.learners)]
    if (learnt["return"].dropna() > 0).all():
        options["logarithms"] = {"logarithms": True}
    options |= {learner_label(name): {"learner": name} for name in tables.learners[1:]}
    options |= {name: {"coverage": name} for name in MEASURES[1:] if name in tables.coverage}
    tests = {name: study(tables, **option, claims=claims) for name, option in options.items()}
    table = pd.DataFrame({name: summary(own)["verdict"] for name, own in tests.items()})
    return table[table.replace(NOT_RUN, np.nan).nunique(axis=1) > 1].reset_index()


def markdown(table: pd.DataFrame) -> Markdown:
    """Show a table as Markdown, in a notebook and in the report that is made of it."""
    cells = table.astype(object).where(table.notna(), None)
    return Markdown(cells.to_markdown(index=False, floatfmt=".3g"))


def verdict(claim: Claim, rows: pd.DataFrame) -> bool | None:
    """Return whether rows bear a claim out (True), refute it (False), or allow both (None)."""
    if claim.test in ("order", "disorder"):
        steps, p = rows["p"][:-1], rows["p"].iloc[-1]
        jumpy = (steps < LEVEL / 2 / len(steps)).any()
        # a large smooth curve has large steps, too, in all orders
        smooth = True if p < LEVEL / 2 else False if jumpy and p > 0.5 else None
        return smooth if claim.test == "order" or smooth is None else not smooth
    if claim.several:
        if (rows["p"] < LEVEL / len(rows)).any():
            return True
        small = (-rows["relevant"] < rows["low"]) & (rows["high"] < rows["relevant"])
        return False if small.all() else None
    positive = rows["expected"] > 0
    if (rows["low"].where(positive, -rows["high"]) > claim.least).all():
        return True
    below = rows["high_all"].where(positive, -rows["low_all"]) < claim.least
    return False if below.any() else None


class Case(NamedTuple):
    """A comparison on one task: the datasets whose noise is pooled, and those of the two sides."""

    units: pd.DataFrame
    what: str
    ours: pd.DataFrame
    others: pd.DataFrame


def _cases(claim: Claim, values: pd.DataFrame, learner: str, coverage: str) -> Iterator[Case]:
    """Yield the comparisons of a claim for which there are datasets."""
    measure = coverage if claim.measure == "coverage" else learner
    tables = [values[values["measure"] == measure]]
    if claim.test == "rank":
        learners = [name for name in values["measure"].unique() if name not in MEASURES]
        others = [coverage] if claim.measure == "coverage" else learners
        tables = [paired(values, learner, other) for other in others if other != learner]
    tasks = [rows for table in tables for _, rows in table.groupby("task", sort=False)]
    for rows, what in product(tasks, claim.comparisons):
        sides = what.split(" − ")
        ours, others = (rows[rows[side]] for side in (sides[0], sides[-1]))
        recipes = [1 if side == "SE" else claim.recipes for side in sides]
        few = min(len(ours), len(others)) < claim.datasets
        few |= ours["recipe"].nunique() < recipes[0] or others["recipe"].nunique() < recipes[-1]
        task, *df = rows[["task", "datasets_df", "seeds_df"]].iloc[0]
        no_noise = claim.test == "spread" and min(df) == 0
        if not (few or no_noise) and (not claim.signs or task in claim.signs):
            yield Case(rows, what, ours, others)


def _row(claim: Claim, case: Case, comparisons: int) -> dict[str, Any]:
    """Return a row of `study`, of a claim with so many comparisons."""
    task = case.units["task"].iloc[0]
    result, strict = (_estimate(claim.test, case, LEVEL / n) for n in (1, comparisons))
    expected = claim.signs.get(task, 1)
    row = {"task": task, "sides": case.what, "what": case.what, **result._asdict()}
    row |= {"low_all": strict.low, "high_all": strict.high, "expected": expected}
    row["datasets"] = f"{len(case.ours)} / {len(case.others)}"
    if not claim.several and claim.test not in ("order", "disorder"):
        row["on_its_side"] = expected * result.value > claim.least
    if claim.test in ONE_SIDED:
        other = case.units.get("against", pd.Series([""])).iloc[0]
        row |= {"what": ONE_SIDED[claim.test] + other, "datasets": str(len(case.ours))}
    if claim.test in ("best", "mean"):
        row |= _size(claim.test, case)
    if claim.test == "best":
        sides = (case.ours, case.others)
        row["what"] = " − ".join(s.groupby("recipe")["value"].mean().idxmax() for s in sides)
        row["paper"] = TABLE_1.get(case.what, {}).get(task)
    return row


def _size(test: str, case: Case) -> dict[str, float]:
    """Return the relevant difference, the datasets needed to see it, and the chance to be ahead."""
    ours, others, between = _means(case.ours), _means(case.others), noise(case.units)
    relevant = RELEVANT * abs(others.values.mean())
    if case.units["logarithm"].iloc[0]:
        relevant = np.log1p(RELEVANT)
    ours, others = (side._replace(values=np.zeros(len(side.counts))) for side in (ours, others))
    ahead = _compare("best", ours, others, Noise(1.0, 1), LEVEL).p if test == "best" else np.nan
    # one dataset of every recipe, and the noise taken as exact
    ours, others = (side._replace(counts=np.ones_like(side.counts)) for side in (ours, others))
    one = _compare(test, ours, others, between._replace(df=10_000 * bool(between.df)), LEVEL)
    needed = np.ceil((max(-one.low, one.high) / relevant) ** 2) if relevant else np.nan
    return {"relevant": relevant, "needed": np.maximum(needed, 2), "p_if_equal": ahead}


def _estimate(test: str, case: Case, level: float) -> Interval:
    """Return what a claim is about, with its interval, positive where the claim holds."""
    rows, ours = case.units, _means(case.ours)
    if test in ("best", "mean"):
        return _compare(test, ours, _means(case.others), noise(rows), level)
    if test == "rank":
        means = case.ours.groupby("recipe", sort=False)[["value", "other"]].mean()
        x, y = means["value"].to_numpy(), means["other"].to_numpy()
        return statistics.rank_correlation(x, y, confidence=1 - level)
    if test == "spread":
        between, within = spread(rows, "datasets"), spread(rows, "seeds")
        return statistics.spread_ratio(
            between, within, int(rows["seeds"].iloc[0]), confidence=1 - level
        )
    steps, p = statistics.jumps(ours, noise(rows))
    return Interval(steps, np.nan, np.nan, p)


def _compare(test: str, ours: Means, others: Means, noise: Noise, level: float) -> Interval:
    """Compare the best recipes of either side, or their means, in which each recipe counts once."""
    if test == "best":
        return statistics.best_against_best(ours, others, noise, confidence=1 - level)
    values = np.concatenate([ours.values, others.values])
    counts = np.concatenate([ours.counts, others.counts])
    sizes = len(ours.counts), len(others.counts)
    weights = np.repeat([1 / sizes[0], -1 / sizes[1]], sizes)
    return statistics.contrast(Means(values, counts), weights, noise, confidence=1 - level)


def _means(rows: pd.DataFrame) -> Means:
    """Return the means of recipes over their datasets."""
    groups = rows.groupby("recipe", sort=False)["value"]
    return Means(groups.mean().to_numpy(), groups.size().to_numpy())


def _equally_many(cases: list[Case]) -> np.ndarray:
    """Return means (tasks, parameters) of equally many datasets, so that noise is equal."""
    groups = [case.ours.sort_values("collection").groupby("parameter") for case in cases]
    equal = [own.head(own.size().min()).groupby("parameter")["value"].mean() for own in groups]
    return pd.concat(equal, axis=1).dropna().T.to_numpy()
