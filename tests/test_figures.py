import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from belib import datasets, figures
from belib.figures.style import ALPHAS, QS
from belib.weighting import Prelec, prelec_beta


@pytest.fixture(autouse=True)
def no_window():
    matplotlib.use("agg")
    yield
    plt.close("all")


def test_colours_are_by_rank_on_the_papers_grid():
    blues = [figures.objective_color("behavioral", alpha) for alpha in ALPHAS]
    luminance = [0.3 * r + 0.6 * g + 0.1 * b for r, g, b, _ in blues]
    assert all(np.diff(luminance) < 0), "darker with alpha"
    assert len({figures.objective_color("renyi", q) for q in QS} | set(blues)) == 16
    assert figures.objective_color("shannon") == (0, 0, 0, 1)


def test_labels():
    assert figures.objective_label("behavioral", 0.5) == "BE α = 0.5"
    assert figures.objective_label("renyi", 2.0) == "RE q = 2"
    assert figures.objective_label("shannon") == "SE"
    assert figures.objective_label("random") == "random actions"


def test_one_order_everywhere():
    shuffled = [("smm", None), ("renyi", 5.0), ("behavioral", 2.0), ("shannon", None)]
    shuffled += [("random", None), ("rnd", None), ("behavioral", 0.2), ("renyi", 0.2)]
    found = [name for name, _ in sorted(shuffled, key=lambda each: figures.objective_order(*each))]
    assert found == ["shannon", *["behavioral"] * 2, *["renyi"] * 2, "rnd", "smm", "random"]
    assert len({figures.objective_marker(name) for name in found}) == 6


def test_collection_curves_leave_out_what_was_not_measured():
    metrics = pd.DataFrame({"step": [1000, 2000], "return_walker_stand": [100.0, 150.0]})
    left, right = figures.collection_curves(metrics, "walker")
    assert not left.lines
    assert right.lines[0].get_ydata().tolist() == [100, 150]


def test_torso_map_shows_two_datasets_with_equal_limits(tmp_path):
    def dataset(name, height):
        folder = tmp_path / "walker" / name
        rows, physics = np.zeros((101, 1)), np.full((101, 18), height)
        arrays = (rows, rows, rows, rows, physics)
        episode = {
            k: a.astype(t) for (k, t), a in zip(datasets.DTYPES.items(), arrays, strict=True)
        }
        datasets.write_episode(folder, 0, episode, {})
        return datasets.load(folder)

    axes = figures.torso_map(dataset("a", 0.0), dataset("b", -1.0))
    assert axes[0].get_ylim() == axes[1].get_ylim()
    np.testing.assert_allclose(axes[0].collections[0].get_offsets()[:, 1], 1.3)  # of the torso
    np.testing.assert_allclose(axes[1].collections[0].get_offsets()[:, 1], 0.3)


def test_captions_stand_under_the_figure():
    ax = plt.figure().subplots()
    figures.caption(ax, "A claim.  " * 30)
    (text,) = ax.figure.texts
    assert "\n" in text.get_text()
    assert text.get_position()[1] < 0


def test_theory_figures_draw_what_they_are_given():
    ax = figures.perceived_normal([0.5, 2.0])
    assert len(ax.lines) == 3  # and the density itself
    left, right = figures.bernoulli_entropies([0.5], [0.5, 2.0])
    assert (len(left.lines), len(right.lines)) == (2, 4)
    np.testing.assert_allclose(max(left.lines[0].get_ydata()), np.log(2), rtol=1e-6)
    part = pd.DataFrame({"m": [2, 4], "alpha": 2.0, "entropy": [0.5, 1.4], "n_outcomes": 4})
    assert figures.uniform_on_part(part).lines[0].get_xdata().tolist() == [0.5, 1.0]


def test_slopes_of_weightings_match_differences():
    towards_zero, _ = figures.weighting_slopes([0.5], 512)
    p, slope = towards_zero.lines[0].get_data()
    weighting = Prelec(0.5, prelec_beta(0.5, 512))
    step = 1e-6 * p
    difference = (weighting(p + step) - weighting(p - step)) / (2 * step)
    np.testing.assert_allclose(slope, difference, rtol=1e-4)


def test_studies_have_a_panel_an_alpha_and_ticks_at_sizes():
    table = pd.DataFrame({"n": [100, 1000] * 2, "alpha": [0.5, 0.5, 1, 1], "bias": [1.0, 2, 3, 4]})
    axes = figures.convergence(table.assign(estimator="a"), "bias", "|bias|")
    assert [ax.get_title() for ax in axes] == ["α = 0.5", "α = 1"]
    assert [label.get_text() for label in axes[0].get_xticklabels()] == ["100", "1,000"]
