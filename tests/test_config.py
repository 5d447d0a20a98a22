import dataclasses
import math
import re

import numpy as np
import pytest
import yaml

from belib import paths
from belib.config import (
    PRECISIONS,
    OfflineConfig,
    PretrainConfig,
    check_parameters,
    expand,
    read_yaml,
    scales,
)
from belib.config.checks import check_type
from belib.figures.style import ALPHAS, QS

STAGES = (PretrainConfig, OfflineConfig)


def test_defaults_are_the_papers_tables():
    table_2 = {
        "replay_capacity": 10**6,
        "batch_size": 1024,
        "update_every": 2,
        "discount": 0.99,
        "learning_rate": 1e-4,
        "tau": 0.01,
        "stddev": 0.2,
        "stddev_clip": 0.3,
        "hidden_dim": 1024,
        "representation_dim": 512,
        "k": 12,
        "num_steps": 500_000,
        "rnd_obs_clip": 5.0,
        "skill_dim": 4,
        "discriminator_learning_rate": 1e-3,
        "vae_learning_rate": 1e-2,
    }
    what_it_leaves_out = {"n_step": 3, "random_steps": 4000, "intrinsic_reward_scale": "none"}
    what_it_leaves_out |= {"convention": "urlb"}
    config = dataclasses.asdict(PretrainConfig())
    for name, value in {**table_2, **what_it_leaves_out}.items():
        assert config[name] == value, name
    table_3 = {"batch_size": 1024, "hidden_dim": 1024, "learning_rate": 1e-4, "num_steps": 10**5}
    config = dataclasses.asdict(OfflineConfig())
    for name, value in table_3.items():
        assert config[name] == value, name


@pytest.mark.parametrize("stage", STAGES)
def test_every_field_says_what_it_means_and_whence_it_comes(stage):
    for row in stage().describe():
        assert row["meaning"], row
        assert row["source"], row


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"alpha": -1.0}, "alpha must be positive and finite, got -1.0"),
        ({"alpha": 0.0}, "alpha must be positive and finite, got 0.0"),
        ({"alpha": math.nan}, "alpha must be positive and finite, got nan"),
        ({"q": 0.0}, "q must be positive and finite, got 0.0"),
        ({"objective": "entropy"}, "objective must be one of behavioral, .*, got 'entropy'"),
        ({"k": 1024}, "k must be below batch_size = 1024, got 1024"),
        ({"num_steps": 0}, "num_steps must be at least 1, got 0"),
        ({"intrinsic_reward_scale": "std"}, "must be one of none, rms, got 'std'"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"seed": 2**63}, "seed must be below 2.*63, got 9223372036854775808"),
        ({"stddev": math.inf}, "stddev must be at least 0 and finite, got inf"),
        ({"tau": math.nan}, "tau must be above 0, at most 1 and finite, got nan"),
        ({"replay_capacity": 3}, "replay_capacity must exceed n_step = 3, got 3"),
        ({"label": "a/b"}, "label must be letters and digits"),
        ({"task": "walker_run"}, "task must be given for the objective task, and for no"),
    ],
)
def test_values_that_break_a_rule(values, message):
    with pytest.raises(ValueError, match=message):
        PretrainConfig(**values)


def numbers_of(stage, kind):
    return [item.name for item in dataclasses.fields(stage) if item.type == kind]


@pytest.mark.parametrize("stage", STAGES)
def test_every_number_is_refused_or_is_a_plain_one(stage, tmp_path):
    """inf, NaN, too large, true, text: whatever the field. numpy's scalars are Python's."""
    file, floats, ints = tmp_path / "own.yaml", numbers_of(stage, float), numbers_of(stage, int)
    assert "stddev" in floats
    assert "seed" in ints
    wrong = [math.inf, -math.inf, math.nan, -1, True, np.True_, "1e-4", None, 1 + 0j, [1]]
    for name in [*floats, *ints]:
        for value in [*wrong, 2**63, 10**400, *([] if name in floats else [1.5])]:
            with pytest.raises((TypeError, ValueError), match=rf"^{name} (must|should) be"):
                stage(**{name: value})
        for text in (".inf", "-.inf", ".nan", "-1", "true", "1e-4", "", "010", "1:30", "[1]"):
            file.write_text(f"{name}: {text}\n")
            with pytest.raises((TypeError, ValueError), match=r"^/.*own.yaml.* (must|should) be"):
                stage.from_yaml(file)
        default = getattr(stage(), name)
        for kind in (np.float64, np.float32) if name in floats else (np.int64, np.int32, np.uint8):
            value = kind(default) if kind is not np.uint8 else kind(min(default, 200))
            config = stage(**{"batch_size": 1024, name: value} if name == "k" else {name: value})
            file.write_text(config.to_yaml())
            assert getattr(stage.from_yaml(file), name) == value
            assert type(getattr(config, name)) is (float if name in floats else int)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alpha: 0.5\nq: 0.7\nalpha: 0.9\n", "line 3: 'alpha' is there twice"),
        ("a: {b: 1, b: 2}", "line 1: 'b' is there twice"),
        ("- {a: 1, a: 1}", "line 1: 'a' is there twice"),
        ('alpha: 1.0\n"alpha": 2.0', "line 2: 'alpha' is there twice"),
        ("a:\n\tb: 1\n", "line 2: found character '.t' that cannot start any token"),
        ("- 1\n- 2\n", r"must have names and values .`alpha: 0.5`., got \[1, 2\]"),
        ("alpha:0.5", "must have names and values .*, got 'alpha:0.5'"),
        ("1: 2", "line 1: names must be text"),
        ("alpha: [1\n", "line 2: expected ',' or ']'"),
        ("seed: 010", "line 1: numbers must be decimal, without a leading 0, got 010"),
        ("steps: 1:30", "line 1: numbers must be decimal, .* got 1:30"),
        ("a: 1\n---\na: 2\n", "line 2: but found another document"),
        (b"\xff\xfe\x00", ""),
    ],
)
def test_yaml_that_says_two_things_or_none(text, message, tmp_path):
    file = tmp_path / "own.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=rf"^{re.escape(str(file))}.*{message}"):
        read_yaml(file)


def test_yaml_that_says_what_it_means(tmp_path):
    file = tmp_path / "own.yaml"
    for text, values in (
        ("", {}),
        ("# nothing\n", {}),
        ("a: &a {x: 1}\nb: {<<: *a, x: 2}\n", {"a": {"x": 1}, "b": {"x": 2}}),
        ("a: 0\nb: -3\nc: 0.05\nd: '010'\n", {"a": 0, "b": -3, "c": 0.05, "d": "010"}),
    ):
        file.write_text(text)
        assert read_yaml(file) == values
    for file in paths.PARAMS.glob("*.yaml"):  # of which papermill reads some: it takes the last
        read_yaml(file)


def test_a_params_file_is_named_with_its_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "PARAMS", tmp_path)
    for text, error, message in (
        ("stddev: .inf", ValueError, "stddev must be at least 0 and finite, got inf"),
        ("alhpa: 0.5", TypeError, "PretrainConfig has no field 'alhpa' .nearest: 'alpha'"),
        ("alpha: 0.5\nalpha: 0.7", ValueError, "'alpha' is there twice"),
    ):
        (tmp_path / "04_pretrain.own.yaml").write_text(text)
        with pytest.raises(error, match=rf"04_pretrain.own.yaml.*: {message}"):
            PretrainConfig.at_scale("own")


@pytest.mark.parametrize("stage", STAGES)
def test_yaml_round_trip(stage, tmp_path):
    config = stage(seed=3, learning_rate=3e-5)
    (tmp_path / "config.yaml").write_text(config.to_yaml())
    assert stage.from_yaml(tmp_path / "config.yaml") == config


@pytest.mark.parametrize("stage", STAGES)
def test_scales_are_the_files_and_hold_differences_only(stage):
    assert {"smoke", "laptop", "paper"} <= set(scales(stage.STAGE))
    default = stage()
    for scale in scales(stage.STAGE):
        given = yaml.safe_load((paths.ROOT / f"params/{stage.STAGE}.{scale}.yaml").read_text())
        for name, value in (given or {}).items():
            assert value != getattr(default, name), f"{name} in {scale} is the default"
    assert stage.at_scale("paper") == default


def test_overrides_that_are_none_leave_the_scales_value():
    config = PretrainConfig.at_scale("smoke", alpha=0.7, num_steps=None)
    assert config.alpha == 0.7
    assert config.num_steps == PretrainConfig.at_scale("smoke").num_steps
    with pytest.raises(ValueError, match=r"scale must be one of .*smoke.*, got 'huge'"):
        PretrainConfig.at_scale("huge")


def test_folders_follow_from_the_config(tmp_path):
    collected, learnt = PretrainConfig(seed=2), OfflineConfig(algorithm="cql", soft_backup=True)
    assert collected.folder(tmp_path) == tmp_path / "datasets/walker/behavioral-0.5-s2"
    assert learnt.source(tmp_path) == tmp_path / "datasets/walker/behavioral-0.5-s0"
    place = tmp_path / "offline/walker/behavioral-0.5-s0"
    assert learnt.folder(tmp_path) == place / "cql-soft_backup/walker_stand-s0"
    assert learnt.folder(tmp_path, "zero") == place / "zero/walker_stand-s0"


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "behavioral-0.5-s2"),
        ({"objective": "shannon", "label": "long"}, "shannon-long-s2"),
        ({"objective": "renyi", "renyi_form": "signed"}, "renyi-3-signed-s2"),
        ({"representation": "observation"}, "behavioral-0.5-observation-s2"),
        (
            {"objective": "renyi", "renyi_form": "signed", "representation": "random"},
            "renyi-3-signed-random-s2",
        ),
        # what an objective does not use is not in its name
        ({"objective": "shannon", "renyi_form": "signed"}, "shannon-s2"),
        ({"objective": "rnd", "representation": "observation"}, "rnd-s2"),
    ],
)
def test_datasets_are_named_by_how_they_differ_from_the_papers(changes, name):
    assert PretrainConfig(q=3, seed=2, **changes).dataset == name


def test_types():
    assert check_type("alpha", 1, float) == 1.0
    assert check_type("steps", None, int | None) is None
    assert check_type("tasks", ["a"], list[str]) == ["a"]
    assert check_type("seeds", np.arange(2), list[int]) == [0, 1]
    for value in (check_type("alpha", np.float64(0.5), float), check_type("a", np.int64(1), float)):
        assert type(value) is float
    assert check_type("backup", np.True_, bool) is True
    assert type(check_type("task", np.str_("walker_run"), str)) is str
    with pytest.raises(TypeError, match=r"alpha should be float, .* write 1\.0e-4"):
        check_type("alpha", "1e-4", float)
    with pytest.raises(TypeError, match=r"seed should be int, got 1000\.0 \(float\)"):
        check_type("seed", 1e3, int)
    with pytest.raises(TypeError, match="seed should be int, got True"):
        check_type("seed", True, int)
    with pytest.raises(TypeError, match="tasks should be a list of str, got 'a'"):
        check_type("tasks", "a", list[str])


def namespace(injected, **values):
    return {"__annotations__": {"alpha": float}, "In": ["", injected], "alpha": 0.5, **values}


def test_notebook_parameters():
    scratch = namespace("x = 1", x=1)
    check_parameters(scratch)  # a person's own variables are nobody's business
    widened = namespace("# Parameters\nalpha = 1\n", alpha=1)
    check_parameters(widened)
    assert type(widened["alpha"]) is float
    with pytest.raises(TypeError, match="no parameter 'alhpa' \\(nearest: 'alpha'\\)"):
        check_parameters(namespace("# Parameters\nalhpa = 0.7\n", alhpa=0.7))
    for value in (math.inf, math.nan):
        with pytest.raises(ValueError, match="alpha must be finite, got"):
            check_parameters(namespace("", alpha=value))
    with pytest.raises(TypeError, match="alpha should be float, got 'half'"):
        check_parameters(namespace("# Parameters\nalpha = 'half'\n", alpha="half"))


def test_the_papers_grid_names_each_dataset_once():
    lines = read_yaml(paths.PARAMS / "grid.paper.yaml")["datasets"]
    configs = [config for line in lines for config in expand(line, PretrainConfig())]
    assert len(configs) == 2 * (17 + 4) + 5, "and a reference for each of the tasks"
    assert len({(config.domain, config.dataset) for config in configs}) == len(configs)
    assert sorted({c.alpha for c in configs if c.objective == "behavioral"}) == list(ALPHAS)
    assert sorted({c.q for c in configs if c.objective == "renyi"}) == list(QS)
    lengths = {config.dataset: config.num_steps for config in configs}
    assert lengths.pop("shannon-long-s0") == 3_000_000
    assert set(lengths.values()) == {500_000}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"seeds": 0}, "seeds must be at least 1, got 0"),
        ({"seeds": True}, "seeds should be int, got True"),
        ({"seeds": 2.0}, r"seeds should be int, got 2\.0"),
        ({"seeds": []}, "seed must have a value or more, got an empty list"),
        ({"seeds": 2, "seed": 1}, "seed and seeds must not both be given"),
        ({"alpha": []}, "alpha must have a value or more"),
        ({"times": "2"}, "times should be int, got '2'"),
        ({"times": [1, 0]}, "times must be at least 1, got 0"),
        ({"times": 10**15}, "num_steps must be below 2"),
    ],
)
def test_entries_of_a_grid_that_stand_for_nothing(entry, message):
    with pytest.raises((TypeError, ValueError), match=message):
        expand({"objective": "shannon", **entry}, PretrainConfig(num_steps=10**5))


def test_an_entry_stands_for_all_combinations_of_its_lists():
    found = expand({"times": (1, 6), "seeds": np.arange(2)}, PretrainConfig(num_steps=10))
    assert [(c.seed, c.num_steps) for c in found] == [(0, 10), (1, 10), (0, 60), (1, 60)]
    assert [c.seed for c in expand({"seeds": np.int64(2)}, PretrainConfig())] == [0, 1]


def test_precision_is_part_of_no_name():
    for precision in PRECISIONS:
        config = OfflineConfig(precision=precision)
        assert (config.precision, config.variant) == (precision, "td3")
        assert PretrainConfig(precision=precision).dataset == PretrainConfig().dataset
    with pytest.raises(ValueError, match="precision must be one of float32, tf32, bfloat16, auto"):
        OfflineConfig(precision="float16")
