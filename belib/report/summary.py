"""The first page of the report: what a reader in a hurry takes away, and pieces of its text."""

from collections import Counter
from typing import Any

import pandas as pd

from belib import results
from belib.figures.style import learner_label, task_label
from belib.report.coverage_claims import COVERAGE_ALONE
from belib.report.findings import (
    NO,
    NOT,
    NOT_RUN,
    REPRODUCED,
    UNDECIDED,
    YES,
    Finding,
    spreads_in_words,
)
from belib.report.study import Study, study
from belib.report.tables import exploring, policies


def in_short(main: Study) -> str:
    """What a reader in a hurry takes away."""
    counts = Counter(each.verdict for each in main.claims)
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    lines = [f"Of {len(main.claims)} claims of the paper: {listed}."]
    for verdict in (REPRODUCED, NOT, YES, NO):
        own = [each.statement.text for each in main.findings if each.verdict == verdict]
        lines += [f"- {upper(verdict)}: {'; '.join(own)}"] if own else []
    return "\n".join([*lines, *(f"- {each}" for each in (_level(main), _tops(main), _luck(main)))])


def _level(main: Study) -> str:
    """How much was learnt at all."""
    floor, said = main.tables.floor(results.BASELINES[0]), []
    for cell in main.cells:
        mean = cell.units["value"].mean()
        words = f"{task_label(cell.name)} {mean:.0f} (doing nothing {floor[cell.name]:.0f}"
        if cell.name in results.PAPER_TABLE_1.index:
            words += f", the paper's best BE {results.PAPER_TABLE_1.loc[cell.name, 'BE']:.0f}"
        said.append(words + ")")
    return f"How much was learnt, as the mean return over all datasets: {'; '.join(said)}."


def _tops(main: Study) -> str:
    """The recipe with the highest mean on each task."""
    said = []
    for cell in main.cells:
        labels, groups = cell.groups(exploring)
        place = int(groups.values.argmax())
        words = f"{labels[place]} ({groups.values[place]:.0f}; datasets: {groups.counts[place]})"
        said.append(f"{task_label(cell.name)} {words}")
    return f"The highest means, which are the luckiest of many: {'; '.join(said)}."


def _luck(main: Study) -> str:
    """The spread that the paper's design has no measure of."""
    said = ", ".join(spreads_in_words(main.cells))
    return (
        "Collecting again with another seed moves a dataset's mean return, and learning again "
        f"moves a policy's return, with standard deviations of {said}. Error bars over learner "
        "seeds hold only the second."
    )


def verdicts(main: Study) -> str:
    """A line a statement: on how many tasks the estimate is on its side, and the verdict."""
    rows = [
        {
            "statement": each.statement.text,
            "estimate on its side": f"{sum(each.sides)} of {len(each.sides)}" if each.sides else "",
            "verdict": f"**{each.verdict}**",
        }
        for each in main.findings
    ]
    return markdown_table(pd.DataFrame(rows))


def elsewhere(main: Study) -> str:
    """Where other returns decide otherwise: best evaluations, logarithms, other learners."""
    options: dict[str, dict[str, Any]] = {
        "best evaluation of a policy instead of its last, chosen by the returns it reports": {
            "learner": main.learner,
            "score": "best",
        },
    }
    if (policies(main.tables, main.learner)["return"].dropna() > 0).all():
        options["logarithms of returns, whose spread need not grow with their size"] = {
            "learner": main.learner,
            "logarithms": True,
        }
    names = [name for name in main.tables.learners if name != main.learner]
    options |= {learner_label(name): {"learner": name} for name in names}
    said = []
    for name, option in options.items():
        other = study(main.tables, **option)
        tested = [each for each in other.findings if _is_tested(each)]
        changed = [e for e in tested if e.verdict not in (main[e.statement.key].verdict, UNDECIDED)]
        words = "; ".join(f"**{each.verdict}** is: {each.statement.text}" for each in changed)
        fewer = [e for e in tested if e.verdict == UNDECIDED != main[e.statement.key].verdict]
        words = words or ("no verdict is another" if tested else "without repeats, no intervals")
        words += f"; {len(fewer)} are not decided" if fewer else ""
        said.append(f"- {upper(name)} ({tasks(other)}; {len(tested)} tested): {words}.")
    return "\n".join(["The same statements on other returns:", "", *said])


def _is_tested(found: Finding) -> bool:
    """Whether returns bear on a statement, with intervals; the order of parameters has none."""
    if found.verdict == NOT_RUN or found.statement.key in COVERAGE_ALONE:
        return False
    return found.verdict != UNDECIDED or not len(found.rows) or found.rows["p"].notna().any()


def tasks(main: Study) -> str:
    """The tasks that were run."""
    return ", ".join(task_label(cell.name) for cell in main.cells)


def markdown_table(table: pd.DataFrame) -> str:
    """A table of words as Markdown."""
    lines = [list(map(str, table.columns)), ["---"] * table.shape[1]]
    lines += [[str(cell).replace("|", "\\|") for cell in row] for row in table.to_numpy()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def upper(text: str) -> str:
    """With a capital at its beginning, and the rest as it is."""
    return text[:1].upper() + text[1:]
