"""JupyterLab on a copy of the notebooks, and Chromium to look at it with."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from functools import partial
from types import SimpleNamespace

import pytest

from belib.paths import ROOT, make_folder

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)


def wait_until_idle(url, sessions=1):
    """Wait, a minute at most, until the kernels of so many sessions or more are idle."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        time.sleep(0.2)
        with suppress(OSError):  # not listening yet
            with urllib.request.urlopen(f"{url}/api/sessions", timeout=5) as answer:
                states = [s["kernel"]["execution_state"] for s in json.load(answer)]
            if len(states) >= sessions and set(states) <= {"idle"}:
                return
    raise TimeoutError(f"{url} must be idle within a minute")


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """A JupyterLab with the project's settings, apart from those of the user."""
    home = tmp_path_factory.mktemp("lab")
    notebooks = shutil.copytree(ROOT / "notebooks", home / "notebooks")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    places = ("_CONFIG", "_DATA", "_RUNTIME", "LAB_SETTINGS", "LAB_WORKSPACES")
    environment = os.environ | {f"JUPYTER{name}_DIR": str(home / name) for name in places}
    environment["JUPYTER_CONFIG_PATH"] = str(ROOT / ".jupyter")
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", f"--port={port}"]
    command += [f"--ServerApp.root_dir={notebooks}", "--IdentityProvider.token="]
    command += ["--allow-root"] if os.geteuid() == 0 else []
    with open(home / "log", "w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        wait = partial(wait_until_idle, url := f"http://127.0.0.1:{port}")
        wait(sessions=0)
        yield SimpleNamespace(url=url, wait_until_idle=wait)
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture(params=[1400])
def page(request):
    """A page that lists what it has `loaded`; an error in its console fails the test."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on the path")
    with playwright.sync_playwright() as start:
        # Chromium has no sandbox for root, nor in most containers.
        browser = start.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": request.param, "height": 1100})
        page.set_default_timeout(30_000)
        page.loaded, errors = [], []
        page.on("request", lambda request: page.loaded.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        yield page
        browser.close()
    assert errors == []


@pytest.fixture(scope="session")
def screenshots():
    return make_folder("runs/browser")
