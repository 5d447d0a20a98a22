"""The committed tables, and the numbers that statements are about: one a dataset and task."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from belib import paths, results
from belib.config import ALGORITHMS, EXPLORING
from belib.figures.style import objective_label, objective_order
from belib.report.gather import FILES
from belib.statistics import Means, Noise, contrast, crossed_noise, pooled_noise, sd_interval
from belib.tables import checked, once, read_csv

Choice = Callable[[pd.DataFrame], "pd.Series[bool]"]
"""Of units: which of them belong to a side of a comparison."""

GROUP = ["objective", "parameter", "label"]
"""Datasets that agree in these are repetitions of one recipe."""

UNKNOWN = Noise(np.nan, 0)

_KNOWN = ["label", "intrinsic_reward_scale", "steps"]  # of datasets.csv

_PROVENANCE = ("scale", "constant", "learning", "hours", "machine", "not finished")

VOLUMETRIC = "volumetric"
"""The column of the paper's measure of coverage."""

_DATASETS: dict[str, Any] = {"names": ["domain", "dataset"], "integers": ["seed", "steps"]}
_COVERAGE: dict[str, Any] = {**_DATASETS, "integers": ["seed"], "numbers": [VOLUMETRIC]}


@dataclass(frozen=True)
class Tables:
    """What `gather.commit_results` wrote, with every column of `results.COLUMNS`.

    Tables may have been joined or sorted since: what is there twice counts once. ValueError where
    they contradict themselves.
    """

    offline: pd.DataFrame
    datasets: pd.DataFrame
    coverage: pd.DataFrame
    provenance: dict[str, Any]

    def __post_init__(self) -> None:
        results.evaluations(self.offline, *results.COLUMNS)
        known = ["objective", "parameter", "seed", *_KNOWN]
        described = checked(self.datasets, others=known, **_DATASETS)
        measured = checked(self.coverage, empty=True, **_COVERAGE)
        for name, table, values in (
            ("datasets", described, known),
            ("coverage", measured, [VOLUMETRIC]),
        ):
            object.__setattr__(self, name, once(table, ["domain", "dataset"], values))

    @property
    def scale(self) -> str:
        """The scale of all of it."""
        return self.provenance["scale"]

    @property
    def baselines(self) -> pd.DataFrame:
        """The rows of doing nothing and of random actions."""
        known = results.evaluations(self.offline)
        return known[known["algorithm"].isin(results.BASELINES)]

    def floor(self, baseline: str) -> "pd.Series[float]":
        """For each task, the mean return of a baseline over its seeds."""
        own = self.baselines[self.baselines["algorithm"] == baseline]
        return own.groupby("task")["return"].mean()

    @property
    def learnt_from(self) -> "pd.Series[int]":
        """From how many datasets each learner has learnt."""
        learnt = self.offline[~self.offline["algorithm"].isin(results.BASELINES)]
        pairs = learnt[["algorithm", "domain", "dataset"]].drop_duplicates()
        return pairs["algorithm"].value_counts()

    @property
    def learners(self) -> list[str]:
        """The learners, those on most datasets first."""
        counts = self.learnt_from
        order = lambda name: ALGORITHMS.index(name.partition("-")[0])  # noqa: E731
        return sorted(counts.index, key=lambda name: (-counts[name], order(name), name))


def load(folder: str | Path) -> Tables:
    """Read a folder of `gather.FILES`; ValueError names the one that is missing."""
    folder = paths.resolve(folder)
    for name in FILES:
        if not (folder / name).exists():
            raise ValueError(f"{folder} must hold {', '.join(FILES)}, {name} is missing")
    provenance = paths.read_json(folder / FILES[3], _PROVENANCE)
    constant = {k: np.nan if v is None else v for k, v in provenance["constant"].items()}
    varying = [name for name in results.COLUMNS if name not in {*constant, "precision"}]
    kinds = {kind: {*names} & {*varying} for kind, names in results.KINDS.items()}
    text = [*results.TEXT, "label", "intrinsic_reward_scale", "sha256"]
    read = partial(read_csv, text=text)
    offline = read(folder / FILES[0], others=varying, **kinds).assign(**constant)
    described = read(folder / FILES[1], others=_KNOWN, **_DATASETS).fillna({"label": ""})
    measured = read(folder / FILES[2], **_COVERAGE)
    try:
        return Tables(offline.reindex(columns=[*results.COLUMNS]), described, measured, provenance)
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from error


@dataclass(frozen=True)
class Cell:
    """A task, or a measure of coverage: a value a dataset, each mean over learner seeds.

    Attributes:
        name: `walker_stand`, or `walker, volumetric`.
        domain: `walker`.
        units: a row a dataset: its name, recipe, collection `seed`, and `value`.
        seeds: learner seeds in each value, the same ones for all datasets; 0 without a learner.
        within: the spread of learner seeds on one dataset, pooled over datasets; what a seed has in
            common on all of them, such as its starting states, is not part of it.
        logarithms: whether values are those of logarithms of returns.
    """

    name: str
    domain: str
    units: pd.DataFrame
    seeds: int = 0
    within: Noise = UNKNOWN
    logarithms: bool = False

    @cached_property
    def between(self) -> Noise:
        """The spread of exploring datasets of one recipe, pooled over those that were repeated."""
        return pooled_noise(self._repeated)

    @cached_property
    def noise(self) -> Noise:
        """`between`, or what learner seeds alone give means of equal datasets where that is more.

        The truth cannot lie below; with few repetitions the estimate does by luck.
        """
        least = self.within.sd / np.sqrt(self.seeds) if self.within.df and self.between.df else 0.0
        return self.between._replace(sd=float(np.fmax(self.between.sd, least)))

    @cached_property
    def equal_spread(self) -> float:
        """The p-value of Bartlett's test that recipes have one spread; NaN for fewer than two."""
        repeated = [own for own in self._repeated if np.ptp(own) > 0]
        return float(stats.bartlett(*repeated).pvalue) if len(repeated) > 1 else np.nan

    @property
    def _repeated(self) -> list[np.ndarray]:
        """The values of each recipe's datasets, but for random actions and for many more steps."""
        usual = self.units["steps"] <= 1.5 * self.units["steps"].min()
        own = self.units[usual & (self.units["objective"] != "random")]
        return [values.to_numpy() for _, values in own.groupby("recipe")["value"]]

    def groups(self, choice: Choice) -> tuple[list[str], Means]:
        """The recipes that are chosen, in the one order, and their means over datasets."""
        groups = self.units[choice(self.units)].groupby("recipe", sort=False)["value"]
        found = groups.agg(["mean", "size"])
        return list(found.index), Means(found["mean"].to_numpy(), found["size"].to_numpy())


def policies(tables: Tables, learner: str, score: str = "final") -> pd.DataFrame:
    """A row a policy of a learner: `results.COLUMNS`, its dataset's recipe and `collection` seed.

    A learner seed that one of a task's datasets lacks is left out for all of them.
    """
    rows = results.scores(tables.offline[tables.offline["algorithm"] == learner], score)
    known = tables.datasets[["domain", "dataset", "seed", *_KNOWN]]
    rows = rows.merge(known.rename(columns={"seed": "collection"}), on=["domain", "dataset"])
    datasets = rows.groupby("task")["dataset"].transform("nunique")
    complete = rows.groupby(["task", "seed"])["dataset"].transform("nunique") == datasets
    return ordered(rows[complete], by="collection")


def cells(
    tables: Tables, learner: str, score: str = "final", *, logarithms: bool = False
) -> list[Cell]:
    """A cell a task that a learner learnt, in the paper's order.

    Policies that diverged are in no mean; a dataset with none left has no unit. `logarithms` of
    returns have one spread where that of returns grows with their size; ValueError for returns
    that are not positive.
    """
    rows = policies(tables, learner, score)
    if logarithms:
        if not (rows["return"].dropna() > 0).all():
            raise ValueError("logarithms need positive returns")
        rows = rows.assign(**{"return": np.log(rows["return"])})
    return [_cell(task, rows[rows["task"] == task], logarithms) for task in rows["task"].unique()]


def _cell(task: str, rows: pd.DataFrame, logarithms: bool) -> Cell:
    known = rows.dropna(subset="return")
    groups = known.groupby(["dataset", "objective", "parameter", *_KNOWN], dropna=False)
    units = groups.agg(value=("return", "mean"), seed=("collection", "first")).reset_index()
    within = crossed_noise(known.pivot(index="dataset", columns="seed", values="return").to_numpy())
    sizes = rows["domain"].iloc[0], ordered(units), rows["seed"].nunique()
    return Cell(task, *sizes, within, logarithms)


def means(cells: Sequence[Cell]) -> pd.DataFrame:
    """A row a task and recipe: its mean over datasets and 95 % interval by the pooled noise."""
    rows = []
    for cell in cells:
        firsts = cell.units.drop_duplicates("recipe").set_index("recipe")
        names, groups = cell.groups(lambda units: units["recipe"].notna())
        for place, name in enumerate(names):
            found = contrast(groups, np.eye(len(names))[place], cell.noise)
            numbers = {"mean": found.value, "low": found.low, "high": found.high}
            known = firsts.loc[name, GROUP].to_dict()
            counts = {"datasets": int(groups.counts[place]), "seeds": cell.seeds}
            rows.append({"task": cell.name, "recipe": name, **known, **numbers, **counts})
    return pd.DataFrame(rows)


def spreads(cells: Sequence[Cell]) -> pd.DataFrame:
    """A row a task and source of spread: its sd, 95 % interval and degrees of freedom."""
    rows = []
    for cell in cells:
        for source, noise in (("datasets", cell.between), ("learner seeds", cell.within)):
            low, high = sd_interval(noise)
            known = {"task": cell.name, "source": source}
            rows.append({**known, "sd": noise.sd, "low": low, "high": high, "df": noise.df})
    return pd.DataFrame(rows)


def coverage_cells(tables: Tables, measure: str = VOLUMETRIC) -> list[Cell]:
    """A cell a domain, of a measure of coverage."""
    rows = tables.coverage.merge(tables.datasets[["domain", "dataset", *_KNOWN]])
    rows = rows.rename(columns={measure: "value"}).dropna(subset="value")
    columns = ["dataset", "objective", "parameter", *_KNOWN, "seed", "value"]
    return [
        Cell(f"{domain}, {measure}", str(domain), ordered(own[columns]))
        for domain, own in rows.groupby("domain")
    ]


def ordered(rows: pd.DataFrame, *, by: str = "seed") -> pd.DataFrame:
    """Rows with their `recipe`, in the one order of objectives, plain recipes first, then `by`."""
    kinds = list(rows[GROUP].itertuples(index=False, name=None))
    keys = [
        (label, *objective_order(objective, parameter), seed)
        for (objective, parameter, label), seed in zip(kinds, rows[by], strict=True)
    ]
    named = rows.assign(recipe=[recipe(*kind) for kind in kinds])
    return named.iloc[sorted(range(len(keys)), key=keys.__getitem__)].reset_index(drop=True)


def recipe(objective: str, parameter: float | None, label: str = "") -> str:
    """`BE α = 0.5`, `BE α = 0.5, rms`."""
    words = objective_label(objective, None if pd.isna(parameter) else parameter)
    return f"{words}, {label}" if label else words


def plain(objectives: str | Sequence[str], low: float = 0, high: float = np.inf) -> Choice:
    """Datasets without a label of these objectives; a parameter is between `low` and `high`."""
    wanted = [objectives] if isinstance(objectives, str) else list(objectives)

    def choice(units: pd.DataFrame) -> "pd.Series[bool]":
        between = units["parameter"].isna() | units["parameter"].between(low, high, "neither")
        return units["objective"].isin(wanted) & (units["label"] == "") & between

    return choice


def exploring(units: pd.DataFrame) -> "pd.Series[bool]":
    """Plain datasets of any objective but random actions and tasks."""
    return plain(EXPLORING)(units)


def longer(objective: str) -> Choice:
    """Datasets of an objective with many more steps than its plain ones."""

    def choice(units: pd.DataFrame) -> "pd.Series[bool]":
        usual = units.loc[plain(objective)(units), "steps"].max()
        return (units["objective"] == objective) & (units["steps"] > 1.5 * usual)

    return choice


def rescaled(*alphas: float) -> Choice:
    """BE datasets of these alphas, or all, whose reward was divided by its running size."""
    return lambda units: (units["intrinsic_reward_scale"] == "rms") & _behavioral(units, alphas)


def unscaled(*alphas: float) -> Choice:
    """Plain BE datasets of these alphas, whose reward had the size that the objective gave it."""
    kept = plain("behavioral")
    return lambda units: (
        kept(units) & (units["intrinsic_reward_scale"] == "none") & _behavioral(units, alphas)
    )


def _behavioral(units: pd.DataFrame, alphas: Sequence[float]) -> "pd.Series[bool]":
    own = units["objective"] == "behavioral"
    return own & units["parameter"].isin(alphas) if alphas else own


def side_by_side(one: Cell, other: Cell) -> pd.DataFrame:
    """The means of plain exploring recipes over datasets that both cells have, a column a cell."""
    own = one.units[exploring(one.units)]
    shared = own.merge(other.units[["dataset", "value"]], on="dataset", suffixes=("", "_other"))
    return shared.groupby("recipe", sort=False)[["value", "value_other"]].mean()
