"""The reproduction report: committed tables in, findings and Markdown out.

`python -m belib.report RUNS_DIR FOLDER` gathers finished runs into `FOLDER/*.csv`; notebook 07 and
`make report` make `results/README.md` of them.
"""

from collections.abc import Sequence

from belib.report import claims, questions
from belib.report.findings import NOT, NOT_RUN, REPRODUCED, UNDECIDED, Finding, Statement
from belib.report.gather import commit_results
from belib.report.tables import (
    Cell,
    Tables,
    cells,
    coverage_cells,
    load,
    means,
    policies,
    spreads,
)

__all__ = [
    "NOT",
    "NOT_RUN",
    "REPRODUCED",
    "UNDECIDED",
    "Cell",
    "Finding",
    "Statement",
    "Tables",
    "cells",
    "commit_results",
    "coverage_cells",
    "load",
    "means",
    "policies",
    "spreads",
    "study",
]


def study(
    tables: Tables, *, learner: str | None = None, score: str = "final"
) -> tuple[list[Finding], list[Finding]]:
    """The paper's claims and our own questions, tested on one learner's returns.

    Args:
        learner: by default the one that learnt from most datasets.
        score: see `results.scores`.
    """
    learner = learner or tables.learners[0]
    own = cells(tables, learner, score)
    others = {name: cells(tables, name, score) for name in tables.learners if name != learner}
    return _claims(tables, own), _questions(own, others)


def _claims(tables: Tables, own: Sequence[Cell]) -> list[Finding]:
    return [
        *(claims.beats(own, other) for other in ("shannon", "rnd", "smm")),
        claims.beats_renyi(own),
        claims.smooth_in_alpha(own),
        claims.unstable_in_q(own),
        claims.large_q_is_poor(own),
        *claims.covers_more(tables),
        claims.coverage_and_returns(tables, own),
        claims.more_data(own),
    ]


def _questions(own: Sequence[Cell], others: dict[str, Sequence[Cell]]) -> list[Finding]:
    return [
        questions.spread(own),
        questions.better_than_random(own),
        questions.average(own, "shannon"),
        questions.average(own, "renyi"),
        questions.size_of_reward(own),
        questions.shape_of_reward(own),
        questions.learners_agree(own, others),
    ]
