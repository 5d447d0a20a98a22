"""The paper's claims and our questions, tested on the tables of `belib.gather`.

The unit is the dataset. Its value on a task is the mean over learner seeds, the same seeds for all
datasets; its coverage is a value without seeds, whose task is the domain. Noise is the spread
between datasets of one recipe, pooled over the recipes that were collected several times and taken
to be equal for all.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import Markdown
from scipy import stats

from belib import results, statistics
from belib.figures import style
from belib.gather import MEASURES, Tables
from belib.statistics import Interval, Means, Noise
from belib.study.claims import CLAIMS, SIDES, TABLE_1, TEXTS, Claim

LEVEL = 0.05  # the chance of a verdict where there is no effect, for each claim
RELEVANT = 0.1  # the difference that a study should see, as a share of the other side's mean
COLUMNS = ["claim", "task", "sides", "what", "value", "low", "high", "p", "p_if_equal", "paper"]
COLUMNS += ["on_its_side", "needed", "datasets", "verdict"]
COMPARISONS = {"best": statistics.best_against_best, "mean": statistics.mean_against_mean}
UNDECIDED, NOT_RUN = "undecided", "not run"
ONE_SIDED = {"rank": "rank correlation with ", "spread": "sd of datasets / of seeds"}
ONE_SIDED |= dict.fromkeys(("order", "disorder"), "squared steps / noise")
_DATASET, _RECIPE = ["domain", "dataset"], ["objective", "parameter", "variant"]
_KNOWN = [*_DATASET, *_RECIPE, "recipe", "intrinsic_reward_scale", "collection", "plain", "long"]


def recipes(tables: Tables) -> pd.DataFrame:
    """Return the datasets in the order of their `recipe`, such as `BE α = 0.5, rms`.

    `collection` is the seed of the collection. `plain` datasets are of no variant; `long` ones have
    many more steps than the plain ones of their domain.
    """
    rows = tables.datasets.rename(columns={"seed": "collection"})
    plain = rows["variant"] == ""
    usual = rows["domain"].map(rows[plain].groupby("domain")["steps"].min())
    rows = rows.assign(recipe=style.recipes(rows), plain=plain, long=rows["steps"] > 1.5 * usual)
    rows["place"] = rows["recipe"].map(style.of(rows)["hue_order"].index)
    return rows.sort_values(["place", "collection"], kind="stable", ignore_index=True)


def policies(tables: Tables, score: str = "final") -> pd.DataFrame:
    """Return one row per policy: its `results.scores`, its dataset's recipe and `collection`.

    A learner seed that one of a task's datasets lacks is left out for all of them.
    """
    learnt = tables.offline[tables.offline["algorithm"].isin(tables.learners)]
    rows = results.scores(learnt, score).drop(columns=_RECIPE)
    rows = rows.merge(recipes(tables)[[*_KNOWN, "place"]], on=_DATASET)
    tasks, seeds = (rows.groupby(["algorithm", "task", *by])["dataset"] for by in ([], ["seed"]))
    rows = rows[seeds.transform("nunique") == tasks.transform("nunique")]
    return rows.sort_values(["place", "collection"], kind="stable", ignore_index=True)


def units(tables: Tables, score: str = "final", *, logarithms: bool = False) -> pd.DataFrame:
    """Return one row per dataset, task and `measure`: a learner's name, or one of `MEASURES`.

    `datasets_sd` is the spread between exploring datasets of one recipe, with `datasets_df` degrees
    of freedom; random actions and long datasets are left out. `seeds_sd` is that of learner seeds
    on one dataset, without what a seed has in common on all datasets. `noise_sd` is the spread
    between datasets, no smaller than learner seeds alone give: the truth cannot lie below that.
    Policies that diverged are in no mean. `score` is that of `policies`. Logarithms of returns need
    not spread more where returns are higher; raise ValueError for returns that are not positive.
    """
    returns = policies(tables, score).rename(columns={"algorithm": "measure", "return": "value"})
    if logarithms:
        if (returns["value"] <= 0).any():
            raise ValueError("logarithms need positive returns")
        returns["value"] = np.log(returns["value"])
    covered = tables.coverage.melt(_DATASET, MEASURES, "measure", "value").dropna(subset="value")
    covered = recipes(tables).merge(covered, on=_DATASET).assign(seed=0, logarithm=False)
    covered["task"] = covered["domain"]
    rows = pd.concat([returns.assign(logarithm=logarithms), covered])
    groups = rows.groupby(["measure", "task"], sort=False)
    return pd.concat([_units(group) for _, group in groups], ignore_index=True)


def _units(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the units of one measure and task."""
    known, count = rows.dropna(subset="value"), rows["seed"].nunique()
    keys = ["measure", "logarithm", "task", *_KNOWN]
    units = known.groupby(keys, sort=False, dropna=False)["value"].mean().reset_index()
    table = known.pivot(index="dataset", columns="seed", values="value").to_numpy()
    seeds = statistics.crossed_noise(table)
    datasets = statistics.pooled_noise(_repeated(units))
    noise = datasets._replace(sd=np.fmax(datasets.sd, seeds.sd / count**0.5))
    for name, (sd, df) in {"datasets": datasets, "seeds": seeds, "noise": noise}.items():
        units[[f"{name}_sd", f"{name}_df"]] = sd, df
    return units.assign(seeds=count)


def _repeated(units: pd.DataFrame) -> list[np.ndarray]:
    """Return the values of each recipe, but for random actions and long datasets."""
    usual = units[~units["long"] & (units["objective"] != "random")]
    return [values.to_numpy() for _, values in usual.groupby("recipe")["value"]]


def paired(units: pd.DataFrame, learner: str, *measures: str) -> pd.DataFrame:
    """Return a learner's units that have a value of another measure (`against`), too: `other`."""
    keys = _DATASET if {*measures} <= {*MEASURES} else [*_DATASET, "task"]
    others = units.loc[units["measure"].isin(measures), [*keys, "value", "measure"]]
    others = others.rename(columns={"value": "other", "measure": "against"})
    return units[units["measure"] == learner].merge(others, on=keys)


def spread(units: pd.DataFrame, source: str) -> Noise:
    """Return the spread of one measure on one task: of `datasets`, `seeds`, or the `noise`."""
    return Noise(*units[[f"{source}_sd", f"{source}_df"]].iloc[0])


def spreads(units: pd.DataFrame) -> pd.DataFrame:
    """Return one row per task and source of spread: its sd, degrees of freedom, 95 % interval.

    `p_equal` is that of Bartlett's test that all recipes have one spread between datasets.
    """
    rows = []
    for task, group in units.groupby("task", sort=False):
        repeated = [values for values in _repeated(group) if np.ptp(values) > 0]
        p_equal = {"datasets": stats.bartlett(*repeated).pvalue} if len(repeated) > 1 else {}
        for source in ("datasets", "seeds"):
            noise = spread(group, source)
            ends = statistics.sd_interval(noise)
            rows.append((task, source, *noise, *ends, p_equal.get(source, np.nan)))
    return pd.DataFrame(rows, columns=["task", "source", "sd", "df", "low", "high", "p_equal"])


def means(units: pd.DataFrame) -> pd.DataFrame:
    """Return one row per task and recipe: its mean over datasets and 95 % interval by the noise."""
    units = pd.DataFrame({"against": "", "other": np.nan} | dict(units))
    keys = [name for name in units if name not in ("dataset", "collection", "value", "other")]
    groups = units.groupby(keys, sort=False, dropna=False)
    columns = {"mean": ("value", "mean"), "other": ("other", "mean"), "values": ("value", list)}
    table = groups.agg(datasets=("value", "size"), **columns).reset_index()
    reach = stats.t.ppf(0.975, table["noise_df"]) * table["noise_sd"] / np.sqrt(table["datasets"])
    return table.assign(low=table["mean"] - reach, high=table["mean"] + reach)


def study(
    units: pd.DataFrame, learner: str, *, coverage: str = MEASURES[0], claims: Sequence = CLAIMS
) -> pd.DataFrame:
    """Test claims on a learner's returns and a measure of coverage, one of `MEASURES`.

    Return one row per claim, task and comparison. `low` to `high` is a 95 % interval. `p_if_equal`
    is the chance that our best is ahead where all recipes are equal, `needed` how many datasets of
    every recipe give intervals of `RELEVANT` to both sides, `paper` the paper's value.
    """
    measures = [*units["measure"].unique()]
    for name in {learner, coverage} - {*measures}:
        raise ValueError(f"learner and coverage must be of {', '.join(measures)}, got {name!r}")
    others = [name for name in measures if name not in (learner, *MEASURES)]
    of = {"return": learner, "coverage": coverage}
    tables = {name: units[units["measure"] == measure] for name, measure in of.items()}
    tables["return and coverage"] = paired(units, learner, coverage)
    tables["return of learners"] = paired(units, learner, *others)
    parts = [means(rows).assign(of=name) for name, rows in tables.items() if len(rows)]
    table = pd.concat(parts, ignore_index=True)
    table = table.join(pd.DataFrame({side: table.eval(query) for side, query in SIDES.items()}))
    rows = [row for claim in claims for row in _tested(claim, table[table["of"] == claim.measure])]
    return pd.DataFrame(rows, columns=COLUMNS)


def _tested(claim: Claim, table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a claim, for tasks on which there are enough datasets."""
    cases: list[tuple[str, pd.DataFrame, list[pd.DataFrame]]] = []
    for (_, task), rows in table.groupby(["against", "task"], sort=False):
        noisy = claim.test != "spread" or rows[["datasets_df", "seeds_df"]].iloc[0].min() > 0
        for pair in claim.sides if noisy and (not claim.signs or task in claim.signs) else []:
            sides = [rows[rows[side]] for side in pair.split(" − ")]
            least = zip(sides, claim.recipes, strict=False)
            if all(len(s) >= n and s["datasets"].sum() >= claim.datasets for s, n in least):
                cases.append((pair, rows, sides))
    rows = [_row(claim, *case, LEVEL / len(cases)) for case in cases]
    holds, fails = ([row[name] for row in rows] for name in ("holds", "fails"))
    true, false = (any(holds), all(fails)) if len(claim.sides) > 1 else (all(holds), any(fails))
    if claim.test in ("order", "disorder") and rows:
        ratio, p = statistics.order_test(_equally_many([sides[0] for *_, sides in cases]))
        rows.append({"task": "all", "what": "von Neumann ratio", "value": ratio, "p": p})
        # a large smooth curve has large steps, too, in all orders
        smooth, rough = p < LEVEL / 2, p > 0.5 and any(holds)
        true, false = (smooth, rough) if claim.test == "order" else (rough, smooth)
    yes, no = ("yes", "no") if TEXTS[claim.key].endswith("?") else ("reproduced", "not reproduced")
    verdict = NOT_RUN if not rows else yes if true else no if false else UNDECIDED
    return [{**row, "claim": claim.key, "verdict": verdict} for row in rows or [{}]]


def _row(
    claim: Claim, pair: str, rows: pd.DataFrame, sides: list[pd.DataFrame], level: float
) -> dict[str, Any]:
    """Return a row of `study`, and whether it alone `holds` or `fails` at a level."""
    groups = [Means(side["mean"].to_numpy(), side["datasets"].to_numpy()) for side in sides]
    noise, *both = (spread(rows, source) for source in ("noise", "datasets", "seeds"))
    task, against, seeds, logarithm = rows[["task", "against", "seeds", "logarithm"]].iloc[0]
    test, compare = claim.test, COMPARISONS.get(claim.test)
    if compare:
        estimate = partial(compare, *groups, noise)
    elif test == "rank":
        estimate = partial(statistics.rank_correlation, groups[0].values, sides[0]["other"])
    elif test == "spread":
        estimate = partial(statistics.spread_ratio, *both, seeds)
    else:
        estimate = lambda confidence: statistics.jumps(groups[0], noise)  # noqa: E731
    result, strict = estimate(confidence=1 - LEVEL), estimate(confidence=1 - level)
    row = {"task": task, "sides": pair, "what": ONE_SIDED.get(test, pair) + against}
    row |= {**result._asdict(), "holds": result.p < level, "fails": False}
    row["datasets"] = " / ".join(str(side["datasets"].sum()) for side in sides)
    if compare:
        relevant = np.log1p(RELEVANT) if logarithm else RELEVANT * abs(groups[1].values.mean())
        row["fails"] = max(-result.low, result.high) < relevant
        row |= _planned(compare, groups, noise, relevant)
    if test == "best":
        row["what"] = " − ".join(side.loc[side["mean"].idxmax(), "recipe"] for side in sides)
        row["paper"] = TABLE_1.get(pair, {}).get(task)
    if len(claim.sides) == 1 and test not in ("order", "disorder"):
        value, *ends = claim.signs.get(task, 1) * np.array([*result[:3], *strict[1:3]])
        row["on_its_side"] = bool(value > claim.least)
        row["holds"], row["fails"] = min(ends[:2]) > claim.least, max(ends[2:]) < claim.least
    return row


def _planned(
    compare: Callable[..., Interval], groups: list[Means], noise: Noise, relevant: float
) -> dict[str, float]:
    """Return how many datasets show a relevant difference; of a best, the chance to be ahead."""
    equal = [Means(0 * group.values, group.counts) for group in groups]
    ahead = compare(*equal, Noise(1.0, 1)).p if compare is COMPARISONS["best"] else np.nan
    # one dataset of every recipe, and the noise taken as exact
    single = [Means(group.values, np.ones_like(group.counts)) for group in equal]
    one = compare(*single, noise._replace(df=10_000 * bool(noise.df)))
    needed = np.ceil((max(-one.low, one.high) / (relevant or np.nan)) ** 2)
    return {"p_if_equal": ahead, "needed": np.maximum(2, needed)}


def _equally_many(curves: list[pd.DataFrame]) -> np.ndarray:
    """Return means (tasks, parameters) of equally many datasets, so that noise is equal."""
    means = []
    for curve in curves:
        least = curve["datasets"].min()
        values = [np.mean(values[:least]) for values in curve["values"]]
        means.append(pd.Series(values, curve["parameter"]))
    return pd.concat(means, axis=1).dropna().T.to_numpy()


def summary(tests: pd.DataFrame) -> pd.DataFrame:
    """Return one row per claim: on how many tasks the estimate is on its side, and the verdict."""
    groups = tests.groupby("claim", sort=False)
    sides = groups["on_its_side"].agg(lambda side: f"{int(side.sum())} of {side.count()}")
    table = pd.DataFrame({"claim": [TEXTS[key] for key in sides.index]}, sides.index)
    return table.assign(on_its_side=sides.replace("0 of 0", ""), verdict=groups["verdict"].first())


def elsewhere(tables: Tables) -> pd.DataFrame:
    """Return the verdicts that differ on other returns or measures: one column for each."""
    main, (learner, *others) = units(tables), tables.learners
    tests = {"main": study(main, learner)}
    tests["best evaluations"] = study(units(tables, "best"), learner)
    with suppress(ValueError):  # of returns that are not positive
        tests["logarithms"] = study(units(tables, logarithms=True), learner)
    tests |= {name: study(main, name) for name in others}
    tests |= {name: study(main, learner, coverage=name) for name in MEASURES[1:]}
    table = pd.DataFrame({name: summary(rows)["verdict"] for name, rows in tests.items()})
    return table[table.replace(NOT_RUN, np.nan).nunique(axis=1) > 1].reset_index()


def markdown(table: pd.DataFrame) -> Markdown:
    """Show a table as Markdown, in a notebook and in the report that is made of it."""
    cells = table.astype(object).where(table.notna(), None)
    return Markdown(cells.to_markdown(index=False, floatfmt=".3g"))
