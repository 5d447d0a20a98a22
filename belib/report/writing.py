"""The report as Markdown: sentences and tables that follow from the numbers."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from belib import paths, results
from belib.figures.style import learner_label, task_label
from belib.report.captions import captions
from belib.report.findings import LEVEL, RELEVANT, Finding, freedom, number
from belib.report.study import Study, study
from belib.report.summary import elsewhere, in_short, markdown_table, tasks, upper, verdicts
from belib.report.tables import Tables, load, means, ordered, policies

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
        in_short(main),
        verdicts(main),
        elsewhere(main),
        "### How verdicts are given",
        _rules(main),
        "### The paper's claims, one by one",
        *(_finding(number, each) for number, each in enumerate(main.claims, 1)),
        "### Our own questions",
        *(_finding(number, each) for number, each in enumerate(main.questions, 1)),
        "### What the paper says and nothing here tests",
        _UNTESTED,
        "### Figures",
        *(
            f"![{_first(text)}]({folder}/{name}.png)\n\n{text}"
            for name, text in captions(main).items()
        ),
        "### Every recipe",
        _means(main),
        *(["### Learners on the same datasets", shared] if (shared := _learners(tables)) else []),
        "### Where the numbers come from",
        _provenance(tables, folder),
    ]
    return "\n\n".join(parts)


_UNTESTED = """\
- In maps (figures 1 and 3), BE's datasets cover in more *varied* ways than SE's and RE's, and RE
  covers badly for q > 1: the paper judges by eye; notebook 06 draws the same maps.
- BE's best exceeds RE's on 13, and SE's, RND's and SMM's on 15 of 15 pairs of task and learner: it
  takes CQL and CRR on all datasets, and a test that allows for the choice of the best on each.
- RND is nearly as good as BE on Quadruped; SMM covers nearly as much as RND on Walker, and both
  little on Quadruped: *nearly* and *little* have no size in the paper.
- Learning twice as long (200,000 updates) changes little, for SE's 3 million steps (appendix).
- Results like ExORL's from 5 % of its data (section 5): it takes ExORL's datasets."""


def _made_of(main: Study) -> str:
    """What was run."""
    tables, learnt = main.tables, main.tables.provenance["learning"]
    own = learnt[main.learner]
    return (
        f"{_datasets(tables)} {learner_label(main.learner)} learnt from {main.datasets} of them, "
        f"{own['num_steps']:,} updates (the paper: 100,000), {main.cells[0].seeds} learner seeds, "
        f"{own['eval_episodes']} episodes an evaluation; a policy's return is its last one. "
        f"{_others(main)}Sizes of returns are not to be compared with the paper's; signs and "
        "orders are what is tested."
    )


def _datasets(tables: Tables) -> str:
    """How many datasets and recipes of which sizes, a domain each."""
    said = []
    for domain, own in ordered(tables.datasets).groupby("domain"):
        sizes = " and ".join(f"{steps:,}" for steps in sorted(own["steps"].unique()))
        numbers = Counter(own["recipe"].value_counts())
        each = ", ".join(f"{count} with {n}" for n, count in sorted(numbers.items(), reverse=True))
        said.append(
            f"{str(domain).capitalize()}: {len(own)} datasets of {sizes} steps (the paper: 500,000 "
            f"and 3 million), from {own['recipe'].nunique()} recipes ({each})."
        )
    return " ".join(said)


def _others(main: Study) -> str:
    counts = main.tables.learnt_from
    names = [name for name in main.tables.learners if name != main.learner]
    said = [f"{learner_label(name)} from {counts[name]}" for name in names]
    return f"Also {', '.join(said)}. " if said else ""


def _rules(main: Study) -> str:
    return "\n".join(
        [
            "- A statement about an objective is one about datasets: its unit is the dataset, "
            "whose value is the mean over its learner seeds, the same seeds for all. More seeds "
            "do not make more datasets.",
            "- Luck is measured: the spread between datasets of one recipe, pooled over those "
            f"that were collected more than once ({freedom(main.cells)}; random actions and longer "
            "datasets are not among them), no less than learner seeds alone give a mean, and taken "
            "to be as large for all recipes. Intervals are t intervals with it, 95 %. That one "
            "spread fits all recipes is an assumption; Bartlett's test of it has p = "
            f"{_spreads(main)}. Where it is small, intervals of high recipes are too narrow and of "
            "low ones too wide: see the verdicts on logarithms.",
            "- Whoever chooses the best of eight is lucky more often than whoever has one. Where "
            "the best of several recipes is compared, the interval allows for the choice on both "
            "sides, and `p` is the chance of as large an advantage where all are equal. One "
            "dataset of each recipe, as in the paper: the best of 8 BE is above one of SE "
            f"{8 / 9:.0%} of the time, and above the best of 5 RE {8 / 13:.0%}, where nothing "
            "differs.",
            "- In the tables, *datasets* are those of either side, all recipes together; *p* is "
            "the chance of as much under what stands in brackets. A small p under *all recipes "
            "equal* says that they are not, and not which is best.",
            f"- *All tasks* are those that were run: {tasks(main)}.",
            "- *Reproduced*: every task's interval lies on the claimed side of zero. *Not "
            "reproduced*: one task's lies on the other side, at a confidence that allows for the "
            "number of tasks. *Undecided*: neither; the data allow both. Each statement is tested "
            f"on its own, so that about 1 in {1 / LEVEL:.0f} of those without anything behind them "
            "may get a verdict by chance.",
            "- Of our questions, those about all tasks are answered in the same way. Whether "
            "something matters or differs at all: *yes* needs one difference beyond luck, for "
            f"their number; *no* needs all intervals within {RELEVANT:.0%} of the mean, since "
            "finding nothing in wide ones is no finding.",
        ]
    )


def _spreads(main: Study) -> str:
    """The test of one spread for all recipes, a task each."""
    return ", ".join(f"{number(c.equal_spread)} ({task_label(c.name)})" for c in main.cells)


def _finding(number: int, found: Finding) -> str:
    parts = [
        f"#### {number}. {found.statement.text}",
        f"**{found.verdict.capitalize()}.** {found.words} ({upper(found.statement.source)}.)",
        _rows(found) if len(found.rows) else "",
        f"*What would decide it:* {found.decide}" if found.decide else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _rows(found: Finding) -> str:
    rows = found.rows
    shown = pd.DataFrame(
        {
            "": rows["where"].map(task_label),
            "what": rows["what"],
            "estimate": rows["value"].map(number),
            "95 % interval": [
                "" if np.isnan(low) else f"{number(low)} to {number(high)}"
                for low, high in zip(rows["low"], rows["high"], strict=True)
            ],
            f"p ({found.null})": rows["p"].map(lambda p: "" if np.isnan(p) else f"{p:.2g}"),
            "datasets": rows["datasets"],
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
        f"interval by the pooled spread between datasets, cut off at 0; {main.cells[0].seeds} "
        "learner seeds a dataset."
    )
    domains = dict.fromkeys(cell.domain for cell in main.cells)
    return "\n\n".join([said, *(_domain_means(main, domain) for domain in domains)])


def _domain_means(main: Study, domain: str) -> str:
    rows = means([cell for cell in main.cells if cell.domain == domain])
    words = [
        f"{r.mean:.0f}" + ("" if np.isnan(r.low) else f" ({max(0, r.low):.0f} to {r.high:.0f})")
        for r in rows.itertuples()
    ]
    keys = {"index": ["recipe", "datasets"], "columns": "task", "sort": False}
    wide = rows.assign(words=words).pivot_table(values="words", aggfunc="first", **keys)
    floor = pd.DataFrame({name: main.tables.floor(name) for name in results.BASELINES}).T
    floor = floor[wide.columns].map("{:.0f}".format)
    floor.index = pd.MultiIndex.from_product([results.BASELINES, [""]], names=wide.index.names)
    shown = pd.concat([wide, floor]).rename(columns=task_label)
    return markdown_table(shown.reset_index().fillna(""))


def _learners(tables: Tables) -> str:
    """Returns of all learners on each dataset that several learnt from; empty without any."""
    found = [policies(tables, name).assign(learner=learner_label(name)) for name in tables.learners]
    rows = pd.concat(found)
    keys = ["task", "recipe", "dataset"]
    rows = rows[rows.groupby(keys)["learner"].transform("nunique") > 1]
    if rows.empty:
        return ""
    groups = rows.groupby([*keys, "learner"], sort=False)["return"]
    words = (
        groups.agg(lambda own: f"{number(own.mean())} ({number(own.std())})").unstack().fillna("")
    )
    words = words.rename_axis(index={"dataset": "dataset of it"}).rename(index=task_label, level=0)
    said = "Mean return over learner seeds, in brackets their standard deviation."
    return f"{said}\n\n{markdown_table(words.reset_index())}"


def _provenance(tables: Tables, folder: str) -> str:
    known = tables.provenance
    machine = known["machine"]
    versions = ", ".join(
        f"{n} {v}" for n, v in machine.items() if n not in ("processor", "threads")
    )
    waiting = known["not finished"]
    counts = [f"{len(names)} {kind}" for kind, names in waiting.items() if names]
    left = f"Not finished and left out: {', '.join(counts)}, named there. " if counts else ""
    hours = known["hours"]
    revisions = sorted({*tables.datasets["revision"], *tables.offline["revision"].dropna()})
    return (
        f"`{folder}/offline.csv` (a row an evaluation), `{folder}/datasets.csv` (a row a dataset), "
        f"`{folder}/coverage.csv` (its measures), `{folder}/provenance.json` (every setting, seed "
        f"and version). {left}Revisions {', '.join(map(str, revisions))}. {machine['processor']}, "
        f"{machine['threads']} threads; {versions}. By the times of files, datasets were "
        f"being collected for {hours['collecting']:.1f} hours and learners learnt for "
        f"{hours['learning']:.1f}, several at once and beside other work. Made by "
        f"`python -m belib.report runs/{tables.scale} results/{folder}` and `make report "
        f"SCALE={folder}`."
    )


def _first(text: str) -> str:
    """The first sentence."""
    return text.partition(". ")[0]
