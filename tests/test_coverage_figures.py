"""Figures of coverage show what they were given; the map answers to its controls."""

import numpy as np
import pandas as pd
import pytest

from belib import figures
from belib.coverage import MEASURES, Embedding
from belib.figures.style import objective_color
from belib.widgets import CoverageMap

NAMES = ["random-s0", "behavioral-2-s0", "behavioral-0.5-s0", "shannon-s0"]
DATASETS = pd.DataFrame({"dataset": NAMES, "parameter": [np.nan, 2.0, 0.5, np.nan], "seed": 0})
DATASETS["objective"] = DATASETS["dataset"].str.split("-").str[0]
ORDER = ["SE", "BE α = 0.5", "BE α = 2", "random actions"]


@pytest.fixture
def embedding():
    """20 points of each dataset in 4 episodes of 5; x is the dataset's number."""
    rows = DATASETS.loc[np.repeat(range(4), 20)].reset_index(drop=True)
    rows["episode"], rows["step"] = np.tile(np.repeat(range(4), 5), 4), np.tile(range(1, 21), 4)
    rows["x"], rows["y"] = np.repeat(range(4), 20), np.random.default_rng(0).normal(size=80)
    return Embedding(rows.assign(scale="test", walker_walk=0.5), {})


def test_maps_have_a_panel_a_dataset_with_all_points_behind_and_equal_limits(embedding):
    axes = figures.collection.maps(embedding)
    assert [ax.get_title() for ax in axes] == ORDER
    assert len({(ax.get_xlim(), ax.get_ylim()) for ax in axes}) == 1
    for ax, number in zip(axes, (3, 2, 1, 0), strict=True):
        behind, points = ax.collections
        assert len(behind.get_offsets()) == 80
        assert (points.get_offsets()[:, 0] == number).all()
        color = objective_color(*DATASETS.loc[number, ["objective", "parameter"]])
        assert tuple(points.get_facecolor()[0]) == color


def test_datasets_of_one_recipe_are_told_apart_by_seed_or_name(embedding):
    shannon = embedding.points[embedding.points["objective"] == "shannon"]
    more = {"shannon-s1": {}, "long": {"variant": "long"}, "foreign": {"objective": None}}
    points = [shannon.assign(dataset=name, **others) for name, others in more.items()]
    table = figures.style.labelled(pd.concat([embedding.points, *points], ignore_index=True))
    labels = ["SE (s0)", "SE (s1)", "SE, long", *ORDER[1:], "foreign"]
    assert table["label"].cat.categories.tolist() == labels


def test_time_maps_are_coloured_by_step_and_join_states_in_order(embedding):
    ax = figures.collection.maps(embedding, by_time=True)[0]
    assert ax.collections[1].get_array().tolist() == [n / 20 for n in range(1, 21)]
    y = embedding.points["y"].tolist()[60:]
    assert [line.get_ydata().tolist() for line in ax.lines] == [y[:5], y[10:15], y[-5:]]


def test_curves_over_steps_show_every_value_in_the_order_of_legends():
    steps = pd.DataFrame({"step": [10, 20], "value": [0.5, 0.75]})
    table = DATASETS.merge(pd.DataFrame({"scaling": ["raw", "robust"]}), how="cross")
    table = figures.style.labelled(table.merge(steps, how="cross"))
    look = figures.style.of(table, "label", lines=True)
    raw, robust = figures.style.over_steps(table, "scaling", **look)
    assert raw.get_title() == "raw"
    assert [text.get_text() for text in robust.get_legend().get_texts()] == ORDER
    assert all(line.get_ydata().tolist() == [0.5, 0.75] for line in raw.lines[:4])


def test_measures_have_dots_and_intervals_where_there_are_errors():
    table = DATASETS.assign(shannon=range(4), shannon_se=[1, 1, 1, np.nan], radius_none=2.0)
    axes = figures.collection.measures(table.set_index("dataset"))
    assert [ax.get_title() for ax in axes] == [MEASURES["shannon"], MEASURES["radius_none"]]
    dots = [line for line in axes[0].lines if line.get_marker() != "None"]
    assert [line.get_xdata()[0] for line in dots] == [0, 1, 2, 3], "from below: random first"
    bars = [np.ptp(bar.get_segments()[0][:, 0]) for bar in axes[0].collections[:3]]
    assert bars == pytest.approx([2 * 1.96] * 3)


def test_the_map_answers_to_its_controls(embedding):
    widget = CoverageMap(embedding)
    assert widget.color.options == ("objective", "step", "walker_walk")
    assert list(widget.datasets.options) == ORDER
    images = {widget.image.value}
    for color in widget.color.options[1:]:
        widget.color.value = color
        images.add(widget.image.value)
    widget.datasets.value = ("SE",)
    images.add(widget.image.value)
    assert len(images) == 4, "every change is drawn"
    widget.x.value, widget.y.value = (2.9, 3.0), (widget.y.min, widget.y.max)
    assert "20 states of 4 episodes inside" in widget.episodes.value
    assert widget.episodes.value.count("100%") == 4
    widget.datasets.value = ("random actions",)
    assert "0 states of 0 episodes inside" in widget.episodes.value
