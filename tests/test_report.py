"""The report finds what was planted, and seldom what was not: SYNTHETIC tables, not results."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import synthetic

from belib import datasets, report, results
from belib.config import OfflineConfig
from belib.paths import ROOT
from belib.report import (
    NOT,
    NOT_RUN,
    REPRODUCED,
    UNDECIDED,
    claims,
    coverage_claims,
    gather,
    questions,
    tables,
)
from belib.report.__main__ import main as command_line

EXAMPLE = ROOT / "tests" / "data" / "report"
QUIET = {"between": 2.0, "within": 4.0}


def cells(effect=lambda config, task: 0.0, **options):
    return report.cells(synthetic.tables(effect, **options), "td3")


def better(objective, much, *, when=lambda config: True):
    """An effect: so much more return on the datasets of an objective."""
    return lambda config, task: much * (config.objective == objective and when(config))


def verdicts(effect, **options):
    found = report.study(synthetic.tables(effect, **{**QUIET, **options}))
    return {each.statement.key: each.verdict for each in found.findings}


def test_what_the_paper_says_is_reproduced_where_it_is_planted():
    def effect(config, task):
        jagged = dict(zip(synthetic.QS, (0, 80, -60, 80, -200), strict=True))
        ahead = {"behavioral": 100 - 4 * config.alpha, "renyi": jagged[config.q]}
        behind = 90 * (config.objective == "renyi" and task == "walker_run")
        return ahead.get(config.objective, {"random": -100}.get(config.objective, -50)) + behind

    found = verdicts(effect)
    for key in ("be-shannon", "be-rnd", "be-smm", "be-renyi", "smooth-alpha", "unstable-q"):
        assert found[key] == REPRODUCED, key
    assert found["large-q"] == REPRODUCED
    assert found["random"] == found["average-shannon"] == questions.YES
    assert found["more-data"] == found["learners"] == NOT_RUN


def test_what_is_planted_the_other_way_round_is_not_reproduced():
    found = verdicts(better("behavioral", -100))
    for key in ("be-shannon", "be-rnd", "be-smm", "be-renyi"):
        assert found[key] == NOT, key
    assert found["average-renyi"] == questions.NO
    jagged = better("behavioral", 60, when=lambda config: config.alpha in (0.2, 0.7, 1.5, 3.0))
    assert verdicts(jagged)["smooth-alpha"] == NOT
    falling = lambda config, task: -100 * config.q * (config.objective == "renyi")  # noqa: E731
    found = verdicts(falling)
    assert (found["unstable-q"], found["large-q"]) == (NOT, REPRODUCED)
    rising = lambda config, task: 100 * config.q * (config.objective == "renyi")  # noqa: E731
    assert verdicts(rising)["large-q"] == NOT


def test_where_nothing_was_planted_nothing_is_found():
    """40 experiments without effects; each verdict may be wrong once in 20 on its own."""
    wrong = {key: 0 for key in ("be-shannon", "be-renyi", "large-q", "smooth-alpha", "unstable-q")}
    for seed in range(40):
        own = [null_cell(seed)]
        for found in (
            claims.beats(own, "shannon"),
            claims.beats_renyi(own),
            claims.large_q_is_poor(own),
            claims.smooth_in_alpha(own),
            claims.unstable_in_q(own),
        ):
            wrong[found.statement.key] += found.verdict != UNDECIDED
    assert max(wrong.values()) <= 5, wrong  # 2 are expected


def null_cell(seed):
    """One task of the laptop experiment without differences between recipes."""
    units = cells.units.assign(value=400 + np.random.default_rng(seed).normal(0, 30, cells.size))
    return tables.Cell("walker_stand", "walker", units, 5)


cells.units = report.cells(synthetic.tables(), "td3")[0].units
cells.size = len(cells.units)


def test_the_best_of_many_wins_by_luck_and_the_report_says_so():
    found = claims.beats(cells(seed=1), "smm")
    assert "Were all recipes equal it would be there 8" in found.words
    assert found.verdict == UNDECIDED
    assert "datasets of each recipe" in found.decide


def test_more_learner_seeds_do_not_make_more_datasets():
    """One lucky dataset of SMM is no finding, however exactly it is known."""
    lucky = better("smm", -80)
    few, many = (
        claims.beats(cells(lucky, seeds=n, within=1.0, seed=2), "smm").verdict for n in (2, 30)
    )
    assert few == many == UNDECIDED


def test_datasets_and_seeds_are_told_apart():
    wide = questions.spread(cells(between=80.0, within=10.0))
    assert wide.verdict == questions.YES
    narrow = questions.spread(cells(between=0.0, within=60.0, seeds=20))
    assert narrow.verdict == questions.NO
    rows = questions.spread(cells(between=40.0, within=40.0, seeds=10)).rows
    assert (rows["low"] < 1).all()
    assert (rows["high"] > 1).all()


def test_size_and_shape_of_the_reward_are_told_apart():
    size = lambda config, task: 100 * (config.intrinsic_reward_scale == "rms")  # noqa: E731
    found = verdicts(size)
    assert (found["size"], found["shape"]) == (questions.YES, questions.NO)
    shape = lambda config, task: -30 * config.alpha * (config.objective == "behavioral")  # noqa: E731
    found = verdicts(shape)
    assert (found["size"], found["shape"]) == (questions.NO, questions.YES)


def test_coverage_claims_read_the_papers_measure():
    covered = lambda config: 0.5 * (config.objective == "renyi" and config.q < 1)  # noqa: E731
    made = synthetic.tables(covered=covered)
    found = coverage_claims.small_q(made)
    assert found.verdict == REPRODUCED
    assert found.rows["where"].iloc[0] == "walker, volumetric"
    assert coverage_claims.families(made).verdict == NOT
    assert coverage_claims.rnd_covers_most(made).verdict == NOT
    assert coverage_claims.small_alpha(made).verdict == NOT_RUN, "the paper says it of Quadruped"
    anywhere = coverage_claims.small_alpha_anywhere(made, (questions.YES, questions.NO))
    assert anywhere.verdict == UNDECIDED
    ahead = synthetic.tables(covered=lambda config: 0.9 * (config.objective == "rnd"))
    assert coverage_claims.rnd_covers_most(ahead).verdict == REPRODUCED


def test_coverage_goes_with_returns_where_both_are_planted():
    level = lambda config: config.q if config.objective == "renyi" else config.alpha  # noqa: E731
    made = synthetic.tables(
        lambda config, task: 100 * level(config),
        covered=lambda config: 0.5 * level(config),
        **QUIET,
    )
    found = coverage_claims.coverage_and_returns(made, report.cells(made, "td3"))
    assert found.verdict == REPRODUCED
    assert (found.rows["value"] > 0.5).all()


def test_more_data_are_recognised_by_their_steps():
    """Each task in the paper's direction: stand and run gain, walk loses."""
    grid = [*synthetic.grid(), {"objective": "shannon", "label": "long", "num_steps": 300_000}]
    sign = {"walker_stand": 1, "walker_run": 1, "walker_walk": -1}
    as_said = lambda config, task: 200 * (config.label == "long") * sign[task]  # noqa: E731
    found = claims.more_data(cells(as_said, datasets=grid, **QUIET))
    assert found.verdict == REPRODUCED
    assert all(found.sides)
    always = lambda config, task: 200 * (config.label == "long")  # noqa: E731
    found = claims.more_data(cells(always, datasets=grid, **QUIET))
    assert found.verdict == NOT
    assert list(found.sides) == [True, False, True]
    assert claims.more_data(cells(datasets=grid, between=60.0)).verdict == UNDECIDED


def test_variants_of_a_learner_have_names(tmp_path):
    """What is not a learner's default, such as its precision, is part of its name in tables."""
    synthetic.write(synthetic.tables(learners=("cql", "td3-bfloat16")), tmp_path / "synthetic")
    assert report.load(tmp_path / "synthetic").learners == ["td3-bfloat16", "cql"]
    text = report.readme(tmp_path)
    assert "TD3 (bfloat16) learnt from 26 of them" in text
    assert "\n- CQL (" in text


def test_a_large_smooth_curve_is_not_unstable():
    """Its steps are larger than luck's; so are they in all other orders."""
    hump = dict(zip(synthetic.QS, (0, 150, 200, 150, 0), strict=True))
    effect = lambda config, task: hump[config.q] * (config.objective == "renyi")  # noqa: E731
    wrong = [claims.unstable_in_q(cells(effect, seed=seed, **QUIET)).verdict for seed in range(5)]
    assert REPRODUCED not in wrong


def test_objectives_that_differ_on_average_are_found():
    """Without a choice of a best one; and seldom where nothing is planted."""
    made = cells(better("rnd", 60), between=10.0)
    found = questions.objectives_differ(made)
    assert found.verdict == questions.YES
    assert found.rows["what"].str.contains("RND").sum() == 9, "BE, RE and SE on three tasks"
    small = {"seeds": 1, "steps": (10_000,)}
    many = [questions.objectives_differ(cells(seed=seed, **small)) for seed in range(40)]
    nothing = [found.verdict for found in many]
    assert nothing.count(questions.YES) <= 6, "5 % of 40, and 3 standard deviations"


def test_spreads_that_grow_with_returns_are_noticed_and_logarithms_make_them_equal():
    made = synthetic.tables(between=0.0, within=0.0)
    random, rows = np.random.default_rng(1), made.offline
    exploring = rows["objective"].notna()
    names = rows.loc[exploring, "dataset"] + rows.loc[exploring, "task"]
    own = {name: random.normal(0, 0.3) for name in names.unique()}
    rows.loc[exploring, "return"] = [
        (1500 if name.startswith("rnd") else 50) * np.exp(own[name]) for name in names
    ]
    plain, logs = (report.cells(made, "td3", logarithms=each) for each in (False, True))
    assert max(cell.equal_spread for cell in plain) < 0.01
    assert min(cell.equal_spread for cell in logs) > 0.01
    assert abs(np.mean([cell.noise.sd for cell in logs]) - 0.3) < 0.12
    rows.loc[rows.index[-1], "return"] = 0.0
    with pytest.raises(ValueError, match="positive"):
        report.cells(made, "td3", logarithms=True)


def test_a_policy_that_earns_nothing_leaves_logarithms_out(tmp_path):
    made = synthetic.tables()
    made.offline.loc[made.offline.index[-1], "return"] = 0.0
    synthetic.write(made, tmp_path / "synthetic")
    text = report.readme(tmp_path)
    assert "- Logarithms of returns" not in text
    assert "- Best evaluation" in text


def test_learners_that_agree():
    effect = lambda config, task: 50 * config.q + 20 * config.alpha  # noqa: E731
    made = synthetic.tables(effect, learners=("td3", "cql"), **QUIET)
    assert report.study(made)["learners"].verdict == questions.YES


def test_learners_are_compared_on_the_datasets_that_both_learnt_from():
    """One learner's mean over three datasets says nothing of the other's on one of them."""
    made = synthetic.tables(learners=("td3", "cql"), between=200.0, within=1.0)
    rows = made.offline
    lacks = (rows["algorithm"] == "cql") & rows["dataset"].str.fullmatch(r"\w+(-[\d.]+)?-s[12]")
    fewer = tables.Tables(rows[~lacks], made.datasets, made.coverage, made.provenance)
    found = report.study(fewer)["learners"]
    assert (found.rows["value"] > 0.95).all()


def test_luck_is_no_less_than_that_of_learner_seeds():
    """The means of equal datasets lie closer by chance, half of the time, than seeds allow."""
    found = [cells(between=0.0, seed=seed, tasks=("walker_walk",))[0] for seed in range(10)]
    least = [cell.within.sd / np.sqrt(5) for cell in found]
    above = [cell.between.sd > each for cell, each in zip(found, least, strict=True)]
    assert set(above) == {True, False}
    for cell, each in zip(found, least, strict=True):
        assert cell.noise == (max(cell.between.sd, each), cell.between.df)


def test_returns_of_all_learners_stand_beside_each_other(tmp_path):
    made = synthetic.tables(learners=("td3", "cql"), between=0.01, within=0.01)
    rows = made.offline
    lacks = (rows["algorithm"] == "cql") & ~rows["dataset"].isin(["rnd-s0", "smm-s0"])
    synthetic.write(
        tables.Tables(rows[~lacks], made.datasets, made.coverage, made.provenance),
        tmp_path / "synthetic",
    )
    text = report.readme(tmp_path).partition("### Learners on the same datasets")[2]
    assert "| task | recipe | dataset of it | TD3 | CQL |" in text
    (row,) = [line for line in text.splitlines() if "Walker walk | RND | rnd-s0" in line]
    assert row.count("| 400 (0.0") == 2
    assert "rnd-s1" not in text


def test_two_domains_stand_side_by_side(tmp_path):
    """Each with its own luck, counts and table; a claim on all tasks is about those of both."""
    walker = synthetic.grid()
    bodies = [{**each, "domain": "quadruped"} for each in synthetic.grid(repeated=2)]
    tasks = (*synthetic.TASKS, "quadruped_walk")
    long = [{"objective": "shannon", "label": "long", "num_steps": 300_000}]
    made = synthetic.tables(
        lambda config, task: 300 * (config.objective == "behavioral") * (task != "quadruped_walk"),
        datasets=[*walker, *bodies, *long],
        tasks=tasks,
        **QUIET,
    )
    study = report.study(made)
    assert [cell.noise.df for cell in study.cells] == [6, 6, 6, 3]
    assert study["average-shannon"].verdict == UNDECIDED
    assert coverage_claims.small_alpha(made).verdict != NOT_RUN
    synthetic.write(made, tmp_path / "synthetic")
    text = report.readme(tmp_path)
    assert "Walker: 27 datasets of 50,000 and 300,000 steps" in text
    assert "6 (Walker), 3 (Quadruped) degrees of freedom" in text
    assert "| recipe | datasets | Quadruped walk |" in text


def test_without_repeated_datasets_there_is_no_measure_of_luck():
    single = cells(datasets=synthetic.grid(repeated=1))
    found = claims.beats(single, "shannon")
    assert found.verdict == UNDECIDED
    assert found.decide.startswith("Two or more datasets of some recipe")
    assert found.rows["low"].isna().all()
    assert questions.spread(single).verdict == NOT_RUN


def test_what_is_missing_is_not_run_and_says_what_it_takes():
    found = claims.beats(cells(datasets=[{"objective": "shannon"}]), "shannon")
    assert (found.verdict, found.decide) == (NOT_RUN, "It takes datasets of BE and SE.")


def test_all_datasets_have_the_same_learner_seeds():
    made = synthetic.tables()
    rows = made.offline
    lacks = (rows["dataset"] == "smm-s0") & (rows["task"] == "walker_run") & (rows["seed"] == 4)
    made = tables.Tables(rows[~lacks], made.datasets, made.coverage, made.provenance)
    seeds = report.policies(made, "td3").groupby("task")["seed"].unique()
    assert set(seeds["walker_run"]) == {0, 1, 2, 3}
    assert set(seeds["walker_walk"]) == {0, 1, 2, 3, 4}


def test_tasks_stand_in_the_papers_order():
    made = synthetic.tables(tasks=("walker_run", "walker_walk", "walker_stand"))
    assert [cell.name for cell in report.cells(made, "td3")] == list(synthetic.TASKS)
    assert tuple(report.policies(made, "td3")["task"].unique()) == synthetic.TASKS


def test_policies_that_diverged_are_in_no_mean():
    made = synthetic.tables()
    made.offline.loc[made.offline["dataset"] == "smm-s0", "return"] = np.nan
    assert "SMM" not in set(report.means(report.cells(made, "td3"))["recipe"])
    assert report.study(made)["be-smm"].verdict == NOT_RUN


def test_the_text_follows_the_numbers(tmp_path):
    texts = {}
    for name, much in (("up", 150), ("down", -150)):
        made = synthetic.tables(better("behavioral", much), tasks=("walker_walk",), **QUIET)
        synthetic.write(made, tmp_path / name / "synthetic")
        texts[name] = report.readme(tmp_path / name)
    line = "| BE (its best α) does better than SE on all tasks | {} of 1 | **{}** |"
    assert line.format(1, "reproduced") in texts["up"]
    assert line.format(0, "not reproduced") in texts["down"]
    assert "| zero action |  | 122 |" in texts["up"]
    assert "| RND |" in texts["up"]
    assert "| RND | 3 | -" not in texts["up"]
    assert "BE's best α is above SE on 0 of 1 tasks" in texts["down"]
    assert "| BE α = 0.2 | 1 |" in texts["up"]


def test_tables_are_read_as_they_were_written(tmp_path):
    made = synthetic.example()
    synthetic.write(made, tmp_path)
    read = report.load(tmp_path)
    pd.testing.assert_frame_equal(
        read.offline, made.offline.reset_index(drop=True), check_dtype=False
    )
    pd.testing.assert_frame_equal(read.coverage, made.coverage, check_dtype=False)
    (tmp_path / "coverage.csv").unlink()
    with pytest.raises(ValueError, match=r"coverage.csv is missing"):
        report.load(tmp_path)


def test_the_example_is_what_its_maker_makes(tmp_path):
    synthetic.write(synthetic.example(), tmp_path)
    for file in tmp_path.iterdir():
        assert file.read_text() == (EXAMPLE / "synthetic" / file.name).read_text(), file.name


def test_the_committed_report_is_what_the_committed_tables_give():
    """`make report` writes it; results/measured.md has the part that is typed."""
    assert report.readme("results") == (ROOT / "results" / "README.md").read_text()


@pytest.fixture
def runs(tmp_path, make_dataset):
    """Two finished datasets, a policy on each, one policy that is not finished, and baselines."""
    for name in ("random-s0", "random-s1"):
        made = make_dataset(name, lengths=(60, 60), seed=int(name[-1]))
        steps = {"step": np.arange(1, 3) * 60, "intrinsic_reward": [1.0, 3.0]}
        pd.DataFrame(steps).to_csv(made.folder / "metrics.csv", index=False)
        learn(tmp_path, OfflineConfig(dataset=name, num_steps=10, scale="test"), made, 10)
        later = OfflineConfig(dataset=name, num_steps=10, scale="test", seed=1)
        learn(tmp_path, later, made, 5 if name == "random-s1" else 10)
    floor(tmp_path, results.BASELINES)
    return tmp_path


def floor(runs_dir, names):
    for name in names:
        folder = (
            runs_dir / "offline" / "walker" / "none" / name.replace(" ", "-") / "walker_stand-s0"
        )
        folder.mkdir(parents=True)
        changes = {"algorithm": name, "dataset": "none"}
        row = results.row(OfflineConfig(scale="test"), None, 0, np.array([1.0]), "abc", **changes)
        results.write(folder / "results.csv", pd.DataFrame([row]))


def learn(runs_dir, config, dataset, steps):
    parts = (config.domain, config.dataset, config.variant, f"{config.task}-s{config.seed}")
    folder = runs_dir.joinpath("offline", *parts)
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(config.to_yaml())
    rows = [
        results.row(config, dataset.config(), step, np.array([step / 3]), "abc")
        for step in range(5, steps + 1, 5)
    ]
    results.write(folder / "results.csv", pd.DataFrame(rows))


def test_finished_runs_become_tables_and_unfinished_ones_are_named(runs, tmp_path):
    to = report.commit_results(runs, tmp_path / "tables" / "test", size=100)
    assert sorted(file.name for file in to.iterdir()) == sorted(gather.FILES)
    found = report.load(to)
    kept = found.offline.groupby("dataset")["seed"].unique()
    assert found.baselines["return"].tolist() == [1.0, 1.0]
    assert (len(kept["random-s0"]), len(kept["random-s1"])) == (2, 1)
    assert found.offline["return"].max() == 3.33, "two decimals"
    assert found.offline["scale"].eq("test").all(), "constants come back"
    assert "status" not in (to / "offline.csv").read_text().partition("\n")[0]
    waiting = found.provenance["not finished"]["policies"]
    assert waiting == ["walker/td3/random-s1/walker_stand/1"]
    described = found.datasets.set_index("dataset")
    assert described["intrinsic_reward"].tolist() == [2.0, 2.0]
    assert described["steps"].tolist() == [120, 120]
    assert found.coverage["volumetric"].max() == 1
    assert found.provenance["learning"]["td3"]["num_steps"] == 10
    assert found.provenance["machine"]["torch"]
    assert "NaN" not in (to / "provenance.json").read_text(), "JSON has no such number"


def test_what_is_extended_or_made_of_others_is_left_out(runs, tmp_path):
    whole = datasets.load(runs / "datasets" / "walker" / "random-s0")
    datasets.subsample(whole, whole.folder.with_name("part"), n_episodes=1, seed=0)
    extended = runs / "datasets" / "walker" / "random-s1" / "buffer"
    shutil.copy(next(extended.glob("*_60.npz")), extended / "episode_000009_60.npz")
    found = report.load(report.commit_results(runs, tmp_path / "tables", size=100))
    assert found.datasets["dataset"].tolist() == ["random-s0"]
    assert found.provenance["not finished"]["datasets"] == ["walker/random-s1"]


def test_scales_are_not_mixed(runs, tmp_path):
    to = tmp_path / "tables"
    to.mkdir()
    (to / "provenance.json").write_text(json.dumps({"scale": "paper"}))
    with pytest.raises(ValueError, match="of scale paper, and these are of scale test"):
        report.commit_results(runs, to, size=100)
    assert [file.name for file in to.iterdir()] == ["provenance.json"]
    file = next(runs.glob("offline/*/*/*/*/results.csv"))
    rows = pd.read_csv(file).assign(scale="laptop")
    results.write(file, rows)
    with pytest.raises(ValueError, match="must not be mixed in one table, got laptop, test"):
        report.commit_results(runs, tmp_path / "other", size=100)


def test_policies_of_one_learner_have_one_configuration(runs, tmp_path):
    file = next(runs.glob("offline/*/random-s1/*/*/config.yaml"))
    file.write_text(file.read_text().replace("batch_size: 1024", "batch_size: 64"))
    with pytest.raises(ValueError, match="policies of td3 must have the same batch_size"):
        report.commit_results(runs, tmp_path / "tables", size=100)


def test_tasks_without_baselines_are_refused(runs, tmp_path):
    shutil.rmtree(runs / "offline" / "walker" / "none" / "random-policy")
    with pytest.raises(ValueError, match="baseline 'random policy', got none for walker_stand"):
        report.commit_results(runs, tmp_path / "tables", size=100)


def test_datasets_of_unequal_sizes_are_not_compared(runs, tmp_path):
    file = runs / "datasets" / "walker" / "random-s1" / "config.yaml"
    file.write_text(file.read_text().replace("num_steps: 120", "num_steps: 500"))
    with pytest.raises(ValueError, match=r"equal num_steps, got 120 in .*-s0 and 500 in"):
        report.commit_results(runs, tmp_path / "tables", size=100)


def test_the_command_line_says_what_it_wrote_or_why_not(runs, tmp_path, monkeypatch, capsys):
    to = tmp_path / "tables"
    monkeypatch.setattr("sys.argv", ["report", str(runs), str(to), "--size", "100"])
    assert command_line() == 0
    assert f"{to / 'offline.csv'}: " in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["report", str(tmp_path / "nothing"), str(to)])
    assert command_line() == 1
    assert "must hold a finished dataset" in capsys.readouterr().err


def test_nothing_finished_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must hold a finished dataset, got none"):
        report.commit_results(tmp_path, tmp_path / "tables")
