"""All statements, tested on one learner's returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from belib.report import claims, coverage_claims, questions
from belib.report.findings import Finding
from belib.report.tables import VOLUMETRIC, Cell, Tables, cells

PAIRS = {
    "be-shannon": "BE over SE",
    "be-renyi": "BE over RE",
    "be-rnd": "BE over RND",
    "be-smm": "BE over SMM",
    "random": "any over random",
}
"""Findings that put a best recipe against another, in words for a figure."""


@dataclass(frozen=True)
class Study:
    """The paper's claims and our own questions on the returns of one learner."""

    tables: Tables
    learner: str
    score: str
    cells: list[Cell]
    claims: list[Finding]
    questions: list[Finding]

    @property
    def findings(self) -> list[Finding]:
        """Claims, then questions."""
        return [*self.claims, *self.questions]

    def __getitem__(self, key: str) -> Finding:
        """The finding with a statement's key."""
        return next(each for each in self.findings if each.statement.key == key)

    @property
    def units(self) -> pd.DataFrame:
        """A row a task and dataset, with its `coverage` by the paper's measure."""
        rows = [c.units.assign(task=c.name, domain=c.domain) for c in self.cells]
        covered = self.tables.coverage[["domain", "dataset", VOLUMETRIC]]
        renamed = covered.rename(columns={VOLUMETRIC: "coverage"})
        return pd.concat(rows).merge(renamed, on=["domain", "dataset"], how="left")

    @property
    def datasets(self) -> int:
        """How many datasets there are returns of."""
        return len({(c.domain, name) for c in self.cells for name in c.units["dataset"]})

    @property
    def advantages(self) -> pd.DataFrame:
        """The rows of the findings of `PAIRS`, each with its name."""
        columns = ["where", "what", "value", "low", "high", "p", "datasets", "seeds", "paper"]
        rows = [self[key].rows.assign(name=name) for key, name in PAIRS.items()]
        rows = [each for each in rows if len(each)] or [pd.DataFrame(columns=[*columns, "name"])]
        return pd.concat(rows, ignore_index=True)


def study(
    tables: Tables,
    *,
    learner: str | None = None,
    score: str = "final",
    logarithms: bool = False,
) -> Study:
    """Test every statement.

    Args:
        learner: by default the one that learnt from most datasets.
        score: see `results.scores`.
        logarithms: of returns, whose differences are ratios; see `cells`.

    Raises ValueError for a learner that the tables do not have.
    """
    learner = learner or tables.learners[0]
    if learner not in tables.learners:
        known = ", ".join(tables.learners)
        raise ValueError(f"learner must be one of {known}, got {learner!r}")
    of = lambda name: cells(tables, name, score, logarithms=logarithms)  # noqa: E731
    own = of(learner)
    others = {name: of(name) for name in tables.learners if name != learner}
    return Study(tables, learner, score, own, _claims(tables, own), _questions(tables, own, others))


def _claims(tables: Tables, own: Sequence[Cell]) -> list[Finding]:
    return [
        *(claims.beats(own, other) for other in ("shannon", "rnd", "smm")),
        claims.beats_renyi(own),
        claims.smooth_in_alpha(own),
        claims.unstable_in_q(own),
        claims.large_q_is_poor(own),
        coverage_claims.families(tables),
        coverage_claims.small_q(tables),
        coverage_claims.small_alpha(tables),
        coverage_claims.rnd_covers_most(tables),
        coverage_claims.coverage_and_returns(tables, own),
        claims.more_data(own),
    ]


def _questions(
    tables: Tables, own: Sequence[Cell], others: Mapping[str, Sequence[Cell]]
) -> list[Finding]:
    return [
        questions.spread(own),
        questions.better_than_random(own),
        questions.objectives_differ(own),
        questions.average(own, "shannon"),
        questions.average(own, "renyi"),
        questions.size_of_reward(own),
        questions.shape_of_reward(own),
        coverage_claims.small_alpha_anywhere(tables, (questions.YES, questions.NO)),
        questions.learners_agree(own, others),
    ]
