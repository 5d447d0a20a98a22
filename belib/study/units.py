"""The units of a study: datasets, each with a value on every task, and their noise.

A dataset's value on a task is the mean over learner seeds, the same seeds for all datasets. Its
coverage is a value without seeds, whose task is the domain.
"""

import numpy as np
import pandas as pd
from scipy import stats

from belib import results
from belib.figures import style
from belib.gather import VOLUMETRIC, Tables
from belib.statistics import Noise, crossed_noise, pooled_noise, sd_interval

MEASURES = (VOLUMETRIC, "volumetric_scaled", "net", "shannon")
"""Measures of coverage: the paper's own, and others beside it."""

_DATASET = ["domain", "dataset"]
_RECIPE = ["objective", "parameter", "variant", "recipe"]
_KNOWN = [*_RECIPE, "intrinsic_reward_scale", "collection", "plain", "long"]


def recipes(tables: Tables) -> pd.DataFrame:
    """Return the datasets with their `recipe`, such as `BE α = 0.5, rms`, and its `place`.

    `plain` datasets are of no variant; `long` ones have many more steps than the plain ones of
    their domain. `collection` is the seed of the collection.
    """
    rows = tables.datasets.rename(columns={"seed": "collection"})
    plain = rows["variant"] == ""
    usual = rows["domain"].map(rows[plain].groupby("domain")["steps"].min())
    rows = rows.assign(recipe=style.recipes(rows), plain=plain, long=rows["steps"] > 1.5 * usual)
    return rows.assign(place=rows["recipe"].map(style.of(rows)["hue_order"].index))


def policies(tables: Tables, learner: str, score: str = "final") -> pd.DataFrame:
    """Return a row a policy of a learner: its results, recipe, and its dataset's `collection` seed.

    A learner seed that one of a task's datasets lacks is left out for all of them.
    """
    rows = results.scores(tables.offline[tables.offline["algorithm"] == learner], score)
    rows = rows.drop(columns="variant")  # that of the datasets is never missing
    known = recipes(tables)
    known = known.drop(columns=[name for name in known if name in rows and name not in _DATASET])
    rows = rows.merge(known, on=_DATASET)
    datasets = rows.groupby("task")["dataset"].transform("nunique")
    complete = rows.groupby(["task", "seed"])["dataset"].transform("nunique") == datasets
    return rows[complete].sort_values(["place", "collection"], kind="stable", ignore_index=True)


def units(tables: Tables, score: str = "final", *, logarithms: bool = False) -> pd.DataFrame:
    """Return a row a dataset, task and `measure`: a learner's name, or one of `MEASURES`.

    `datasets_sd` is the spread of exploring datasets of one recipe, with `datasets_df` degrees of
    freedom, pooled over recipes with repetitions; random actions and long datasets are left out.
    `seeds_sd` is that of the `seeds` learner seeds on one dataset; what a seed has in common on all
    datasets, such as its starting states, is no part of it. Policies that diverged are in no mean.

    Raises ValueError for logarithms of returns that are not positive.
    """
    parts = []
    for learner in tables.learners:
        rows = policies(tables, learner, score).rename(columns={"return": "value"})
        if logarithms and not (rows["value"].dropna() > 0).all():
            raise ValueError("logarithms need positive returns")
        rows["value"] = np.log(rows["value"]) if logarithms else rows["value"]
        tasks = [_of_task(own) for _, own in rows.groupby("task", sort=False)]
        parts += [own.assign(measure=learner, logarithm=logarithms) for own in tasks]
    known = recipes(tables).sort_values(["place", "collection"])
    known = known[[*_DATASET, *_KNOWN]].assign(task=known["domain"], logarithm=False)
    known = known.assign(seeds=0, seeds_sd=np.nan, seeds_df=0)
    for measure in [name for name in MEASURES if name in tables.coverage]:
        values = tables.coverage[[*_DATASET, measure]].set_axis([*_DATASET, "value"], axis=1)
        rows = known.merge(values.dropna(), on=_DATASET).assign(measure=measure)
        parts += [own for _, own in rows.groupby("domain")]
    for place, own in enumerate(parts):
        sd, df = pooled_noise(_repeated(own))
        parts[place] = own.assign(datasets_sd=sd, datasets_df=df)
    return pd.concat(parts, ignore_index=True)


def _of_task(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the units of one task's policies."""
    known = rows.dropna(subset="value")
    sd, df = crossed_noise(known.pivot(index="dataset", columns="seed", values="value").to_numpy())
    units = known.drop_duplicates("dataset")[["task", *_DATASET, *_KNOWN]]
    units["value"] = units["dataset"].map(known.groupby("dataset")["value"].mean())
    return units.assign(seeds=rows["seed"].nunique(), seeds_sd=sd, seeds_df=df)


def _repeated(units: pd.DataFrame) -> list[np.ndarray]:
    """Return the values of each recipe, but for random actions and long datasets."""
    usual = units[~units["long"] & (units["objective"] != "random")]
    return [own.to_numpy() for _, own in usual.groupby("recipe")["value"]]


def paired(units: pd.DataFrame, learner: str, measure: str) -> pd.DataFrame:
    """Return a learner's units that have a value of another measure, too, as `other`."""
    keys = _DATASET if measure in MEASURES else [*_DATASET, "task"]
    other = units.loc[units["measure"] == measure, [*keys, "value", "measure"]]
    other = other.rename(columns={"value": "other", "measure": "against"})
    return units[units["measure"] == learner].merge(other, on=keys)


def spread(units: pd.DataFrame, between: str) -> Noise:
    """Return the spread between `datasets` of one recipe, or `seeds` on one dataset, on a task."""
    return Noise(units[f"{between}_sd"].iloc[0], int(units[f"{between}_df"].iloc[0]))


def noise(units: pd.DataFrame) -> Noise:
    """Return the spread between datasets on a task, no smaller than learner seeds alone give.

    The truth cannot lie below that. With few repetitions the estimate sometimes does, by chance.
    """
    datasets, seeds = spread(units, "datasets"), spread(units, "seeds")
    if not (datasets.df and seeds.df):
        return datasets
    return datasets._replace(sd=max(datasets.sd, seeds.sd / units["seeds"].iloc[0] ** 0.5))


def spreads(units: pd.DataFrame) -> pd.DataFrame:
    """Return a row a task and source of spread: its sd, degrees of freedom and 95 % interval.

    `p_equal` is that of Bartlett's test that all recipes have one spread between datasets.
    """
    rows = []
    for task, own in units.groupby("task", sort=False):
        for source in ("datasets", "seeds"):
            low, high = sd_interval(spread(own, source))
            row = {"task": task, "source": source, **spread(own, source)._asdict()}
            rows.append(row | {"low": low, "high": high})
        groups = [group for group in _repeated(own) if np.ptp(group) > 0]
        p_equal = stats.bartlett(*groups).pvalue if len(groups) > 1 else np.nan
        rows[-2]["p_equal"] = float(p_equal)
    return pd.DataFrame(rows)


def means(units: pd.DataFrame) -> pd.DataFrame:
    """Return a row a task and recipe: its mean over datasets and 95 % interval by the noise."""
    parts = []
    for task, own in units.groupby("task", sort=False):
        groups = own.groupby(_RECIPE, sort=False, dropna=False)["value"]
        table = groups.agg(mean="mean", datasets="size").reset_index()
        sd, df = noise(own)
        reach = stats.t.ppf(0.975, df) * sd / np.sqrt(table["datasets"])
        table = table.assign(low=table["mean"] - reach, high=table["mean"] + reach)
        parts.append(table.assign(task=task))
    return pd.concat(parts, ignore_index=True)
