import numpy as np
import pandas as pd
import pytest

from belib import results
from belib.config import OfflineConfig, PretrainConfig


def table(scale="laptop"):
    rows = []
    for seed, series in enumerate(([1, 9, 3], [2, 4, 7])):
        for step, value in enumerate(series):
            config = OfflineConfig(seed=seed, scale=scale)
            returns = np.array([value - 0.5, value + 0.5])
            collected = PretrainConfig(label="long")
            rows.append(results.row(config, collected, step, returns, "abc", precision="float32"))
    return pd.DataFrame(rows)


def test_a_row_keeps_the_columns_and_averages_episodes():
    assert tuple(table().columns) == results.COLUMNS
    assert table()["return"].tolist() == [1, 9, 3, 2, 4, 7]
    first = table().iloc[0]
    assert (first["objective"], first["parameter"], first["episodes"]) == ("behavioral", 0.5, 2)


def test_final_is_the_last_evaluation_and_best_the_highest():
    """The series 1, 9, 3 ends in 3; its best is 9."""
    assert results.final(table())["return"].tolist() == [3, 7]
    assert results.best(table())["return"].tolist() == [9, 7]
    final, best = (results.summary(table(), score) for score in results.SCORES)
    assert (final["score"].tolist(), final["mean"].tolist()) == (["final"], [5])
    assert (best["score"].tolist(), best["mean"].tolist()) == (["best"], [8])
    with pytest.raises(ValueError, match="score must be one of final, best, got 'last'"):
        results.summary(table(), "last")


def test_summary_has_mean_and_spread_over_seeds():
    (row,) = results.summary(table()).to_dict("records")
    assert row["mean"] == row["iqm"] == 5
    assert 3 <= row["low"] < row["high"] <= 7
    assert row["sd"] == pytest.approx(np.std([3, 7], ddof=1))
    assert row["seeds"] == 2


def test_collect_reads_what_write_wrote(tmp_path):
    for name, part in (("a", table()[:3]), ("b", table()[3:])):
        (tmp_path / "offline" / name).mkdir(parents=True)
        results.write(tmp_path / "offline" / name / "results.csv", part)
    pd.testing.assert_frame_equal(results.collect(tmp_path), table())
    old = table().drop(columns=["status", "upright", "precision", "variant"])  # an early file
    results.write(tmp_path / "offline" / "b" / "results.csv", old)
    assert len(results.collect(tmp_path)) == 3 + len(old)
    with pytest.raises(ValueError, match=r"must hold results.csv files with rows, got none"):
        results.collect(tmp_path / "offline" / "a")  # of another runs_dir


def test_collect_parses_files_of_one_kind_together(tmp_path, monkeypatch):
    """The paper's runs have 1,300 files."""
    calls, read_csv = [], pd.read_csv
    monkeypatch.setattr(pd, "read_csv", lambda *a, **k: calls.append(1) or read_csv(*a, **k))
    for run in range(30):
        folder = tmp_path / "offline" / f"run-{run}"
        folder.mkdir(parents=True)
        results.write(folder / "results.csv", table())
    assert len(results.collect(tmp_path)) == 30 * 6
    assert len(calls) == 1


def many(means, seeds=5):
    """Rows of made-up seeds, 2 apart, around the mean of each (task, dataset, algorithm)."""
    rows = []
    for (task, dataset, algorithm), mean in means.items():
        for seed in range(seeds):
            config = OfflineConfig(task=task, dataset=dataset, algorithm=algorithm, seed=seed)
            value = mean + 2.0 * (seed - (seeds - 1) / 2)
            rows.append(results.row(config, PretrainConfig(), 10, np.array([value]), "abc"))
    return pd.DataFrame(rows)


def test_policies_that_diverged_are_counted_and_are_in_no_mean():
    rows = table()
    rows.loc[rows["seed"] == 1, ["return", "status"]] = (np.nan, "diverged")
    (row,) = results.summary(rows).to_dict("records")
    assert (row["seeds"], row["diverged"], row["mean"]) == (1, 1, 3)
    (none,) = results.summary(rows[rows["seed"] == 1]).to_dict("records")
    assert (none["seeds"], none["diverged"], str(none["mean"])) == (0, 1, "nan")


def test_the_matrix_of_improvement():
    means = {("walker_stand", name, "td3"): value for name, value in (("a", 500.0), ("b", 100.0))}
    matrix = results.improvement(many(means), "dataset")
    assert matrix.loc["a", "b"] == 1
    assert matrix.loc["b", "a"] == 0
    assert np.isnan(matrix.loc["a", "a"])
    means[("walker_run", "a", "td3")] = 1.0
    with pytest.raises(ValueError, match=r"wherever another has, got none of .*walker_run"):
        results.improvement(many(means), "dataset")


def test_improvement_compares_runs_of_one_learner_with_each_other():
    """Each learner does better on a; between learners b's better one beats a's worse one."""
    means = {("a", "td3"): 300.0, ("a", "cql"): 100.0, ("b", "td3"): 200.0, ("b", "cql"): 50.0}
    rows = many({("walker_stand", *key): mean for key, mean in means.items()})
    assert results.improvement(rows, "dataset").loc["a", "b"] == 0.75
    within = ("task", "algorithm")
    assert results.improvement(rows, "dataset", within=within).loc["a", "b"] == 1


def test_table_1_shows_means_beside_the_best():
    means = {("walker_stand", "a", a): m for a, m in (("td3", 500.0), ("cql", 300.0))}
    (row,) = results.table_1(many(means)).to_dict("records")
    assert row["best over everything"] == 504
    assert (row["mean of finals"], row["best mean"], row["policies"]) == (400, 500, 10)


def test_variants_of_a_learner_are_rows_of_their_own():
    config = OfflineConfig(algorithm="cql", convention="standard")
    assert results.row(config, None, 1, np.ones(2), "abc")["algorithm"] == "cql-standard"
