"""What a collection records of each kind of agent, and of simulations that break down."""

from copy import deepcopy
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

from belib import datasets, envs, paths, results
from belib.config import OfflineConfig
from belib.training import collection, is_finished, pretrain, random_like
from belib.training.collection import Collection


def test_one_call_collects_for_all_objectives(small_pretrain, tmp_path, capsys):
    """Those whose agents have the same networks in lockstep, one group after the other."""
    objectives = ("smm", "behavioral", "rnd", "shannon", "random")
    sizes = {"num_steps": 110, "random_steps": 70, "convention": "corrected"}
    configs = [small_pretrain(objective=o, **sizes) for o in objectives]
    folders = pretrain(configs, runs_dir=tmp_path, progress=False)
    for folder in folders[:-1]:
        metrics = pd.read_csv(folder / "metrics.csv")
        assert np.isfinite(metrics.iloc[0].astype(float)).all()
        assert {"intrinsic_reward", "representation_scale"} <= set(metrics)
    assert [folder.name.split("-")[0] for folder in folders] == list(objectives)
    assert all(datasets.load(folder).steps == 100 for folder in folders)
    assert [(folder / "checkpoint.pt").exists() for folder in folders] == [1, 1, 1, 0, 1]
    pretrain(configs, runs_dir=tmp_path)
    assert capsys.readouterr().out.count("members finished already") == 4  # groups


def test_what_is_finished_is_left_out_of_a_later_call(small_pretrain, tmp_path, capsys):
    """A parameter that an objective does not use makes no other dataset; members end together."""
    first, second = (small_pretrain(objective=o, num_steps=110) for o in ("shannon", "renyi"))
    pretrain(first, runs_dir=tmp_path, progress=False)
    with pytest.raises(ValueError, match="k: 3 there, 2 here"):
        pretrain(replace(first, k=2), runs_dir=tmp_path)
    configs = [replace(first, alpha=2.0, q=3.0), second]
    folders = pretrain(configs, runs_dir=tmp_path, progress=False)
    assert "1 members finished already: shannon-s0" in capsys.readouterr().out
    (folders[1] / "card.json").unlink()  # as if killed among the cards
    pretrain([first, second], runs_dir=tmp_path, progress=False)
    assert datasets.read_card(folders[1])["steps"] == 100


def test_a_card_of_an_unfinished_collection_does_not_finish_it(small_pretrain, tmp_path):
    config, longer = small_pretrain(num_steps=110), small_pretrain(num_steps=300)
    (folder,) = pretrain(config, runs_dir=tmp_path, progress=False)
    paths.write_text(folder / "config.yaml", longer.to_yaml())  # as if killed while it goes on
    (folder / "metrics.csv").write_text("\n")
    assert datasets.write_card(folder)["num_steps"] == 110
    (folder / "card.json").unlink()
    assert datasets.write_card(folder)["num_steps"] == 100
    assert not is_finished(longer, folder)
    assert datasets.validate(folder) == []


def test_random_data_have_the_size_of_those_beside_them(small_pretrain, tmp_path, monkeypatch):
    """A seed has one random dataset of the scale's size, whatever the others' settings are."""
    (paths.make_folder(tmp_path / "params") / "04_pretrain.mine.yaml").write_text("num_steps: 100")
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params")
    options = {"runs_dir": tmp_path, "progress": False}

    def collected(*configs):
        return [datasets.load(pretrain(config, **options)[0]) for config in configs]

    def beside(data):
        return [d.name for d in random_like(data, scale="mine", runs_dir=tmp_path)]

    one = small_pretrain(num_steps=100, intrinsic_reward_scale="rms")
    labelled = replace(one, label="rms", seed=1, k=4)
    collected(small_pretrain(objective="random", num_steps=100))
    assert beside(collected(one, labelled)) == ["random-s0", "random-s1"]
    assert beside(collected(replace(one, num_steps=200, label="long"))) == ["random-long-s0"]
    with pytest.raises(ValueError, match=r"'behavioral-0\.5-s0': 200, 'random-s0': 100}"):
        beside(collected(replace(one, num_steps=200)))
    assert datasets.read_card(tmp_path / "datasets/walker/random-s0")["num_steps"] == 100


def test_episodes_after_the_checkpoint_are_hidden(small_pretrain, tmp_path):
    """As where another processor's rounding gives another length to episode 1."""
    work = Collection([small_pretrain(num_steps=300)], [tmp_path / "walker" / "data"])
    while work.step < 230:
        work.advance()
        if work.step == 150:
            state = deepcopy(work.state())
    file = datasets.load(work.folders[0]).files[1]
    file.rename(file.with_name("episode_000001_90.npz"))
    again = Collection(work.configs, work.folders)
    again.restore(state)
    while again.step < 230:
        again.advance()
    assert datasets.load(work.folders[0]).lengths == [100, 100]
    assert [f.name for f in file.parent.glob(".*")] == [".episode_000001_90.npz.old"]


def check_continues(work):
    """The next batch of a collection is that of one which continues from its state."""
    again = Collection(work.configs, work.folders)
    again.restore(work.state())
    starts = [w.replay.draw(50, w.engine.draws) for w in (work, again)]
    one, two = work.replay.transitions(starts[0]), again.replay.transitions(starts[1])
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_smm_keeps_a_skill_an_episode_and_shows_it_to_the_agent(small_pretrain, tmp_path):
    config = small_pretrain(objective="smm", num_steps=300, random_steps=10)
    work, seen = Collection([config], [tmp_path / "walker" / "data"]), []
    act = work.learner.act
    work.learner.act = lambda obs, explore: seen.append(obs[0, 0, 24:]) or act(obs, explore=explore)
    for _ in range(300):
        work.advance()
    skills = [np.load(file)["z"] for file in sorted(tmp_path.rglob("buffer/*.npz"))]
    for z in skills:
        assert (z == z[0]).all()
        assert sorted(z[0]) == [0, 0, 0, 1]
        assert z.dtype == np.float32
    assert len({tuple(z[0]) for z in skills}) > 1
    taken = np.concatenate([z[1:] for z in skills])
    np.testing.assert_array_equal(torch.stack(seen), taken[10:])
    batch = work.replay.transitions(work.replay.draw(200, work.engine.draws))
    assert torch.equal(batch.obs[..., 24:], batch.next_obs[..., 24:])


def break_down(monkeypatch, at):
    """Let the simulation fail, as MuJoCo's do, at the given calls of `step` (from 1)."""
    step, calls = envs.Environment.step, []

    def fail_or_step(self, action):
        calls.append(1)
        if len(calls) in at:
            raise envs.PhysicsError("Physics state is invalid. Warning(s) raised: mjWARN_BADQACC")
        return step(self, action)

    monkeypatch.setattr(envs.Environment, "step", fail_or_step)


def test_a_breakdown_ends_its_episode_alone(small_pretrain, tmp_path, monkeypatch, capsys):
    break_down(monkeypatch, at=(31, 32, 150, 290, 291))
    config = small_pretrain(objective="random", num_steps=300)
    (folder,) = pretrain(config, runs_dir=tmp_path, progress=False)
    assert capsys.readouterr().out.count("mjWARN_BADQACC") == 5
    lengths = [len(episode["action"]) - 1 for episode in datasets.load(folder).episodes()]
    assert lengths == [30, 100, 17, 100, 39]  # 32 and 291 failed at once: no episode
    card = datasets.read_card(folder)
    assert (card["physics_errors"], card["steps"]) == (5, sum(lengths))
    last = next(datasets.load(folder).episodes())["discount"][-1]
    assert last == 1.0, "a breakdown is no terminal state"


def test_an_agent_that_diverged_stops(small_pretrain, tmp_path):
    work = Collection([small_pretrain(random_steps=10)], [tmp_path / "walker" / "data"])
    work.learner.actor.head[-1].bias.data.fill_(torch.nan)
    while work.step < 10:
        work.advance()
    with pytest.raises(ValueError, match="actions must be finite, got NaN of data, step 10"):
        work.advance()


@pytest.mark.parametrize("convention", ["urlb", "corrected"])
def test_a_full_memory_continues(small_pretrain, tmp_path, monkeypatch, convention):
    """An episode that breaks down at once leaves nothing, and no other memory after a restart."""
    break_down(monkeypatch, at=(51, 52, 90, 91))
    sizes = {"num_steps": 230, "replay_capacity": 70, "random_steps": 9000}
    config = small_pretrain(objective="rnd", convention=convention, **sizes)
    work = Collection([config], [tmp_path / "walker" / "data"])
    for _ in range(130):
        work.advance()
    assert sum(row["physics_errors"] for row in work.history[0]) == 3  # the next episode has one
    check_continues(work)


@pytest.mark.parametrize(("convention", "at_the_end"), [("urlb", 1.0), ("corrected", 0.0)])
def test_terminals_by_convention(small_pretrain, tmp_path, end_after, convention, at_the_end):
    end_after(20, discount=0.0)
    config = small_pretrain(objective="rnd", num_steps=60, convention=convention)
    work, counts = Collection([config], [tmp_path / "walker" / "data"]), []
    for _ in range(60):
        work.advance()
        counts.append(int(work.replay.count[0]))
    # urlb replays finished episodes only; one of 20 steps has 18 starts of 3 steps
    expected = {"urlb": [0, 18, 18], "corrected": [17, 18, 26]}
    assert [counts[n - 1] for n in (19, 20, 30)] == expected[convention]
    for episode in datasets.load(work.folders[0]).episodes():
        assert episode["discount"].ravel().tolist() == [1.0] * 20 + [0.0]
    batch = work.replay.transitions(work.replay.draw(500, work.engine.draws))
    learnt = set(batch.discount.ravel().tolist())
    assert learnt == {np.float32(0.99**3), np.float32(at_the_end * 0.99**3)}
    check_continues(work)


def test_the_online_reference_learns_the_tasks_reward(small_pretrain, tmp_path):
    config = small_pretrain(objective="task", task="walker_run", convention="corrected")
    folder = tmp_path / "walker" / "data"
    work, paid = Collection([config], [folder]), []
    for _ in range(150):
        work.advance()
        paid.append(work.rows[0][-1][-1][2])  # walker_run
    assert work.replay._rows[:, -2].max() == np.float32(max(paid))
    stored = next(datasets.load(folder).episodes())["reward"][:, 0]
    stand = np.load(next(folder.glob("rewards/*.npz")))["walker_stand"]
    np.testing.assert_array_equal(stored, stand.astype(np.float32))  # the file's stays the same
    check_continues(work)


def test_tasks_learnt_online_are_the_reference(small_pretrain, tmp_path, monkeypatch):
    monkeypatch.setattr(collection, "OfflineConfig", partial(OfflineConfig, eval_episodes=1))
    configs = [small_pretrain(objective="task", task=f"walker_{t}") for t in ("run", "stand")]
    folders = pretrain(configs, runs_dir=tmp_path, progress=False)
    table = pd.concat([pd.read_csv(folder / "online.csv") for folder in folders])
    assert table["task"].tolist() == ["walker_run", "walker_stand"]
    assert set(table["step"]) == {200}
    assert set(table["precision"]) == {"float32"}
    returns = dict(zip(table["task"], table["return"], strict=True))
    assert results.online(tmp_path, "test") == pytest.approx(returns)
