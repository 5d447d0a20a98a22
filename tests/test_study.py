"""A study finds effects that were planted, and seldom others: SYNTHETIC tables, not results."""

import numpy as np
import pandas as pd
import pytest
import synthetic

from belib import study
from belib.statistics import compare, permutation_p
from belib.study import NOT_RUN, UNDECIDED
from belib.study.claims import PRIMARY, SECONDARY

QUIET = {"between": 10.0, "within": 4.0, "seeds": 2, "steps": (10_000,)}
SMALL = {"tasks": ("walker_stand",), "seeds": 2, "steps": (10_000,)}
HOLDS, FAILS = "reproduced", "not reproduced"
BEST = ("be-shannon", "be-rnd", "be-smm", "be-renyi")
LONGER = {"objective": "shannon", "label": "long", "num_steps": 300_000}
LONG = [*synthetic.grid(), *({**LONGER, "seed": seed} for seed in range(3))]


def verdicts(made, *keys, coverage="volumetric"):
    rows = study.study(study.units(made), "td3", coverage=coverage).set_index("claim")
    return {key: rows.loc[[key], "verdict"].iloc[0] for key in keys}


def paper(config, task):
    jagged = dict(zip(synthetic.QS, (0, 80, -60, 80, -300), strict=True))
    ahead = {"behavioral": 240 - 20 * config.alpha, "renyi": jagged[config.q], "smm": -400}
    run = 300 * (config.objective == "renyi" and task == "walker_run")
    return ahead.get(config.objective, -50) + run


def of(objective, effect):
    """An effect on the datasets of one objective, of its config and the task."""
    return {"effect": lambda config, _: effect(config) * (config.objective == objective)}


def longer(sign):
    return {"datasets": LONG, "effect": lambda c, task: 300 * (c.label == "long") * sign[task]}


AS_PAPER = dict.fromkeys((*BEST, "small-q", "small-alpha", "smm"), HOLDS)
AS_PAPER |= {"more-data": NOT_RUN, "large-q": NOT_RUN}
SIGNS = {"walker_stand": 1, "walker_walk": -1, "walker_run": 1}
PLANTED = {
    "as the paper says": ({"effect": paper}, AS_PAPER),
    "BE is worst": (of("behavioral", lambda c: -150), dict.fromkeys(BEST, FAILS)),
    "RE falls with q": (of("renyi", lambda c: -300 * c.q), {"small-q": HOLDS, "stable": HOLDS}),
    "RE rises with q": (of("renyi", lambda c: 300 * c.q), {"small-q": FAILS, "stable": HOLDS}),
    "BE is unstable": (of("behavioral", lambda c: 99 * (c.alpha in (0.2, 2))), {"stable": FAILS}),
    "more data help on two tasks": (longer(SIGNS), {"more-data": HOLDS}),
    "more data help": (longer(dict.fromkeys(SIGNS, 1)), {"more-data": FAILS}),
}


@pytest.mark.parametrize(("options", "expected"), PLANTED.values(), ids=PLANTED)
def test_planted_effects_get_their_verdicts(options, expected):
    assert verdicts(synthetic.tables(**QUIET, **options), *expected) == expected


def test_a_claim_fails_on_one_task_of_two_at_half_the_level():
    """SMM is ahead, against the paper: with p = 0.035 on one task, and not at all on the other."""
    units = study.units(synthetic.tables(**SMALL | {"tasks": synthetic.TASKS[:2]}))
    covered, two = (units.query(f"measure == '{name}'").copy() for name in ("net", "td3"))
    two["value"] = two["collection"] - 1 + 1e-3 * two["parameter"].fillna(0)
    first, smm = two["task"] == synthetic.TASKS[0], two["objective"] == "smm"
    others = two["main"] & ~two["objective"].isin(["smm", "random"])
    arms = [two.loc[first & side, "value"] for side in (others, smm)]
    two.loc[first & smm, "value"] += compare(*arms, level=0.035).high
    for learnt, verdict in ((two, UNDECIDED), (two[first], FAILS)):
        rows = study.study(pd.concat([learnt, covered]), "td3", coverage="net")
        assert set(rows.loc[rows["claim"] == "smm", "verdict"]) == {verdict}


def test_where_nothing_was_planted_verdicts_are_rare():
    """15 experiments; each verdict may be wrong once in 20 on its own."""
    keys = ("be-shannon", "be-renyi", "small-q", "stable")
    tables = (synthetic.tables(seed=seed, **SMALL) for seed in range(15))
    wrong = pd.DataFrame([verdicts(made, *keys) for made in tables]) != UNDECIDED
    assert wrong.sum().max() <= 4  # 1 is expected


@pytest.mark.parametrize("coverage", ["volumetric", "net"])
def test_claims_about_coverage_read_the_papers_measure_or_another(coverage):
    made = synthetic.tables(covered=lambda c: 0.5 * (c.objective == "renyi" and c.q < 1), **SMALL)
    expected = {"coverage-q": HOLDS, "coverage-be": FAILS, "coverage-rnd": FAILS}
    expected |= {"coverage-alpha": NOT_RUN}
    assert verdicts(made, *expected, coverage=coverage) == expected
    ahead = synthetic.tables(covered=lambda c: 0.9 * (c.objective == "rnd"), **SMALL)
    assert verdicts(ahead, "coverage-rnd", coverage=coverage) == {"coverage-rnd": HOLDS}


def test_ranks_of_coverage_go_with_returns_where_it_is_planted():
    level = lambda c: c.q if c.objective == "renyi" else c.alpha  # noqa: E731
    effects = {"effect": lambda c, _: 100 * level(c), "covered": lambda c: 0.5 * level(c)}
    made = synthetic.tables(**effects, **QUIET)
    assert verdicts(made, "coverage-returns") == {"coverage-returns": HOLDS}
    with pytest.raises(ValueError, match=r"learner and coverage must be of td3, .*, got 'bc'"):
        study.study(study.units(made), "bc")


def test_comparisons_are_those_of_the_datasets_values():
    made = synthetic.tables(**SMALL)
    units = study.units(made).query("measure == 'td3'")
    row = study.compared(units).set_index("pair").loc["BE 0.5 − SE"]
    finals = made.offline.groupby("dataset")["return"].mean()
    one, other = (
        [finals[f"{name}-s{seed}"] for seed in range(3)] for name in ("behavioral-0.5", "shannon")
    )
    difference = compare(one, other)
    assert row[[*difference._fields]].tolist() == pytest.approx(difference)
    assert row["p_permuted"] == permutation_p(one, other)
    assert row["datasets"] == "3 / 3"
    corrected, plain = study.compared(units, corrected=True), study.compared(units)
    for name, same in (("p", False), ("p_permuted", False), ("p_equivalence", True)):
        assert (corrected[name] >= plain[name]).all()
        assert corrected[name].equals(plain[name]) == same
    assert study.compared(units, ["SE, longer − SE"]).empty


def test_the_primary_outcome_by_hand():
    """Mean over tasks of (value - random's mean) over the root of two arms' mean variance."""
    units = study.units(synthetic.tables(tasks=synthetic.TASKS[:2], seeds=2))
    units = units.query("measure == 'td3'")
    outcome = study.outcome(units).set_index("dataset")["value"]
    z = []
    for _, group in units.groupby("task"):
        arms = [group.query(f"objective == '{name}'")["value"] for name in ("random", "shannon")]
        values = group.set_index("dataset")["value"]
        z.append((values - arms[0].mean()) / np.sqrt((arms[0].var() + arms[1].var()) / 2))
    pd.testing.assert_series_equal(outcome, sum(z) / 2, check_like=True, check_names=False)
    lacking = units.drop(units.query("objective == 'behavioral'").index[0])
    assert study.outcome(lacking)["dataset"].nunique() == len(outcome) - 1, "on fewer tasks"
    alone = units[units["objective"] != "random"]
    assert study.outcome(alone).empty, "there is no scale without random actions"


def test_effects_are_seen_in_the_primary_outcome():
    made = synthetic.tables(of("behavioral", lambda c: 200)["effect"], **QUIET)
    units = study.units(made).query("measure == 'td3'")
    rows = study.compared(study.outcome(units), corrected=True)
    assert dict(zip(rows["pair"], rows["verdict"], strict=True)) == dict.fromkeys(PRIMARY, "better")
    assert study.compared(units)["verdict"].unique() == "p < 0.05", "without a correction"
    worse = study.compared(units, ["SE − BE 0.5"], corrected=True)
    assert worse["verdict"].unique() == "worse"
    said = study.findings(worse).data.splitlines()[0]
    assert said.startswith("- Data of SE are worse to learn from than data of BE 0.5 (-")
    assert "; the permutation test disagrees, p = 0.25)." in said, "of three blocks"


def test_exploration_is_shown_by_recipe():
    made = synthetic.tables(**SMALL)
    shown = study.explored(made).set_index("recipe")
    values = made.coverage.query("objective == 'shannon'")["net"]
    assert shown.loc["SE", "net"] == f"{values.mean():.3g} ± {values.std():.2g}"
    measured = made.coverage[["dataset", "seed"]].assign(ball=90.0)
    shown = study.explored(made._replace(exploration=measured[:1]))
    assert shown[["ball", "datasets"]].to_numpy().tolist() == [["90", 1]]


def test_a_task_that_was_not_learnt_bears_no_verdict():
    made = synthetic.tables(of("shannon", lambda c: -300)["effect"], **SMALL, between=2.0)
    units = study.units(made).query("measure == 'td3'")
    assert units["floor"].unique() == pytest.approx(120.5), "that of doing nothing"
    rows = study.compared(units).set_index("pair")["verdict"]
    assert rows["BE 0.5 − SE"] == "nothing learnt"
    assert "nothing learnt" not in rows[["BE 0.5 − RND", "BE 0.5 − random actions"]].tolist()


def test_tables_without_the_return_of_doing_nothing_are_refused():
    made = synthetic.tables(**SMALL)
    learnt = made.offline.query("algorithm != 'zero action'")
    with pytest.raises(ValueError, match=r"doing nothing, got none on .*walker_stand"):
        study.units(made._replace(offline=learnt))


def test_variants_are_compared_where_they_are_asked_for():
    """Objectives without distances have no variants; the size of the reward is a secondary arm."""
    scales = {"": "rms", "unscaled": "none", "observation": "rms"}
    grid = [
        {"objective": name, "seed": seed, "label": label, "intrinsic_reward_scale": scales[label]}
        for name in ("shannon", "behavioral", "rnd", "random")
        for label in scales
        for seed in range(3)
        if not (label and name in ("rnd", "random"))
    ]
    made = synthetic.tables(datasets=grid, **SMALL)
    units = study.units(made, variant="observation")
    main = units.query("main")["recipe"].unique().tolist()
    assert main == ["SE, observation", "BE α = 0.5, observation", "RND", "random actions"]
    pairs = study.compared(units.query("measure == 'td3'"), [*SECONDARY, *PRIMARY])["pair"]
    assert pairs.tolist() == [*SECONDARY[:4], PRIMARY[0], *PRIMARY[2:]]


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


def test_policies_that_diverged_count_as_doing_nothing():
    made = synthetic.tables(**SMALL)
    rows = made.offline
    rows.loc[(rows["dataset"] == "smm-s0") & (rows["seed"] == 0), "return"] = np.nan
    units = study.units(made).query("measure == 'td3'").set_index("dataset")["value"]
    other = rows.query("dataset == 'smm-s0' and seed == 1")["return"].item()
    assert units["smm-s0"] == pytest.approx((120.5 + other) / 2)


def test_means_and_spreads_of_recipes():
    made = synthetic.tables(between=50.0, within=20.0, datasets=synthetic.grid(20), seeds=3)
    means = study.means(study.units(made).query("measure == 'td3'"))
    assert means["datasets"].unique() == 20
    assert means["mean"].between(means["low"], means["high"]).all()
    assert study.spreads(synthetic.tables(datasets=synthetic.grid(1)), "td3").empty


def test_spreads_are_those_of_a_nested_design():
    """Of 400 datasets with 3 seeds and 8 checkpoints each, and of the same checkpoints alone."""
    many = [{"objective": "random", "seed": seed} for seed in range(400)]
    made = synthetic.tables(**SMALL | {"datasets": many, "seeds": 3, "steps": range(8, 16)})
    rows, random = made.offline, np.random.default_rng(0)
    for sds in ((3, 2, 5), (0, 0, 5)):
        rows["return"] = 0.0
        for depth, sd in enumerate(sds, 1):
            number = rows.groupby(["dataset", "seed", "step"][:depth]).ngroup()
            rows["return"] += sd * random.normal(size=len(rows))[number]
        (spreads,) = study.spreads(made, "td3")[["dataset", "seed", "checkpoint"]].to_numpy()
        assert spreads[2] == pytest.approx(5, rel=0.05)
        assert spreads[:2] == pytest.approx(sds[:2], abs=0.7)


def test_the_summary_of_claims():
    made = synthetic.example()
    tests = study.study(study.units(made), "td3")
    summary = study.summary(tests)
    assert summary.loc["be-smm", "on_its_side"] == "2 of 2"
    assert summary.loc["coverage-rnd", "on_its_side"].endswith("of 1")
    assert summary.loc["more-data"].tolist()[1:] == ["", NOT_RUN]


def test_tables_are_shown_as_markdown():
    table = pd.DataFrame({"task": ["a", None], "value": [1234.5, np.nan]})
    lines = study.markdown(table).data.splitlines()
    assert [line.replace(" ", "") for line in lines[2:]] == ["|a|1.23e+03|", "|||"]
    assert study.markdown(table[:0]).data == "*None.*"
