import numpy as np
import pandas as pd
import pytest
from scipy import stats

from belib import results
from belib.config import OfflineConfig, PretrainConfig
from belib.results.__main__ import print_against_random
from belib.statistics import compare


def table():
    rows, collected = [], PretrainConfig(label="long")
    for seed, series in enumerate(([1, 9, 3], [2, 4, 7])):
        config = OfflineConfig(seed=seed, scale="laptop")
        for step, value in enumerate(series):
            returns = np.array([value - 0.5, value + 0.5])
            rows.append(results.row(config, collected, step, returns, "abc", precision="float32"))
    return pd.DataFrame(rows)


def test_a_row_keeps_the_columns_and_averages_episodes():
    assert tuple(table().columns) == results.COLUMNS
    assert table()["return"].tolist() == [1, 9, 3, 2, 4, 7]
    first = table().iloc[0]
    assert (first["objective"], first["parameter"], first["episodes"]) == ("behavioral", 0.5, 2)
    config = OfflineConfig(algorithm="cql", convention="standard")
    assert results.row(config, None, 1, np.ones(2), "abc")["algorithm"] == "cql-standard"


def test_final_is_the_last_evaluation_and_best_the_highest():
    """The series 1, 9, 3 ends in 3; its best is 9; from half of the updates on its mean is 6."""
    assert results.scores(table())["return"].tolist() == [3, 7]
    assert results.scores(table(), "best")["return"].tolist() == [9, 7]
    assert results.scores(table(), "late")["return"].tolist() == [6, 5.5]
    (row,) = results.summary(table()).to_dict("records")
    assert (row["score"], row["seeds"], row["mean"], row["iqm"]) == ("final", 2, 5, 5)
    assert 3 <= row["low"] < row["high"] <= 7
    assert row["sd"] == pytest.approx(8**0.5)
    (row,) = results.summary(table(), "best").to_dict("records")
    assert (row["score"], row["mean"]) == ("best", 8)
    with pytest.raises(ValueError, match="score must be one of late, final, best, got 'last'"):
        results.summary(table(), "last")


def test_collect_reads_the_files_of_all_policies(tmp_path):
    for name, part in (("a", table()[:3]), ("b", table()[3:])):
        (tmp_path / "offline" / name).mkdir(parents=True)
        part.to_csv(tmp_path / "offline" / name / "results.csv", index=False)
    pd.testing.assert_frame_equal(results.collect(tmp_path), table())
    old = table().drop(columns=["precision", "variant"])  # an early file
    old.to_csv(tmp_path / "offline" / "b" / "results.csv", index=False)
    assert len(results.collect(tmp_path)) == 3 + len(old)
    with pytest.raises(ValueError, match=r"must hold results.csv files with rows, got none"):
        results.collect(tmp_path / "offline" / "a")  # of another runs_dir


def test_what_was_learnt_online_counts_once(tmp_path):
    for name in ("task-s0", "copy"):
        folder = tmp_path / "datasets" / "walker" / name
        folder.mkdir(parents=True)
        table().to_csv(folder / results.ONLINE, index=False)
    assert results.online(tmp_path, "laptop") == {"walker_stand": table()["return"].mean()}
    assert results.online(tmp_path, "other") == {}


def test_policies_that_diverged_are_counted_and_are_in_no_mean():
    rows = table().assign(step=lambda t: 10 + t["step"])
    rows.loc[rows["seed"].eq(1) & rows["step"].eq(12), ["return", "status"]] = (np.nan, "diverged")
    (row,) = results.summary(rows).to_dict("records")
    assert (row["seeds"], row["diverged"], row["mean"]) == (1, 1, 3)
    (row,) = results.table_1(rows).to_dict("records")
    assert (row["policies"], row["mean of finals"], row["best over everything"]) == (1, 3, 9)
    (none,) = results.summary(rows[rows["return"].isna()]).to_dict("records")
    assert (none["seeds"], none["diverged"], str(none["mean"])) == (0, 1, "nan")


def many(means, seeds=5, **changes):
    """Rows of made-up seeds, 2 apart, around the mean of each (dataset, algorithm)."""
    rows = []
    for (dataset, algorithm), mean in means.items():
        for seed in range(seeds):
            config = OfflineConfig(dataset=dataset, algorithm=algorithm, seed=seed)
            value = np.array([mean + 2.0 * seed - seeds + 1])
            rows.append(results.row(config, PretrainConfig(), 10, value, "abc", **changes))
    return pd.DataFrame(rows)


def test_the_matrix_of_improvement_compares_runs_within_a_stratum():
    """Each learner does better on a; between learners b's better one beats a's worse one."""
    means = {("a", "td3"): 300.0, ("a", "cql"): 100.0, ("b", "td3"): 200.0, ("b", "cql"): 50.0}
    matrix = results.improvement(many(means), "dataset")
    assert (matrix.loc["a", "b"], matrix.loc["b", "a"]) == (0.75, 0.25)
    assert np.isnan(matrix.loc["a", "a"])
    rows = pd.concat([many({("a", "td3"): 300.0}), many({("b", "td3"): 303.0}, seeds=4)])
    pairs = stats.mannwhitneyu([296, 298, 300, 302, 304], [300, 302, 304, 306])  # ties count half
    assert results.improvement(rows, "dataset").loc["a", "b"] == pairs.statistic / 20
    within = ("task", "algorithm", "parameter")
    without = many(means, parameter=None)  # as that of rnd is
    assert results.improvement(without, "dataset", within=within).loc["a", "b"] == 1
    with pytest.raises(ValueError, match=r"b must have runs in every algorithm .* got .* 1 of 2"):
        results.improvement(many(means)[:-5], "dataset", within=("algorithm",))


def test_table_1_shows_means_beside_the_best():
    (row,) = results.table_1(many({("a", "td3"): 500.0, ("a", "cql"): 300.0})).to_dict("records")
    assert row["best over everything"] == 504
    assert (row["mean of finals"], row["best mean"], row["policies"]) == (400, 500, 10)


def test_exploring_data_are_compared_with_random_actions_in_a_sentence(capsys):
    rows = []
    for objective, values in {"behavioral": (300, 340), "random": (100, 120)}.items():
        for seed, value in enumerate(values):
            collected = PretrainConfig(objective=objective, seed=seed)
            config = OfflineConfig(dataset=collected.dataset)
            rows.append(results.row(config, collected, 1, np.array([value]), "abc"))
    print_against_random(pd.DataFrame(rows[:3]))
    assert capsys.readouterr().out == "", "one dataset of random actions has no spread"
    print_against_random(pd.DataFrame(rows))
    difference = compare([300, 340], [100, 120])
    interval = f"210 more, 95 % interval {difference.low:.0f} to {difference.high:.0f}"
    assert interval in capsys.readouterr().out
