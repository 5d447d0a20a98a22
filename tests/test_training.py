"""Policies learnt in lockstep: their tables, divergence, and data that is refused."""

import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from belib import datasets, gather, machine, paths, results, runs
from belib.offline.td3 import TD3
from belib.training import in_parallel, lockstep, pretrain, train_offline
from belib.training.learning import Learning, load_replay


def test_what_cannot_run_is_refused_first(small_pretrain, small_offline, tmp_path):
    no_task = "task must be one of walker_stand, .*, got 'quadruped_run'"
    for stage, configs, message in (
        (pretrain, [small_pretrain(), small_pretrain(hidden_dim=32)], "the same hidden_dim, got"),
        (pretrain, [], "one member or more, got none"),
        (pretrain, [small_pretrain()] * 2, "different folders, got .*behavioral-0.5-s0 twice"),
        (pretrain, small_pretrain(domain="waker"), "no domain 'waker'"),
        (pretrain, small_pretrain(objective="task", task="quadruped_run"), no_task),
        (train_offline, [small_offline(), small_offline(dataset="other")], "the same dataset"),
        (train_offline, small_offline(task="quadruped_run"), no_task),
        (train_offline, small_offline(), "must hold at least one episode"),
    ):
        with pytest.raises(ValueError, match=message):
            stage(configs, runs_dir=tmp_path)
    assert in_parallel(pretrain, [], runs_dir=tmp_path) == []
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="/file/"):
        pretrain(small_pretrain(), runs_dir=tmp_path / "file")


def test_members_are_evaluated_along_the_way_and_at_the_end(small_offline, runs_dir, capsys):
    pairs = [("walker_stand", 0), ("walker_stand", 1), ("walker_run", 0)]
    configs = [small_offline(dataset="random-s0", task=t, seed=s) for t, s in pairs]
    table = train_offline(configs[1:], runs_dir=runs_dir, progress=False)
    assert tuple(table.columns) == results.COLUMNS
    assert table.groupby(["task", "seed"])["step"].apply(list).tolist() == [[20, 30]] * 2
    assert table["objective"].unique().tolist() == ["random"]
    files = [*runs_dir.glob("offline/**/*.csv"), *runs_dir.glob("offline/**/*.pt")]
    before = [file.read_bytes() for file in files]
    more = train_offline(configs, runs_dir=runs_dir, progress=False)
    pd.testing.assert_frame_equal(more[2:].reset_index(drop=True), table)
    assert "2 members finished already" in capsys.readouterr().out
    assert [file.read_bytes() for file in files] == before
    with pytest.raises(ValueError, match="part of a run with other members"):
        train_offline([replace(c, num_steps=40) for c in configs], runs_dir=runs_dir)


def test_a_member_that_diverges_stops_alone(small_offline, runs_dir, monkeypatch, capsys):
    configs = [small_offline(dataset="random-s0", seed=seed) for seed in (0, 1)]
    undisturbed = train_offline(configs, runs_dir=runs_dir, progress=False)
    (runs_dir / "offline").rename(runs_dir / "kept")
    update = TD3.update

    def poisoned(self, batch):
        metrics = update(self, batch)
        self.updates = getattr(self, "updates", 0) + 1
        if self.updates == 22:
            self.critic.head[0].weight.data[0] = torch.inf
        return metrics

    monkeypatch.setattr(TD3, "update", poisoned)
    table = train_offline(configs, runs_dir=runs_dir, progress=False)
    message = "td3 on random-s0, walker_stand, seed 0: diverged by update 30"
    assert capsys.readouterr().out.count(message) == 1
    assert table["status"].tolist() == ["ok", "diverged", "ok", "ok"]
    assert table["return"].isna().tolist() == [False, True, False, False]
    kept = ["return", "step"]
    pd.testing.assert_frame_equal(table[kept].drop(1), undisturbed[kept].drop(1))
    state = runs.checkpoint_in(next(runs_dir.glob("offline/**/checkpoint.pt")).parent)["learner"]
    assert all(x.isfinite().all() for x in state.values() if isinstance(x, torch.Tensor))


def test_critic_values_beyond_reason_are_a_divergence(small_offline, runs_dir, capsys, monkeypatch):
    monkeypatch.setattr("belib.training.learning._DIVERGED", 0.0)
    for algorithm, status in (("td3", "diverged"), ("bc", "ok")):
        config = small_offline(dataset="random-s0", algorithm=algorithm)
        table = train_offline(config, runs_dir=runs_dir, progress=False)
        assert table["status"].unique().tolist() == [status]
        assert ("returns are at most 99.8)" in capsys.readouterr().out) == (status == "diverged")


def test_data_of_other_sizes_are_refused_first(small_offline, make_dataset, tmp_path):
    """`test_datasets_validation.py` has all other faults."""
    file = make_dataset("small", lengths=[20]).files[0]
    arrays = datasets.read_episode(file)
    np.savez(file, **{**arrays, "observation": arrays["observation"][:, :20]})
    message = r"'observation' must be float32 \(21, 24\), got .* \(21, 20\)"
    with pytest.raises(datasets.DatasetError, match=message):
        train_offline(small_offline(dataset="small"), runs_dir=tmp_path)
    assert not (tmp_path / "offline").exists()


@pytest.mark.parametrize("written", ["metrics.csv", "results.csv"])
def test_the_file_that_says_finished_is_last(small_offline, runs_dir, monkeypatch, written):
    """Killed after any of the last tables, members are not taken for finished."""
    configs = [small_offline(dataset="random-s0", num_steps=20, seed=seed) for seed in (0, 1)]
    write = paths.write_text

    def killed(path, text):
        write(path, text)
        if path.name == written and len(text.splitlines()) > 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(paths, "write_text", killed)
        with pytest.raises(KeyboardInterrupt):
            train_offline(configs, runs_dir=runs_dir, progress=False)
    train_offline(configs, runs_dir=runs_dir, progress=False)
    files = [*runs_dir.glob("offline/**/*.csv")]
    assert [pd.read_csv(file)["step"].tolist() for file in files] == [[20]] * 4


def test_a_learning_curve_has_one_dataset(small_offline, small_pretrain, tmp_path):
    """One whose collection is finished, and that was not extended since."""
    collected = small_pretrain(objective="random", num_steps=100)
    (folder,) = pretrain(collected, runs_dir=tmp_path, progress=False)
    config = small_offline(dataset=folder.name, num_steps=20)
    train_offline(config, runs_dir=tmp_path, progress=False)
    card = (folder / "card.json").read_bytes()
    pretrain(replace(collected, num_steps=200), runs_dir=tmp_path, progress=False)
    for num_steps in (20, 40):  # also a policy that was finished
        with pytest.raises(datasets.DatasetError, match="100 steps then, 200 now"):
            train_offline(replace(config, num_steps=num_steps), runs_dir=tmp_path)
    with pytest.raises(ValueError, match="a finished dataset and policy, got none"):
        gather.gather(tmp_path, tmp_path / "tables")
    (folder / "card.json").write_bytes(card)  # as a kill before the last step leaves it
    with pytest.raises(datasets.DatasetError, match="no card of all its 200 steps"):
        train_offline(replace(config, seed=1), runs_dir=tmp_path)
    shutil.rmtree(folder)  # what was learnt stays
    assert train_offline(config, runs_dir=tmp_path)["step"].tolist() == [20]


def test_a_member_diverges_by_the_rewards_of_its_own_task(small_offline, make_dataset):
    dataset, tasks = make_dataset(), ("walker_stand", "walker_run", "walker_stand")
    configs = [small_offline(task=task, dataset=dataset.name) for task in tasks]
    together = load_replay(configs, dataset, (24, 6))[1]
    alone = torch.cat([load_replay([config], dataset, (24, 6))[1] for config in configs])
    assert torch.equal(together, alone)
    assert together[0] == together[2] > 5 * together[1]


def test_the_oldest_episodes_with_so_many_transitions(small_offline, make_dataset, tmp_path):
    """A policy is evaluated before its first update, too, and not again when it continues."""
    dataset = make_dataset(lengths=(4, 6, 5))
    for capacity, starts in ((99, 15), (11, 15), (10, 10), (5, 10), (4, 4)):
        config = small_offline(num_steps=2, eval_every=1, eval_first=True, replay_capacity=capacity)
        work = Learning([config], [tmp_path], dataset)
        assert work.engine.replay.count.tolist() == [starts]
    work.advance()
    work.restore(work.state())
    work.advance()
    assert [row["step"] for row in work.returns[0]] == [0, 1, 2]


def test_the_fastest_precision_is_recorded_and_kept(small_offline, runs_dir, monkeypatch):
    """In results, not in names; a run goes on as it began where a machine would choose another."""
    config = small_offline(dataset="random-s0", precision="auto", num_steps=20)
    for precision, num_steps in (("bfloat16", 20), ("float32", 30)):
        monkeypatch.setattr(machine, "fastest_precision", lambda answer=precision: answer)
        table = train_offline(replace(config, num_steps=num_steps), runs_dir=runs_dir)
        assert set(table["precision"]) == {"bfloat16"}
    with pytest.raises(ValueError, match="precision: auto there, float32 here"):
        train_offline(replace(config, precision="float32"), runs_dir=runs_dir)


@pytest.mark.slow
def test_groups_run_side_by_side_as_one_after_the_other(
    small_pretrain, small_offline, tmp_path, monkeypatch
):
    """Datasets of two objectives and seeds, and policies of two tasks on one of them."""
    monkeypatch.undo()  # of the length of episodes, which other processes do not have
    members = [(objective, seed) for objective in ("behavioral", "random") for seed in (0, 1)]
    sizes = {"num_steps": 1000, "random_steps": 950}
    configs = [small_pretrain(objective=o, seed=seed, **sizes) for o, seed in members]
    groups = lockstep(configs, 1)
    assert groups == [[config] for config in configs]
    assert lockstep(configs, 2) == lockstep(configs) == [configs[:2], configs[2:]]
    parts = in_parallel(pretrain, groups, runs_dir=tmp_path / "together")
    together = [folder for part in parts for folder in part]
    apart = [pretrain(c, runs_dir=tmp_path / "apart", progress=False)[0] for c in configs]
    sums = [[datasets.read_card(f)["sha256"] for f in folders] for folders in (together, apart)]
    assert sums[0] == sums[1]
    policies = [[small_offline(dataset="random-s0", task=f"walker_{t}")] for t in ("run", "walk")]
    tables = in_parallel(train_offline, policies, runs_dir=tmp_path / "together")
    for table, group in zip(tables, policies, strict=True):
        alone = train_offline(group, runs_dir=tmp_path / "apart", progress=False)
        pd.testing.assert_frame_equal(table, alone)
    groups[1] = [replace(configs[1], k=5)]
    with pytest.raises(ValueError, match="k: 3 there, 5 here"):
        in_parallel(pretrain, groups, runs_dir=tmp_path / "apart")


def test_evaluation_changes_nothing_in_training(small_offline, runs_dir):
    returns = []
    for every in (10, 20):
        config = small_offline(dataset="random-s0", eval_every=every, num_steps=20)
        returns += [train_offline(config, runs_dir=runs_dir, progress=False)["return"].iloc[-1]]
        (runs_dir / "offline").rename(runs_dir / f"kept-{every}")
    assert returns[0] == returns[1]
