"""What is compared (docs/study.md) and what the paper claims, as rows of tables."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from belib.figures.style import LOOKS
from belib.results import PAPER_TABLE_1
from belib.rewards import OBJECTIVES
from belib.statistics import best_of, compare, rank_correlation, spread_ratio

WITHOUT_DISTANCES = [name for name, what in OBJECTIVES.items() if what.agent != "apt"]
"""Objectives whose reward needs no distances between states, nor therefore a representation."""

SIDES = {look.label: f"main and objective == '{name}'" for name, look in LOOKS.items()}
"""Arms and groups of arms, as pandas queries of `study.units`."""
for side in ("RE q < 1", "RE q > 1", "RE q < 2", "RE q >= 2", "BE α < 1", "BE α > 1"):
    SIDES[side] = f"{SIDES[side[:2]]} and parameter {side[5:]}"
for side in ("BE 0.5", "BE 2", "RE 0.5", "RE 1.1", "RE 2"):
    SIDES[side] = f"{SIDES[side[:2]]} and parameter == {side[3:]}"
SIDES["exploring"] = "main and objective not in ['random', 'task']"
SIDES["all but RND"] = SIDES["exploring"] + " and objective != 'rnd'"
SIDES["all but SMM"] = SIDES["exploring"] + " and objective != 'smm'"
SIDES["SE, longer"] = "objective == 'shannon' and variant == 'long'"
SIDES["RE 2, signed"] = "objective == 'renyi' and parameter == 2 and variant.str.match('signed')"
_LEARNT = "variant in ['', 'rms', 'unscaled'] and intrinsic_reward_scale"
for side in ("SE", "BE 0.5"):
    learnt = f"{SIDES[side].removeprefix('main and ')} and {_LEARNT}"
    SIDES[f"{side}, learnt"] = f"{learnt} == 'rms'"
    SIDES[f"{side}, learnt, unscaled"] = f"{learnt} == 'none'"

PRIMARY = ("BE 0.5 − SE", "BE 0.5 − RE 0.5", "BE 0.5 − RND", "BE 0.5 − random actions")
SECONDARY = (
    "SE, learnt − SE, learnt, unscaled",
    "BE 0.5, learnt − BE 0.5, learnt, unscaled",
    "SE − SE, learnt",
    "BE 0.5 − BE 0.5, learnt",
    "BE 2 − BE 0.5",
    "RE 2 − RE 2, signed",
    "RE 0.5 − SE",
)


class Claim(NamedTuple):
    """A statement of the paper, and the test of its sides."""

    text: str
    test: Callable[..., Any]  # compare takes datasets' values, best_of arms, others recipes' means
    sides: str  # two keys of `SIDES`, `ours − others`; of rank_correlation one
    measure: str = "return"  # or coverage
    signs: Mapping[str, float] = {}  # of the difference on the tasks tested; {}: all, positive


TABLE_1 = {f"BE − {name}": PAPER_TABLE_1["BE"] - PAPER_TABLE_1[name] for name in PAPER_TABLE_1}
TABLE_1["BE − RE q < 2"] = TABLE_1["BE − RE"]
"""Differences of the paper's table 1. The paper learns from RE with q < 2 only."""

OVER_RE = np.sign(TABLE_1["BE − RE"]).to_dict()
LONGER = dict(walker_stand=1, walker_walk=-1, walker_run=1, quadruped_walk=-1, quadruped_run=-1)
CLAIMS = {
    "be-shannon": Claim("The best BE is better than SE (section 5, table 1)", best_of, "BE − SE"),
    "be-rnd": Claim("The best BE is better than RND (section 5, table 1)", best_of, "BE − RND"),
    "be-smm": Claim("The best BE is better than SMM (section 5, table 1)", best_of, "BE − SMM"),
    "be-renyi": Claim(
        "The best BE is better than the best RE, except on Walker run (section 5, table 1)",
        best_of,
        "BE − RE q < 2",
        signs=OVER_RE,
    ),
    "stable": Claim(
        "Returns vary less over α of BE than over q of RE (section 5)", spread_ratio, "RE − BE"
    ),
    "small-q": Claim(
        "RE with q < 1 is better than with q > 1 (section 5)", compare, "RE q < 1 − RE q > 1"
    ),
    "large-q": Claim(
        "RE with q = 1.1 is better than with q ≥ 2 (section 5)", compare, "RE 1.1 − RE q >= 2"
    ),
    "small-alpha": Claim(
        "BE with α < 1 is better than with α > 1 (appendix)", compare, "BE α < 1 − BE α > 1"
    ),
    "smm": Claim("SMM is inferior to all others (section 5)", compare, "all but SMM − SMM"),
    "more-data": Claim(
        "Six times the data of SE help on Walker stand and run, and harm elsewhere (section 5)",
        compare,
        "SE, longer − SE",
        signs=LONGER,
    ),
    "coverage-be": Claim("BE covers more than RE (appendix)", compare, "BE − RE", "coverage"),
    "coverage-q": Claim(
        "RE with q < 1 covers more than with q > 1 (appendix)",
        compare,
        "RE q < 1 − RE q > 1",
        "coverage",
    ),
    "coverage-alpha": Claim(
        "On Quadruped, BE with α < 1 covers more than with α > 1 (appendix)",
        compare,
        "BE α < 1 − BE α > 1",
        "coverage",
        {"quadruped": 1},
    ),
    "coverage-rnd": Claim(
        "On Walker, RND covers more than all others (appendix)",
        best_of,
        "RND − all but RND",
        "coverage",
        {"walker": 1},
    ),
    "coverage-returns": Claim(
        "Data that cover more are better to learn from (appendix)", rank_correlation, "exploring"
    ),
}
