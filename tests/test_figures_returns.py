"""Figures of returns, drawn from made-up tables: SYNTHETIC numbers, not results."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import synthetic
from matplotlib.collections import PathCollection

from belib import figures, results, study
from belib.config import OfflineConfig, PretrainConfig

TASKS = ("walker_stand", "quadruped_run")
ALPHAS = [{"objective": "behavioral", "alpha": alpha} for alpha in (0.5, 2.0)]
SHANNON = {"objective": "shannon"}
RECIPES = [*ALPHAS, {"objective": "renyi", "q": 0.5}, SHANNON]


def made_up(tasks=TASKS, learners=("td3", "cql"), recipes=RECIPES, seeds=3):
    """Returns 100 (place of the recipe + 1) + 10 seed + step; baselines 50 and 60."""
    rows = []
    for task, seed in itertools.product(tasks, range(seeds)):
        policy = OfflineConfig(domain=task.split("_")[0], task=task, seed=seed)
        for name, value in zip(results.BASELINES, (50.0, 60.0), strict=True):
            rows.append(synthetic.row(policy, name, 0, value))
        for learner, place, step in itertools.product(learners, range(len(recipes)), (10, 20)):
            collected = PretrainConfig(**recipes[place])
            config = replace(policy, dataset=collected.dataset)
            value = 100.0 * (place + 1) + 10 * seed + step
            rows.append(synthetic.row(config, learner, step, value, collected))
    return pd.DataFrame(rows).fillna(np.nan)


def dots(ax):
    drawn = [dots.get_offsets() for dots in ax.collections if isinstance(dots, PathCollection)]
    return sorted(np.concatenate(drawn)[:, 1])


def names(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_returns_show_means_every_seed_and_baselines_in_the_order_of_objectives():
    axes = figures.returns.returns(made_up(), online={"walker_stand": 900.0})
    assert axes.shape == (2, 2)
    assert [ax.get_title() for ax in axes[0]] == ["walker stand, TD3", "walker stand, CQL"]
    ax = axes[0, 0]
    labels = [label.get_text() for label in axes[1, 0].get_xticklabels()]
    assert labels == ["SE", "BE α = 0.5", "BE α = 2", "RE q = 0.5"]
    heights = {bar.get_x(): bar.get_height() for bar in ax.patches}
    assert [heights[x] for x in sorted(heights)] == [430, 130, 230, 330], "final returns"
    assert {420, 430, 440} <= {*dots(ax)}
    lines = {line.get_label(): line.get_ydata()[0] for line in ax.lines if len(line.get_ydata())}
    assert (lines["zero action"], lines["random policy"], lines["trained online"]) == (50, 60, 900)
    assert "trained online" not in {line.get_label() for line in axes[1, 0].lines}
    assert names(axes[0, -1]).count("trained online") == 1
    assert ax.get_ylim()[0] == 0
    table = made_up(("walker_run",))
    table.loc[table["algorithm"] == "cql", "return"] *= 3
    assert figures.returns.returns(table)[0, 0].get_ylim()[1] > table["return"].max()


def test_whiskers_are_one_standard_deviation_and_who_diverged_has_no_dot():
    table = results.scores(made_up(("walker_run",), ("td3",), [SHANNON]))
    (ax,) = figures.returns.returns(table)[0]
    low, high = ax.lines[0].get_ydata()
    assert (high - low) / 2 == pytest.approx(np.std([120, 130, 140], ddof=1))
    table.loc[table["algorithm"].eq("td3") & table["seed"].eq(0), "return"] = np.nan
    (ax,) = figures.returns.returns(table)[0]
    assert [bar.get_height() for bar in ax.patches] == [135]


def test_datasets_of_one_recipe_stand_side_by_side_over_its_name():
    made = synthetic.example()
    policies = study.policies(made, "final").query("algorithm == 'td3'")
    axes = figures.returns.returns(pd.concat([policies, made.baselines]))[:, 0]
    means = policies.query("task == 'walker_walk'").groupby("dataset")["return"].mean()
    heights = {bar.get_center()[0]: bar.get_height() for bar in axes[1].patches}
    assert sorted(heights.values()) == pytest.approx(sorted(means))
    shannon = [means[f"shannon-s{i}"] for i in range(3)]
    assert [heights[i] for i in range(3)] == pytest.approx(shannon)
    ticks = {label.get_text(): label.get_position()[0] for label in axes[-1].get_xticklabels()}
    assert list(ticks)[:4] == ["SE", "BE α = 0.2", "BE α = 0.5", "BE α = 0.5, rms"]
    assert [*ticks.values()][:3] == [1, 4, 7], "a recipe has three datasets"
    assert names(axes[0]) == ["zero action", "random policy"]


def test_learning_curves_show_every_seed_and_their_mean():
    table = made_up(("walker_run",), ("td3",), [SHANNON])
    ax = figures.returns.learning_curves(table)[0, 0]
    *seeds, mean, zero, uniform, _ = (y for line in ax.lines if len(y := line.get_ydata()))
    assert ax.get_ylim()[0] == 0
    assert len(seeds) == 3
    np.testing.assert_allclose(mean, np.mean(seeds, 0))
    assert (zero[0], uniform[0]) == (50, 60)
    table["return"] -= 1000
    assert figures.returns.learning_curves(table)[0, 0].get_ylim()[1] == 0


def test_figures_of_a_study_show_its_numbers():
    made = synthetic.example()
    units = study.units(made).query("main")
    returns = units.query("measure == 'td3'")
    means = study.means(returns)
    axes = figures.returns.datasets(returns, means, made.baselines)[:, 0]
    rows = means.query("task == 'walker_stand'")
    segments = np.array(sorted(axes[0].containers[0][2][0].get_segments(), key=str))
    for (_, low), (_, high) in segments:
        assert ((rows["low"] - low).abs() + (rows["high"] - high).abs()).min() < 1e-9
    assert [label.get_text() for label in axes[-1].get_xticklabels()] == rows["recipe"].tolist()
    assert dots(axes[0]) == sorted(returns.query("task == 'walker_stand'")["value"])
    assert {"zero action", "random policy"} <= {*names(axes[0])}
    panels = figures.returns.comparisons(compared := study.compared(returns))
    values = [line.get_xdata()[0] for ax in panels for line in ax.lines if line.get_marker() == "o"]
    assert values == pytest.approx((compared["value"] / compared["sd"]).tolist())
    said = [text.get_text().split(", ")[0] for text in panels[0].texts]
    assert said == compared["verdict"].tolist()[:4]


def test_labels_show_every_episode():
    table = pd.DataFrame({"dataset": "a", "task": ["walk"] * 3 + ["run"], "return": [1, 2, 3, 9.0]})
    ax = figures.returns.labels(table.assign(objective="behavioral", parameter=0.5))
    assert dots(ax) == [1, 2, 3, 9]
