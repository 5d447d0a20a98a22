"""The house's rules: floors, names written once, notebooks in their skeleton."""

import ast
import itertools
import json
import re
import subprocess
import sys

import pytest
import yaml
from test_package import imports

from belib.paths import ROOT

FLOORS = (
    {"arrays"},
    {"weighting", "paths", "streams", "machine", "statistics", "fast_rewards", "gymnasium_envs"},
    {"knn"},
    {"quadrature", "estimators", "rewards"},
    {"entropy", "config"},
    {"envs", "rendering", "networks", "runs", "replay", "results"},
    {"datasets", "actor_critic", "convergence"},
    {"agents", "offline", "engine"},
    {"training", "coverage"},
    {"figures", "cost"},
    {"widgets", "gather"},
    {"study"},
)
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}
MODULES = sorted({*ROOT.glob("belib/**/*.py")} - {ROOT / "belib" / "__init__.py"})
NOTEBOOKS = sorted(ROOT.glob("notebooks/*.ipynb"))

RUN = {"config", "paths", "streams", "machine", "engine", "runs", "datasets", "training"}
RUN |= {"results", "statistics"}
SEEN = {"__init__", "coverage", "figures", "widgets", "study", "cost", "gather", "rendering"}
SEEN |= {"arrays"}
WINGS = {"the method": set(FLOOR) - RUN - SEEN, "a run": RUN, "what is seen": SEEN}
# Lines of *.py with docstrings and blanks: what is added is won elsewhere.
BUDGETS = {"the method": 2_720, "a run": 2_900, "what is seen": 2_400}
BUDGETS |= {"workflow": 330, "benchmarks": 900, "tests": 7_070}


def room(path):
    """`belib/agents/apt.py` and `belib/agents/__init__.py` are both in the room `agents`."""
    return path.relative_to(ROOT / "belib").with_suffix("").parts[0]


def lines(paths):
    return sum(len(path.read_text().splitlines()) for path in paths)


@pytest.mark.parametrize("part", BUDGETS)
def test_a_part_keeps_its_budget(part):
    if part in WINGS:
        files = (path for path in ROOT.glob("belib/**/*.py") if room(path) in WINGS[part])
    else:
        files = (*ROOT.glob(f"{part}/**/*.py"), *ROOT.glob(f"{part}/Snakefile"))
    assert lines(files) <= BUDGETS[part]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_from_floors_below_and_has_300_lines_and_functions_40(path):
    importing, text = room(path), path.read_text()
    assert not re.search(r"^\s*import belib", text, re.MULTILINE), "rooms are imported by `from`"
    for module, name in imports(text):
        other = f"{module}.{name}".split(".")[1]
        assert other == importing or FLOOR[other] < FLOOR[importing], f"{importing} imports {other}"
    assert lines([path]) <= 300
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 40, node.name


def test_versions_are_written_once():
    """Exact pins stand in constraints.txt alone; conda's and pip's ways both lead there."""
    python, *pip = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    assert pip == ["pip", {"pip": ["-c constraints.txt", "-e .[test]"]}]
    makefile = (ROOT / "Makefile").read_text()
    assert "-c constraints.txt -e '.[test]'\n" in makefile
    assert f"PYTHON ?= {python.replace('=', '')}\n" in makefile
    for name in ("pyproject.toml", "Makefile"):
        assert not re.search(r"\w==\d", (ROOT / name).read_text()), f"{name} pins a version"
    pins = re.findall(r"^[^#\n].*", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in pins)
    assert len({line.split("==")[0].lower() for line in pins}) == len(pins)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return json.loads(request.param.read_text())


def cells(notebook, kind):
    found = [cell for cell in notebook["cells"] if cell["cell_type"] == kind]
    return [cell | {"source": "".join(cell["source"])} for cell in found]


def test_notebooks_headings_are_those_of_the_skeleton_in_order(notebook):
    text = [cell["source"] for cell in cells(notebook, "markdown")]
    assert re.match(r"# \d\d · ", text[0])
    for part in ("The question.", "In the paper.", "Time.", "Needs / makes."):
        assert f"**{part}**" in text[0], part
    text = "\n".join(text)
    for heading in ("## Checks", "## Against the paper", "## What comes next"):
        assert heading in text, heading
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text, re.MULTILINE)]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_the_first_code_cell_holds_the_parameters_and_nothing_else(notebook):
    first, second, *_ = code = cells(notebook, "code")
    tagged = [cell["metadata"].get("tags") == ["parameters"] for cell in code]
    assert tagged == [True] + [False] * (len(code) - 1)
    statements = ast.parse(first["source"]).body
    assert all(isinstance(statement, ast.AnnAssign) for statement in statements)
    assert all("  # " in line for line in first["source"].splitlines()), "a comment for each"
    assert len(statements) <= 12
    mocked = first["metadata"].get("nbmake", {}).get("mock", {})
    assert set(mocked) <= {statement.target.id for statement in statements}
    assert "check_parameters(globals())" in second["source"]


def test_notebooks_ask_and_show_with_public_names_and_do_not_compute(notebook):
    for index, cell in enumerate(cells(notebook, "code")[1:]):
        source = cell["source"]
        most = 8 if index and "assert " not in source else 14  # set-up and checks are longer
        assert len([line for line in source.splitlines() if line.strip()]) <= most, source
        for banned in ("plt.", "sys.path", "%pip", "!pip", "def ", "class "):
            assert banned not in source, banned
        assert not re.search(r"(from|import) [\w.]*\b_", source), source


def test_code_is_clean_and_notebooks_are_stored_without_outputs():
    for tool in ("nbstripout --verify --keep-id", "ruff check -q", "ruff format --check -q"):
        files = NOTEBOOKS if tool.startswith("nb") else [ROOT]
        command = [sys.executable, "-m", *tool.split(), *map(str, files)]
        done = subprocess.run(command, capture_output=True, cwd=ROOT)
        assert done.returncode == 0, done.stdout + done.stderr
