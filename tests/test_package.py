"""The package as others get it: what it offers, what importing it costs, and its wheel."""

import ast
import importlib
import os
import subprocess
import sys
import venv
from importlib.metadata import version
from pathlib import Path

import numpy
import pytest

from belib.paths import ROOT

ALONE = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
HEAVY = {"torch", "mujoco", "dm_control", "pandas", "matplotlib", "sklearn"}


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("names", "without"),
    [
        (["entropy"], HEAVY | {f"scipy.{part}" for part in ("stats", "optimize", "integrate")}),
        (["weighting", "estimators", "knn", "rewards"], HEAVY),
        (["config", "results"], {"torch"}),
    ],
)
def test_a_module_comes_when_asked_for_and_costs_what_it_needs(names, without):
    code = f"import sys; from belib import {', '.join(names)}; print(*sys.modules)"
    modules = set(run(sys.executable, "-c", code, cwd=ROOT).split())
    assert {f"belib.{name}" for name in names} <= modules - without == modules


def imports(text):
    """(module, name) of each `from belib... import name`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("belib"):
            yield from ((node.module, alias.name) for alias in node.names)


def test_names_are_imported_from_where_they_are_defined_or_listed():
    for path in [p for part in ("belib", "tests") for p in ROOT.glob(f"{part}/**/*.py")]:
        for module, name in imports(path.read_text()):
            value = getattr(importlib.import_module(module), name, None)
            home = f"{getattr(value, '__module__', module)}."
            assert not home.startswith("belib.") or home.startswith(f"{module}."), (path, name)


@pytest.mark.slow
def test_the_wheel_works_without_the_repository(tmp_path):
    """In an environment of its own, whose other packages are ours."""
    pip, python = [sys.executable, "-m", "pip", "--quiet"], tmp_path / "venv" / "bin" / "python"
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, ROOT, env=ALONE)
    venv.create(tmp_path / "venv")
    (wheel,), (site,) = tmp_path.glob("belib-*.whl"), tmp_path.glob("venv/lib/*/site-packages")
    run(*pip, "--python", python, "install", "--no-deps", "--no-index", wheel, env=ALONE)
    (site / "ours.pth").write_text(str(Path(numpy.__file__).parents[1]) + "\n")
    code = """
import belib
from belib import datasets, entropy, training
from belib.config import PretrainConfig
print(belib.__file__, entropy.behavioral_entropy([0.7, 0.2, 0.1], alpha=0.5).round(4))
assert PretrainConfig.at_scale("paper") == PretrainConfig()
config = PretrainConfig.at_scale("smoke", num_steps=1100)
(made,) = training.pretrain(config, progress=False)
print(datasets.read_card(made)["git_revision"], made)
"""
    first, last = run(python, "-c", code, cwd=tmp_path, env=ALONE).splitlines()
    assert first == f"{site}/belib/__init__.py 1.0107"
    made = tmp_path / "runs" / "datasets" / "walker" / "behavioral-0.5-s0"
    assert last == f"v{version('belib')} {made}"
    assert (site / "belib" / "py.typed").exists()
