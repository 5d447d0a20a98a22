"""Captions of the report's figures: the claim first, how to read it, n, seeds, bars, scale."""

from belib.figures.style import learner_label
from belib.report.findings import freedom, spreads_in_words
from belib.report.study import Study


def captions(found: Study) -> dict[str, str]:
    """For each figure, by the name of its file, its caption."""
    cells, learner = found.cells, learner_label(found.learner)
    seeds, steps = cells[0].seeds, found.tables.datasets["steps"]
    more = "" if steps.nunique() == 1 else " or more"
    size = (
        f"{learner}, {seeds} learner seeds, {found.datasets} datasets of {steps.min():,} "
        f"steps{more} in the tables, {found.tables.scale} scale."
    )
    bars = (
        f"Intervals: 95 %, t, with the spread between datasets of one recipe pooled over those "
        f"collected more than once ({freedom(cells)})."
    )
    apart = ", ".join(spreads_in_words(cells))
    clear = (found.advantages["low"] > 0).sum()
    return {
        "returns": (
            "What differs between datasets, and between learner seeds on one: standard "
            f"deviations of datasets' means and of seeds are {apart}. A bar a dataset, those of "
            "one recipe side by side, its height the mean over learner seeds, each a dot; "
            "hatched: a variant of a recipe, named after the comma. Dashed and dotted: doing "
            f"nothing, and random actions. {size}"
        ),
        "advantages": (
            f"Of {len(found.advantages)} comparisons of a best recipe with another, {clear} have "
            "an interval above zero once the choice of the best is paid for (orange: zero is "
            "outside). A dot is the difference of the best means, its bar a 95 % interval that "
            f"allows for the choice on both sides. {size}"
        ),
        "parameters": (
            f"Smooth in α: {found['smooth-alpha'].verdict}; unstable in q: "
            f"{found['unstable-q'].verdict}. A white dot a dataset, the line through the recipes' "
            f"means; grey band: SE with its interval. {bars} {size}"
        ),
        "spreads": (
            f"{found['spread'].statement.text} {found['spread'].verdict.capitalize()}. Standard "
            f"deviations of datasets' means (each over {seeds} seeds) and of single learner seeds; "
            f"bars: 95 % chi-square intervals. {size}"
        ),
        "coverage": (
            f"{found['coverage-returns'].statement.text}: {found['coverage-returns'].verdict}. A "
            "dot a dataset, its height the mean over learner seeds; coverage is the radius of the "
            "smallest ball around its states, raw observations, over the largest of its domain's. "
            f"Dashed and dotted: doing nothing, and random actions. {size}"
        ),
    }
