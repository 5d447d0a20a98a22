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

PHYSICS = mujoco.mjtState.mjSTATE_PHYSICS  # qpos, qvel, act: a state in an episode file


def frames(model: mujoco.MjModel, states: np.ndarray, size: int = 240) -> np.ndarray | None:
    """Return pictures (T, size, size, 3) uint8 of physics states (T, nq + nv + na).

    The first library that works makes them: the one that `MUJOCO_GL` names, EGL, OSMesa, or GLFW on
    a display. Where none does, or `MUJOCO_GL` is `off`, print what to install and return None. This
    process survives a library that aborts. Raise ValueError for states of another model.
    """
    numbers = mujoco.mj_stateSize(model, PHYSICS)
    if np.ndim(states) != 2 or np.shape(states)[1] != numbers:
        raise ValueError(f"states must have shape (T, {numbers}), got {np.shape(states)}")
    with tempfile.TemporaryDirectory() as folder:
        mujoco.mj_saveModel(model, f"{folder}/model.mjb", None)
        np.save(f"{folder}/states.npy", states)
        command = [sys.executable, "-P", __file__, folder, str(size)]
        for library in (tried := _libraries()):
            env = {**os.environ, "MUJOCO_GL": library, "PYOPENGL_PLATFORM": ""}
            with suppress(subprocess.TimeoutExpired):
                done = subprocess.run(command, env=env, capture_output=True, timeout=300)
                if done.returncode == 0:
                    return np.load(f"{folder}/frames.npy")
    missing = f"Nothing renders here (tried: {', '.join(tried) or 'nothing, MUJOCO_GL is off'})"
    print(f"{missing}. On Debian, `apt install libegl1` or `libosmesa6` helps.")
    return None


def _libraries() -> list[str]:
    """Return the values of MUJOCO_GL to try, in this order."""
    named = os.environ.get("MUJOCO_GL", "").lower().strip()
    if named in ("disable", "disabled", "off", "false", "0"):
        return []
    others = ["egl", "osmesa", "glfw"] if sys.platform == "linux" else ["glfw"]
    return list(dict.fromkeys(filter(None, [named, *others])))


def gif(frames: np.ndarray, *, fps: float = 20, limit: int = 750_000) -> bytes:
    """Return frames (T, height, width, 3) uint8 as a looped GIF with one palette of 64 colours.

    A clip above `limit` bytes loses every other frame. The default makes 1 MB of base64 text.
    """
    palette = Image.fromarray(np.concatenate(frames[:: len(frames) // 8 + 1])).quantize(64)
    same = {"palette": palette, "dither": Image.Dither.NONE}
    first, *rest = [Image.fromarray(frame).quantize(**same) for frame in frames]
    looped = {"save_all": True, "append_images": rest, "duration": round(1000 / fps), "loop": 0}
    first.save(file := io.BytesIO(), "gif", **looped)
    if len(rest) and file.tell() > limit:
        return gif(frames[::2], fps=fps / 2, limit=limit)
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
