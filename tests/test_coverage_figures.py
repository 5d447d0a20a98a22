"""Figures of coverage show what they were given; the map answers to its controls."""

import io

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from belib import figures
from belib.coverage import MEASURES, Embedding, States, episodes_inside
from belib.widgets import CoverageMap

KNOWN = [
    ("random-s0", "random", np.nan),
    ("behavioral-2-s0", "behavioral", 2.0),
    ("behavioral-0.5-s0", "behavioral", 0.5),
    ("shannon-s0", "shannon", np.nan),
]
ORDER = ["SE", "BE α = 0.5", "BE α = 2", "random actions"]


@pytest.fixture(autouse=True)
def no_window():
    matplotlib.use("agg")
    yield
    plt.close("all")


@pytest.fixture
def sample():
    """20 points a dataset in 4 episodes of 5; the first feature is the dataset's number."""
    rows = []
    for name, objective, parameter in KNOWN:
        known = {"dataset": name, "objective": objective, "parameter": parameter, "seed": 0}
        episodes = {"episode": np.repeat(range(4), 5), "step": np.arange(1, 21)}
        rows.append(pd.DataFrame({**known, "scale": "test", **episodes, "walker_walk": 0.5}))
    features = np.random.default_rng(0).normal(size=(80, 3))
    features[:, 0] = np.repeat(range(4), 20)
    return States(features, pd.concat(rows, ignore_index=True))


@pytest.fixture
def embedding(sample):
    x, y = sample.features[:, :2].T
    return Embedding(sample.rows.assign(x=x, y=y), {"scaling": "none"})


def test_maps_have_a_panel_a_dataset_with_all_points_behind_and_equal_limits(embedding):
    axes = figures.coverage.maps(embedding)
    assert [ax.get_title() for ax in axes] == ORDER
    assert len({(ax.get_xlim(), ax.get_ylim()) for ax in axes}) == 1
    for ax, number in zip(axes, (3, 2, 1, 0), strict=True):
        behind, own = ax.collections
        assert len(behind.get_offsets()) == 80
        assert (own.get_offsets()[:, 0] == number).all()
        assert own.get_facecolor()[0].tolist() != behind.get_facecolor()[0].tolist()
    assert tuple(axes[0].collections[1].get_facecolor()[0]) == to_rgba("black")


def test_datasets_of_one_objective_are_told_apart_by_their_seed(embedding):
    other = embedding.points[embedding.points["objective"] == "shannon"]
    other = other.assign(dataset="shannon-s1", seed=1)
    both = Embedding(pd.concat([embedding.points, other]), embedding.record)
    titles = [ax.get_title() for ax in figures.coverage.maps(both)]
    assert titles[:3] == ["SE, seed 0", "SE, seed 1", "BE α = 0.5"]
    merged = Embedding(pd.concat([both.points, other.assign(dataset="all", seed=None)]), {})
    titles = [ax.get_title() for ax in figures.coverage.maps(merged)]
    assert titles[:4] == ["SE, seed 0", "SE, seed 1", "all", "BE α = 0.5"]


def test_time_maps_are_coloured_by_step_and_join_states_in_order(embedding):
    axes = figures.coverage.time_maps(embedding, episodes=2)
    for ax in axes:
        assert ax.collections[1].get_array().tolist() == [n / 20 for n in range(1, 21)]
        assert [len(line.get_xdata()) for line in ax.lines] == [5, 5]
    own = embedding["shannon-s0"]
    assert axes[0].lines[1].get_ydata().tolist() == own["y"].tolist()[-5:]


def test_volumetric_curves_show_every_radius():
    rows = []
    for name, objective, parameter in KNOWN:
        for scaling in ("none", "robust"):
            known = {"dataset": name, "objective": objective, "parameter": parameter, "seed": 0}
            steps = {"step": [10, 20], "coverage": [0.5, len(name) / 20]}
            rows.append(pd.DataFrame({**known, "scaling": scaling, **steps}))
    raw, robust = figures.coverage.volumetric(pd.concat(rows))
    assert [ax.get_title() for ax in (raw, robust)] == ["raw observations", "robustly scaled"]
    assert [text.get_text() for text in robust.get_legend().get_texts()] == ORDER
    assert raw.lines[0].get_ydata().tolist() == [0.5, 0.5]
    dashed = [line.is_dashed() for line in raw.lines[:4]]
    assert dashed == [True, False, False, False], "Shannon entropy is dotted"
    assert raw.get_ylim()[0] == 0


def test_measures_have_dots_and_intervals_where_there_are_errors():
    index = pd.Index([name for name, _, _ in KNOWN], name="dataset")
    table = pd.DataFrame({"objective": [k[1] for k in KNOWN], "parameter": [k[2] for k in KNOWN]})
    table = table.assign(seed=0, shannon=range(4), shannon_se=[1, 1, 1, np.nan], radius_none=2.0)
    shannon, radius = figures.coverage.measures(table.set_index(index))
    assert [ax.get_title() for ax in (shannon, radius)] == [
        MEASURES["shannon"],
        MEASURES["radius_none"],
    ]
    dots = [line for line in shannon.lines if line.get_marker() != "None"]
    assert [line.get_xdata()[0] for line in dots] == [0, 1, 2, 3], "from below: random first"
    bars = [bar.get_segments()[0][:, 0] for bar in shannon.collections]
    assert [np.ptp(bar) for bar in bars] == pytest.approx([2 * 1.96] * 3)
    assert len(radius.collections) == 0


def test_episodes_inside_a_rectangle(embedding):
    found = episodes_inside(embedding.points, (-0.5, 1.5), (-np.inf, np.inf))
    assert set(found["dataset"]) == {"random-s0", "behavioral-2-s0"}
    assert (found["inside"] == 5).all()
    assert (found["share"] == 1).all()
    half = embedding.points["y"].median()
    above = episodes_inside(embedding.points, (-0.5, 3.5), (half, np.inf))
    assert above["inside"].sum() == 40
    assert above["inside"].is_monotonic_decreasing
    assert episodes_inside(embedding.points, (9, 10), (0, 1)).empty


def test_the_map_answers_to_its_controls(sample, embedding):
    shown = CoverageMap(sample, embedding)
    assert shown.color.options == ("objective", "time", "k-NN density", "walker_walk")
    assert [label for label, _ in shown.datasets.options.items()] == ORDER
    images = [shown.image.value]
    assert plt.imread(io.BytesIO(images[0])).shape == (480, 640, 4)
    for color in shown.color.options[1:]:
        shown.color.value = color
        images.append(shown.image.value)
    shown.datasets.value = ("shannon-s0",)
    images.append(shown.image.value)
    assert len(set(images)) == 5, "every change is drawn"
    shown.x.value, shown.y.value = (2.9, 3.0), (shown.y.min, shown.y.max)
    assert "20 states of 4 episodes inside" in shown.episodes.value
    shown.datasets.value = ("random-s0",)
    assert "0 states of 0 episodes inside" in shown.episodes.value
