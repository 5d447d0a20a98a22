"""The comparisons of docs/study.md and the paper's claims, tested on the tables of `belib.gather`.

The unit is the dataset. Its value on a task is the mean return over learner seeds, which are the
same for all datasets. A measure of coverage has the domain as its task. Variances may differ.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import Markdown
from scipy import stats

from belib import results, statistics
from belib.figures import style
from belib.gather import MEASURES, Tables
from belib.statistics import LEVEL, Difference, best_of, compare, rank_correlation, spread_ratio
from belib.study.claims import CLAIMS, PRIMARY, SIDES, TABLE_1, WITHOUT_DISTANCES, Claim

FEWEST_RECIPES = 5  # whose ranks or whose spread are compared
NOT_RUN, UNDECIDED = "not run", "undecided"
_DATASET, _RECIPE = ["domain", "dataset"], ["objective", "parameter", "variant"]
_KNOWN = [*_DATASET, *_RECIPE, "recipe", "intrinsic_reward_scale", "collection", "main"]


def recipes(tables: Tables, variant: str = "") -> pd.DataFrame:
    """Return the datasets in the order of their `recipe`, such as `BE α = 0.5, observation`.

    `collection` is the seed of the collection. `main` marks the datasets to compare: those of one
    `variant` (such as "observation"), and those without variant whose objective needs no distances.
    """
    rows = tables.datasets.rename(columns={"seed": "collection"})
    plain = (rows["variant"] == "") & rows["objective"].isin(WITHOUT_DISTANCES)
    rows = rows.assign(recipe=style.recipes(rows), main=plain | (rows["variant"] == variant))
    rows["place"] = rows["recipe"].map(style.of(rows)["hue_order"].index)
    return rows.sort_values(["place", "collection"], kind="stable", ignore_index=True)


def explored(tables: Tables, variant: str = "") -> pd.DataFrame:
    """Return recipes' mean ± sd over datasets of what `tables.exploration`, or coverage, measures.

    The former has one reference for all folders, and is of the states of a dataset's later half.
    """
    known = recipes(tables, variant)
    covered = tables.coverage[[*_DATASET, *MEASURES]]
    measured = covered if tables.exploration.empty else tables.exploration
    names = [name for name in measured if name not in tables.datasets]
    keys = [name for name in _DATASET if name in measured]
    rows = known[[*_DATASET, "recipe"]].merge(measured[[*keys, *names]], on=keys)
    groups = rows.groupby(["domain", "recipe"], sort=False)
    shown = groups[names].agg(lambda x: f"{x.mean():.3g} ± {x.std():.2g}".replace(" ± nan", ""))
    return shown.assign(datasets=groups.size()).reset_index()


def policies(tables: Tables, variant: str = "") -> pd.DataFrame:
    """Return one row per policy: its late `results.scores`, and its dataset's row of `recipes`.

    A learner seed that one of a task's datasets lacks is left out for all of them.
    """
    learnt = tables.offline[tables.offline["algorithm"].isin(tables.learners)]
    rows = results.scores(learnt, "late").drop(columns=_RECIPE)
    rows = rows.merge(recipes(tables, variant)[[*_KNOWN, "place"]], on=_DATASET)
    tasks, seeds = (rows.groupby(["algorithm", "task", *by])["dataset"] for by in ([], ["seed"]))
    rows = rows[seeds.transform("nunique") == tasks.transform("nunique")]
    return rows.sort_values(["place", "collection"], kind="stable", ignore_index=True)


def units(tables: Tables, variant: str = "") -> pd.DataFrame:
    """Return one row per dataset, task and `measure`: a learner's name, or one of `MEASURES`.

    `floor` is the return of doing nothing; a policy that diverged gets this return. For `variant`
    see `recipes`. Raise ValueError for a task without a floor.
    """
    returns = policies(tables, variant)
    nothing = tables.baselines.query(f"algorithm == '{results.BASELINES[0]}'")
    returns["floor"] = returns["task"].map(nothing.groupby("task")["return"].mean())
    if missing := {*returns.loc[returns["floor"].isna(), "task"]}:
        raise ValueError(f"tables must have returns of doing nothing, got none on {missing}")
    returns["value"] = returns["return"].fillna(returns["floor"])
    covered = tables.coverage.melt(_DATASET, MEASURES, "measure", "value").dropna(subset="value")
    covered = recipes(tables, variant).merge(covered, on=_DATASET)
    rows = [returns.assign(measure=returns["algorithm"]), covered.assign(task=covered["domain"])]
    keys = ["measure", "task", "floor", *_KNOWN]
    table = pd.concat(rows).groupby(keys, sort=False, dropna=False)["value"].mean()
    return table.reset_index()


def outcome(units: pd.DataFrame) -> pd.DataFrame:
    """Return the primary outcome of docs/study.md, one row per dataset and learner.

    It is the mean over tasks of (value - mean of random actions) / s. s is the root of the mean of
    two variances between datasets, of random actions and of SE. A domain without two datasets of
    both has no rows, and neither has a dataset that lacks a task which others have.
    """
    learnt = units.dropna(subset="floor")
    groups = [learnt[learnt.eval(SIDES[name])] for name in ("random actions", "SE")]
    arms = [group.groupby(["measure", "task"])["value"] for group in groups]
    scale = pd.DataFrame({"centre": arms[0].mean(), "s": ((arms[0].var() + arms[1].var()) / 2)})
    learnt = learnt.join(scale, ["measure", "task"]).eval("value = (value - centre) / s ** 0.5")
    learnt = learnt.dropna(subset="value")
    tasks = learnt.groupby(["measure", "domain"])["task"].transform("nunique")
    learnt = learnt.assign(task="all tasks", floor=np.nan, tasks=tasks)
    groups = learnt.groupby([*units.columns.drop("value"), "tasks"], dropna=False)["value"]
    rows = groups.agg(value="mean", size="size").reset_index()
    return rows[rows.pop("size") == rows.pop("tasks")]


def compared(
    units: pd.DataFrame, pairs: Iterable[str] = PRIMARY, *, corrected: bool = False
) -> pd.DataFrame:
    """Compare `SIDES` on one measure's units; one row per task and pair with 2 datasets a side.

    Columns are those of `statistics.Difference`, and `p_permuted` within blocks. If `corrected`,
    `p` and `p_permuted` are Holm's over a task's pairs; if not, the verdict `p < 0.05` stands for
    better and worse. Nothing was learnt where a side's return is above doing nothing by less than
    two standard errors.
    """
    tables = []
    for task, group in units.groupby("task", sort=False):
        sides = {pair: [group[group.eval(SIDES[s])] for s in pair.split(" − ")] for pair in pairs}
        sides = {pair: both for pair, both in sides.items() if min(map(len, both)) > 1}
        rows = pd.DataFrame([{"pair": pair} | _compared(*both) for pair, both in sides.items()])
        if len(rows):
            p = ["p", "p_permuted"]
            rows[p] = rows[p].apply(statistics.holm) if corrected else rows[p]
            numbers = rows[["p", "p_equivalence", "value"]].to_numpy()
            verdicts = [statistics.verdict(*row) for row in numbers]
            verdicts = pd.Series(verdicts).where(rows.pop("learnt"), "nothing learnt")
            verdicts = verdicts if corrected else verdicts.replace(["better", "worse"], "p < 0.05")
            tables.append(rows.assign(verdict=verdicts, task=task))
    tables = tables or [pd.DataFrame(columns=["pair", "task", "verdict"])]
    return pd.concat(tables, ignore_index=True)


def _compared(one: pd.DataFrame, other: pd.DataFrame) -> dict[str, Any]:
    """Return the numbers of one comparison; see `compared`."""
    row: dict[str, Any] = compare(one["value"], other["value"])._asdict()
    row["p_permuted"] = np.nan
    blocks = [side.groupby("collection")["value"].agg(["mean", "size"]) for side in (one, other)]
    joined = pd.concat(blocks, axis=1, join="inner")
    if len(joined) > 1 and (joined["size"] == 1).all(axis=None):
        row["p_permuted"] = statistics.permutation_p(*joined["mean"].to_numpy().T)
    row["datasets"] = f"{len(one)} / {len(other)}"
    above = ((s["value"] - s["floor"]).mean() - 2 * s["value"].sem() for s in (one, other))
    row["learnt"] = not any(least < 0 for least in above)  # where there is no floor, it is learnt
    return row


def findings(table: pd.DataFrame) -> Markdown:
    """Say what `compared`, corrected, found: one sentence per row, effects in sd of datasets."""
    lines = []
    for row in table.itertuples():
        says = statistics.FINDINGS[row.verdict].format(*row.pair.split(" − "))
        low, high = row.low / row.sd, row.high / row.sd
        numbers = f"{row.effect:+.2f} sd, 95 % interval {low:.2f} to {high:.2f}"
        numbers += f", {row.datasets} datasets, p = {row.p:.2g} after Holm's correction"
        if row.verdict not in ("better", "worse"):
            numbers += f", p = {row.p_equivalence:.2g} in the test of equivalence"
        if pd.notna(row.p_permuted) and (row.p < LEVEL) != (row.p_permuted < LEVEL):
            numbers += f"; the permutation test disagrees, p = {row.p_permuted:.2g}"
        lines.append(f"- {says} ({numbers}).")
    return Markdown("\n".join(lines))


def study(units: pd.DataFrame, learner: str, *, coverage: str = MEASURES[0]) -> pd.DataFrame:
    """Test `CLAIMS` on a learner's returns and a measure of coverage, one of `MEASURES`.

    Return one row per claim and task. `low` to `high` is a 95 % interval, `paper` the paper's
    value. A claim is reproduced if every task's interval agrees with it. It is not reproduced if
    one task's interval, corrected for the number of tasks, contradicts it, or if a claim of one
    difference has equivalent sides on one task. `n` are a side's datasets, or the recipes compared.
    """
    measures = [*units["measure"].unique()]
    for name in {learner, coverage} - {*measures}:
        raise ValueError(f"learner and coverage must be of {', '.join(measures)}, got {name!r}")
    covered = units[units["measure"] == coverage]
    other = covered.set_index(_DATASET)["value"].rename("other")
    tables = {"return": units[units["measure"] == learner].join(other, _DATASET)}
    tables["coverage"] = covered
    rows: list[dict[str, Any]] = []
    for key, claim in CLAIMS.items():
        groups = tables[claim.measure].groupby("task", sort=False)
        cases = {task: _arms(claim, group) for task, group in groups}
        cases = {t: arms for t, arms in cases.items() if arms and t in (claim.signs or cases)}
        tested = [_row(claim, task, arms, len(cases)) for task, arms in cases.items()]
        holds, fails = ([row.pop(name) for row in tested] for name in ("holds", "fails"))
        verdict = "reproduced" if all(holds) else "not reproduced" if any(fails) else UNDECIDED
        verdict = verdict if tested else NOT_RUN
        rows += [{"claim": key, **row, "verdict": verdict} for row in tested or [{}]]
    columns = ["claim", "task", "sides", "value", "low", "high", "p", "paper", "on_its_side"]
    return pd.DataFrame(rows, columns=[*columns, "n", "verdict"])


def _row(claim: Claim, task: Any, arms: list, tasks: int) -> dict[str, Any]:
    """Return a row of `study`; the claim `holds` there at LEVEL, or `fails` at LEVEL / tasks."""
    result, strict = (claim.test(*arms, level=level) for level in (LEVEL, LEVEL / tasks))
    sign, null = claim.signs.get(task, 1), float(claim.test is spread_ratio)
    value, *ends = sign * (np.array([*result[:3], *strict[1:3]]) - null)
    row = {"task": task, "sides": claim.sides, **result._asdict()}
    row |= {"paper": TABLE_1.get(claim.sides, {}).get(task) if claim.test is best_of else None}
    row |= {"on_its_side": bool(value > 0), "n": " / ".join(str(len(arm)) for arm in arms)}
    equal = isinstance(result, Difference) and result.p_equivalence < LEVEL / tasks
    return row | {"holds": min(ends[:2]) > 0, "fails": max(ends[2:]) < 0 or equal}


def _arms(claim: Claim, group: pd.DataFrame) -> list:
    """Return the arguments of a claim's test on one task; none for too few datasets."""
    sides = [group[group.eval(SIDES[side])] for side in claim.sides.split(" − ")]
    values, fewest = [side["value"] for side in sides], 2
    if claim.test is best_of:
        recipes = [side.groupby("recipe")["value"] for side in sides]
        values, fewest = [[arm for _, arm in arms if len(arm) > 1] for arms in recipes], 1
    elif claim.test is not compare:
        means = [side.groupby("recipe")[["value", "other"]].mean() for side in sides]
        values, fewest = [side["value"] for side in means], FEWEST_RECIPES
        values += [means[0]["other"]] if claim.test is rank_correlation else []
    return values if min(map(len, values)) >= fewest else []


def means(units: pd.DataFrame) -> pd.DataFrame:
    """Return one row per measure, task and recipe: its mean and 95 % t interval over datasets."""
    keys = ["measure", "task", *_RECIPE, "recipe", "main"]
    table = units.groupby(keys, sort=False, dropna=False)["value"].agg(["mean", "sem", "size"])
    reach = stats.t.ppf(1 - LEVEL / 2, table["size"] - 1) * table.pop("sem")
    table = table.assign(low=table["mean"] - reach, high=table["mean"] + reach)
    return table.rename(columns={"size": "datasets"}).reset_index()


def spreads(tables: Tables, learner: str) -> pd.DataFrame:
    """Return the sd that datasets, learner seeds and checkpoints add, by task and recipe.

    Evaluations are those of the later half of the updates. Variances are those of a nested design
    (Searle et al. 1992, chapter 3), and 0 where the estimate is negative.
    """
    rows = tables.offline[tables.offline["algorithm"] == learner]
    rows = rows[results.is_late(rows)].drop(columns=_RECIPE)
    keys = ["task", "recipe", "dataset", "seed"]
    rows = rows.merge(recipes(tables)[[*_DATASET, "recipe"]], on=_DATASET)
    values, within, parts = rows.set_index(keys)["return"], 0.0, {}
    for part, level in (("checkpoint", 4), ("seed", 3), ("dataset", 2)):
        groups = values.groupby(level=keys[:level], sort=False)
        variance = groups.var()
        parts[part] = variance.groupby(level=keys[:2], sort=False).mean() - within
        within = (variance / groups.count()).groupby(level=keys[:2], sort=False).mean()
        values = groups.mean()
    table = pd.DataFrame(parts, columns=["dataset", "seed", "checkpoint"]).dropna()
    return np.sqrt(table.clip(lower=0)).reset_index()


def summary(tests: pd.DataFrame) -> pd.DataFrame:
    """Return one row per claim: on how many tasks the estimate is on its side, and the verdict."""
    groups = tests.groupby("claim", sort=False)
    sides = groups["on_its_side"].agg(lambda side: f"{int(side.sum())} of {side.count()}")
    table = pd.DataFrame({"claim": [CLAIMS[key].text for key in sides.index]}, sides.index)
    return table.assign(on_its_side=sides.replace("0 of 0", ""), verdict=groups["verdict"].first())


def markdown(table: pd.DataFrame) -> Markdown:
    """Show a table as Markdown, in a notebook and in the report that is made of it."""
    if table.empty:
        return Markdown("*None.*")
    cells = table.astype(object).where(table.notna(), None)
    return Markdown(cells.to_markdown(index=False, floatfmt=".3g"))
