"""Figures show what they are given, in one style."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from IPython.core.formatters import DisplayFormatter
from IPython.core.pylabtools import select_figure_formats

from belib import datasets, figures
from belib.coverage.states import StateMap
from belib.figures import style
from belib.rewards import OBJECTIVES, behavioral_reward
from belib.weighting import prelec_beta


def test_every_objective_has_a_look_darker_with_the_parameters_rank():
    assert set(OBJECTIVES) <= set(style.LOOKS)
    for cue in ("label", "marker"):
        assert len({getattr(look, cue) for look in style.LOOKS.values()}) == len(style.LOOKS)
    for name in ("behavioral", "renyi"):
        shades = [style.objective_color(name, value) for value in style.LOOKS[name].grid]
        luminance = [0.3 * r + 0.6 * g + 0.1 * b for r, g, b, _ in shades]
        assert all(np.diff(luminance) < 0)
        assert shades[0] != style.objective_color(name) != shades[-1], "without one, in between"


def test_one_order_palette_and_markers_of_a_table_that_is_shuffled():
    recipes = [("mine", 1.0), ("smm", None), ("renyi", 5.0), ("behavioral", 2.0), ("random", None)]
    recipes += [("shannon", None), ("rnd", None), ("behavioral", 0.2), ("renyi", 0.2)]
    table = pd.DataFrame(recipes, columns=["objective", "parameter"])
    table = pd.concat([table.assign(variant="observation-long"), table.assign(variant=np.nan)])
    drawn = style.of(table.assign(recipe=style.recipes(table)), lines=True)
    plain = ["SE", "BE α = 0.2", "BE α = 2", "RE q = 0.2", "RE q = 5", "RND", "SMM"]
    plain += ["random actions", "mine 1"]
    order = [f"{name}{end}" for name in plain for end in ("", ", observation, long")]
    assert drawn["hue_order"] == drawn["style_order"] == list(drawn["palette"]) == order
    color = style.objective_color("behavioral", 2.0)
    assert drawn["palette"]["BE α = 2"] == drawn["palette"]["BE α = 2, observation, long"] == color
    assert drawn["markers"][:6] == ["X", "X", "o", "o", "o", "o"]
    assert drawn["dashes"] == [(1, 1)] * 2 + [""] * 16


def test_collection_curves_hold_zero_and_show_what_there_is():
    origin = {"objective": "behavioral", "parameter": 0.5, "variant": "", "seed": 0}
    metrics = pd.DataFrame({"step": [1, 2], "return_walk": [100, 150.0], "value": 0.0, **origin})
    columns = ["intrinsic_reward", "representation_scale", "return_walk"]
    for paid, limits in (([-4, -2], (-4.2, 0)), ([-1, 2], (-1.15, 2.15)), ([1, 2], (0, 2.1))):
        axes = figures.collection.curves(metrics.assign(intrinsic_reward=paid), columns)
        assert [ax.get_title() for ax in axes] == ["intrinsic reward", "return walk"]
        assert axes[0].get_ylim() == pytest.approx(limits)
        assert axes[1].lines[0].get_ydata().tolist() == [100, 150]


def test_histograms_and_torsos_show_in_what_two_datasets_differ(tmp_path):
    pair = []
    rows, obs = np.zeros((101, 1)), np.random.default_rng(0).normal(size=(101, 24))
    for name, shift, height in (("moved", 9, 0.0), ("random", 0, -1.0)):
        columns = [obs + shift * (np.arange(24) == 14), rows, rows, rows + 1]
        columns.append(np.full((101, 18), height))
        arrays = zip(datasets.DTYPES.items(), columns, strict=True)
        episode = {key: array.astype(dtype) for (key, dtype), array in arrays}
        datasets.write_episode(tmp_path / "walker" / name, 0, episode, {})
        pair.append(datasets.load(tmp_path / "walker" / name))
    titles = [ax.get_title() for ax in figures.collection.state_histograms(*pair)]
    assert titles[0] == "height: 1.00"
    assert all(title.endswith("0.00") for title in titles[1:])
    axes = figures.collection.torso(*pair)
    assert axes[0].get_ylim() == axes[1].get_ylim()
    for ax, height in zip(axes, (1.3, 0.3), strict=True):
        np.testing.assert_allclose(ax.collections[0].get_offsets()[:, 1], height)


def test_reward_curves_and_their_surface_show_rewards_and_peaks():
    reward = lambda r, a: behavioral_reward(r, alpha=a, beta=prelec_beta(a, 512))  # noqa: E731
    (ax,) = figures.theory.rewards({"M = 512": reward}, "behavioral", [0.5, 2.0])
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["BE α = 0.5", "BE α = 2", "SE"]
    distance, reward = ax.lines[0].get_data()
    assert np.interp(10, distance, reward) == pytest.approx(0.3237, rel=1e-3)
    np.testing.assert_allclose(ax.lines[2].get_ydata(), np.log1p(distance))
    distance, alpha = figures.theory.surface((0.1, 5.0), 512).lines[0].get_data()
    assert alpha[np.isfinite(distance)].min() > 1
    assert np.interp(2.0, alpha, distance) == pytest.approx(91.8, rel=0.05)


def test_exact_and_simplified_rewards_rise_as_their_formulas_say():
    """At alpha = beta = 1, in d = 1: (1 / u + 1 - 1) d exactly, and 1 + 1 / L - L' simplified."""
    (ax,) = figures.theory.exact_and_simplified({1: 1.0}, 512, k=12)
    exact, simplified = (np.interp(1.0, *line.get_data()) for line in ax.lines[:2])
    assert exact == pytest.approx(1 / np.log(1024 * 2 / 12), rel=1e-3)
    share = 1 / 2  # d log(1 + R) / d log R at R = 1
    assert simplified == pytest.approx(1 + share / np.log(2) - share, rel=1e-3)


def test_a_map_of_rewards_rings_the_best_paid_tenth():
    distance = np.arange(1.0, 101)
    states = StateMap(np.stack([distance, 0 * distance], 1), distance, "a source")
    below, above = figures.theory.on_states(states, [0.5, 5.0], 2)
    assert below.collections[1].get_offsets()[:, 0].min() == 91  # the most novel
    assert above.collections[1].get_offsets()[:, 0].max() == 10  # beyond the peak nothing pays


def test_a_caption_stands_under_the_figure_and_is_its_alternative_text():
    """Through the formatters that IPython shows figures with."""
    _, ax = plt.subplots()
    figures.caption(ax, "Blue is\n  higher. " * 20)
    assert ax.figure.texts[0].get_position()[1] < 0
    shell = SimpleNamespace(display_formatter=DisplayFormatter())
    select_figure_formats(shell, {"png"})
    data, metadata = shell.display_formatter.format(ax.figure)
    assert "image/png" in data
    assert metadata["image/png"]["alt"].startswith("Blue is higher. Blue")
