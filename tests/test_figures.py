from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from belib import datasets, figures
from belib.config import PretrainConfig
from belib.coverage.maps import StateMap
from belib.figures import style
from belib.figures.style import LOOKS
from belib.rewards import OBJECTIVES
from belib.weighting import Prelec, prelec_beta


@pytest.fixture(autouse=True)
def no_window():
    matplotlib.use("agg")
    yield
    plt.close("all")


def test_colours_are_by_rank_on_the_papers_grid():
    for name in ("behavioral", "renyi"):
        shades = [style.objective_color(name, value) for value in LOOKS[name].grid]
        luminance = [0.3 * r + 0.6 * g + 0.1 * b for r, g, b, _ in shades]
        assert all(np.diff(luminance) < 0), "darker with the parameter"
        assert shades[0] != style.objective_color(name) != shades[-1], "without one, in between"
    assert style.objective_color("shannon") == (0, 0, 0, 1)


@pytest.mark.parametrize(
    ("recipe", "label"),
    [
        (("shannon", None), "SE"),
        (("behavioral", 0.5), "BE α = 0.5"),
        (("behavioral", 0.5, "observation-long"), "BE α = 0.5, observation, long"),
        (("renyi", 2.0, "signed"), "RE q = 2, signed"),
        (("random", np.nan, np.nan), "random actions"),
        (("mine", 3.0, ""), "mine 3"),
    ],
)
def test_a_label_tells_recipes_apart(recipe, label):
    assert style.objective_label(*recipe) == label


def test_every_objective_has_a_look_of_its_own():
    assert set(OBJECTIVES) <= set(LOOKS)
    assert len({look.label for look in LOOKS.values()}) == len(LOOKS)
    assert len({look.marker for look in LOOKS.values()}) == len(LOOKS)


def test_one_order_palette_and_markers_of_a_table_that_is_shuffled():
    recipes = [("mine", 1.0), ("smm", None), ("renyi", 5.0), ("behavioral", 2.0), ("random", None)]
    recipes += [("shannon", None), ("rnd", None), ("behavioral", 0.2), ("renyi", 0.2)]
    table = pd.DataFrame(recipes, columns=["objective", "parameter"])
    table = pd.concat([table.assign(variant="long"), table.assign(variant="")])
    drawn = style.of(table.assign(recipe=style.recipes(table)), lines=True)
    plain = ["SE", "BE α = 0.2", "BE α = 2", "RE q = 0.2", "RE q = 5", "RND", "SMM"]
    plain += ["random actions", "mine 1"]
    assert drawn["hue_order"] == [f"{name}{end}" for name in plain for end in ("", ", long")]
    assert list(drawn["palette"]) == list(drawn["markers"]) == drawn["hue_order"]
    assert drawn["palette"]["BE α = 2, long"] == style.objective_color("behavioral", 2.0)
    dotted = [name for name, dashes in drawn["dashes"].items() if dashes]
    assert dotted == ["SE", "SE, long"]


def test_collection_curves_leave_out_what_was_not_measured():
    metrics = pd.DataFrame({"step": [1000, 2000], "return_walker_stand": [100.0, 150.0]})
    left, middle, right = figures.collection.curves(metrics, "walker")
    assert not left.lines + middle.lines
    assert right.lines[0].get_ydata().tolist() == [100, 150]
    assert left.texts[0].get_text() == "no intrinsic reward"


def test_collection_curves_hold_zero_and_all_values():
    metrics = pd.DataFrame({"step": [1, 2], "return_walker_stand": [0.0, 0.0]})
    for paid, limits in (
        ([-4.0, -2.0], (-4.4, 0.0)),
        ([-1.0, 2.0], (-1.1, 2.2)),
        ([1, 2], (0, 2.2)),
    ):
        axes = figures.collection.curves(metrics.assign(intrinsic_reward=paid), "walker")
        assert axes[0].get_ylim() == pytest.approx(limits)


def test_objectives_stand_in_one_order_with_their_colours():
    configs = [PretrainConfig(objective=o) for o in ("random", "rnd")]
    configs += [PretrainConfig(representation="observation"), PretrainConfig(objective="shannon")]
    metrics = [pd.DataFrame({"step": [1, 2], "return_walker_run": [9.0, i]}) for i in range(4)]
    (ax,) = figures.collection.objectives(metrics, configs, ["walker_run"])
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["SE", "BE α = 0.5, observation", "RND", "random actions"]
    assert [line.get_ydata()[1] for line in ax.lines[:4]] == [3, 2, 1, 0]
    assert ax.lines[1].get_color() == figures.style.objective_color("behavioral", 0.5)


def test_histograms_show_the_observations_that_differ_most(walker_dataset):
    same = walker_dataset("a", lambda obs: obs)
    moved = walker_dataset("b", lambda obs: obs + 9 * (np.arange(24) == 14))
    axes = figures.collection.state_histograms(moved, same)
    assert axes[0, 0].get_title() == "height: 1.00"
    assert all(ax.get_title().endswith("0.00") for ax in axes.flat[1:])


@pytest.fixture
def walker_dataset(tmp_path):
    """A dataset of one episode whose normal observations a function changes."""

    def make(name, change):
        rows, generator = np.zeros((101, 1)), np.random.default_rng(0)
        obs, physics = change(generator.normal(size=(101, 24))), np.zeros((101, 18))
        pairs = zip(datasets.DTYPES.items(), (obs, rows, rows, rows + 1, physics), strict=True)
        episode = {key: array.astype(dtype) for (key, dtype), array in pairs}
        folder = tmp_path / "walker" / name
        datasets.write_episode(folder, 0, episode, {})
        return datasets.load(folder)

    return make


def test_torso_map_shows_two_datasets_with_equal_limits(tmp_path):
    def dataset(name, height):
        folder = tmp_path / "walker" / name
        rows, physics = np.zeros((101, 1)), np.full((101, 18), height)
        arrays = (rows, rows, rows, rows + 1, physics)
        episode = {
            k: a.astype(t) for (k, t), a in zip(datasets.DTYPES.items(), arrays, strict=True)
        }
        datasets.write_episode(folder, 0, episode, {})
        return datasets.load(folder)

    axes = figures.collection.torso(dataset("a", 0.0), dataset("b", -1.0))
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
    ax = figures.theory.perceived_normal([0.5, 2.0])
    assert len(ax.lines) == 3  # and the density itself
    left, right = figures.theory.bernoulli_entropies([0.5], [0.5, 2.0])
    assert (len(left.lines), len(right.lines)) == (2, 4)
    np.testing.assert_allclose(max(left.lines[0].get_ydata()), np.log(2), rtol=1e-6)
    part = pd.DataFrame({"m": [2, 4], "alpha": 2.0, "entropy": [0.5, 1.4], "n_outcomes": 4})
    assert figures.theory.uniform_on_part(part).lines[0].get_xdata().tolist() == [0.5, 1.0]


def test_slopes_of_weightings_match_differences():
    towards_zero, _ = figures.theory.weighting_slopes([0.5], 512)
    p, slope = towards_zero.lines[0].get_data()
    weighting = Prelec(0.5, prelec_beta(0.5, 512))
    step = 1e-6 * p
    difference = (weighting(p + step) - weighting(p - step)) / (2 * step)
    np.testing.assert_allclose(slope, difference, rtol=1e-4)


def test_studies_have_a_panel_an_alpha_and_ticks_at_sizes():
    table = pd.DataFrame({"n": [100, 1000] * 2, "alpha": [0.5, 0.5, 1, 1], "bias": [1.0, 2, 3, 4]})
    axes = figures.theory.convergence(table.assign(estimator="a"), "bias", "|bias|")
    assert [ax.get_title() for ax in axes] == ["α = 0.5", "α = 1"]
    assert [label.get_text() for label in axes[0].get_xticklabels()] == ["100", "1,000"]


def test_reward_curves_show_the_papers_alphas_and_shannons_on_two_scales():
    left, right = figures.rewards.curves([0.5, 2.0], 512)
    assert (left.get_yscale(), right.get_yscale()) == ("linear", "log")
    for ax in (left, right):
        *behavioral, shannon = ax.lines
        assert [line.get_label() for line in behavioral] == ["BE α = 0.5", "BE α = 2"]
        np.testing.assert_allclose(shannon.get_ydata(), np.log1p(shannon.get_xdata()))
        assert len(ax.collections) == 1  # the region of all alphas between
    distance, reward = right.lines[0].get_data()
    assert np.interp(10, distance, reward) == pytest.approx(0.3237, rel=1e-3)


def test_reward_surface_has_its_peaks_where_they_are():
    ax = figures.rewards.surface((0.1, 5.0), 512)
    distance, alpha = ax.lines[0].get_data()
    assert alpha.min() > 1
    assert np.interp(2.0, alpha, distance) == pytest.approx(91.8, rel=0.05)


def test_reward_panels_have_shannons_reward_in_each():
    rows = [(p, "renyi", q, r, q * r) for p in "ab" for q in (0.5, 2.0) for r in (1.0, 10.0)]
    columns = ["panel", "objective", "parameter", "distance", "reward"]
    axes = figures.rewards.panels(pd.DataFrame(rows, columns=columns))
    assert [ax.get_title() for ax in axes] == ["a", "b"]
    labels = [text.get_text() for text in axes[1].get_legend().get_texts()]
    assert labels == ["RE q = 0.5", "RE q = 2", "SE"]
    np.testing.assert_allclose(axes[1].lines[0].get_ydata(), [0.5, 5.0])


def test_reward_scales_mark_both_ends_with_the_familys_marker():
    columns = ["objective", "parameter", "low", "high"]
    ax = figures.rewards.scales(pd.DataFrame([("behavioral", 0.5, 0.1, 0.3)], columns=columns))
    bar, high, low = ax.lines
    assert bar.get_ydata().tolist() == [0.1, 0.3]
    assert (high.get_ydata(), low.get_ydata(), high.get_marker()) == ([0.3], [0.1], "o")


def test_exact_and_simplified_side_by_side():
    table = pd.DataFrame({"d": [1, 1, 24], "alpha": [1.0, 2.0, 1.0], "exact": -1.0})
    axes = figures.rewards.exact_and_simplified(table.assign(simplified=2.0))
    assert [ax.get_title() for ax in axes] == ["d = 1", "d = 24"]
    exact, simplified = axes[0].lines
    assert (exact.get_ydata()[0], simplified.get_ydata()[0]) == (-1, 2)


def test_reward_map_rings_the_best_paid_tenth():
    distance = np.arange(1.0, 101)
    states = StateMap(np.stack([distance, 0 * distance], 1), distance, "a source")
    below, above = figures.rewards.on_states(states, [0.5, 5.0], 2)
    assert below.collections[1].get_offsets()[:, 0].min() == 91  # the most novel
    assert above.collections[1].get_offsets()[:, 0].max() == 10  # beyond the peak nothing pays


def test_a_notebook_keeps_the_caption_as_alternative_text():
    """Through the formatters that IPython shows figures with."""
    from IPython.core.formatters import DisplayFormatter
    from IPython.core.pylabtools import select_figure_formats

    _, ax = plt.subplots()
    figures.caption(ax, "Blue is\n  higher.")
    shell = SimpleNamespace(display_formatter=DisplayFormatter())
    select_figure_formats(shell, {"png"})
    data, metadata = shell.display_formatter.format(ax.figure)
    assert "image/png" in data
    assert metadata["image/png"]["alt"] == "Blue is higher."
