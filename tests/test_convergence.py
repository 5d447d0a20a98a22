import numpy as np
import pandas as pd
import pytest

from belib import convergence


@pytest.fixture
def table():
    options = {"sizes": [50, 100, 200], "seeds": 3, "betas": {1.0: 0.5}}
    options["estimators"] = dict.fromkeys("ab", (lambda n: 3, None))
    normal = lambda n, random: random.normal(size=(n, 1))  # noqa: E731
    return convergence.study(normal, {1.0: 1.4, 2.0: 1.3}, **options)


def test_a_study_is_tidy_and_repeats_samples_over_estimators(table):
    assert len(table) == 3 * 3 * 2 * 2
    one, other = (table[table["estimator"] == name]["value"].to_numpy() for name in "ab")
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(table["error"], table["value"] - table["truth"])
    assert len(table.loc[table["estimator"] == "a", "value"].unique()) == 18


def test_slopes_of_powers_are_found_and_noise_is_not_fitted():
    n = np.repeat([100, 1000, 10_000], 2)
    deviation = np.tile([1.0, -1.0], 3) / np.sqrt(n)  # variance 2 / n over two repetitions
    table = pd.DataFrame({"alpha": 1.0, "n": n, "seed": [0, 1] * 3})
    seen = table.assign(estimator="biased", error=100 / np.sqrt(n) + deviation)
    hidden = table.assign(estimator="unbiased", error=deviation)
    summary = convergence.bias_and_variance(pd.concat([seen, hidden]))
    biased, unbiased = convergence.slopes(summary).to_dict("records")
    assert biased["bias slope"] == pytest.approx(-0.5)
    assert biased["variance slope"] == pytest.approx(-1.0)
    assert np.isnan(unbiased["bias slope"])
    np.testing.assert_allclose(summary["n_var"], 2.0)


def test_joined_and_shuffled_tables_give_the_same(table):
    expected = convergence.bias_and_variance(table)
    order = np.random.default_rng(0).permutation(len(table))
    joined = pd.concat([table, table]).iloc[order].astype({"n": float})
    joined = pd.concat([joined, table])
    found = convergence.bias_and_variance(joined)
    found = found.sort_values(["n", "estimator", "alpha"], ignore_index=True)
    pd.testing.assert_frame_equal(found, expected)
    with pytest.raises(ValueError, match="columns error, got"):
        convergence.bias_and_variance(table.drop(columns="error"))
