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

PAGES = {page.name: page.read_text() for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"))}
README, MAKEFILE = PAGES["README.md"], (ROOT / "Makefile").read_text()
MINUTES = ("pretrain(", "stable_baselines3", "smallest_ball")
"""What in an example takes its time, or a package that `make test` does without."""


def blocks(language):
    """Every example in a language, with its page."""
    for name, text in PAGES.items():
        for block in re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL):
            yield name, block


EXAMPLES = [
    pytest.param(example, id=f"{name}-{number}", marks=[pytest.mark.slow] * slow)
    for number, (name, example) in enumerate(blocks("python"))
    for slow in [any(word in example for word in MINUTES)]
]
COMMANDS = [line for _, block in blocks("bash") for line in block.splitlines()]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run_and_print_what_they_say(example, tmp_path):
    if "stable_baselines3" in example:
        pytest.importorskip("stable_baselines3", reason="needs pip install 'belib[compare]'")
    example = example.replace("runs/test/readme", str(tmp_path / "runs"))
    environment = {**os.environ, "MINARI_DATASETS_PATH": str(tmp_path / "minari")}
    command = [sys.executable, "-c", example]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    for promised in re.findall(r"print\(.*\)  # (.*)", example):
        assert promised in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_exist(command, capsys):
    """Make's targets, modules that can be run, notebooks and their parameters."""
    program, *arguments = shlex.split(command, comments=True)
    if program == "make":
        assert re.search(rf"^{arguments[0]}:", MAKEFILE, re.MULTILINE)
    elif program == "python":
        _, module, *rest = arguments
        package = (ROOT / module.replace(".", "/")).is_dir()
        assert callable(importlib.import_module(f"{module}.__main__" if package else module).main)
        if module == "belib.datasets":
            with pytest.raises(SystemExit):
                main([rest[0], "--help"])
            options = re.findall(r"--\w+", capsys.readouterr().out)
            assert {word for word in rest if word.startswith("--")} <= {*options}
    elif program == "papermill":
        notebook, executed, *rest = arguments
        assert executed.startswith("runs/")
        given = {rest[i + 1] for i, word in enumerate(rest) if word == "-p"}
        given |= {n for i, w in enumerate(rest) if w == "-y" for n in yaml.safe_load(rest[i + 1])}
        assert set() < given <= set(parameters(Path(notebook).stem))
    else:
        assert [program, *arguments] == ["mkdir", "-p", "runs"], "where papermill writes"


@pytest.mark.parametrize("name", PAGES)
def test_files_and_targets_that_it_names_exist(name):
    folder = ROOT / "docs" if (ROOT / "docs" / name).exists() else ROOT
    for link in re.findall(r"\]\(([^)#\s]+)\)", PAGES[name]):
        assert link.startswith("https://") or (folder / link).exists(), link
    for path in re.findall(r"`((?:params|results|notebooks|docs)/\w\S*\.\w+)`", PAGES[name]):
        assert (ROOT / path).exists(), path
    for target in re.findall(r"`make ([\w-]+)`", PAGES[name]):
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target


def test_the_readmes_layout_is_the_floors():
    (drawn,) = re.findall(r"## Layout\n.*?```\n(.*?)```", README, re.DOTALL)
    names = [re.findall(r"\w+", line.partition("  ")[0]) for line in drawn.splitlines()]
    height = {name: -number for number, floor in enumerate(names) for name in floor}
    for lower, upper in pairwise(FLOORS):
        assert max(height[name] for name in lower) < min(height[name] for name in upper)
