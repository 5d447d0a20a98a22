"""A study finds effects that were planted, and seldom others: SYNTHETIC tables, not results."""

import numpy as np
import pandas as pd
import pytest
import synthetic

from belib import gather, study
from belib.gather import Tables
from belib.paths import ROOT
from belib.study import CLAIMS, NOT_RUN, UNDECIDED

EXAMPLE = ROOT / "tests" / "data" / "study"
QUIET = {"between": 2.0, "within": 4.0}
SMALL = {"tasks": ("walker_stand",), "seeds": 2, "steps": (10_000,)}
HOLDS, FAILS, YES, NO = "reproduced", "not reproduced", "yes", "no"


def rows_of(made, *keys, **options):
    """Return the rows of some claims."""
    return study.study(made, claims=[claim for claim in CLAIMS if claim.key in keys], **options)


def verdicts(effect, *keys, **options):
    rows = rows_of(synthetic.tables(effect, **{**QUIET, **options}), *keys)
    found = rows.groupby("claim")["verdict"].first()
    return [found[key] for key in keys]


def better(objective, much, *, when=lambda config: True):
    """An effect: so much more return on the datasets of an objective."""
    return lambda config, task: much * (config.objective == objective and when(config))


def test_numbers_and_verdicts_are_those_of_the_first_report():
    """Frozen before claims became a table: 50 rows to 1e-9."""
    expected = pd.read_csv(EXAMPLE / "claims.csv")
    rows = study.study(gather.load(EXAMPLE / "synthetic"))
    rows = rows[rows["what"] != "von Neumann ratio"]
    rows = rows[(rows["claim"] != "objectives") | (rows["p"] < 0.05)]
    assert rows["claim"].tolist() == expected["claim"].tolist()
    pd.testing.assert_frame_equal(
        rows[expected.columns].reset_index(drop=True), expected, rtol=1e-9, check_dtype=False
    )


def test_what_the_paper_says_is_reproduced_where_it_is_planted():
    def effect(config, task):
        jagged = dict(zip(synthetic.QS, (0, 80, -60, 80, -200), strict=True))
        ahead = {"behavioral": 100 - 4 * config.alpha, "renyi": jagged[config.q]}
        behind = 90 * (config.objective == "renyi" and task == "walker_run")
        return ahead.get(config.objective, {"random": -100}.get(config.objective, -50)) + behind

    best = ("be-shannon", "be-rnd", "be-smm", "be-renyi")
    keys = (*best, "smooth-alpha", "unstable-q", "large-q")
    assert set(verdicts(effect, *keys)) == {HOLDS}
    assert verdicts(effect, "random", "average-shannon") == [YES, YES]
    assert verdicts(effect, "more-data", "learners") == [NOT_RUN, NOT_RUN]
    assert set(verdicts(better("behavioral", -100), *best)) == {FAILS}
    assert verdicts(better("behavioral", -100), "average-renyi") == [NO]


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        (lambda c, _: -100 * c.q * (c.objective == "renyi"), [UNDECIDED, FAILS, HOLDS]),
        (lambda c, _: 100 * c.q * (c.objective == "renyi"), [UNDECIDED, FAILS, FAILS]),
        (better("behavioral", 60, when=lambda c: c.alpha in (0.2, 0.7, 1.5, 3)), [FAILS]),
        # a large smooth curve is not unstable: its steps are large in all orders
        (
            better("renyi", 150, when=lambda c: 0.2 < c.q < 1.1),
            [UNDECIDED, UNDECIDED],
        ),
    ],
)
def test_curves_over_the_parameter(effect, expected):
    keys = ("smooth-alpha", "unstable-q", "large-q")[: len(expected)]
    assert verdicts(effect, *keys) == expected


def test_where_nothing_was_planted_nothing_is_found():
    """25 experiments; each verdict may be wrong once in 20 on its own."""
    keys = ("be-shannon", "be-renyi", "large-q", "smooth-alpha", "unstable-q", "objectives")
    wrong = dict.fromkeys(keys, 0)
    for seed in range(25):
        rows = rows_of(synthetic.tables(seed=seed, **SMALL), *keys)
        for key, verdict in rows.groupby("claim")["verdict"].first().items():
            wrong[key] += verdict != UNDECIDED
    assert max(wrong.values()) <= 5, wrong  # 1 is expected


def test_the_best_of_many_is_ahead_by_chance_and_the_table_says_how_often():
    rows = rows_of(synthetic.tables(seed=1), "be-smm")
    assert rows["p_if_equal"].between(0.85, 0.92).all(), "eight recipes, one of them three times"
    assert (rows["verdict"] == UNDECIDED).all()
    assert (rows["needed"] >= 10).all()
    assert rows["paper"].round().tolist() == [494, 495, 245]


def test_more_learner_seeds_do_not_make_more_datasets():
    """One lucky dataset of SMM is no finding, however exactly it is known."""
    lucky = better("smm", -80)
    for seeds in (2, 30):
        options = {"seeds": seeds, "between": 30.0, "within": 1.0, "seed": 2}
        assert verdicts(lucky, "be-smm", **options) == [UNDECIDED]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"between": 80.0, "within": 10.0}, YES),
        ({"between": 0.0, "within": 60.0, "seeds": 20}, NO),
        ({"between": 40.0, "within": 40.0, "seeds": 10}, UNDECIDED),
    ],
)
def test_datasets_and_seeds_are_told_apart(options, expected):
    rows = rows_of(synthetic.tables(**options), "spread")
    assert rows["verdict"].unique() == expected
    assert set(rows["on_its_side"]) <= {expected == YES, expected != NO}


def test_size_and_shape_of_the_reward_are_told_apart():
    size = lambda config, task: 100 * (config.intrinsic_reward_scale == "rms")  # noqa: E731
    assert verdicts(size, "size", "shape") == [YES, NO]
    shape = lambda config, task: -30 * config.alpha * (config.objective == "behavioral")  # noqa: E731
    assert verdicts(shape, "size", "shape") == [NO, YES]


def test_objectives_that_differ_on_average_are_found():
    rows = rows_of(synthetic.tables(better("rnd", 60), between=10.0), "objectives")
    assert rows["verdict"].unique() == YES
    few = rows[rows["p"] < 0.05]
    assert few["what"].str.contains("RND").sum() == len(few) == 9, "BE, RE, SE on three tasks"


def test_coverage_claims_read_the_papers_measure_or_another():
    covered = lambda config: 0.5 * (config.objective == "renyi" and config.q < 1)  # noqa: E731
    made = synthetic.tables(covered=covered, **SMALL)
    keys = ("coverage-q", "coverage-be", "coverage-rnd", "coverage-alpha", "coverage-alpha-all")
    for measure in (gather.VOLUMETRIC, "net"):
        found = rows_of(made, *keys, coverage=measure).groupby("claim")["verdict"].first()
        assert [found[key] for key in keys] == [HOLDS, FAILS, FAILS, NOT_RUN, UNDECIDED]
    ahead = synthetic.tables(covered=lambda config: 0.9 * (config.objective == "rnd"), **SMALL)
    assert rows_of(ahead, "coverage-rnd")["verdict"].tolist() == [HOLDS]


def test_coverage_goes_with_returns_where_both_are_planted():
    level = lambda config: config.q if config.objective == "renyi" else config.alpha  # noqa: E731
    made = synthetic.tables(
        lambda config, task: 100 * level(config),
        covered=lambda config: 0.5 * level(config),
        **QUIET,
    )
    rows = rows_of(made, "coverage-returns")
    assert rows["verdict"].unique() == HOLDS
    assert (rows["value"] > 0.5).all()


def test_more_data_are_recognised_by_their_steps_and_have_a_sign_for_each_task():
    grid = [*synthetic.grid(), {"objective": "shannon", "label": "long", "num_steps": 300_000}]
    sign = {"walker_stand": 1, "walker_run": 1, "walker_walk": -1}
    as_said = lambda config, task: 200 * (config.label == "long") * sign[task]  # noqa: E731
    assert verdicts(as_said, "more-data", datasets=grid) == [HOLDS]
    always = lambda config, task: 200 * (config.label == "long")  # noqa: E731
    rows = rows_of(synthetic.tables(always, datasets=grid, **QUIET), "more-data")
    assert rows["verdict"].unique() == FAILS
    assert rows["on_its_side"].tolist() == [True, False, True]
    noise = study.spreads(study.units(synthetic.tables(always, datasets=grid)))
    assert (noise.query("source == 'datasets'")["df"] == 6).all(), "long datasets are no repetition"


def test_learners_that_agree_and_on_which_datasets():
    """One learner's mean over three datasets says nothing of the other's on one of them."""
    effect = lambda config, task: 50 * config.q + 20 * config.alpha  # noqa: E731
    made = synthetic.tables(effect, learners=("td3", "cql"), **QUIET)
    assert rows_of(made, "learners")["verdict"].unique() == YES
    made = synthetic.tables(learners=("td3", "cql"), between=200.0, within=1.0)
    rows = made.offline
    lacks = (rows["algorithm"] == "cql") & rows["dataset"].str.fullmatch(r"\w+(-[\d.]+)?-s[12]")
    fewer = Tables(rows[~lacks], made.datasets, made.coverage, made.provenance)
    assert (rows_of(fewer, "learners")["value"] > 0.95).all()
    with pytest.raises(ValueError, match="learner must be one of td3, cql, got 'bc'"):
        study.study(made, learner="bc")


def test_spreads_that_grow_with_returns_are_noticed_and_logarithms_make_them_equal():
    made = synthetic.tables(between=0.0, within=0.0)
    random, rows = np.random.default_rng(1), made.offline
    exploring = rows["objective"].notna()
    names = rows.loc[exploring, "dataset"] + rows.loc[exploring, "task"]
    own = {name: random.normal(0, 0.3) for name in names.unique()}
    rows.loc[exploring, "return"] = [
        (1500 if name.startswith("rnd") else 50) * np.exp(own[name]) for name in names
    ]
    plain, logs = (
        study.spreads(study.units(made, logarithms=each)).query("source == 'datasets'").head(3)
        for each in (False, True)
    )
    assert plain["p_equal"].max() < 0.01 < logs["p_equal"].min()
    assert abs(logs["sd"].mean() - 0.3) < 0.12
    rows.loc[rows.index[-1], "return"] = 0.0
    with pytest.raises(ValueError, match="positive"):
        study.units(made, logarithms=True)


def test_noise_is_no_less_than_learner_seeds_alone_give():
    """The means of equal datasets lie closer by chance, half of the time, than seeds allow."""
    above = set()
    for seed in range(10):
        units = study.units(synthetic.tables(between=0.0, seed=seed, tasks=("walker_walk",)))
        units = units[units["measure"] == "td3"]
        between, seeds = (study.spread(units, source) for source in ("datasets", "seeds"))
        assert study.noise(units) == (max(between.sd, seeds.sd / np.sqrt(5)), between.df)
        above.add(between.sd > seeds.sd / np.sqrt(5))
    assert above == {True, False}


def test_two_domains_have_their_own_noise():
    bodies = [{**each, "domain": "quadruped"} for each in synthetic.grid(repeated=2)]
    made = synthetic.tables(
        lambda config, task: 300 * (config.objective == "behavioral") * (task != "quadruped_walk"),
        datasets=[*synthetic.grid(), *bodies],
        tasks=(*synthetic.TASKS, "quadruped_walk"),
        **QUIET,
    )
    spreads = study.spreads(study.units(made).query("measure == 'td3'"))
    assert spreads.query("source == 'datasets'")["df"].tolist() == [6, 6, 6, 3]
    assert rows_of(made, "average-shannon")["verdict"].unique() == UNDECIDED
    assert rows_of(made, "coverage-alpha")["task"].tolist() == ["quadruped"]


def test_without_repeated_datasets_there_is_no_noise_and_no_interval():
    single = synthetic.tables(datasets=synthetic.grid(repeated=1))
    rows = rows_of(single, "be-shannon")
    assert rows[["low", "high", "needed"]].isna().all(axis=None)
    assert rows["verdict"].unique() == UNDECIDED
    assert rows_of(single, "spread")["verdict"].tolist() == [NOT_RUN]
    few = study.study(synthetic.tables(datasets=[{"objective": "behavioral"}]))
    assert set(few["verdict"]) == {NOT_RUN}


def test_all_datasets_have_the_same_learner_seeds():
    made = synthetic.tables()
    rows = made.offline
    lacks = (rows["dataset"] == "smm-s0") & (rows["task"] == "walker_run") & (rows["seed"] == 4)
    made = Tables(rows[~lacks], made.datasets, made.coverage, made.provenance)
    seeds = study.policies(made, "td3").groupby("task")["seed"].unique()
    assert set(seeds["walker_run"]) == {0, 1, 2, 3}
    assert set(seeds["walker_walk"]) == {0, 1, 2, 3, 4}


def test_tasks_and_recipes_stand_in_the_papers_order():
    made = synthetic.tables(tasks=("walker_run", "walker_walk", "walker_stand"))
    policies = study.policies(made, "td3")
    assert tuple(policies["task"].unique()) == synthetic.TASKS
    recipes = policies["recipe"].unique().tolist()
    assert recipes[:4] == ["SE", "BE α = 0.2", "BE α = 0.5", "BE α = 0.5, rms"]
    assert recipes[-1] == "random actions"


def test_policies_that_diverged_are_in_no_mean():
    made = synthetic.tables()
    made.offline.loc[made.offline["dataset"] == "smm-s0", "return"] = np.nan
    means = study.means(study.units(made).query("measure == 'td3'"))
    assert "SMM" not in set(means["recipe"])
    assert rows_of(made, "be-smm")["verdict"].tolist() == [NOT_RUN]


def test_the_summary_and_the_verdicts_elsewhere():
    made = synthetic.example()
    claims = [claim for claim in CLAIMS if claim.key in ("be-smm", "objectives", "coverage-rnd")]
    summary = study.summary(study.study(made, claims=claims))
    assert summary["on_its_side"].to_dict() == {
        "be-smm": "2 of 2",
        "coverage-rnd": "0 of 1",
        "objectives": "",
    }
    elsewhere = study.elsewhere(made, claims)
    assert {"main", "best evaluations", "logarithms", "CRR", "net"} <= {*elsewhere.columns}
    made.offline.loc[made.offline.index[-1], "return"] = 0.0
    assert "logarithms" not in study.elsewhere(made, claims)


def test_tables_are_shown_as_markdown():
    table = pd.DataFrame({"task": ["a", None], "value": [1234.5, np.nan]})
    lines = study.markdown(table).data.splitlines()
    assert [line.replace(" ", "") for line in lines[2:]] == ["|a|1.23e+03|", "|||"]
