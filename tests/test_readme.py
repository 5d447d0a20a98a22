"""What the README and the pages of docs/ show is what works: examples, commands, files."""

import importlib
import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from test_house import FLOORS
from test_notebook_parameters import parameters

from belib.datasets.__main__ import main
from belib.paths import ROOT

PAGES = {page.name: page.read_text() for page in (ROOT / "README.md", *ROOT.glob("docs/*.md"))}
README = PAGES["README.md"]
MINUTES = ("pretrain(", "stable_baselines3", "smallest_ball")
"""What in an example takes its time, or a package that `make test` does without."""


def examples():
    for name, text in PAGES.items():
        for number, example in enumerate(re.findall(r"```python\n(.*?)```", text, re.DOTALL)):
            marks = [pytest.mark.slow] if any(word in example for word in MINUTES) else []
            yield pytest.param(example, id=f"{name}-{number}", marks=marks)


def commands():
    """Every line of a shell block."""
    for name, text in PAGES.items():
        for block in re.findall(r"```bash\n(.*?)```", text, re.DOTALL):
            for line in block.splitlines():
                yield pytest.param(shlex.split(line, comments=True), id=f"{name}: {line[:50]}")


@pytest.mark.parametrize("example", list(examples()))
def test_examples_run_and_print_what_they_say(example, tmp_path):
    if "stable_baselines3" in example:
        pytest.importorskip("stable_baselines3", reason="needs pip install 'belib[compare]'")
    runs = tmp_path / "runs"
    example = example.replace("runs/test/readme", str(runs))
    environment = {**os.environ, "MINARI_DATASETS_PATH": str(tmp_path / "minari")}
    options = {"capture_output": True, "text": True, "cwd": ROOT, "env": environment}
    done = subprocess.run([sys.executable, "-c", example], **options)
    assert done.returncode == 0, done.stderr
    for promised in re.findall(r"print\(.*\)  # (.*)", example):
        assert promised in done.stdout


@pytest.mark.parametrize("command", list(commands()))
def test_commands_exist(command, capsys):
    """Make's targets, modules that can be run, notebooks and their parameters."""
    program, *arguments = command
    if program == "make":
        makefile = (ROOT / "Makefile").read_text()
        assert re.search(rf"^{arguments[0]}:", makefile, re.MULTILINE)
    elif program == "python":
        flag, module, *rest = arguments
        assert flag == "-m"
        package = (ROOT / module.replace(".", "/")).is_dir()
        runnable = importlib.import_module(f"{module}.__main__" if package else module)
        assert callable(runnable.main)
        if module == "belib.datasets":
            with pytest.raises(SystemExit):
                main([rest[0], "--help"])
            told = capsys.readouterr().out
            assert all(word in told for word in rest[1:] if word.startswith("--"))
    elif program == "mkdir":
        assert arguments == ["-p", "runs"], "where papermill writes"
    else:
        assert program == "papermill"
        notebook, executed, *rest = arguments
        assert executed.startswith("runs/")
        known = parameters(Path(notebook).stem)
        given = {rest[i + 1] for i, word in enumerate(rest) if word == "-p"}
        given |= {n for i, w in enumerate(rest) if w == "-y" for n in yaml.safe_load(rest[i + 1])}
        assert set() < given <= set(known)


def test_ci_runs_the_readmes_test_command():
    assert "make test " in README
    assert "\nmake test" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("name", PAGES)
def test_files_that_it_names_exist(name):
    folder = ROOT if name == "README.md" else ROOT / "docs"
    for link in re.findall(r"\]\(([^)#\s]+)\)", PAGES[name]):
        assert link.startswith("https://") or (folder / link).exists(), link
    for path in re.findall(r"`((?:params|results|notebooks|docs)/\w\S*\.\w+)`", PAGES[name]):
        assert (ROOT / path).exists(), path


def test_the_readmes_layout_is_the_floors():
    (drawn,) = re.findall(r"## Layout\n.*?```\n(.*?)```", README, re.DOTALL)
    names = [re.findall(r"\w+", line.partition("  ")[0]) for line in drawn.splitlines()]
    line = {name: -number for number, found in enumerate(names) for name in found}
    for lower, upper in pairwise(FLOORS):
        assert max(line[name] for name in lower) < min(line[name] for name in upper)
