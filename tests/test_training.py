"""Policies learnt in lockstep: their tables, divergence, and data that is refused."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from interrupting import Interrupted, interrupt_at

from belib import datasets, machine, results
from belib.config import OfflineConfig, PretrainConfig
from belib.offline.td3 import TD3
from belib.training import learning, pretrain, train_groups, train_offline
from belib.training.learning import Learning


def beside(runs_dir, name):
    """Another folder of runs with the same datasets."""
    folder = runs_dir / name
    folder.mkdir()
    (folder / "datasets").symlink_to(runs_dir / "datasets")
    return folder


def test_members_must_fit_together(small_pretrain, small_offline, tmp_path):
    with pytest.raises(ValueError, match="must have the same hidden_dim, got \\['16', '32'\\]"):
        pretrain([small_pretrain(), small_pretrain(hidden_dim=32)], runs_dir=tmp_path)
    with pytest.raises(ValueError, match="need different folders"):
        pretrain([small_pretrain(), small_pretrain()], runs_dir=tmp_path)
    with pytest.raises(ValueError, match="must have the same dataset"):
        train_offline([small_offline(), small_offline(dataset="other")], runs_dir=tmp_path)
    assert not list(tmp_path.iterdir())


def test_bad_names_and_places(small_pretrain, small_offline, tmp_path):
    with pytest.raises(ValueError, match="no domain 'waker'"):
        pretrain(small_pretrain(domain="waker"), runs_dir=tmp_path)
    with pytest.raises(ValueError, match="no task 'walker_fly'"):
        train_offline(small_offline(task="walker_fly"), runs_dir=tmp_path)
    with pytest.raises(ValueError, match="must be one of the domain walker, got 'quadruped_run'"):
        train_offline(small_offline(task="quadruped_run"), runs_dir=tmp_path)
    with pytest.raises(datasets.DatasetError, match="must hold at least one episode"):
        train_offline(small_offline(), runs_dir=tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="cannot write in"):
        pretrain(small_pretrain(), runs_dir=tmp_path / "file")


def test_offline_members_are_evaluated_along_the_way_and_at_the_end(small_offline, runs_dir):
    pairs = [("walker_stand", 0), ("walker_stand", 1), ("walker_run", 0)]
    configs = [small_offline(dataset="random-s0", task=t, seed=s) for t, s in pairs]
    table = train_offline(configs, runs_dir=runs_dir, progress=False)
    assert tuple(table.columns) == results.COLUMNS
    assert table.groupby(["task", "seed"])["step"].apply(list).tolist() == [[20, 30]] * 3
    assert table["objective"].unique().tolist() == ["random"]
    pd.testing.assert_frame_equal(train_offline(configs, runs_dir=runs_dir), table)


def poison(monkeypatch, member, step):
    """Make a member's loss infinite at an update."""
    update = TD3.update

    def poisoned(self, batch):
        metrics = update(self, batch)
        self.updates = getattr(self, "updates", 0) + 1
        if self.updates == step:
            with torch.no_grad():
                self.critic.head[0].weight[member] = torch.inf
        return metrics

    monkeypatch.setattr(TD3, "update", poisoned)


def networks(state):
    """The learner's tensors in a checkpoint."""
    return {key: x for key, x in state["learner"].items() if isinstance(x, torch.Tensor)}


def test_a_member_that_diverges_stops_and_the_others_go_on(
    small_offline, runs_dir, monkeypatch, capsys
):
    configs = [small_offline(dataset="random-s0", seed=seed) for seed in (0, 1)]
    options = {"runs_dir": beside(runs_dir, "undisturbed"), "progress": False}
    undisturbed = train_offline(configs, **options)
    poison(monkeypatch, member=0, step=22)
    table = train_offline(configs, runs_dir=runs_dir, progress=False)
    message = "td3 on random-s0, walker_stand, seed 0: diverged by update 30"
    assert capsys.readouterr().out.count(message) == 1
    assert table["status"].tolist() == ["ok", "diverged", "ok", "ok"]
    assert table["return"].isna().tolist() == [False, True, False, False]
    kept = ["return", "step"]
    pd.testing.assert_frame_equal(table[kept].drop(1), undisturbed[kept].drop(1))
    state = torch.load(next(runs_dir.glob("offline/**/checkpoint.pt")), weights_only=True)
    assert state["diverged"] == [30, None]
    assert all(value.isfinite().all() for value in networks(state).values())


@pytest.mark.usefixtures("frequent_checkpoints")
@pytest.mark.parametrize("diverges", [False, True])
def test_an_interrupted_offline_run_ends_in_the_same_numbers(
    small_offline, runs_dir, monkeypatch, diverges
):
    configs = [small_offline(dataset="random-s0", seed=seed) for seed in (0, 1)]
    if diverges:
        poison(monkeypatch, member=0, step=5)
    straight = train_offline(configs, runs_dir=runs_dir, progress=False)
    stopped = beside(runs_dir, "stopped")
    options = {"runs_dir": stopped, "progress": False, "checkpoint_minutes": 0}
    with monkeypatch.context() as patch:
        interrupt_at(patch, Learning, 25)
        with pytest.raises(Interrupted):
            train_offline(configs, **options)
    monkeypatch.undo()  # nothing else is to happen to the run again
    pd.testing.assert_frame_equal(train_offline(configs, **options), straight)
    states = [torch.load(next(f.glob("offline/**/checkpoint.pt"))) for f in (runs_dir, stopped)]
    one, two = map(networks, states)
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_values_beyond_reason_are_a_divergence(small_offline, runs_dir, capsys, monkeypatch):
    monkeypatch.setattr(learning, "_DIVERGED", 0.0)
    table = train_offline(small_offline(dataset="random-s0"), runs_dir=runs_dir, progress=False)
    assert table["status"].unique().tolist() == ["diverged"]
    assert "at most 99.8 can be earned" in capsys.readouterr().out  # below 1 / (1 - 0.99)


def small_dataset(folder, **changes):
    """One episode of 20 steps as Walker's, but for the arrays that `changes` replace."""
    sizes = {"observation": 24, "action": 6, "reward": 1, "discount": 1, "physics": 18}
    arrays = {key: np.zeros((21, n), datasets.DTYPES[key]) for key, n in sizes.items()}
    arrays |= {"discount": np.ones((21, 1), np.float32)} | changes
    rewards = {f"walker_{task}": np.zeros(21) for task in ("stand", "walk", "run")}
    present = {key: value for key, value in arrays.items() if value is not None}
    datasets.write_episode(folder / "datasets" / "walker" / "small", 0, present, rewards)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, r"must hold at least batch_size = 32 transitions, got 20"),
        (
            {"observation": np.zeros((21, 78), np.float32)},
            r"'observation' must have 24 columns for walker_stand, got 78",
        ),
        (
            {"observation": np.full((21, 24), np.nan, np.float32)},
            r"array 'observation' must be finite, got nan in row 0",
        ),
    ],
    ids=["fewer than a batch", "another body", "NaN"],
)
def test_bad_data_is_refused_before_anything_is_learnt(small_offline, tmp_path, changes, message):
    small_dataset(tmp_path, **changes)
    size = 16 if changes else 32
    with pytest.raises(datasets.DatasetError, match=message):
        train_offline(small_offline(dataset="small", batch_size=size), runs_dir=tmp_path)
    assert not (tmp_path / "offline").exists()


def test_finished_members_are_left_as_they_are(small_offline, runs_dir, capsys):
    one, two = (small_offline(dataset="random-s0", seed=seed, num_steps=20) for seed in (0, 1))
    train_offline(two, runs_dir=runs_dir, progress=False)
    folder = next(runs_dir.glob("offline/**/walker_stand-s1"))
    files = [folder / name for name in ("results.csv", "checkpoint.pt")]
    before = [file.read_bytes() for file in files]
    table = train_offline([one, two], runs_dir=runs_dir, progress=False)
    assert "1 members finished already" in capsys.readouterr().out
    assert table["seed"].tolist() == [0, 1]
    assert [file.read_bytes() for file in files] == before
    with pytest.raises(ValueError, match="part of a run with other members"):
        train_offline([replace(c, num_steps=40) for c in (one, two)], runs_dir=runs_dir)


def test_what_says_that_a_member_is_finished_is_written_last(small_offline, runs_dir, monkeypatch):
    """Killed between the two tables of a member, it is not taken for finished."""
    config = small_offline(dataset="random-s0", num_steps=20)
    write = results.write

    def killed(path, table):
        if table["step"].max() == 20:
            raise Interrupted
        write(path, table)

    with monkeypatch.context() as patch:
        patch.setattr(results, "write", killed)
        with pytest.raises(Interrupted):
            train_offline(config, runs_dir=runs_dir, progress=False)
    train_offline(config, runs_dir=runs_dir, progress=False)
    (file,) = runs_dir.glob("offline/**/walker_stand-s0/metrics.csv")
    assert pd.read_csv(file)["step"].tolist()[-1] == 20


def test_a_learning_curve_has_one_dataset(small_offline, small_pretrain, tmp_path):
    """One whose collection is finished, and that was not extended since."""
    collected = small_pretrain(objective="random", num_steps=1000)
    (folder,) = pretrain(collected, runs_dir=tmp_path, progress=False)
    config = small_offline(dataset=folder.name, num_steps=20)
    train_offline(config, runs_dir=tmp_path, progress=False)
    card = (folder / "card.json").read_bytes()
    pretrain(replace(collected, num_steps=2000), runs_dir=tmp_path, progress=False)
    with pytest.raises(datasets.DatasetError, match="it had 1000 steps and has 2000"):
        train_offline(replace(config, num_steps=40), runs_dir=tmp_path)
    (folder / "card.json").write_bytes(card)  # as a kill before the last step leaves it
    with pytest.raises(datasets.DatasetError, match="no card of all its 2000 steps"):
        train_offline(replace(config, seed=1), runs_dir=tmp_path)


def test_labels_that_are_missing_or_bad(small_offline, tmp_path):
    small_dataset(tmp_path)
    (labels,) = tmp_path.glob("**/rewards/*.npz")
    np.savez(labels, walker_stand=np.full(21, np.nan))
    with pytest.raises(datasets.DatasetError, match="must be finite, got nan in row 0"):
        train_offline(small_offline(dataset="small"), runs_dir=tmp_path)
    labels.unlink()  # physics remains, and gives them again
    table = train_offline(small_offline(dataset="small"), runs_dir=tmp_path, progress=False)
    assert table["status"].unique().tolist() == ["ok"]


def test_a_run_is_not_continued_from_a_damaged_file(small_offline, runs_dir):
    config = small_offline(dataset="random-s0", num_steps=2, algorithm="bc")
    train_offline(config, runs_dir=runs_dir, progress=False)
    (file,) = runs_dir.glob("offline/**/checkpoint.pt")
    state = torch.load(file, weights_only=True)
    for spoilt, words in (
        ({**state, "engine": {}}, r"must hold the state of this run, got KeyError"),
        ({**state, "learner": {}}, r"must hold the state of this run, got RuntimeError"),
        ([1], r"must be a run's checkpoint"),
    ):
        torch.save(spoilt, file)
        with pytest.raises(ValueError, match=rf"{re.escape(str(file))}.* {words}"):
            train_offline(replace(config, num_steps=4), runs_dir=runs_dir, progress=False)
    table = file.with_name("results.csv")
    table.write_text(table.read_text().replace(",", ";"))
    with pytest.raises(ValueError, match=rf"{re.escape(str(table))}: table must have the columns"):
        train_offline(config, runs_dir=runs_dir, progress=False)


@pytest.mark.parametrize("answer", ["float32", "bfloat16"])
def test_the_fastest_precision_is_recorded_and_kept(small_offline, runs_dir, monkeypatch, answer):
    """In results, not in names; a run goes on as it began where a machine would choose another."""
    monkeypatch.setattr(machine, "fastest_precision", lambda: answer)
    config = small_offline(dataset="random-s0", precision="auto", num_steps=20)
    table = train_offline(config, runs_dir=runs_dir, progress=False)
    assert (table["status"].item(), table["precision"].item()) == ("ok", answer)
    folder = runs_dir / "offline/walker/random-s0/td3/walker_stand-s0"
    assert "precision: auto" in (folder / "config.yaml").read_text()
    other = "float32" if answer == "bfloat16" else "bfloat16"
    monkeypatch.setattr(machine, "fastest_precision", lambda: other)
    table = train_offline(replace(config, num_steps=30), runs_dir=runs_dir, progress=False)
    assert table["precision"].tolist() == [answer, answer]
    with pytest.raises(ValueError, match=f"precision: auto there, {other} here"):
        train_offline(replace(config, precision=other), runs_dir=runs_dir)


@pytest.mark.parametrize("algorithm", ["bc", "cql", "crr", "td3_bc"])
def test_every_learner_goes_through_the_loop(small_offline, runs_dir, algorithm):
    config = small_offline(dataset="random-s0", algorithm=algorithm, num_steps=3)
    table = train_offline(config, runs_dir=runs_dir, progress=False)
    assert table["algorithm"].tolist() == [algorithm]
    metrics = pd.read_csv(next(runs_dir.glob("offline/**/metrics.csv")))
    assert np.isfinite(metrics.to_numpy()).all()


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["td3", "cql"])
def test_values_stay_within_reason_on_random_walker_data(algorithm, tmp_path):
    """20 random episodes, 2,000 updates: finite losses, |Q| at most 1.5 r_max / (1 - gamma)."""
    pretrain(PretrainConfig(objective="random", num_steps=20_000), runs_dir=tmp_path)
    sizes = {"hidden_dim": 256, "batch_size": 256, "learning_rate": 3e-4, "eval_episodes": 1}
    sizes |= {"num_steps": 2000, "eval_every": 200, "scale": "test", "dataset": "random-s0"}
    config = OfflineConfig(**sizes, algorithm=algorithm, task="walker_stand")
    train_offline(config, runs_dir=tmp_path, progress=False)
    metrics = pd.read_csv(next(tmp_path.glob("offline/**/metrics.csv")))
    assert np.isfinite(metrics.to_numpy()).all()
    assert metrics["value"].abs().max() <= 150


@pytest.mark.slow
def test_groups_learn_side_by_side_as_one_after_the_other(small_offline, runs_dir):
    groups = [[small_offline(dataset="random-s0", task=f"walker_{t}")] for t in ("run", "walk")]
    together = train_groups(groups, runs_dir=runs_dir)
    options = {"runs_dir": beside(runs_dir, "apart"), "progress": False}
    expected = pd.concat([train_offline(group, **options) for group in groups], ignore_index=True)
    pd.testing.assert_frame_equal(together, expected)


def test_evaluation_changes_nothing_in_training(small_offline, runs_dir):
    often = small_offline(dataset="random-s0", eval_every=10, num_steps=20)
    rarely = replace(often, eval_every=20, seed=often.seed)
    folder = runs_dir / "offline" / "walker" / "random-s0" / "td3" / "walker_stand-s0"
    states = []
    for config in (often, rarely):
        train_offline(config, runs_dir=runs_dir, progress=False)
        states.append(torch.load(folder / "checkpoint.pt", weights_only=True))
        folder.rename(folder.with_name(f"kept-{config.eval_every}"))
    one, two = map(networks, states)
    assert all(torch.equal(one[name], two[name]) for name in one)
