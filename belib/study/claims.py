"""The claims of the paper and our questions, as rows of a table."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from belib.figures.style import ALPHAS, LOOKS
from belib.results import PAPER_TABLE_1

TEXTS = {
    "be-shannon": "BE (its best α) does better than SE on all tasks (section 5, table 1)",
    "be-rnd": "BE (its best α) does better than RND on all tasks (section 5, table 1)",
    "be-smm": "BE (its best α) does better than SMM on all tasks (section 5, table 1)",
    "be-renyi": "BE (best α) does better than RE (best q) on all tasks but Walker run (table 1)",
    "smooth-alpha": "Returns on BE datasets vary smoothly in α (section 5)",
    "unstable-q": "Returns on RE datasets are unstable in q (section 5)",
    "large-q": "Returns on RE datasets with q > 1 are poor (section 5)",
    "coverage-be": "BE datasets cover more than RE datasets on average (appendix)",
    "coverage-q": "RE datasets with q < 1 cover more than those with q > 1 (appendix)",
    "coverage-alpha": "On Quadruped, BE datasets with α < 1 cover more than with α > 1 (appendix)",
    "coverage-rnd": "On Walker, RND covers more than SE, SMM, every BE and every RE (appendix)",
    "coverage-returns": "Datasets that cover more are better to learn from (appendix)",
    "more-data": "Six times the data of SE help on Walker stand and run and harm elsewhere (s. 5)",
    "spread": "Do datasets of one recipe differ by more than learner seeds on one dataset do?",
    "random": "Is the best exploring recipe better than random actions?",
    "objectives": "Do objectives differ, each on average?",
    "average-shannon": "Is BE, on average over α, better than SE?",
    "average-renyi": "Is BE, on average over α, better than RE on average over q?",
    "size": "Does the size of BE's reward matter, its shape unchanged?",
    "shape": "Does the shape of BE's reward matter, its size made equal?",
    "coverage-alpha-all": "Do BE datasets with α < 1 cover more than with α > 1, on all domains?",
    "learners": "Do learners agree on which datasets are good?",
}
"""What is claimed or, with a question mark, asked."""

SIDES = {look.label: f"plain and objective == '{name}'" for name, look in LOOKS.items()}
"""Groups of datasets, as pandas queries. The paper learns from RE with q < 2 only."""
SIDES["exploring"] = "plain and objective not in ['random', 'task']"
SIDES["all but RND"] = "plain and objective in ['shannon', 'behavioral', 'renyi', 'smm']"
SIDES["longer SE"] = "long and objective == 'shannon'"
for side in ("RE q < 1", "RE q > 1", "RE q < 2", "BE α < 1", "BE α > 1"):
    SIDES[side] = f"{SIDES[side[:2]]} and parameter {side[5:]}"
for a in ALPHAS:
    query = f"objective == 'behavioral' and parameter == {a} and intrinsic_reward_scale"
    SIDES |= {f"α = {a:g} rms": f"{query} == 'rms'", f"α = {a:g}": f"plain and {query} == 'none'"}


class Claim(NamedTuple):
    """A key of `TEXTS` and its test."""

    key: str
    test: str  # best, mean, order, disorder, rank or spread
    sides: Sequence[str]  # `ours − others`, keys of `SIDES`; one difference of several is enough
    measure: str = "return"  # or coverage, return and coverage, return of learners
    signs: Mapping[str, float] = {}  # expected on each task, others left out; by default positive
    recipes: Sequence[int] = (1, 1)  # that each side must have, to speak of their average
    datasets: int = 1  # that each side must have
    least: float = 0.0  # the claim holds above this value


TABLE_1 = {f"BE − {name}": PAPER_TABLE_1["BE"] - PAPER_TABLE_1[name] for name in PAPER_TABLE_1}
TABLE_1["BE − RE q < 2"] = TABLE_1["BE − RE"]
"""Differences of the paper's table 1."""

OVER_RE = np.sign(TABLE_1["BE − RE"]).to_dict()
LONGER = dict(walker_stand=1, walker_walk=-1, walker_run=1, quadruped_walk=-1, quadruped_run=-1)
PAIRS = combinations(("BE", "RE q < 2", "SE", "RND", "SMM", "random actions"), 2)
CLAIMS = (
    Claim("be-shannon", "best", ["BE − SE"]),
    Claim("be-rnd", "best", ["BE − RND"]),
    Claim("be-smm", "best", ["BE − SMM"]),
    Claim("be-renyi", "best", ["BE − RE q < 2"], signs=OVER_RE),
    Claim("smooth-alpha", "order", ["BE"], recipes=[4]),
    Claim("unstable-q", "disorder", ["RE"], recipes=[4]),
    Claim("large-q", "mean", ["RE q < 1 − RE q > 1"]),
    Claim("coverage-be", "mean", ["BE − RE"], "coverage", recipes=[3, 3]),
    Claim("coverage-q", "mean", ["RE q < 1 − RE q > 1"], "coverage"),
    Claim("coverage-alpha", "mean", ["BE α < 1 − BE α > 1"], "coverage", {"quadruped": 1}),
    Claim("coverage-rnd", "best", ["RND − all but RND"], "coverage", {"walker": 1}),
    Claim("coverage-returns", "rank", ["exploring"], "return and coverage", recipes=[5]),
    Claim("more-data", "mean", ["longer SE − SE"], signs=LONGER),
    Claim("spread", "spread", ["exploring"], least=1),
    Claim("random", "best", ["exploring − random actions"]),
    Claim("objectives", "mean", [f"{one} − {two}" for one, two in PAIRS], datasets=2),
    Claim("average-shannon", "mean", ["BE − SE"], recipes=[3, 1]),
    Claim("average-renyi", "mean", ["BE − RE q < 2"], recipes=[3, 3]),
    Claim("size", "mean", [f"α = {a:g} rms − α = {a:g}" for a in ALPHAS]),
    Claim("shape", "mean", [f"α = {a:g} rms − α = {b:g} rms" for a, b in combinations(ALPHAS, 2)]),
    Claim("coverage-alpha-all", "mean", ["BE α < 1 − BE α > 1"], "coverage"),
    Claim("learners", "rank", ["exploring"], "return of learners", recipes=[5]),
)
