"""Values that the comments of notebooks' parameters name run; others are refused; papermill."""

import ast
import functools
import json
import os
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
from belib.config import ALGORITHMS, PRECISIONS, PretrainConfig, scales
from belib.paths import ROOT
from belib.rewards import OBJECTIVES

SCALES = ("smoke", "quickstart", "laptop", "paper")
TINY = {"batch_size": 16, "hidden_dim": 16}
SIZES = {
    "04_pretrain": {"num_steps": 1000, "random_steps": 500, "update_every": 100, **TINY},
    "05_offline_rl": {"num_steps": 2, "eval_every": 2, "eval_episodes": 1, **TINY},
}
SIZES["04_pretrain"] |= {"representation_dim": 16, "k": 3}


@functools.cache
def code_cells(stem):
    notebook = json.loads((ROOT / f"notebooks/{stem}.ipynb").read_text())
    return ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]


@functools.cache
def parameters(stem):
    """For each parameter of a notebook its annotation and the values that its comment names.

    They stand at the beginning of the comment, or after a semicolon, with commas between them.
    """
    found = {}
    for line in code_cells(stem)[0].splitlines():
        (statement,) = ast.parse(line).body
        clauses = line.partition("  # ")[2].split(";")
        lists = [clause.partition(":")[0].strip().split(", ") for clause in clauses]
        lists = [words for words in lists if all(re.fullmatch(r"[\w.*-]+", w) for w in words)]
        names = [word for words in lists for word in words if word not in ("...", "None")]
        kind = ast.unparse(statement.annotation)
        found[statement.target.id] = SimpleNamespace(kind=kind, names=names)
    return found


def execute(stem, **given):
    """Run a notebook's cells with papermill's cell of parameters, in a session in this process."""
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
    (tmp_path / "params").mkdir()
    for stage, sizes in SIZES.items():
        for scale in SCALES:
            (tmp_path / "params" / f"{stage}.{scale}.yaml").write_text(yaml.safe_dump(sizes))
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params")
    monkeypatch.setattr(training.os, "cpu_count", lambda: 1)
    plt.switch_backend("agg")
    with plt.rc_context(), pd.option_context("display.max_colwidth", 50):
        yield tmp_path / "runs"


def collect(runs_dir, **given):
    """Tiny data of an agent and of random actions."""
    configs = [
        PretrainConfig.at_scale("smoke", objective=o, **given) for o in ("behavioral", "random")
    ]
    training.pretrain(configs, runs_dir=runs_dir, progress=False)


def test_comments_name_all_that_there_is():
    pretrain, offline = parameters("04_pretrain"), parameters("05_offline_rl")
    assert set(pretrain["objective"].names) == set(OBJECTIVES)
    assert set(offline["algorithms"].names) == set(ALGORITHMS)
    assert set(offline["precision"].names) == set(PRECISIONS)
    for stage in SIZES:
        assert set(parameters(stage)["scale"].names) == set(SCALES) <= set(scales(stage))
    for stem in ("04_pretrain", "05_offline_rl", "06_coverage_plots"):
        assert set(parameters(stem)["domain"].names) < set(envs.DOMAINS)
        named = {name: each.names for name, each in parameters(stem).items() if each.kind == "str"}
        assert [name for name, values in named.items() if not values] == ["runs_dir"]
    assert len(NAMED) >= 48


NAMED = [
    (stem, name, value)
    for stem in ("04_pretrain", "05_offline_rl", "06_coverage_plots")
    for name, each in parameters(stem).items()
    for value in each.names
]
OTHERS = [(stem, "domain", "cartpole") for stem in ("04_pretrain", "05_offline_rl")]
"""Named by no comment: a domain whose rewards are of actions, too, so that no state has them."""

ALONG = {
    ("objective", "task"): {"task": "walker_run"},
    ("task", "walker_run"): {"objective": "task"},
}
"""What a value needs beside it."""


@pytest.mark.parametrize(("stem", "name"), dict.fromkeys((stem, name) for stem, name, _ in NAMED))
def test_what_no_comment_names_is_refused_before_time_is_spent(stem, name, runs_dir):
    listed = parameters(stem)[name].kind.startswith("list")
    given = {name: ["nothing"] if listed else "nothing"}
    along = {"objective": "task"} if name == "task" else {}
    with pytest.raises(ValueError, match="nothing"):
        execute(stem, **given, **along, runs_dir=str(runs_dir))
    assert not runs_dir.exists()


LISTS = [
    (path.stem, name)
    for path in sorted(ROOT.glob("notebooks/*.ipynb"))
    for name, each in parameters(path.stem).items()
    if each.kind.startswith("list")
]


@pytest.mark.parametrize(("stem", "name"), LISTS)
def test_lists_have_entries_that_differ(stem, name, runs_dir):
    entry = {"list[str]": "a", "list[int]": 3, "list[float]": 0.5}[parameters(stem)[name].kind]
    along = {"runs_dir": str(runs_dir)} if "runs_dir" in parameters(stem) else {}
    for value in ([entry, entry], [] if name not in ("compare", "names") else [entry, "b", entry]):
        with pytest.raises(ValueError, match=name.rstrip("s")):
            execute(stem, **{name: value}, **along)
    assert not runs_dir.exists()


def test_random_actions_alone_are_compared_with_nothing(runs_dir, capsys):
    found = execute("04_pretrain", objective="random", runs_dir=str(runs_dir))
    assert [each.name for each in found.collected] == ["random-s0"]
    assert [ax.get_title() for ax in found.axes] == ["random-s0"], "a map, and nothing beside it"
    assert "no dataset to compare with" in capsys.readouterr().out
    learners = ["td3_bc", "bc", "cql"]  # `make test` runs the notebook itself with the others
    given = {"dataset": f"{found.dataset.folder}/", "algorithms": learners, "seeds": [0]}
    found = execute("05_offline_rl", **given, precision="tf32", runs_dir=str(runs_dir))
    assert found.learnt["algorithm"].tolist() == learners
    assert found.claims["above random data"].isna().all()
    assert "nothing to compare them with" in capsys.readouterr().out


@pytest.mark.slow
def test_all_objectives_stand_side_by_side(runs_dir):
    named = parameters("04_pretrain")["objective"].names
    along = {"task": "walker_run", "runs_dir": str(runs_dir)}
    found = execute("04_pretrain", objective="random", compare=named, **along)
    assert {each.objective for each in found.configs} == set(named)
    assert [each.name for each in found.shown] == [found.configs[0].dataset, "random-s0"]


@pytest.mark.slow
@pytest.mark.parametrize("objective", parameters("04_pretrain")["objective"].names)
def test_every_objective_without_urlbs_shortcuts(objective, runs_dir):
    along = {"intrinsic_reward_scale": "rms", "convention": "corrected", "runs_dir": str(runs_dir)}
    execute("04_pretrain", objective=objective, **ALONG.get(("objective", objective), {}), **along)


@pytest.mark.slow
@pytest.mark.parametrize(("stem", "name", "value"), NAMED + OTHERS)
def test_every_value_that_a_comment_names(stem, name, value, runs_dir):
    domain = value if name == "domain" else "walker"
    given = {"domain": domain, "runs_dir": str(runs_dir), **ALONG.get((name, value), {})}
    if stem != "04_pretrain":
        collect(runs_dir, domain=domain)
        sizes = {"tasks": [envs.primal_task(domain)], "seeds": [0]}
        given |= sizes if stem == "05_offline_rl" else {"size": 100, "halves": 3}
    listed = parameters(stem)[name].kind.startswith("list")
    execute(stem, **{**given, name: [value] if listed else value})


def papermill(stem, *arguments):
    """Run a notebook as people do, from a shell."""
    command = [sys.executable, "-m", "papermill", f"notebooks/{stem}.ipynb", *map(str, arguments)]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # bits depend on the number of threads
    options = {"cwd": ROOT, "stdin": subprocess.DEVNULL, "env": one_thread}
    return subprocess.run(command, capture_output=True, text=True, **options)


SLOW_ALPHA = pytest.param("alpha", "-1", "alpha must be positive and", marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [("alhpa", "0.7", "this notebook has no parameter 'alhpa' (nearest: 'alpha')"), SLOW_ALPHA],
)
def test_a_bad_parameter_stops_papermill_at_once(name, value, message, tmp_path):
    given = ("-p", "runs_dir", tmp_path / "runs", "-p", name, value)
    done = papermill("04_pretrain", tmp_path / "04.ipynb", *given)
    assert done.returncode != 0
    assert message in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_papermill_without_an_output_path_leaves_the_same_dataset(tmp_path):
    options = ("-p", "alpha", "0.7", "-p", "num_steps", "1200", "-p", "runs_dir")
    done = papermill("04_pretrain", *options, tmp_path / "papermill")
    assert done.returncode == 0, done.stderr
    config = PretrainConfig.at_scale("smoke", alpha=0.7, num_steps=1200)
    (folder,) = training.pretrain(config, runs_dir=tmp_path / "python", progress=False)
    (file,) = folder.glob("rewards/*.npz")
    same = tmp_path / "papermill" / file.relative_to(tmp_path / "python")
    assert same.read_bytes() == file.read_bytes()


@pytest.mark.slow
def test_random_actions_and_their_folder_are_taken_from_a_shell(tmp_path):
    options = ("-p", "runs_dir", tmp_path, "-p")
    done = papermill("04_pretrain", tmp_path / "04.ipynb", *options, "objective", "random")
    assert done.returncode == 0, done.stderr
    given = ("dataset", tmp_path / "datasets/walker/random-s0", "-p", "num_steps", 2)
    done = papermill("05_offline_rl", tmp_path / "05.ipynb", *options, *given)
    assert done.returncode == 0, done.stderr
