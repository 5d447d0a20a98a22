"""The package as others get it: what it offers, what importing it costs, and its wheel."""

import ast
import functools
import json
import os
import re
import subprocess
import sys
import venv
from importlib.metadata import version
from pathlib import Path

import numpy
import pytest

import belib
from belib.paths import ROOT

SOURCES = [
    path for part in ("belib", "tests", "benchmarks") for path in ROOT.glob(f"{part}/**/*.py")
]
ALONE = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
ARRAYS_ONLY = ("entropy", "weighting", "estimators", "knn", "rewards")


def run(code, cwd=ROOT, python=sys.executable, **options):
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, cwd=cwd, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_arrays_cost_neither_torch_nor_mujoco_and_entropies_no_more_than_functions():
    code = f"""
import sys, belib
belib.entropy.shannon_entropy([0.5, 0.5])
print(*sys.modules)
for name in {ARRAYS_ONLY}:
    getattr(belib, name)
print(*sys.modules)
"""
    entropies, arrays = (set(line.split()) for line in run(code).splitlines())
    heavy = {"torch", "mujoco", "dm_control", "pandas", "matplotlib", "sklearn"}
    assert not heavy & arrays
    # 0.2 s; each of these parts of scipy takes longer than that.
    assert not {"scipy.stats", "scipy.optimize", "scipy.spatial", "scipy.integrate"} & entropies


@pytest.mark.parametrize("name", ["config", "results"])
def test_settings_and_tables_cost_no_torch(name):
    assert run(f"import sys, belib.{name}; print('torch' in sys.modules)") == "False\n"


def test_a_module_comes_when_asked_for():
    assert belib.knn.__name__ == "belib.knn"
    with pytest.raises(AttributeError, match="has no attribute 'entropie'"):
        belib.entropie  # noqa: B018


def imports(text):
    """(module, name) of each `from belib... import name`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "belib":
            yield from ((node.module, alias.name) for alias in node.names)


@functools.cache
def offered(module):
    """What a module defines or hands on: a package, what it imports from its own modules."""
    path = ROOT / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    names = {each.stem for each in file.parent.iterdir()} if path.is_dir() else set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            own = path.is_dir() and f"{node.module}.".startswith(f"{module}.")
            names |= {each.name for each in node.names if own or each.asname == each.name}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found = (each for target in targets for each in ast.walk(target))
            names |= {each.id for each in found if isinstance(each, ast.Name)}
    return names


def test_names_are_imported_from_where_they_are_defined_or_listed():
    faults = [
        f"{path.relative_to(ROOT)}: {module} does not offer {name}"
        for path in SOURCES
        for module, name in imports(path.read_text())
        if name not in offered(module)
    ]
    assert not faults


def test_notebooks_and_readme_use_public_modules_and_names_alone():
    texts = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    for path in ROOT.glob("notebooks/*.ipynb"):
        cells = json.loads(path.read_text())["cells"]
        texts += ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    for module, name in {pair for text in texts for pair in imports(text)}:
        assert not any(part.startswith("_") for part in (*module.split("."), name)), module


def test_scales_are_read_from_where_a_wheel_has_them_too():
    for path in ROOT.glob("belib/**/*.py"):
        if path.name != "paths.py":
            assert not re.search(r'ROOT\b.*"params', path.read_text()), f"{path}: use paths.PARAMS"


@pytest.mark.slow
def test_types_are_right():
    pytest.importorskip("pyright", reason="the extra belib[types] is not installed")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder without a repository, and the Python of an environment with our wheel in it."""
    folder = tmp_path_factory.mktemp("elsewhere")
    pip = [sys.executable, "-m", "pip", "--quiet"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, ROOT]
    subprocess.run(build, check=True, env=ALONE)
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    (wheel,) = folder.glob("belib-*.whl")
    own = run(
        "import sysconfig; print(sysconfig.get_path('purelib'))", folder, python, env=ALONE
    ).strip()
    install = [*pip, "--python", python, "install", "--no-deps", "--no-index", wheel]
    subprocess.run(install, check=True, env=ALONE)
    # The packages that it needs are ours, behind its own.
    Path(own, "ours.pth").write_text(str(Path(numpy.__file__).parents[1]) + "\n")
    return folder, python


@pytest.mark.slow
def test_the_wheel_works_without_the_repository(installed):
    folder, python = installed
    code = f"""
import belib
from belib.config import PretrainConfig, scales
assert belib.__file__.startswith({str(folder)!r}), belib.__file__
print(belib.entropy.behavioral_entropy([0.7, 0.2, 0.1], alpha=0.5).round(4))
assert {{"smoke", "laptop", "paper"}} <= set(scales("04_pretrain"))
config = PretrainConfig.at_scale("smoke", num_steps=1100)
(made,) = belib.training.pretrain(config, progress=False)
print(belib.datasets.read_card(made)["git_revision"], made)
"""
    shown = run(code, folder, python, env=ALONE).splitlines()
    assert shown[0] == "1.0107"
    made = folder / "runs" / "datasets" / "walker" / "behavioral-0.5-s0"
    assert shown[-1] == f"v{version('belib')} {made}"
    assert list(folder.glob("venv/lib/*/site-packages/belib/py.typed"))
