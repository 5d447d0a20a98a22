"""Pictures of physics states where a library renders, and drawings where none does."""

import io
import os

import matplotlib.pyplot as plt
import mujoco
import numpy as np
import pytest
from PIL import Image

from belib import envs, figures, rendering


@pytest.fixture(scope="module")
def states():
    """A Walker that falls."""
    env = envs.Environment("walker_stand", 0)
    return np.array([env.reset().physics] + [env.step(np.ones(6)).physics for _ in range(39)])


def test_a_library_is_found_without_setting_anything_here(states, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "broken")  # ends the child process; others are tried after it
    before = dict(os.environ)
    frames = rendering.frames(envs.model("walker"), states[::20], size=64)
    assert dict(os.environ) == before
    if frames is None:
        pytest.skip("no OpenGL library renders here")
    assert (frames.shape, frames.dtype) == ((2, 64, 64, 3), np.uint8)
    orange = frames[..., 0] > 1.2 * frames[..., 2]  # the Walker, not the sky and the floor
    assert (orange.mean((1, 2)) > 0.01).all()
    assert (orange[0] != orange[1]).mean() > 0.01
    html = figures.collection.clip("walker", states, "a <b> walker").data
    assert 'alt="A clip. a &lt;b&gt; walker"' in html
    assert len(html) < 1e6
    assert "http" not in html


def test_without_a_library_poses_are_drawn(states, monkeypatch, capsys):
    monkeypatch.setenv("MUJOCO_GL", "off")
    assert figures.collection.clip("walker", states) is None
    (said,) = capsys.readouterr().out.splitlines()
    assert "libegl1" in said
    torso = np.array([geoms.get_segments()[0] for geoms in plt.gca().collections])
    heights = 1.3 + states[np.linspace(0, 39, 8).astype(int), 0]
    np.testing.assert_allclose(torso[:, :, 1].mean(1), heights, atol=0.01)
    assert rendering.PHYSICS == envs._PHYSICS  # also where actuators are delayed
    with pytest.raises(ValueError, match=r"states must have shape \(T, 18\), got \(40, 17\)"):
        rendering.frames(envs.model("walker"), states[:, 1:])


def test_an_environment_without_bodies_says_so(monkeypatch):
    empty = mujoco.MjModel.from_xml_string("<mujoco/>")  # of Gymnasium's without MuJoCo
    monkeypatch.setattr(envs, "model", lambda domain: empty)
    assert "mine has no MuJoCo bodies" in figures.collection.clip("mine", np.zeros((9, 0))).data


def test_a_clip_loops():
    frames = np.random.default_rng(0).integers(0, 256, (16, 60, 60, 3), np.uint8)
    clip = Image.open(io.BytesIO(rendering.webp(frames)))
    clip.load()  # of the first frame
    assert (clip.n_frames, clip.info["loop"], clip.info["duration"]) == (16, 0, 50)
