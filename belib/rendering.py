"""Pictures of physics states, made with OpenGL by a child that runs this file; looped clips."""

import io
import os
import subprocess
import sys
import tempfile
from contextlib import suppress

import mujoco
import numpy as np
from PIL import Image

PHYSICS = mujoco.mjtState.mjSTATE_QPOS | mujoco.mjtState.mjSTATE_QVEL | mujoco.mjtState.mjSTATE_ACT


def frames(model: mujoco.MjModel, states: np.ndarray, size: int = 240) -> np.ndarray | None:
    """Return pictures (T, size, size, 3) uint8 of physics states (T, nq + nv + na).

    The first library that works makes them: the one that `MUJOCO_GL` names, EGL, OSMesa, or GLFW on
    a display. Where none does, or `MUJOCO_GL` is `off`, print what to install and return None. This
    process survives a library that aborts. Raise ValueError for states of another model.
    """
    numbers = mujoco.mj_stateSize(model, PHYSICS)
    if np.ndim(states) != 2 or np.shape(states)[1] != numbers:
        raise ValueError(f"states must have shape (T, {numbers}), got {np.shape(states)}")
    named = os.environ.get("MUJOCO_GL", "").lower()
    tried = [] if named == "off" else list(dict.fromkeys([named or "egl", "egl", "osmesa", "glfw"]))
    with tempfile.TemporaryDirectory() as folder:
        mujoco.mj_saveModel(model, f"{folder}/model.mjb", None)
        np.save(f"{folder}/states.npy", states)
        command = [sys.executable, "-P", __file__, folder, str(size)]
        for library in tried:
            env = {**os.environ, "MUJOCO_GL": library, "PYOPENGL_PLATFORM": ""}
            with suppress(subprocess.TimeoutExpired):
                done = subprocess.run(command, env=env, capture_output=True, timeout=300)
                if done.returncode == 0:
                    return np.load(f"{folder}/frames.npy")
    missing = f"Nothing renders here (tried: {', '.join(tried) or 'nothing, MUJOCO_GL is off'})"
    print(f"{missing}. On Debian, `apt install libegl1` or `libosmesa6` helps.")
    return None


def webp(frames: np.ndarray) -> bytes:
    """Return frames (T, height, width, 3) uint8 as a looped clip of 20 a second, in WebP."""
    first, *rest = map(Image.fromarray, frames)
    looped = {"save_all": True, "append_images": rest, "duration": 50, "loop": 0, "quality": 40}
    first.save(file := io.BytesIO(), "webp", **looped)
    return file.getvalue()


def _main(folder: str, size: int) -> None:
    """Render the states in a folder, by a camera that follows the body if the model has one."""
    model = mujoco.MjModel.from_binary_path(f"{folder}/model.mjb")
    data, pictures = mujoco.MjData(model), []
    # the first camera that follows the body, neither too near to see it whole nor far away
    distance = np.linalg.norm(model.cam_poscom0, axis=1) / model.stat.extent
    follows = model.cam_mode == mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM
    fit = follows & (distance > 1.1) & (distance < 4)
    camera = fit.argmax() if fit.any() else min(model.ncam, 1) - 1  # -1: MuJoCo's own view
    model.vis.global_.offwidth = model.vis.global_.offheight = size
    with mujoco.Renderer(model, size, size) as renderer:
        for state in np.load(f"{folder}/states.npy"):
            mujoco.mj_setState(model, data, state, PHYSICS)
            mujoco.mj_forward(model, data)
            renderer.update_scene(data, int(camera))
            pictures.append(renderer.render())
    np.save(f"{folder}/frames.npy", pictures)


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
