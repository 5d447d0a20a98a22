"""A study finds effects that were planted, and seldom others: SYNTHETIC tables, not results."""

import numpy as np
import pandas as pd
import pytest
import synthetic

from belib import gather, study
from belib.paths import ROOT
from belib.study import CLAIMS, NOT_RUN, UNDECIDED

EXAMPLE = ROOT / "tests" / "data" / "study"
QUIET = {"between": 2.0, "within": 4.0}
SMALL = {"tasks": ("walker_stand",), "seeds": 2, "steps": (10_000,)}
HOLDS, FAILS, YES, NO = "reproduced", "not reproduced", "yes", "no"
BEST = ("be-shannon", "be-rnd", "be-smm", "be-renyi")
CURVES = ("smooth-alpha", "unstable-q", "large-q")
LONGER = [*synthetic.grid(), {"objective": "shannon", "label": "long", "num_steps": 300_000}]


def rows_of(made, *keys, coverage="volumetric"):
    """Return the rows of some claims."""
    claims = [claim for claim in CLAIMS if claim.key in keys]
    return study.study(study.units(made), "td3", coverage=coverage, claims=claims)


def verdicts(made, *keys, **options):
    return rows_of(made, *keys, **options).groupby("claim")["verdict"].first().to_dict()


def better(objective, much):
    """An effect: so much more return on the datasets of an objective."""
    return lambda config, task: much * (config.objective == objective)


def paper(config, task):
    jagged = dict(zip(synthetic.QS, (0, 80, -60, 80, -200), strict=True))
    ahead = {"behavioral": 100 - 4 * config.alpha, "renyi": jagged[config.q], "random": -100}
    run = 90 * (config.objective == "renyi" and task == "walker_run")
    return ahead.get(config.objective, -50) + run


def renyi(of_q):
    return {"effect": lambda config, task: of_q(config.q) * (config.objective == "renyi")}


def behavioral(of_alpha):
    return {"effect": lambda c, task: of_alpha(c.alpha) * (c.objective == "behavioral")}


def longer(sign):
    effect = lambda config, task: 200 * (config.label == "long") * sign.get(task, 1)  # noqa: E731
    return {"datasets": LONGER, "effect": effect}


AS_PAPER = dict.fromkeys((*BEST, *CURVES), HOLDS) | {"random": YES, "average-shannon": YES}
AS_PAPER |= {"more-data": NOT_RUN, "learners": NOT_RUN}
SIZES = {"effect": lambda config, task: 100 * (config.intrinsic_reward_scale == "rms")}
# however exactly one lucky dataset of SMM is known
LUCKY = {"effect": better("smm", -80), "between": 30.0, "within": 1.0, "seeds": 30, "seed": 2}
PLANTED = {
    "as the paper says": ({"effect": paper}, AS_PAPER),
    "BE is worst": (behavioral(lambda alpha: -100), dict.fromkeys(BEST, FAILS)),
    "RE falls with q": (renyi(lambda q: -100 * q), {"unstable-q": FAILS, "large-q": HOLDS}),
    "RE rises with q": (renyi(lambda q: 100 * q), {"unstable-q": FAILS, "large-q": FAILS}),
    "BE jumps": (behavioral(lambda a: 60 * (a in (0.2, 0.7, 1.5, 3))), {"smooth-alpha": FAILS}),
    # a large smooth curve has large steps in all orders
    "RE has a plateau": (renyi(lambda q: 150 * (0.2 < q < 1.1)), {"unstable-q": UNDECIDED}),
    "the size of the reward matters": (SIZES, {"size": YES, "shape": NO}),
    "its shape matters": (behavioral(lambda alpha: -30 * alpha), {"size": NO, "shape": YES}),
    "datasets differ": ({"between": 80.0, "within": 10.0}, {"spread": YES}),
    "datasets are equal": ({"between": 0.0, "within": 60.0, "seeds": 20}, {"spread": NO}),
    "datasets might differ": ({"between": 40.0, "within": 40.0}, {"spread": UNDECIDED}),
    "more data help on two tasks": (longer({"walker_walk": -1}), {"more-data": HOLDS}),
    "more data help": (longer({}), {"more-data": FAILS}),
    "many learner seeds": (LUCKY, {"be-smm": UNDECIDED}),
}


@pytest.mark.parametrize(("options", "expected"), PLANTED.values(), ids=PLANTED)
def test_planted_effects_get_their_verdicts(options, expected):
    assert verdicts(synthetic.tables(**{**QUIET, **options}), *expected) == expected


def test_numbers_and_verdicts_are_those_of_the_first_report():
    """Frozen before claims became a table: 50 rows to 1e-9."""
    expected = pd.read_csv(EXAMPLE / "claims.csv")
    rows = study.study(study.units(gather.load(EXAMPLE / "synthetic")), "td3")
    rows = rows[rows["what"] != "von Neumann ratio"]
    rows = rows[(rows["claim"] != "objectives") | (rows["p"] < 0.05)]
    rows = rows[expected.columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(rows, expected, rtol=1e-9, check_dtype=False)


def test_where_nothing_was_planted_verdicts_are_rare():
    """15 experiments; each verdict may be wrong once in 20 on its own."""
    keys = ("be-shannon", "large-q", "smooth-alpha", "objectives")
    tables = (synthetic.tables(seed=seed, **SMALL) for seed in range(15))
    wrong = pd.DataFrame([verdicts(made, *keys) for made in tables]) != UNDECIDED
    assert wrong.sum().max() <= 4  # 1 is expected


def test_the_best_of_many_is_ahead_by_chance_and_the_table_says_how_often():
    rows = rows_of(synthetic.tables(seed=1), "be-smm")
    assert rows["p_if_equal"].between(0.85, 0.92).all(), "eight recipes, one of them three times"
    assert (rows["verdict"] == UNDECIDED).all()
    assert (rows["needed"] >= 10).all()
    assert rows["paper"].round().tolist() == [494, 495, 245]


def test_objectives_that_differ_on_average_are_seen():
    rows = rows_of(synthetic.tables(better("rnd", 60), between=10.0), "objectives")
    assert rows["verdict"].unique() == YES
    few = rows[rows["p"] < 0.05]
    assert few["what"].str.contains("RND").sum() == len(few) == 9, "BE, RE, SE on three tasks"


@pytest.mark.parametrize("coverage", ["volumetric", "net"])
def test_claims_about_coverage_read_the_papers_measure_or_another(coverage):
    made = synthetic.tables(covered=lambda c: 0.5 * (c.objective == "renyi" and c.q < 1), **SMALL)
    expected = {"coverage-q": HOLDS, "coverage-be": FAILS, "coverage-rnd": FAILS}
    expected |= {"coverage-alpha": NOT_RUN, "coverage-alpha-all": UNDECIDED}
    assert verdicts(made, *expected, coverage=coverage) == expected
    ahead = synthetic.tables(covered=lambda c: 0.9 * (c.objective == "rnd"), **SMALL)
    assert verdicts(ahead, "coverage-rnd", coverage=coverage) == {"coverage-rnd": HOLDS}


def test_ranks_of_coverage_and_of_other_learners_go_with_returns_where_it_is_planted():
    """One learner's mean over three datasets says nothing of the other's on one of them."""
    level, two = lambda c: c.q if c.objective == "renyi" else c.alpha, ("td3", "cql")
    effects = {"effect": lambda c, _: 100 * level(c), "covered": lambda c: 0.5 * level(c)}
    expected = {"coverage-returns": HOLDS, "learners": YES}
    assert verdicts(synthetic.tables(learners=two, **effects, **QUIET), *expected) == expected
    made = synthetic.tables(learners=two, between=200.0, within=1.0)
    rows = made.offline
    lacks = (rows["algorithm"] == "cql") & rows["dataset"].str.fullmatch(r"\w+(-[\d.]+)?-s[12]")
    assert (rows_of(made._replace(offline=rows[~lacks]), "learners")["value"] > 0.95).all()
    with pytest.raises(ValueError, match=r"learner and coverage must be of td3, .*, got 'bc'"):
        study.study(study.units(made), "bc")


def test_spreads_that_grow_with_returns_are_seen_and_logarithms_make_them_equal():
    made, random = synthetic.tables(**QUIET), np.random.default_rng(1)
    rows = made.offline[made.offline["objective"].notna()].groupby(["dataset", "task"])["return"]
    for (dataset, _), of_policy in rows:
        level = 1500 if dataset.startswith("rnd") else 50
        made.offline.loc[of_policy.index, "return"] = level * np.exp(random.normal(0, 0.3))
    plain, logs = (
        study.spreads(study.units(made, logarithms=option)).query("source == 'datasets'").head(3)
        for option in (False, True)
    )
    assert plain["p_equal"].max() < 0.01 < logs["p_equal"].min()
    assert abs(logs["sd"].mean() - 0.3) < 0.12
    made.offline.loc[made.offline.index[-1], "return"] = 0.0
    with pytest.raises(ValueError, match="positive"):
        study.units(made, logarithms=True)


def test_noise_is_no_less_than_learner_seeds_alone_give():
    """The means of equal datasets lie closer by chance, half of the time, than seeds allow."""
    above = set()
    for seed in range(10):
        units = study.units(synthetic.tables(between=0.0, seed=seed, tasks=("walker_walk",)))
        noise, between, seeds = (study.spread(units, s) for s in ("noise", "datasets", "seeds"))
        assert noise == (max(between.sd, seeds.sd / np.sqrt(5)), between.df)
        above.add(between.sd > seeds.sd / np.sqrt(5))
    assert above == {True, False}


def test_domains_have_their_own_noise_to_which_long_datasets_do_not_count():
    bodies = [{**options, "domain": "quadruped"} for options in synthetic.grid(repeated=2)]
    made = synthetic.tables(
        lambda c, task: 300 * (c.objective == "behavioral") * (task != "quadruped_walk"),
        datasets=[*bodies, *LONGER],
        tasks=(*synthetic.TASKS, "quadruped_walk"),
        **QUIET,
    )
    spreads = study.spreads(study.units(made).query("measure == 'td3'"))
    spreads = spreads.query("source == 'datasets'").set_index("task")["df"]
    assert spreads.to_dict() == dict.fromkeys(synthetic.TASKS, 6) | {"quadruped_walk": 3}
    assert verdicts(made, "average-shannon") == {"average-shannon": UNDECIDED}
    assert rows_of(made, "coverage-alpha")["task"].tolist() == ["quadruped"]


def test_without_repeated_datasets_there_is_no_noise_and_no_interval():
    single = synthetic.tables(datasets=synthetic.grid(repeated=1))
    rows = rows_of(single, "be-shannon")
    assert rows[["low", "high", "needed"]].isna().all(axis=None)
    assert rows["verdict"].unique() == UNDECIDED
    assert rows_of(single, "spread")["verdict"].tolist() == [NOT_RUN]
    few = study.units(synthetic.tables(datasets=[{"objective": "behavioral"}]))
    assert set(study.study(few, "td3")["verdict"]) == {NOT_RUN}


def test_policies_stand_in_the_papers_order_with_the_same_seeds_for_all_datasets():
    made = synthetic.tables(tasks=("walker_run", "walker_walk", "walker_stand"))
    rows = made.offline
    lacks = (rows["dataset"] == "smm-s0") & (rows["task"] == "walker_run") & (rows["seed"] == 4)
    policies = study.policies(made._replace(offline=rows[~lacks]))
    assert tuple(policies["task"].unique()) == synthetic.TASKS
    recipes = policies["recipe"].unique().tolist()
    assert recipes[:4] == ["SE", "BE α = 0.2", "BE α = 0.5", "BE α = 0.5, rms"]
    assert recipes[-1] == "random actions"
    assert policies.groupby("task")["seed"].nunique().tolist() == [4, 5, 5]


def test_policies_that_diverged_are_in_no_mean():
    made = synthetic.tables(**SMALL)
    made.offline.loc[made.offline["dataset"] == "smm-s0", "return"] = np.nan
    assert "SMM" not in {*study.means(study.units(made).query("measure == 'td3'"))["recipe"]}
    assert verdicts(made, "be-smm") == {"be-smm": NOT_RUN}


def test_the_summary_and_the_verdicts_elsewhere():
    made = synthetic.example()
    summary = study.summary(rows_of(made, "be-smm", "objectives", "coverage-rnd"))
    expected = {"be-smm": "2 of 2", "coverage-rnd": "0 of 1", "objectives": ""}
    assert summary["on_its_side"].to_dict() == expected
    few = synthetic.tables(datasets=synthetic.grid()[::3], learners=("td3", "crr"), **SMALL)
    few.offline.loc[few.offline.index[-1], "return"] = 0.0  # it has no logarithm
    columns = {*study.elsewhere(few)}
    assert {"main", "best evaluations", "crr", "net"} <= columns
    assert "logarithms" not in columns


def test_tables_are_shown_as_markdown():
    table = pd.DataFrame({"task": ["a", None], "value": [1234.5, np.nan]})
    lines = study.markdown(table).data.splitlines()
    assert [line.replace(" ", "") for line in lines[2:]] == ["|a|1.23e+03|", "|||"]
