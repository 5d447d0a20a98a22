"""The reproduction report: committed tables in, findings and Markdown out.

`python -m belib.report RUNS_DIR FOLDER` gathers finished runs into `FOLDER/*.csv`; notebook 07 and
`make report` make `results/README.md` of them.
"""

from belib.report.captions import captions
from belib.report.findings import NOT, NOT_RUN, REPRODUCED, UNDECIDED, Finding, Statement
from belib.report.gather import commit_results
from belib.report.study import Study, study
from belib.report.summary import markdown_table
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
from belib.report.writing import readme

__all__ = [
    "NOT",
    "NOT_RUN",
    "REPRODUCED",
    "UNDECIDED",
    "Cell",
    "Finding",
    "Statement",
    "Study",
    "Tables",
    "captions",
    "cells",
    "commit_results",
    "coverage_cells",
    "load",
    "markdown_table",
    "means",
    "policies",
    "readme",
    "spreads",
    "study",
]
