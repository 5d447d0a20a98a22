"""The README's commands and examples are what works."""

import re
import subprocess
import sys

import pytest

from belib.paths import ROOT

README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def cases():
    """Every example; the one that collects and learns takes half a minute."""
    for number, example in enumerate(EXAMPLES):
        marks = [pytest.mark.slow] if "pretrain(" in example else []
        yield pytest.param(example, id=str(number), marks=marks)


@pytest.mark.parametrize("example", list(cases()))
def test_examples_run_and_print_what_they_say(example):
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    for promised in re.findall(r"print\(.*\)  # (.*)", example):
        assert promised in done.stdout


def test_make_targets_exist_and_ci_runs_the_readmes_test_command():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\S+)|`make (\S+)`", README, re.MULTILINE):
        name = "".join(target)
        assert re.search(rf"^{name}:", makefile, re.MULTILINE), name
    assert "\nmake test" in (ROOT / ".ci" / "run").read_text()


def test_files_that_it_names_exist():
    for path in re.findall(r"\]\((\S+)\)|`((?:params|results|notebooks)/\S+\.\w+)`", README):
        assert (ROOT / "".join(path)).exists(), path
