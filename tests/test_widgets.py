"""The interactive parts without a browser: their callbacks, called as a control calls them."""

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from bs4 import BeautifulSoup
from matplotlib.axis import Axis
from PIL import Image

from belib.coverage.states import StateMap
from belib.widgets import EntropyGame, RewardExplorer, flipbook


@pytest.fixture(scope="module")
def states():
    rng = np.random.default_rng(0)
    return StateMap(rng.normal(size=(1500, 2)), rng.gamma(8.0, 0.3, 1500), "made up; for a test")


@pytest.fixture(scope="module")
def tabs(states):
    return RewardExplorer(states, alpha=2.0), EntropyGame(alpha=2.0)


def test_dragging_alpha_redraws_what_moves_alone(tabs, monkeypatch):
    """It is fluid: a whole redraw takes 6 times as long, nearly all of it for axes."""
    assert [widget.alpha.value for widget in tabs] == [2.0, 2.0]
    whole = []
    monkeypatch.setattr(Axis, "draw", lambda *_: whole.append(1))
    for widget in tabs:
        images = set()
        for alpha in np.linspace(0.1, 5, 10):
            widget.alpha.value = alpha
            images.add(widget.image.value)
        assert len(images) == 10, "every alpha has its own picture"
    assert not whole
    assert plt.get_fignums() == [], "no figure is left open"


def test_the_picture_is_the_whole_figures(states):
    """What is drawn on top of the kept background is what a full redraw would show."""
    widget = RewardExplorer(states, alpha=2.0)
    widget.n_outcomes.value, widget.unit.value = 16, 3.0
    fast = np.asarray(Image.open(io.BytesIO(widget.image.value)))
    for artist in widget.moving:
        artist.set_animated(False)
    widget.canvas.draw()
    whole = np.asarray(widget.canvas.buffer_rgba())[..., :3]
    different = (abs(fast.astype(int) - whole) > 60).any(-1).mean()
    assert different < 0.02  # lines of the axes that lie above or below a curve


def test_a_flipbook_shows_one_of_fifty_pictures_and_loads_nothing(states):
    page = flipbook(states, 2).data
    pictures = BeautifulSoup(page, "lxml").find_all("img")
    shown = [img["alt"] for img in pictures if "none" not in img["style"]]
    assert shown == ["The reward at α = 0.5"]
    assert len({img["src"] for img in pictures}) == 50
    assert len(page) < 3e6
    assert "http" not in page


def test_every_control_of_the_reward_moves_the_picture_and_back(tabs):
    reward = tabs[0]
    before = reward.image.value
    for control, value in ((reward.alpha, 3.0), (reward.n_outcomes, 2), (reward.unit, 100.0)):
        old, control.value = control.value, value
        assert reward.image.value != before
        control.value = old
        assert reward.image.value == before


def test_the_games_pmf_follows_its_sliders(tabs):
    game = tabs[1]
    game.n_outcomes.value = 3
    assert len(game.pmf) == len(game.weights.children) == 3
    for slider in game.weights.children:
        slider.value = 0.0
    np.testing.assert_array_equal(game.pmf, 1 / 3)
    before, game.weights.children[2].value = game.image.value, 0.5
    assert game.pmf.tolist() == [0, 0, 1]
    assert game.image.value != before


def test_climbing_ends_at_the_uniform_pmf_only_for_small_alpha(tabs):
    game = tabs[1]
    game.n_outcomes.value, game.alpha.value = 6, 0.5
    game.climb_button.click()
    np.testing.assert_allclose(game.pmf, 1 / 6, atol=1e-3)
    assert game.said.value == "Behavioral entropy 1.792 nats, uniform pmf: 1.792"
    game.alpha.value = 5.0
    game.climb()
    assert game.pmf.min() < 1e-3
    assert "1.837 nats, <b>more than the uniform pmf's 1.792</b>" in game.said.value
    moves = []
    for slider in game.weights.children:
        slider.observe(moves.append, "value")
    game.level_button.click()
    np.testing.assert_allclose(game.pmf, 1 / 6, atol=1e-9)
    assert len(moves) == 6, "a slow page may send a slider's earlier value back"
