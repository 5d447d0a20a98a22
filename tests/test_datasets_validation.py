"""Each way in which a dataset can be spoilt is found, by file and row; cards are what files say."""

import hashlib
import json
import os
import re
import shutil
from importlib.util import find_spec

import numpy as np
import pytest

from belib import datasets
from belib.config import OfflineConfig
from belib.datasets.__main__ import main
from belib.datasets.files import read_arrays
from belib.training import train_offline
from belib.weighting import prelec_beta

EPISODE, REWARDS = "buffer/episode_000001_6.npz", "rewards/episode_000001_6.npz"


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
def test_a_good_dataset_has_no_faults_and_is_only_read(make_dataset, domain):
    folder = make_dataset(domain=domain).folder
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert datasets.validate(folder) == []
    datasets.load(folder).transitions()
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


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


SPOILT = {  # a change of arrays or of the file, and what is said
    "not finite": (put("observation", (0, 2), np.nan), "finite, got nan in row 0 (first of 1)"),
    "dummy action": (put("action", (0, 1), 0.5), "'action' must be 0 in row 0"),
    "dummy reward": (put("reward", 0, 0.5), "'reward' must be 0 in row 0"),
    "dummy discount": (put("discount", 0, 0), "'discount' must be 1 in row 0"),
    "action": (put("action", 5, -1.5), "within [-1, 1], got -1.5 in row 5 (first of 6)"),
    "discount": (put("discount", slice(2, 5), 1.5), "[0, 1], got 1.5 in row 2 (first of 3)"),
    "terminal": (put("discount", 4, 0), "above 0 before the last row, got 0.0 in row 4"),
    "missing": (lambda a: a.pop("reward"), "'reward' must be there, got none"),
    "type": (lambda a: a.update(action=a["action"].astype(int)), "(7, 6), got int64 (7, 6)"),
    "flat": (lambda a: a.update(reward=a["reward"][:, 0]), "float32 (7, 1), got float32 (7,)"),
    "rows": (lambda a: a.update(discount=a["discount"][1:]), "(7, 1), got float32 (6, 1)"),
    "sizes": (lambda a: a.update(action=a["action"][:, 1:]), "(7, 6), got float32 (7, 5)"),
    "extra": (lambda a: a.update(z=np.ones((3, 4), "f4")), "'z' must be float32 (7, 4), got"),
    "cut": (lambda file: os.truncate(file, file.stat().st_size // 2), "cannot be read"),
    "empty": (lambda file: file.write_bytes(b""), "cannot be read"),
    "one array": (lambda file: np.save(file.open("wb"), np.zeros(3)), "cannot be read"),
    "pickled": (lambda file: np.savez(file, z=np.array([{}], object)), "cannot be read"),
    "a flipped byte": (lambda f: np.bitwise_xor.at(np.memmap(f), 600, 255), "cannot be read"),
}
QUICK = {"transitions", "card", "merge"}


@pytest.mark.parametrize("kind", SPOILT)
def test_what_breaks_a_rule_is_listed_and_never_used(folder, change, readers, kind):
    """It is neither learnt from nor passed on."""
    function, rule = SPOILT[kind]
    if rule == "cannot be read":
        function(folder / EPISODE)
    else:
        change(function)
    (fault,) = datasets.validate(folder)
    assert fault.startswith(EPISODE)
    assert rule in fault
    for name in QUICK if rule == "cannot be read" else readers:
        with pytest.raises(datasets.DatasetError, match=rf"_000001_6.npz.* {re.escape(rule)}"):
            readers[name]()
    made = [folder.parents[2] / "new" / "walker" / "made", folder.parents[2] / "offline"]
    assert not any(path.exists() for path in made)
    assert datasets.load(folder).steps == 14  # no episode is skipped


def test_all_faults_are_reported_not_the_first(folder, change):
    change(put("observation", (2, 0), np.inf), "buffer/episode_000000_4.npz")
    change(put("action", 3, 2))
    change(put("reward", 0, 1))
    buffer = folder / "buffer"
    (buffer / "episode_000002_4.npz").write_bytes(b"")
    shutil.copy(buffer / "episode_000000_4.npz", buffer / "20240101T000000_2_4.npz")
    names = [".episode_000003_4.npz.tmp", "README.txt", "episode_000001_0.npz"]
    for name in names:
        (buffer / name).touch()
    faults = datasets.validate(folder)
    faulty = ["20240101T000000_2_4.npz", *names]
    faulty += [f"episode_00000{i}.npz" for i in ("0_4", "1_6", "2_4")]
    named = [fault.split()[0].strip(":") for fault in faults]
    assert named == sorted(f"buffer/{name}" for name in faulty)
    assert re.search("'reward' must be 0 .*; array 'action' must be", " ".join(faults))
    for name in names[1:]:
        (buffer / name).unlink()
    with pytest.raises(datasets.DatasetError, match="must differ in their index"):
        datasets.load(folder)


def test_rewards_that_do_not_belong_to_their_episode(folder, change, readers):
    change(put("walker_stand", 4, 0.25), REWARDS)
    change(put("walker_run", 0, 1.0), REWARDS)
    (fault,) = datasets.validate(folder)
    assert fault.startswith(f"{REWARDS}: array 'walker_run' must be 0 in row 0")
    assert "'walker_stand' must be the stored reward, got 0.25 in row 4" in fault
    for name in ("card", "learning", "merge"):
        with pytest.raises(datasets.DatasetError, match=rf"{REWARDS}: .* stored"):
            readers[name]()
    (folder / REWARDS).unlink()
    (fault,) = datasets.validate(folder)
    assert fault.startswith(f"{REWARDS} cannot be read")


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("config.yaml", "objective: be", "objective must be one of"),
        ("config.yaml", "objectiv: rnd", "argument 'objectiv'"),
        ("provenance.json", "{", "must hold JSON"),
        ("provenance.json", "{}", "must hold a JSON object with sources"),
    ],
)
def test_a_damaged_origin_is_named(folder, name, text, rule):
    (folder / name).write_text(text)
    (fault,) = datasets.validate(folder)
    assert re.search(f"{name}.* {rule}", fault)
    with pytest.raises((ValueError, TypeError), match=f"{name}.* {rule}"):
        datasets.write_card(folder)


def test_a_card_says_what_the_files_hold(folder):
    dataset, card, digest = datasets.load(folder), datasets.read_card(folder), hashlib.sha256()
    for file, episode in zip(dataset.files, list(dataset.episodes()), strict=True):
        for key, array in sorted(episode.items()):
            digest.update(f"{key} {array.dtype.str} {array.shape}".encode() + array.tobytes())
        np.savez(file, **episode)  # without compression: the hash is of the arrays
    assert (card["sha256"], datasets.validate(folder)) == (digest.hexdigest(), [])
    assert (card["domain"], card["objective"], card["seed"]) == ("walker", "random", 0)
    assert (card["num_steps"], card["steps"], card["episodes"]) == (14, 14, 3)
    returns = np.array([rows.sum() for rows in datasets.task_rewards(dataset, ["walker_run"])])
    summary = {"mean": returns.mean(), "min": returns.min(), "max": returns.max()}
    assert card["returns"]["walker_run"] == summary
    assert card["mean_reward"]["walker_run"] == pytest.approx(returns.sum() / 14)
    assert card["physics_errors"] is None  # nothing counted them
    (folder / "metrics.csv").write_text("step,physics_errors\n4,1\n10,2\n")
    assert datasets.write_card(folder)["physics_errors"] == 3
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("objective: random", "objective: behavioral"))
    card = datasets.write_card(folder, precision="bfloat16")
    numbers = [card[name] for name in ("parameter", "alpha", "n_outcomes", "beta")]
    assert numbers == [0.5, 0.5, 512, prelec_beta(0.5, 512)]
    assert datasets.write_card(folder) == card  # which keeps the precision


def test_a_card_notices_the_smallest_change_and_may_have_other_entries(folder, change, readers):
    card, edited = datasets.read_card(folder), datasets.read_card(folder)
    edited["returns"]["walker_run"]["max"] += 1e-6
    edited |= {"steps": 15, "objective": "behavioral", "sha256": "0"}
    for name in ("returns", "steps", "objective", "sha256"):
        (folder / "card.json").write_text(json.dumps(card | {name: edited[name]}))
        (fault,) = datasets.validate(folder)
        assert re.match(rf"card.json: {name} must be .*, got ", fault)
    del card["variant"]  # as in one of another version
    (folder / "card.json").write_text(json.dumps(card | {"further": "entry"}))
    assert datasets.validate(folder) == []
    change(put("action", (3, 2), np.nextafter(np.float32(1), np.float32(2))))  # rounding is allowed
    assert datasets.validate(folder)[0].startswith("card.json: sha256 must be")
    assert readers["import"]().steps == 14
    (folder / "card.json").write_text('{"steps": 14}')
    (fault,) = datasets.validate(folder)
    assert fault.startswith("card.json must hold a JSON object with num_steps")
    (folder / "card.json").unlink()
    assert datasets.validate(folder) == []  # a download has none


def test_commands_and_exit_codes_also_for_odd_places(make_dataset, tmp_path, capsys):
    folder = tmp_path / "my [runs] *?" / "walker" / "a {b}"
    shutil.copytree(make_dataset().folder, folder)
    (folder / "card.json").unlink()
    assert main(["card", str(folder)]) == 0
    assert json.loads(capsys.readouterr().out) == datasets.read_card(folder)
    assert main(["relabel", str(folder)]) == 0
    assert "all tasks of 3 episodes" in capsys.readouterr().out
    assert len(list((folder / "relabelled").glob("*.npz"))) == 3
    assert main(["validate", str(folder)]) == 0
    assert "no faults" in capsys.readouterr().out
    assert main(["relabel", str(folder.with_name("empty")), str(folder)]) == 1
    assert "must hold at least one episode, got none" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["mend", "x"])
