"""Notebooks as people run them: through papermill, with good and bad parameters."""

import os
import subprocess
import sys

import pytest

from belib.config import PretrainConfig
from belib.paths import ROOT
from belib.training import pretrain


def papermill(*arguments):
    command = [sys.executable, "-m", "papermill", *map(str, arguments)]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # bits depend on the number of threads
    options = {"cwd": ROOT, "stdin": subprocess.DEVNULL, "env": one_thread}
    return subprocess.run(command, capture_output=True, text=True, **options)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("alhpa", "0.7", "this notebook has no parameter 'alhpa' (nearest: 'alpha')"),
        pytest.param(
            *("alpha", "-1", "alpha must be positive and finite, got -1.0"), marks=pytest.mark.slow
        ),
    ],
)
def test_a_bad_parameter_stops_the_run_at_once(name, value, message, tmp_path):
    output = tmp_path / "04.ipynb"
    done = papermill(
        "notebooks/04_pretrain.ipynb",
        output,
        "-p",
        "runs_dir",
        tmp_path / "runs",
        "-p",
        name,
        value,
    )
    assert done.returncode != 0
    assert message in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_without_an_output_path_it_leaves_the_same_dataset(tmp_path):
    options = ("-p", "alpha", "0.7", "-p", "num_steps", "1200", "-p", "runs_dir")
    done = papermill("notebooks/04_pretrain.ipynb", *options, tmp_path / "papermill")
    assert done.returncode == 0, done.stderr
    config = PretrainConfig.at_scale("smoke", alpha=0.7, num_steps=1200)
    (folder,) = pretrain(config, runs_dir=tmp_path / "python", progress=False)
    found = tmp_path / "papermill" / folder.relative_to(tmp_path / "python")
    names = [file.relative_to(folder) for file in folder.glob("rewards/*.npz")]
    assert len(names) == 1
    for name in names:
        assert (found / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.slow
def test_random_actions_and_their_folder_are_taken_from_a_shell(tmp_path):
    options = ("-p", "runs_dir", tmp_path, "-p")
    done = papermill(
        "notebooks/04_pretrain.ipynb", tmp_path / "04.ipynb", *options, "objective", "random"
    )
    assert done.returncode == 0, done.stderr
    given = ("dataset", tmp_path / "datasets/walker/random-s0", "-p", "num_steps", 2)
    done = papermill("notebooks/05_offline_rl.ipynb", tmp_path / "05.ipynb", *options, *given)
    assert done.returncode == 0, done.stderr
