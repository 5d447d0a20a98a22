"""Figures of the report, of made-up tables: SYNTHETIC numbers, not results."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import synthetic

from belib import figures, study


@pytest.fixture(autouse=True)
def no_window():
    matplotlib.use("agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def made():
    return synthetic.example()


@pytest.fixture(scope="module")
def units(made):
    return study.units(made).query("measure == 'td3'")


def dots(ax):
    return np.concatenate([each.get_offsets()[:, 1] for each in ax.collections])


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_every_dataset_has_a_bar_and_every_learner_seed_a_dot(made):
    rows = study.policies(made, "td3")
    axes = figures.report.dataset_returns(rows, made.baselines)
    own = rows[rows["task"] == "walker_walk"]
    assert axes[1].get_title() == "Walker walk"
    assert len(axes[1].patches) == own["dataset"].nunique()
    assert sorted(dots(axes[1])) == pytest.approx(sorted(own["return"]))
    heights = sorted(bar.get_height() for bar in axes[1].patches)
    assert heights == pytest.approx(sorted(own.groupby("dataset")["return"].mean()))
    assert len({bar.get_x() for bar in axes[1].patches}) == len(heights), "side by side"
    assert sum(bar.get_hatch() is not None for bar in axes[1].patches) == 3, "the rescaled ones"
    assert labels(axes[0]) == ["zero action", "random policy"]
    assert axes[0].get_ylim()[0] == 0


def test_recipes_stand_in_the_one_order(made):
    axes = figures.report.dataset_returns(study.policies(made, "td3"), made.baselines)
    shown = [label.get_text() for label in axes[-1].get_xticklabels()]
    assert shown[:4] == ["SE", "BE α = 0.2", "BE α = 0.5", "BE α = 0.5, rms"]
    assert shown[-1] == "random actions"


def test_curves_have_their_intervals_their_datasets_and_shannon_entropy(made, units):
    means = study.means(units)
    axes = figures.report.parameter_curves(units, means, made.baselines)
    assert axes.shape == (2, 2)
    ticks = [[label.get_text() for label in ax.get_xticklabels()] for ax in axes[1]]
    assert ticks == [
        ["0.2", "0.5", "0.7", "0.9", "1.5", "2", "3", "5"],
        ["0.2", "0.5", "0.7", "0.9", "1.1"],
    ]
    (drawn,) = axes[0, 0].containers
    segments = drawn[2][0].get_segments()
    own = means.query("task == 'walker_stand' and objective == 'behavioral' and variant == ''")
    assert [segment[:, 1].tolist() for segment in segments] == [
        pytest.approx([row.low, row.high]) for row in own.itertuples()
    ]
    assert {"SE", "zero action", "random policy", "one dataset"} <= set(labels(axes[0, 1]))


def test_without_repeated_datasets_curves_have_no_intervals():
    single = synthetic.tables(datasets=synthetic.grid(repeated=1))
    values = study.units(single).query("measure == 'td3'")
    means = study.means(values)
    axes = figures.report.parameter_curves(values, means, single.baselines)
    assert axes[0, 0].containers[0][2] == ()


def test_spreads_show_both_sources(units):
    table = study.spreads(units)
    ax = figures.report.spreads(table)
    assert labels(ax) == ["between datasets", "between seeds"]
    shown = np.concatenate([line.get_xdata() for line in ax.lines if line.get_marker() in "os"])
    assert sorted(shown) == pytest.approx(sorted(table["sd"]))
    figures.report.spreads(
        table.assign(low=np.nan, high=np.nan)
    )  # without intervals it is drawn too


def test_advantages_whose_interval_leaves_zero_out_stand_out():
    rows = pd.DataFrame({"task": "walker_walk", "sides": ["BE − SE", "BE − SMM"]})
    rows = rows.assign(value=[10.0, 90.0], low=[-20.0, 30.0], high=[40.0, 150.0])
    (ax,) = figures.report.advantages(rows)
    colors = [line.get_color() for line in ax.lines if line.get_marker() == "o"]
    assert colors == ["0.35", figures.style.ACCENT]


def test_with_one_dataset_there_is_nothing_to_compare_and_all_is_drawn():
    few = synthetic.tables(datasets=[{"objective": "behavioral"}])
    values = study.units(few)
    figures.report.advantages(study.study(few).dropna(subset="value"))
    own = values.query("measure == 'td3'")
    figures.report.spreads(study.spreads(own))
    figures.report.parameter_curves(own, study.means(own), few.baselines)
    figures.report.coverage_returns(study.paired(values, "td3", "volumetric"), few.baselines)


def test_coverage_and_returns_have_a_dot_a_dataset_and_baselines(made):
    pairs = study.paired(study.units(made), "td3", "volumetric")
    axes = figures.report.coverage_returns(pairs, made.baselines)
    plain = pairs.query("task == 'walker_stand' and variant == ''")
    drawn = [line for line in axes[0].lines if line.get_marker() not in ("None", None)]
    assert len(drawn) == len(plain)
    assert [float(line.get_xdata()[0]) for line in drawn] == pytest.approx(list(plain["other"]))
    assert labels(axes[-1])[-2:] == ["zero action", "random policy"]
    assert "BE, darker with α" in labels(axes[-1])


def test_a_domain_of_fewer_recipes_has_panels_of_its_own():
    """Quadruped without RE, and long datasets on Walker: nothing drawn in the wrong place."""
    bodies = [{"domain": "quadruped", "alpha": alpha} for alpha in (0.5, 2.0)]
    bodies += [{"domain": "quadruped", "objective": "shannon", "seed": seed} for seed in (0, 1)]
    long = [{"objective": "shannon", "label": "long", "num_steps": 300_000}]
    made = synthetic.tables(
        datasets=[*synthetic.grid(), *long, *bodies], tasks=("walker_walk", "quadruped_walk")
    )
    both = study.units(made)
    own = both.query("measure == 'td3'")
    axes = figures.report.dataset_returns(study.policies(made, "td3"), made.baselines)
    assert [len(ax.patches) for ax in axes] == [27, 4]
    assert "SE, long" in [label.get_text() for label in axes[-1].get_xticklabels()]
    panels = figures.report.parameter_curves(own, study.means(own), made.baselines)
    assert [[ax.get_visible() for ax in row] for row in panels] == [[True, True], [True, False]]
    assert panels[0, 0].get_position().width > panels[0, 1].get_position().width
    pairs = study.paired(both, "td3", "volumetric")
    dots_a_task = [len(ax.lines) for ax in figures.report.coverage_returns(pairs, made.baselines)]
    assert dots_a_task == [23 + 2, 4 + 2], "plain datasets, and two baselines"
