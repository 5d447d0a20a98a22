"""The report as Markdown: sentences and tables that follow from the numbers."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from belib import paths
from belib.figures.style import learner_label, task_label
from belib.report.captions import captions
from belib.report.findings import (
    LEVEL,
    NO,
    NOT,
    RELEVANT,
    REPRODUCED,
    YES,
    Finding,
    freedom,
)
from belib.report.study import Study, study
from belib.report.tables import Tables, load, means, ordered

TEMPLATE = "measured.md"
"""What `README.md` says of the other measured tables, in the folder that holds them."""

_SCALES = ("paper", "laptop")  # first, in this order


def readme(folder: str | Path) -> str:
    """The report of every scale whose tables a folder has, then what its `TEMPLATE` says."""
    folder = paths.resolve(folder)
    scales = [file.parent for file in sorted(folder.glob("*/provenance.json"))]
    scales.sort(key=lambda each: _SCALES.index(each.name) if each.name in _SCALES else 9)
    parts = ["# Results", _INTRODUCTION, *([] if scales else [_NO_RUNS])]
    parts += [section(load(each), each.name) for each in scales]
    template = folder / TEMPLATE
    parts += [template.read_text().strip()] if template.exists() else []
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = (
    "Does what the paper says hold? Claim by claim, from runs of this package; then how the other "
    "tables were made that its README quotes. `make report` (notebook 07) writes this file from "
    "the tables beside it: verdicts, sentences and numbers follow from them. Only the last part, "
    f"`{TEMPLATE}`, is typed."
)
_NO_RUNS = "No tables of runs are here yet: `make tables report SCALE=laptop` makes them."


def section(tables: Tables, folder: str) -> str:
    """The report of one scale, whose figures lie in a folder of this name."""
    main = study(tables)
    parts = [
        f"## The paper's claims at {tables.scale} scale",
        _made_of(main),
        "### In short",
        _in_short(main),
        _verdicts(_studies(main)),
        "### How verdicts are given",
        _rules(main),
        "### The paper's claims, one by one",
        *(_finding(number, each) for number, each in enumerate(main.claims, 1)),
        "### Our own questions",
        *(_finding(number, each) for number, each in enumerate(main.questions, 1)),
        "### Figures",
        *(
            f"![{_first(text)}]({folder}/{name}.png)\n\n{text}"
            for name, text in captions(main).items()
        ),
        "### Every recipe",
        _means(main),
        "### Where the numbers come from",
        _provenance(tables, folder),
    ]
    return "\n\n".join(parts)


def _made_of(main: Study) -> str:
    """What was run."""
    tables, learnt = main.tables, main.tables.provenance["learning"]
    own = learnt[main.learner]
    return (
        f"{_datasets(tables)} {learner_label(main.learner)} learnt from "
        f"{main.datasets} of them, "
        f"{own['num_steps']:,} updates (the paper: 100,000), {main.cells[0].seeds} learner seeds, "
        f"{own['eval_episodes']} episodes an evaluation; a policy's return is its last one. "
        f"{_others(main)}Sizes of returns are not to be compared with the paper's; signs and "
        "orders are what is tested."
    )


def _datasets(tables: Tables) -> str:
    """How many datasets and recipes of which sizes, a domain each."""
    said = []
    for domain, own in ordered(tables.datasets).groupby("domain", sort=False):
        sizes = " and ".join(f"{steps:,}" for steps in sorted(own["steps"].unique()))
        numbers = Counter(own["recipe"].value_counts())
        each = ", ".join(f"{count} with {n}" for n, count in sorted(numbers.items(), reverse=True))
        said.append(
            f"{str(domain).capitalize()}: {len(own)} datasets of {sizes} steps (the paper: 500,000 "
            f"and 3 million), from {own['recipe'].nunique()} recipes ({each})."
        )
    return " ".join(said)


def _others(main: Study) -> str:
    rows = main.tables.offline
    names = [name for name in main.tables.learners if name != main.learner]
    counts = [rows.loc[rows["algorithm"] == name, "dataset"].nunique() for name in names]
    said = [f"{learner_label(n)} from {c}" for n, c in zip(names, counts, strict=True)]
    return f"Also {', '.join(said)}. " if said else ""


def _in_short(main: Study) -> str:
    """The number of claims with each verdict, and which were decided."""
    counts = Counter(each.verdict for each in main.claims)
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    lines = [f"Of {len(main.claims)} claims of the paper: {listed}."]
    for verdict in (REPRODUCED, NOT, YES, NO):
        own = [each.statement.text for each in main.findings if each.verdict == verdict]
        lines += [f"- {_upper(verdict)}: {'; '.join(own)}"] if own else []
    return "\n".join(lines)


def _studies(main: Study) -> dict[str, Study]:
    """The same statements on other returns: the best evaluations, and the other learners'."""
    names = [name for name in main.tables.learners if name != main.learner]
    title = learner_label(main.learner)
    return {
        title: main,
        f"{title}, best evaluation": study(main.tables, learner=main.learner, score="best"),
        **{learner_label(name): study(main.tables, learner=name) for name in names},
    }


def _verdicts(studies: Mapping[str, Study]) -> str:
    """A line a statement, a column a study; the first is the one that the text is about."""
    main, *others = studies
    rows = [
        {"statement": each.statement.text, main: f"**{each.verdict}**"}
        | {name: studies[name][each.statement.key].verdict for name in others}
        for each in studies[main].findings
    ]
    return markdown_table(pd.DataFrame(rows))


def _rules(main: Study) -> str:
    return "\n".join(
        [
            "- A statement about an objective is one about datasets: its unit is the dataset, "
            "whose value is the mean over its learner seeds, the same seeds for all. More seeds "
            "do not make more datasets.",
            "- Luck is measured: the spread between datasets of one recipe, pooled over those "
            f"that were collected more than once ({freedom(main.cells)}), and taken to be "
            "as large for the others. Intervals are t intervals with it, 95 %.",
            "- Whoever chooses the best of eight is lucky more often than whoever has one. Where "
            "the best of several recipes is compared, the interval holds for all pairs at once, "
            "and `p` is the chance of as large an advantage where all recipes are equal. One "
            "dataset of each recipe, as in the paper: the best of 8 BE is above one of SE "
            f"{8 / 9:.0%} of the time, and above the best of 5 RE {8 / 13:.0%}, where nothing "
            "differs.",
            "- In the tables, *datasets* are those of either side; *p*, where nothing was "
            "chosen, is that of no difference, in both directions.",
            "- *Reproduced*: every task's interval lies on the claimed side of zero. *Not "
            "reproduced*: one task's lies on the other side, at a confidence that allows for the "
            "number of tasks. *Undecided*: neither; the data allow both. Each statement is tested "
            f"on its own, so that about 1 in {1 / LEVEL:.0f} of those without anything behind them "
            "may get a verdict by chance.",
            f"- *No*, or *helps little*, needs intervals within {RELEVANT:.0%} of the mean: "
            "finding nothing in wide ones is no finding.",
        ]
    )


def _finding(number: int, found: Finding) -> str:
    parts = [
        f"#### {number}. {found.statement.text}",
        f"**{found.verdict.capitalize()}.** {found.words} ({_upper(found.statement.source)}.)",
        _rows(found.rows) if len(found.rows) else "",
        f"*What would decide it:* {found.decide}" if found.decide else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _rows(rows: pd.DataFrame) -> str:
    shown = pd.DataFrame(
        {
            "": rows["where"].map(task_label),
            "what": rows["what"],
            "estimate": rows["value"].map(number),
            "95 % interval": [
                "" if np.isnan(low) else f"{number(low)} to {number(high)}"
                for low, high in zip(rows["low"], rows["high"], strict=True)
            ],
            "p": rows["p"].map(lambda p: "" if np.isnan(p) else f"{p:.2g}"),
            "datasets": rows["datasets"],
            "learner seeds": rows["seeds"].map(lambda n: str(n) if n else ""),
        }
    )
    if "paper" in rows:
        shown["the paper's"] = rows["paper"].map(lambda d: "" if np.isnan(d) else f"{d:+.0f}")
    empty = [name for name in shown if name and (shown[name] == "").all()]
    return markdown_table(shown.drop(columns=empty))


def _means(main: Study) -> str:
    """A table a domain: recipes by tasks."""
    said = (
        f"Mean return of {learner_label(main.learner)} over datasets, in brackets its 95 % "
        f"interval by the pooled spread between datasets; {main.cells[0].seeds} learner seeds a "
        "dataset."
    )
    domains = dict.fromkeys(cell.domain for cell in main.cells)
    return "\n\n".join([said, *(_domain_means(main, domain) for domain in domains)])


def _domain_means(main: Study, domain: str) -> str:
    rows = means([cell for cell in main.cells if cell.domain == domain])
    words = [
        f"{r.mean:.0f}" + ("" if np.isnan(r.low) else f" ({r.low:.0f} to {r.high:.0f})")
        for r in rows.itertuples()
    ]
    keys = {"index": ["recipe", "datasets"], "columns": "task", "sort": False}
    wide = rows.assign(words=words).pivot_table(values="words", aggfunc="first", **keys)
    return markdown_table(wide.rename(columns=task_label).reset_index().fillna(""))


def _provenance(tables: Tables, folder: str) -> str:
    known = tables.provenance
    machine = known["machine"]
    versions = ", ".join(
        f"{n} {v}" for n, v in machine.items() if n not in ("processor", "threads")
    )
    waiting = known["not finished"]
    counts = [f"{len(names)} {kind}" for kind, names in waiting.items() if names]
    left = f"Not finished and left out: {', '.join(counts)}, named there. " if counts else ""
    collecting = tables.datasets["minutes"].sum() / 60
    learning = sum(known["learning minutes"].values()) / 60
    revisions = sorted({*tables.datasets["revision"], *tables.offline["revision"].dropna()})
    return (
        f"`{folder}/offline.csv` (a row an evaluation), `{folder}/datasets.csv` (a row a dataset), "
        f"`{folder}/coverage.csv` (its measures), `{folder}/provenance.json` (every setting, seed "
        f"and version). {left}Revisions {', '.join(map(str, revisions))}. {machine['processor']}, "
        f"{machine['threads']} threads; {versions}. By the times of files, collecting took "
        f"{collecting:.1f} hours, summed over datasets that were collected several at once, and "
        f"learning {learning:.1f}, summed over learners and datasets, beside other work. Made by "
        f"`python -m belib.report runs/{tables.scale} results/{folder}` and `make report "
        f"SCALE={folder}`."
    )


def markdown_table(table: pd.DataFrame) -> str:
    """A table of words as Markdown."""
    lines = [list(map(str, table.columns)), ["---"] * table.shape[1]]
    lines += [[str(cell).replace("|", "\\|") for cell in row] for row in table.to_numpy()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float) -> str:
    """Whole numbers from 10 on, two digits below."""
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"


def _first(text: str) -> str:
    """The first sentence."""
    return text.partition(". ")[0]


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
