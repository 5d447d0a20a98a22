"""Figures of offline returns, drawn from made-up tables: SYNTHETIC numbers, not results."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from belib import figures, results
from belib.config import OfflineConfig, PretrainConfig

TASKS = ("walker_stand", "quadruped_run")
OBJECTIVES = [("behavioral", 0.5), ("behavioral", 2.0), ("renyi", 0.5), ("shannon", None)]


@pytest.fixture(autouse=True)
def no_window():
    matplotlib.use("agg")
    yield
    plt.close("all")


def synthetic(tasks=TASKS, learners=("td3", "cql"), objectives=OBJECTIVES, seeds=3, steps=(10, 20)):
    """Returns 100 (place of the objective + 1) + 10 seed + step; baselines 50 and 60."""
    rows = []
    for task in tasks:
        domain = task.split("_")[0]
        for seed in range(seeds):
            for name, value in zip(results.BASELINES, (50.0, 60.0), strict=True):
                config = OfflineConfig(domain=domain, task=task, seed=seed, scale="synthetic")
                changes = {"algorithm": name, "dataset": "none"}
                rows.append(results.row(config, None, 0, np.array([value]), "none", **changes))
            for learner in learners:
                for place, (objective, parameter) in enumerate(objectives):
                    given = {"behavioral": "alpha", "renyi": "q"}.get(objective)
                    options = {given: parameter} if given else {}
                    collected = PretrainConfig(objective=objective, **options)
                    config = OfflineConfig(
                        domain=domain,
                        task=task,
                        seed=seed,
                        algorithm=learner,
                        dataset=collected.dataset,
                        scale="synthetic",
                    )
                    for step in steps:
                        value = np.array([100.0 * (place + 1) + 10 * seed + step])
                        rows.append(results.row(config, collected, step, value, "none"))
    return pd.DataFrame(rows)


def test_returns_show_means_every_seed_and_baselines_in_the_order_of_objectives():
    axes = figures.offline.returns(results.final(synthetic()), online={"walker_stand": 900.0})
    assert axes.shape == (2, 2)
    assert [ax.get_title() for ax in axes[0]] == ["Walker stand, TD3", "Walker stand, CQL"]
    ax = axes[0, 0]
    labels = [label.get_text() for label in axes[1, 0].get_xticklabels()]
    assert labels == ["SE", "BE α = 0.5", "BE α = 2", "RE q = 0.5"]
    assert [bar.get_height() for bar in ax.patches] == [430, 130, 230, 330]
    dots = [sorted(each.get_offsets()[:, 1]) for each in ax.collections if len(each.get_offsets())]
    assert [420, 430, 440] in dots
    lines = {line.get_label(): line.get_ydata()[0] for line in ax.lines}
    assert (lines["zero action"], lines["random policy"], lines["trained online"]) == (50, 60, 900)
    assert "trained online" not in {line.get_label() for line in axes[1, 0].lines}
    assert ax.get_ylim()[0] == 0


def test_whiskers_are_one_standard_deviation():
    (ax,) = figures.offline.returns(results.final(synthetic(("walker_run",), ("td3",))))[0]
    low, high = ax.containers[1].errorbar.get_children()[0].get_segments()[0][:, 1]
    assert (high - low) / 2 == pytest.approx(np.std([120, 130, 140], ddof=1))


def test_averages_are_over_datasets_not_over_policies():
    ax = figures.offline.averages(results.final(synthetic()))[1, 0]
    assert [bar.get_height() for bar in ax.patches] == [430, 180, 330]
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels == ["SE", "BE", "RE"]


def test_a_policy_that_diverged_has_no_dot():
    table = results.final(synthetic(("walker_run",), ("td3",), [("shannon", None)]))
    table.loc[table["algorithm"].eq("td3") & table["seed"].eq(0), "return"] = np.nan
    (ax,) = figures.offline.returns(table)[0]
    assert [bar.get_height() for bar in ax.patches] == [135]


def test_learning_curves_show_every_seed_and_their_mean():
    axes = figures.offline.learning_curves(
        synthetic(("walker_stand",), ("td3",), [("shannon", None)])
    )
    *seeds, mean, zero, uniform = (line.get_ydata() for line in axes[0, 0].lines)
    np.testing.assert_array_equal(mean, np.mean(seeds, 0))
    assert (zero[0], uniform[0]) == (50, 60)


def test_sensitivity_has_a_line_a_family_over_the_papers_grid():
    ax = figures.offline.sensitivity(results.final(synthetic()))[1, 0]
    lines = {line.get_label(): line for line in ax.lines}
    assert lines["BE, α"].get_ydata().tolist() == [130, 230]
    ticks = [label.get_text() for label in ax.get_xticklabels()]
    assert [ticks[int(x)] for x in lines["BE, α"].get_xdata()] == ["0.5", "2"]
    assert lines["SE"].get_ydata()[0] == 430


def test_ablations_compare_conditions_task_by_task():
    table = synthetic(objectives=[("shannon", None)])
    learnt = ~table["algorithm"].isin(results.BASELINES)
    conditions = {
        "20 updates": results.final(table),
        "10 updates": table[learnt & (table.step == 10)],
    }
    axes = figures.offline.ablation(conditions)
    assert [bar.get_height() for bar in axes[1, 1].patches] == [130, 120]
    assert {line.get_label() for line in axes[1, 1].lines} >= set(results.BASELINES)


def test_the_matrix_of_improvement_is_written_in_its_cells():
    table = synthetic(learners=("td3",))
    matrix = results.improvement(table[~table["algorithm"].isin(results.BASELINES)], "dataset")
    ax = figures.offline.improvement(matrix)
    assert {text.get_text() for text in ax.texts} == {"0.00", "1.00"}


def test_an_online_reference_of_any_task_is_in_the_legend():
    table = results.final(synthetic())
    axes = figures.offline.returns(table, {table["task"].iloc[-1]: 500.0})
    names = [text.get_text() for text in axes[0, -1].get_legend().get_texts()]
    assert names.count("trained online") == 1


def test_labels_show_every_episode():
    table = pd.DataFrame({"dataset": "a", "task": ["walk"] * 3 + ["run"], "return": [1, 2, 3, 9.0]})
    ax = figures.offline.labels(table.assign(objective="behavioral", parameter=0.5))
    assert sorted(np.concatenate([c.get_offsets()[:, 1] for c in ax.collections])) == [1, 2, 3, 9]


def test_table_1_has_the_best_beside_the_means():
    html = figures.offline.table_1(results.table_1(synthetic())).to_html()
    for words in ("best over everything", "mean of finals", "best mean", "policies", "BE", "SE"):
        assert words in html
    assert "440" in html  # the best seed's last return
    assert "430" in html  # the mean
