"""Values that the comments of notebooks' parameters name run; others are refused; papermill."""

import functools
import itertools
import json
import re
import subprocess
import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pandas as pd
import pytest
import yaml
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from belib import envs, paths, training
from belib.config import ALGORITHMS, PRECISIONS, PretrainConfig
from belib.rewards import OBJECTIVES

SCALES = ("smoke", "quickstart", "laptop", "paper")
TINY = {"batch_size": 16, "hidden_dim": 16}
COLLECTION = {"num_steps": 1000, "random_steps": 500, "update_every": 100, **TINY}
SIZES = {
    "04_pretrain": COLLECTION | {"representation_dim": 16, "k": 3},
    "05_offline_rl": {"num_steps": 2, "eval_every": 2, "eval_episodes": 1, **TINY},
}
STEMS = (*SIZES, "06_coverage_plots")


@functools.cache
def code_cells(stem):
    notebook = json.loads((paths.ROOT / f"notebooks/{stem}.ipynb").read_text())
    return ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]


@functools.cache
def parameters(stem):
    """For each parameter of a notebook its annotation and the values that its comment names.

    They stand at the beginning of the comment, or after a semicolon, with commas between them.
    """
    table = {}
    for line in code_cells(stem)[0].splitlines():
        target, kind, comment = re.fullmatch(r"(\w+): (.*?) = .*?  # (.*)", line).groups()
        lists = [clause.partition(":")[0].strip().split(", ") for clause in comment.split(";")]
        lists = [values for values in lists if all(re.fullmatch(r"[\w.*-]+", v) for v in values)]
        names = [value for values in lists for value in values if value not in ("...", "None")]
        table[target] = SimpleNamespace(kind=kind, names=names)
    return table


NAMED = [(stem, name, v) for stem in STEMS for name, p in parameters(stem).items() for v in p.names]
ALONG = {
    ("objective", "task"): {"task": "walker_run"},
    ("task", "walker_run"): {"objective": "task"},
    ("task", "nothing"): {"objective": "task"},
}
"""What a value needs beside it."""


def execute(stem, name, value, **given):
    """Run a notebook's cells with papermill's cell of parameters, in a session in this process."""
    listed = parameters(stem)[name].kind.startswith("list") and not isinstance(value, list)
    given |= {name: [value] if listed else value, **ALONG.get((name, str(value)), {})}
    first, *others = code_cells(stem)
    injected = "\n".join(["# Parameters", *(f"{name} = {given[name]!r}" for name in given)])
    shell = InteractiveShell(config=Config(HistoryManager={"enabled": False}))
    for source in (first, injected, *others):
        shell.run_cell(source, store_history=True).raise_error()
        for number in plt.get_fignums():
            plt.figure(number).canvas.draw()
        plt.close("all")
    return SimpleNamespace(**shell.user_ns)


@pytest.fixture
def runs_dir(tmp_path, monkeypatch):
    """For runs of which every scale is tiny, one group after another."""
    for stage, scale in itertools.product(SIZES, SCALES):
        (tmp_path / f"{stage}.{scale}.yaml").write_text(yaml.safe_dump(SIZES[stage]))
    monkeypatch.setattr(paths, "PARAMS", tmp_path)
    monkeypatch.setattr(training.os, "cpu_count", lambda: 1)
    plt.switch_backend("agg")
    with plt.rc_context(), pd.option_context("display.max_colwidth", 50):
        yield tmp_path / "runs"


def test_comments_name_all_that_there_is():
    pretrain, offline = parameters("04_pretrain"), parameters("05_offline_rl")
    assert set(pretrain["objective"].names) == set(OBJECTIVES)
    assert set(offline["algorithms"].names) == set(ALGORITHMS)
    assert set(offline["precision"].names) == set(PRECISIONS)
    for stage in SIZES:
        files = (f"params/{stage}.{scale}.yaml" for scale in parameters(stage)["scale"].names)
        assert all((paths.ROOT / file).exists() for file in files)
    for stem in STEMS:
        assert set(parameters(stem)["domain"].names) < set(envs.DOMAINS)
        values = {name: p.names for name, p in parameters(stem).items() if p.kind == "str"}
        assert [name for name, names in values.items() if not names] == ["runs_dir"]


@pytest.mark.parametrize(("stem", "name"), dict.fromkeys((stem, name) for stem, name, _ in NAMED))
def test_what_no_comment_names_is_refused_before_time_is_spent(stem, name, runs_dir):
    with pytest.raises((ValueError, OSError), match="nothing"):
        execute(stem, name, "nothing", runs_dir=str(runs_dir))
    assert not runs_dir.exists()


def test_random_actions_alone_are_compared_with_nothing(runs_dir, capsys):
    ran = execute("04_pretrain", "objective", "random", runs_dir=str(runs_dir))
    assert [data.name for data in ran.collected] == ["random-s0"]
    assert [ax.get_title() for ax in ran.axes] == ["random-s0"], "a map, and nothing beside it"
    assert "no dataset to compare with" in capsys.readouterr().out
    learners = ["td3_bc", "bc", "cql"]  # `make test` runs the notebook itself with the others
    given = {"dataset": "random-s0", "seeds": [0], "precision": "tf32", "runs_dir": str(runs_dir)}
    ran = execute("05_offline_rl", "algorithms", learners, **given)
    assert ran.learnt["algorithm"].tolist() == learners
    assert not ran.claims["above random data"].any(), "it is its own mean"
    assert "nothing to compare them with" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(("stem", "name", "value"), NAMED)
def test_every_value_that_a_comment_names(stem, name, value, runs_dir):
    domain = value if name == "domain" else "walker"
    given = {"domain": domain, "runs_dir": str(runs_dir)}
    if stem != "04_pretrain":
        objectives = ("behavioral", "random")
        configs = [PretrainConfig.at_scale("smoke", objective=o, domain=domain) for o in objectives]
        training.pretrain(configs, runs_dir=runs_dir, progress=False)
        sizes = {"tasks": [envs.primal_task(domain)], "seeds": [0]}
        given |= sizes if stem == "05_offline_rl" else {"size": 100, "halves": 3}
    execute(stem, name, value, **given)


def test_a_misspelt_parameter_stops_papermill_at_once(tmp_path):
    command = [sys.executable, "-m", "papermill", "notebooks/04_pretrain.ipynb"]
    command += [tmp_path / "04.ipynb", "-p", "runs_dir", tmp_path / "runs", "-p", "alhpa", "0.7"]
    done = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True)
    assert done.returncode != 0
    assert "this notebook has no parameter 'alhpa' (nearest: 'alpha')" in done.stderr
    assert not (tmp_path / "runs").exists()
