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
            rows.append(results.row(config, PretrainConfig(), step, returns, "abc"))
    return pd.DataFrame(rows)


def test_a_row_keeps_the_columns_and_averages_episodes():
    assert tuple(table().columns) == results.COLUMNS
    assert table()["return"].tolist() == [1, 9, 3, 2, 4, 7]
    first = table().iloc[0]
    assert (first["objective"], first["parameter"], first["episodes"]) == ("behavioral", 0.5, 2)


def test_final_is_the_last_evaluation_and_not_the_best():
    assert results.final(table())["return"].tolist() == [3, 7]


def test_summary_has_mean_and_spread_over_seeds():
    (row,) = results.summary(table()).to_dict("records")
    assert row["mean"] == 5
    assert row["sd"] == pytest.approx(np.std([3, 7], ddof=1))
    assert (row["seeds"], row["least"], row["most"]) == (2, 3, 7)


def test_scales_are_not_mixed():
    with pytest.raises(ValueError, match="must have one scale, got laptop, paper"):
        results.summary(pd.concat([table(), table("paper")]))


def test_collect_reads_what_write_wrote(tmp_path):
    for name, part in (("a", table()[:3]), ("b", table()[3:])):
        (tmp_path / name).mkdir()
        results.write(tmp_path / name / "results.csv", part)
    pd.testing.assert_frame_equal(results.collect(tmp_path), table())
    with pytest.raises(ValueError, match=r"must hold results.csv files with rows, got none"):
        results.collect(tmp_path / "a" / "empty")
