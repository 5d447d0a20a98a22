"""Each way in which a dataset can be spoilt is found, by file and row, and nothing is hidden."""

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


@pytest.fixture
def folder(make_dataset):
    return make_dataset().folder


@pytest.fixture
def change(folder):
    """Change arrays of an episode (or of its rewards) in place."""

    def edit(function, name="buffer/episode_000001_6.npz"):
        arrays = read_arrays(folder / name)
        function(arrays)
        np.savez_compressed(folder / name, **arrays)

    return edit


def put(key, row, value):
    return lambda arrays: arrays[key].__setitem__(row, value)


def test_a_good_dataset_has_no_faults(folder, make_dataset):
    assert datasets.validate(folder) == []
    assert datasets.validate(make_dataset(domain="quadruped").folder) == []
    assert datasets.validate(make_dataset("mine", domain="cartpole").folder) == []


SPOILT_ROWS = {
    "not finite": (put("observation", (3, 2), np.nan), 3, "finite, got nan in row 3, column 2"),
    "dummy action": (put("action", (0, 1), 0.5), 0, "'action' must be 0 in row 0"),
    "dummy reward": (put("reward", 0, 0.5), 0, "'reward' must be 0 in row 0"),
    "dummy discount": (put("discount", 0, 0), 0, "'discount' must be 1 in row 0"),
    "action": (put("action", 5, -1.5), 5, r"within [-1, 1], got -1.5 in row 5"),
    "discount": (
        put("discount", slice(2, 5), 1.5),
        2,
        "[0, 1], got 1.5 in row 2, column 0 (and in 2 more",
    ),
    "terminal": (put("discount", 4, 0), 4, "above 0 before the last row, got 0.0 in row 4"),
}


@pytest.mark.parametrize("kind", SPOILT_ROWS)
def test_rows_that_break_a_rule_are_found(folder, change, kind):
    function, row, words = SPOILT_ROWS[kind]
    change(function)
    faults = [fault for fault in datasets.validate(folder) if fault.file.startswith("buffer")]
    assert {(fault.file, fault.row) for fault in faults} == {("buffer/episode_000001_6.npz", row)}
    assert words in faults[-1].fault


@pytest.fixture
def door(folder, monkeypatch):
    """All that learns from a dataset or makes another of it."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder / "minari"))
    place = folder.parents[2] / "new" / "walker" / "made"
    config = OfflineConfig(dataset=folder.name, scale="test", batch_size=4, hidden_dim=8)
    load = datasets.load
    return {
        "transitions": lambda: load(folder).transitions(),
        "learning": lambda: train_offline(config, runs_dir=folder.parents[2]),
        "import": lambda: datasets.import_exorl(folder, place),
        "link": lambda: datasets.import_exorl(folder, place, link=True),
        "merge": lambda: datasets.merge([load(folder)], place),
        "subsample": lambda: datasets.subsample(load(folder), place, seed=0, n_episodes=1),
        "export": lambda: datasets.export_minari(load(folder)),
    }


@pytest.mark.parametrize("kind", SPOILT_ROWS)
def test_a_fault_of_an_episode_is_neither_learnt_from_nor_passed_on(folder, change, door, kind):
    """Actions in degrees, or rows that are one off, would otherwise be learnt from."""
    change(SPOILT_ROWS[kind][0])
    words = re.escape(SPOILT_ROWS[kind][2])
    for name, read in door.items():
        if name == "export" and not find_spec("minari"):
            continue
        with pytest.raises(datasets.DatasetError, match=rf"episode_000001_6.npz: .*{words}"):
            read()
    assert not (folder.parents[2] / "new" / "walker" / "made").exists()
    assert not (folder.parents[2] / "offline").exists()


def test_recorded_rewards_of_another_episode_are_not_learnt_from(folder, change, door):
    change(put("walker_stand", 3, 0.77), "rewards/episode_000001_6.npz")
    for name in ("learning", "merge"):
        with pytest.raises(datasets.DatasetError, match=r"rewards/episode_000001_6.npz: .* stored"):
            door[name]()


def test_actions_that_exceed_1_by_rounding_are_actions(folder, change, door):
    change(put("action", (3, 2), np.nextafter(np.float32(1), np.float32(2))))
    assert [fault.file for fault in datasets.validate(folder)] == ["card.json"]
    for name in ("transitions", "import"):
        door[name]()


def test_an_episode_without_a_transition_says_so(folder):
    arrays = read_arrays(datasets.load(folder).files[0])
    file = folder / "buffer" / "episode_000003_0.npz"
    np.savez(file, **{key: rows[:1] for key, rows in arrays.items()})
    words = "it must have a transition, so 2 rows or more, got the reset alone"
    (fault, _) = datasets.validate(folder)
    assert fault == (f"buffer/{file.name}", None, words)
    with pytest.raises(datasets.DatasetError, match=f"{file.name}: {words}"):
        datasets.load(folder).transitions()


SPOILT_ARRAYS = {
    "missing": (lambda a: a.pop("reward"), "'reward' must be float32 (7, 1), got none"),
    "type": (
        lambda a: a.update(action=a["action"].astype(float)),
        "float32 (7, 6), got float64",
    ),
    "flat": (lambda a: a.update(reward=a["reward"][:, 0]), "float32 (7, 1), got float32 (7,)"),
    "rows": (lambda a: a.update(discount=a["discount"][1:]), "(7, 1), got float32 (6, 1)"),
    "physics": (
        lambda a: a.update(physics=a["physics"][:, :9]),
        "float64 (7, 18), got float64 (7, 9)",
    ),
    "sizes": (
        lambda a: a.update(observation=a["observation"][:, 1:]),
        "float32 (7, 24), got float32 (7, 23)",
    ),
    "extra": (lambda a: a.update(z=np.ones((3, 4), "f4")), "'z' must be of 7 rows, got float32"),
}


@pytest.mark.parametrize("kind", SPOILT_ARRAYS)
def test_arrays_that_break_a_rule_are_found(folder, change, kind):
    function, words = SPOILT_ARRAYS[kind]
    change(function)
    (fault,) = datasets.validate(folder)
    assert (fault.file, fault.row) == ("buffer/episode_000001_6.npz", None)
    assert words in fault.fault


SPOILT_FILES = {
    "cut": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "empty": lambda file: file.write_bytes(b""),
    "a web page": lambda file: file.write_text("<html>403 Forbidden</html>"),
    "one array": lambda file: np.save(file.open("wb"), np.zeros(3)),
    "a flipped byte": lambda file: file.write_bytes(
        file.read_bytes()[:600] + bytes([file.read_bytes()[600] ^ 255]) + file.read_bytes()[601:]
    ),
}


@pytest.mark.parametrize("kind", SPOILT_FILES)
def test_unreadable_files_are_named_by_every_reader_and_never_skipped(folder, kind, capsys):
    dataset = datasets.load(folder)
    SPOILT_FILES[kind](dataset.files[1])
    (fault,) = datasets.validate(folder)
    assert fault.file == "buffer/episode_000001_6.npz"
    assert "cannot be read" in fault.fault
    assert str(folder) not in fault.fault
    message = r"episode_000001_6.npz cannot be read"
    for read in (
        lambda: list(dataset.episodes()),
        dataset.transitions,
        lambda: datasets.relabel(dataset, "walker_run"),
        lambda: datasets.write_card(folder),
    ):
        with pytest.raises(datasets.DatasetError, match=message):
            read()
    assert datasets.load(folder).steps == 14  # counted all the same
    assert main(["card", "--check", str(folder)]) == 1
    assert message in capsys.readouterr().err


def test_all_faults_are_reported_not_the_first(folder, change):
    change(put("observation", (2, 0), np.inf), "buffer/episode_000000_4.npz")
    change(put("action", 3, 2))
    (folder / "buffer" / "episode_000002_4.npz").write_bytes(b"")
    (folder / "buffer" / ".episode_000003_4.npz.tmp").write_bytes(b"part")
    found = [(fault.file[-20:], fault.row) for fault in datasets.validate(folder)]
    assert found == [
        (".episode_000003_4.npz.tmp"[-20:], None),
        ("episode_000000_4.npz", 2),
        ("episode_000001_6.npz", 3),
        ("episode_000002_4.npz", None),
    ]
    table = pd.DataFrame(datasets.validate(folder))
    assert list(table.columns) == ["file", "row", "fault"]
    assert (folder / "buffer" / ".episode_000003_4.npz.tmp").exists()  # reported, not removed


def test_names_gaps_and_duplicates(folder):
    buffer = folder / "buffer"
    (buffer / "episode_000001_6.npz").rename(buffer / "episode_000004_6.npz")
    shutil.copy(buffer / "episode_000000_4.npz", buffer / "20240101T000000_2_4.npz")
    (buffer / "notes_about_it.npz").touch()
    (buffer / "README.txt").touch()
    shutil.rmtree(folder / "rewards")
    found = {fault.file: fault.fault for fault in datasets.validate(folder)}
    assert found["buffer"] == "lacks 2 episodes before its last: 1, 3"
    assert found["buffer/episode_000002_4.npz"] == "has the index of 20240101T000000_2_4.npz"
    assert "must be named" in found["buffer/notes_about_it.npz"]
    assert "must be named" in found["buffer/README.txt"]
    with pytest.raises(datasets.DatasetError, match="must be named"):
        datasets.load(folder)
    (buffer / "notes_about_it.npz").unlink()
    with pytest.raises(datasets.DatasetError, match="must differ in their index"):
        datasets.load(folder)


def test_a_name_that_tells_another_length(folder):
    file = folder / "buffer" / "episode_000001_6.npz"
    file.rename(file.with_name("episode_000001_7.npz"))
    faults = [fault.fault for fault in datasets.validate(folder)]
    assert any("'action' must be float32 (8, 6), got float32 (7, 6)" in f for f in faults)


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


def test_a_configuration_of_another_domain(folder):
    file = folder / "config.yaml"
    file.write_text(file.read_text().replace("walker", "quadruped"))
    (fault,) = datasets.validate(folder)
    assert fault.fault == "config.yaml must be of the domain walker, as its folder, got quadruped"
    for text in ("domain: [", "", "x"):
        file.write_text(text)
        assert "is no recorded configuration" in datasets.validate(folder)[0].fault
        with pytest.raises(datasets.DatasetError, match="is no recorded configuration"):
            datasets.write_card(folder)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1]", "must hold a JSON object, got list"),
        ("{", "must hold JSON"),
        ("{}", "must have sources, got none"),
        ('{"sources": ["a"]}', "sources must be a list of objects"),
    ],
)
def test_a_damaged_provenance_is_named(folder, text, words):
    (folder / "provenance.json").write_text(text)
    with pytest.raises(ValueError, match=rf"provenance.json.* {words}"):
        datasets.origin(datasets.load(folder))
    (fault,) = datasets.validate(folder)
    assert fault.file == "provenance.json"
    assert main(["card", str(folder)]) == 1


def test_a_damaged_table_of_metrics_is_named(folder):
    (folder / "metrics.csv").write_text("step,physics_errors\n4,none\n")
    (fault,) = datasets.validate(folder)
    assert fault.file == "card.json"
    assert "metrics.csv: physics_errors must be numbers, or missing, got 'none'" in fault.fault
    with pytest.raises(ValueError, match=r"metrics.csv: physics_errors must be numbers"):
        datasets.write_card(folder)


def test_places_have_spaces_and_brackets(make_dataset, tmp_path):
    place = tmp_path / "my [runs] *?" / "walker" / "a {b}"
    shutil.copytree(make_dataset().folder, place)
    datasets.write_card(place)
    assert datasets.validate(place) == []
    datasets.load(place).files[0].write_bytes(b"")
    (fault,) = datasets.validate(place)
    assert fault.fault.startswith("buffer/episode_000000_4.npz cannot be read")


def test_rewards_that_were_recorded_must_be_there(folder):
    shutil.rmtree(folder / "rewards")
    faults = [fault for fault in datasets.validate(folder) if fault.file == "rewards"]
    assert [fault.fault for fault in faults] == ["must be there: they were recorded at collection"]
    assert datasets.validate(folder / "nowhere")[0].fault == "there is no such folder"


@pytest.mark.parametrize(
    ("name", "value"),
    [("steps", 15), ("objective", "behavioral"), ("sha256", "0" * 64), ("git_revision", "f00")],
)
def test_an_edited_card_is_found(folder, name, value):
    card = datasets.read_card(folder)
    (folder / "card.json").write_text(json.dumps({**card, name: value}))
    (fault,) = datasets.check_card(folder)
    assert re.match(
        rf"{name} must be .*, got {value!r}" if name != "git_revision" else "it was", fault
    )
    assert [each.file for each in datasets.validate(folder)] == ["card.json"]
    assert main(["card", "--check", str(folder)]) == 1
    datasets.write_card(folder)
    assert main(["card", "--check", str(folder)]) == 0


def test_an_edited_number_deep_in_the_card_is_found(folder):
    card = datasets.read_card(folder)
    card["returns"]["walker_run"]["max"] += 1e-6
    (folder / "card.json").write_text(json.dumps(card))
    assert [fault.split()[0] for fault in datasets.check_card(folder)] == ["returns"]


def test_a_card_notices_that_the_data_changed(folder, change):
    change(put("observation", (2, 2), 0.5))
    assert [fault.split()[0] for fault in datasets.check_card(folder)] == ["sha256"]


def test_no_card_or_no_json(folder):
    for text, words in (
        ("{", "it must hold JSON: "),
        ("[1, 2]", "it must hold a JSON object, got list"),
        ('{"steps": 14}', "it must have num_steps, episodes"),
    ):
        (folder / "card.json").write_text(text)
        for read in (datasets.read_card, datasets.check_card):
            with pytest.raises(ValueError, match=words.replace("it", "card.json")):
                read(folder)
    (folder / "card.json").unlink()
    assert datasets.check_card(folder) == ["there is none"]
    assert datasets.validate(folder) == []  # a download has none


def test_exit_codes(folder, tmp_path, capsys):
    assert main(["validate", str(folder)]) == 0
    assert "no faults" in capsys.readouterr().out
    (tmp_path / "walker" / "empty" / "buffer").mkdir(parents=True)
    assert main(["validate", str(folder), str(tmp_path / "walker" / "empty")]) == 1
    assert "must hold at least one episode, got none" in capsys.readouterr().out
    assert main(["relabel", str(tmp_path / "walker" / "empty")]) == 1
    for words in ([], ["mend", "x"], ["validate"]):
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert stopped.value.code == 2
    with pytest.raises(SystemExit) as stopped:
        main(["validate", "--help"])
    assert stopped.value.code == 0
    assert "Exit status: 0" in capsys.readouterr().out


def test_the_door_relabels_and_writes_cards(folder, capsys):
    (folder / "card.json").unlink()
    assert main(["card", str(folder)]) == 0
    assert json.loads(capsys.readouterr().out) == datasets.read_card(folder)
    assert main(["relabel", str(folder)]) == 0
    assert "returns of 3 episodes" in capsys.readouterr().out
    assert len(list((folder / "relabelled").glob("*.npz"))) == 3
