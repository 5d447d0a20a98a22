"""Each way in which a dataset can be spoilt is found, by file and row; cards are what files say."""

import hashlib
import json
import re
import shutil
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from belib import datasets
from belib.config import OfflineConfig
from belib.datasets.__main__ import main
from belib.datasets.episodes import read_arrays
from belib.training import train_offline
from belib.weighting import prelec_beta

EPISODE = "buffer/episode_000001_6.npz"


@pytest.fixture
def folder(make_dataset):
    return make_dataset().folder


@pytest.fixture
def change(folder):
    """Change arrays of an episode (or of its rewards) in place."""

    def edit(function, name=EPISODE):
        arrays = read_arrays(folder / name)
        function(arrays)
        np.savez_compressed(folder / name, **arrays)

    return edit


def put(key, row, value):
    return lambda arrays: arrays[key].__setitem__(row, value)


@pytest.mark.parametrize("domain", ["walker", "quadruped", "cartpole"])
def test_a_good_dataset_has_no_faults(make_dataset, domain):
    assert datasets.validate(make_dataset(domain=domain).folder) == []


SPOILT_ROWS = {
    "not finite": (put("observation", (3, 2), np.nan), 3, "finite, got nan in row 3, column 2"),
    "dummy action": (put("action", (0, 1), 0.5), 0, "'action' must be 0 in row 0"),
    "dummy reward": (put("reward", 0, 0.5), 0, "'reward' must be 0 in row 0"),
    "dummy discount": (put("discount", 0, 0), 0, "'discount' must be 1 in row 0"),
    "action": (put("action", 5, -1.5), 5, r"within [-1, 1], got -1.5 in row 5"),
    "discount": (put("discount", slice(2, 5), 1.5), 2, "[0, 1], got 1.5 in row 2, column 0 (and"),
    "terminal": (put("discount", 4, 0), 4, "above 0 before the last row, got 0.0 in row 4"),
}


@pytest.fixture
def readers(folder, monkeypatch):
    """All that learns from a dataset or makes another of it."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder / "minari"))
    place = folder.parents[2] / "new" / "walker" / "made"
    config = OfflineConfig(dataset=folder.name, scale="test", batch_size=4, hidden_dim=8)
    load = datasets.load
    readers = {
        "transitions": lambda: load(folder).transitions(),
        "card": lambda: datasets.write_card(folder),
        "relabel": lambda: datasets.relabel(load(folder), "walker_run"),
        "learning": lambda: train_offline(config, runs_dir=folder.parents[2]),
        "import": lambda: datasets.import_exorl(folder, place),
        "merge": lambda: datasets.merge([load(folder)], place),
        "subsample": lambda: datasets.subsample(load(folder), place, seed=0, n_episodes=1),
    }
    if find_spec("minari"):
        readers["export"] = lambda: datasets.export_minari(load(folder))
    return readers


@pytest.mark.parametrize("kind", SPOILT_ROWS)
def test_a_row_that_breaks_a_rule_is_found_and_neither_learnt_from_nor_passed_on(
    folder, change, readers, kind
):
    function, row, words = SPOILT_ROWS[kind]
    change(function)
    faults = [fault for fault in datasets.validate(folder) if fault.file.startswith("buffer")]
    assert {(fault.file, fault.row) for fault in faults} == {(EPISODE, row)}
    assert words in faults[-1].fault
    for read in readers.values():
        with pytest.raises(datasets.DatasetError, match=rf"_000001_6.npz: .*{re.escape(words)}"):
            read()
    assert not (folder.parents[2] / "new" / "walker" / "made").exists()
    assert not (folder.parents[2] / "offline").exists()


def test_recorded_rewards_of_another_episode_are_not_learnt_from(change, readers):
    change(put("walker_stand", 3, 0.77), "rewards/episode_000001_6.npz")
    for name in ("card", "learning", "merge"):
        with pytest.raises(datasets.DatasetError, match=r"rewards/episode_000001_6.npz: .* stored"):
            readers[name]()


def test_actions_that_exceed_1_by_rounding_are_actions(folder, change, readers):
    change(put("action", (3, 2), np.nextafter(np.float32(1), np.float32(2))))
    assert [fault.file for fault in datasets.validate(folder)] == ["card.json"]
    for name in ("transitions", "import"):
        readers[name]()


SPOILT_ARRAYS = {
    "missing": (lambda a: a.pop("reward"), "'reward' must be float32 (7, 1), got none"),
    "type": (lambda a: a.update(action=a["action"].astype(float)), "(7, 6), got float64 (7, 6)"),
    "flat": (lambda a: a.update(reward=a["reward"][:, 0]), "float32 (7, 1), got float32 (7,)"),
    "rows": (lambda a: a.update(discount=a["discount"][1:]), "(7, 1), got float32 (6, 1)"),
    "physics": (lambda a: a.update(physics=a["physics"][:, :9]), "float64 (7, 18), got float64"),
    "sizes": (lambda a: a.update(observation=a["observation"][:, 1:]), "float32 (7, 24), got"),
    "extra": (lambda a: a.update(z=np.ones((3, 4), "f4")), "'z' must be of 7 rows, got float32"),
}


@pytest.mark.parametrize("kind", SPOILT_ARRAYS)
def test_arrays_that_break_a_rule_are_found(folder, change, kind):
    function, words = SPOILT_ARRAYS[kind]
    change(function)
    (fault,) = datasets.validate(folder)
    assert (fault.file, fault.row) == (EPISODE, None)
    assert words in fault.fault


def flip(file):
    content = bytearray(file.read_bytes())
    content[600] ^= 255
    file.write_bytes(content)


SPOILT_FILES = {
    "cut": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "empty": lambda file: file.write_bytes(b""),
    "a web page": lambda file: file.write_text("<html>403 Forbidden</html>"),
    "one array": lambda file: np.save(file.open("wb"), np.zeros(3)),
    "pickled": lambda file: np.savez(file, observation=np.array([{"a": 1}], dtype=object)),
    "a flipped byte": flip,
}


@pytest.mark.parametrize("kind", SPOILT_FILES)
def test_unreadable_files_are_named_by_every_reader_and_never_skipped(folder, readers, kind):
    SPOILT_FILES[kind](folder / EPISODE)
    (fault,) = datasets.validate(folder)
    assert fault.file == EPISODE
    assert fault.fault.startswith(f"{EPISODE} cannot be read")
    for name in ("transitions", "relabel", "card", "merge"):
        with pytest.raises(datasets.DatasetError, match=r"episode_000001_6.npz cannot be read"):
            readers[name]()
    assert datasets.load(folder).steps == 14  # counted all the same


def test_all_faults_are_reported_not_the_first(folder, change):
    change(put("observation", (2, 0), np.inf), "buffer/episode_000000_4.npz")
    change(put("action", 3, 2))
    (folder / "buffer" / "episode_000002_4.npz").write_bytes(b"")
    leftover = folder / "buffer" / ".episode_000003_4.npz.tmp"
    leftover.write_bytes(b"part")
    table = pd.DataFrame(datasets.validate(folder))
    assert list(table.columns) == ["file", "row", "fault"]
    files = [leftover.name, "episode_000000_4.npz", EPISODE[7:], "episode_000002_4.npz"]
    assert table["file"].tolist() == [f"buffer/{name}" for name in files]
    assert table["row"].tolist()[1:3] == [2, 3]
    assert leftover.exists()  # reported, not removed


def test_names_gaps_and_duplicates(folder):
    buffer = folder / "buffer"
    (buffer / "episode_000001_6.npz").rename(buffer / "episode_000004_6.npz")
    shutil.copy(buffer / "episode_000000_4.npz", buffer / "20240101T000000_2_4.npz")
    for name in ("notes_about_it.npz", "README.txt"):
        (buffer / name).touch()
    shutil.rmtree(folder / "rewards")
    found = {fault.file: fault.fault for fault in datasets.validate(folder)}
    assert found["buffer"] == "lacks 2 episodes before its last: 1, 3"
    assert found["buffer/episode_000002_4.npz"] == "has the index of 20240101T000000_2_4.npz"
    assert "must be named" in found["buffer/notes_about_it.npz"]
    assert "must be named" in found["buffer/README.txt"]
    assert found["rewards"] == "must be there: they were recorded at collection"
    assert datasets.validate(folder / "nowhere")[0].fault == "there is no such folder"
    (buffer / "notes_about_it.npz").unlink()
    with pytest.raises(datasets.DatasetError, match="must differ in their index"):
        datasets.load(folder)


@pytest.mark.parametrize(
    ("length", "words"),
    [(7, "'action' must be float32 (8, 6), got float32 (7, 6)"), (0, "it must have a transition")],
)
def test_a_name_that_tells_another_length(folder, length, words):
    (folder / EPISODE).rename(folder / "buffer" / f"episode_000001_{length}.npz")
    assert any(words in fault.fault for fault in datasets.validate(folder))


def test_rewards_that_do_not_belong_to_their_episode(folder, change):
    name = "rewards/episode_000001_6.npz"
    change(put("walker_stand", 4, 0.25), name)
    change(put("walker_run", 0, 1.0), name)
    faults = [fault for fault in datasets.validate(folder) if fault.file == name]
    assert [fault.row for fault in faults] == [0, 4]
    assert "'walker_stand' must be the stored reward" in faults[1].fault
    change(lambda a: a.update(walker_walk=a["walker_walk"][1:]), name)
    assert "must be float64 (7,), got float64 (6,)" in datasets.validate(folder)[-1].fault
    change(lambda a: a.pop("walker_run"), name)
    assert "must hold the tasks" in datasets.validate(folder)[-1].fault
    (folder / name).rename(folder / "rewards" / "episode_000007_6.npz")
    found = {fault.file: fault.fault for fault in datasets.validate(folder)}
    assert found[name].startswith("must be there")
    assert found["rewards/episode_000007_6.npz"] == "belongs to no episode"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("config.yaml", "domain: [", "is no recorded configuration"),
        ("config.yaml", "", "is no recorded configuration: objective must be one of"),
        ("config.yaml", "domain: quadruped\nobjective: rnd", "must be of the domain walker"),
        ("provenance.json", "[1]", "must hold a JSON object, got list"),
        ("provenance.json", "{", "must hold JSON"),
        ("provenance.json", "{}", "must have sources, got none"),
        ("provenance.json", '{"sources": ["a"]}', "sources must be a list of objects"),
    ],
)
def test_a_damaged_origin_is_named(folder, name, text, words):
    (folder / name).write_text(text)
    (fault,) = datasets.validate(folder)
    assert fault.file == name
    assert words in fault.fault
    with pytest.raises(ValueError, match=rf"{name}.* {words}"):
        datasets.write_card(folder)


def test_places_have_spaces_and_brackets(make_dataset, tmp_path):
    place = tmp_path / "my [runs] *?" / "walker" / "a {b}"
    shutil.copytree(make_dataset().folder, place)
    datasets.write_card(place)
    assert datasets.validate(place) == []


def test_a_card_says_what_the_files_hold(folder):
    dataset, card, digest = datasets.load(folder), datasets.read_card(folder), hashlib.sha256()
    for file, episode in zip(dataset.files, list(dataset.episodes()), strict=True):
        for key, array in sorted(episode.items()):
            digest.update(f"{key} {array.dtype.str} {array.shape}".encode() + array.tobytes())
        np.savez(file, **episode)  # without compression: the hash is of the arrays
    assert (card["sha256"], datasets.check_card(folder)) == (digest.hexdigest(), [])
    assert (card["domain"], card["objective"], card["seed"]) == ("walker", "random", 0)
    assert (card["steps"], card["episodes"], card["random_actions"]) == (14, 3, 1.0)
    assert (card["obs_dim"], card["action_dim"]) == (24, 6)
    returns = np.array([rows.sum() for rows in datasets.task_rewards(dataset, ["walker_run"])])
    found = {"mean": returns.mean(), "min": returns.min(), "max": returns.max()}
    assert card["returns"]["walker_run"] == found
    assert card["mean_reward"]["walker_run"] == pytest.approx(returns.sum() / 14)
    assert card["physics_errors"] is None  # nothing counted them
    for text, count in (("step\n4\n", 0), ("step,physics_errors\n4,1\n10,2\n", 3)):
        (folder / "metrics.csv").write_text(text)
        assert datasets.write_card(folder)["physics_errors"] == count
    (folder / "metrics.csv").write_text("step,physics_errors\n4,none\n")
    (fault,) = datasets.validate(folder)
    assert fault.file == "card.json"
    assert "metrics.csv: physics_errors must be numbers, or missing, got 'none'" in fault.fault


def test_a_card_says_what_was_paid_and_computed_in(folder):
    config = folder / "config.yaml"
    text = config.read_text().replace("objective: random", "objective: behavioral")
    config.write_text(text.replace("random_steps: 4000", "random_steps: 7"))
    card = datasets.write_card(folder, precision="bfloat16")
    numbers = [card[name] for name in ("parameter", "alpha", "n_outcomes", "beta")]
    assert numbers == [0.5, 0.5, 512, prelec_beta(0.5, 512)]
    assert card["random_actions"] == 0.5
    assert datasets.write_card(folder) == card  # which keeps the precision
    config.unlink()
    assert datasets.write_card(folder)["random_actions"] is None


def test_a_card_of_an_earlier_version_is_a_card(folder):
    card = datasets.read_card(folder)
    for name in ("precision", "variant", "card_sha256"):
        del card[name]
    digest = hashlib.sha256(json.dumps(card, sort_keys=True).encode()).hexdigest()
    (folder / "card.json").write_text(json.dumps({**card, "card_sha256": digest}))
    assert datasets.check_card(folder) == []


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("steps", 15, "steps must be .*, got 15"),
        ("objective", "behavioral", "objective must be .*, got 'behavioral'"),
        ("sha256", "0" * 64, "sha256 must be .*, got '0"),
        ("returns", {}, "returns must be"),
        ("git_revision", "f00", "it was changed after it was written"),
    ],
)
def test_an_edited_card_is_found(folder, name, value, words):
    card = datasets.read_card(folder)
    (folder / "card.json").write_text(json.dumps({**card, name: value}))
    (fault,) = datasets.check_card(folder)
    assert re.match(words, fault)
    assert [each.file for each in datasets.validate(folder)] == ["card.json"]
    assert main(["card", "--check", str(folder)]) == 1
    datasets.write_card(folder)
    assert main(["card", "--check", str(folder)]) == 0


def test_a_card_notices_the_smallest_change(folder, change):
    card = datasets.read_card(folder)
    card["returns"]["walker_run"]["max"] += 1e-6
    (folder / "card.json").write_text(json.dumps(card))
    assert [fault.split()[0] for fault in datasets.check_card(folder)] == ["returns"]
    datasets.write_card(folder)
    change(put("observation", (2, 2), 0.5))
    assert [fault.split()[0] for fault in datasets.check_card(folder)] == ["sha256"]


def test_no_card_or_another_file(folder):
    (folder / "card.json").write_text('{"steps": 14}')
    for read in (datasets.read_card, datasets.check_card):
        with pytest.raises(ValueError, match=r"card.json must have num_steps, episodes"):
            read(folder)
    (folder / "card.json").unlink()
    assert datasets.check_card(folder) == ["there is none"]
    assert datasets.validate(folder) == []  # a download has none


def test_commands_and_exit_codes(folder, tmp_path, capsys):
    (folder / "card.json").unlink()
    assert main(["card", str(folder)]) == 0
    assert json.loads(capsys.readouterr().out) == datasets.read_card(folder)
    assert main(["relabel", str(folder)]) == 0
    assert "walker_run: returns of 3 episodes" in capsys.readouterr().out
    assert len(list((folder / "relabelled").glob("*.npz"))) == 3
    assert main(["validate", str(folder)]) == 0
    assert "no faults" in capsys.readouterr().out
    (tmp_path / "walker" / "empty" / "buffer").mkdir(parents=True)
    assert main(["validate", str(folder), str(tmp_path / "walker" / "empty")]) == 1
    assert "must hold at least one episode, got none" in capsys.readouterr().out
    assert main(["relabel", str(tmp_path / "walker" / "empty")]) == 1
    wrong = ([], ["mend", "x"], ["validate"], ["relabel", "x", "--check"])
    for arguments, status in (*((each, 2) for each in wrong), (["--help"], 0)):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == status
    assert "Exit status: 0" in capsys.readouterr().out
