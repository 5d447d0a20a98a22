import math
import re
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import yaml

from belib import paths
from belib.config import OfflineConfig, PretrainConfig, check_parameters
from belib.config.checks import check_type, read_yaml

TABLE_2 = {"replay_capacity": 10**6, "batch_size": 1024, "update_every": 2, "discount": 0.99}
TABLE_2 |= {"learning_rate": 1e-4, "tau": 0.01, "stddev": 0.2, "stddev_clip": 0.3}
TABLE_2 |= {"hidden_dim": 1024, "representation_dim": 512, "k": 12, "num_steps": 500_000}
TABLE_2 |= {"rnd_obs_clip": 5.0, "skill_dim": 4, "discriminator_learning_rate": 1e-3}
TABLE_2 |= {"vae_learning_rate": 1e-2}
LEFT_OUT = {"n_step": 3, "random_steps": 4000, "intrinsic_reward_scale": "none"}
LEFT_OUT |= {"convention": "urlb"}
TABLE_3 = {"batch_size": 1024, "hidden_dim": 1024, "learning_rate": 1e-4, "num_steps": 10**5}


def test_defaults_are_the_papers_tables():
    assert vars(PretrainConfig()).items() >= (TABLE_2 | LEFT_OUT).items()
    assert vars(OfflineConfig()).items() >= TABLE_3.items()


def test_wrong_values_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "PARAMS", tmp_path)
    for values, message in (
        ({"alpha": math.nan}, "alpha must be finite, got nan"),
        ({"tau": 1.5}, r"tau must be in \(0, 1\], got 1.5"),
        ({"seed": -1}, r"seed must be at least 0, below 2\*\*63, got -1"),
        ({"seed": 2**63}, r"seed must be at least 0, below 2\*\*63, got 9223372036854775808"),
        ({"num_steps": 1e3}, r"num_steps should be int, got 1000\.0 \(float\)"),
        ({"seed": True}, "seed should be int, got True"),
        ({"alpha": "1e-4"}, r"alpha should be float, got '1e-4' \(str\)"),
        ({"objective": "entropy"}, "objective must be one of behavioral, .*, got 'entropy'"),
        ({"label": "a/b"}, "label must be letters and digits"),
        ({"replay_capacity": 3}, "replay_capacity must exceed n_step, got 3"),
        ({"k": 1024}, "k must be below batch_size = 1024, got 1024"),
        ({"task": "walker_run"}, "task must be set if, and only if, objective is task: 'walker_r"),
        ({"alhpa": 0.5}, ".* unexpected keyword argument 'alhpa'"),
    ):
        with pytest.raises((TypeError, ValueError), match=f"^{message}"):
            PretrainConfig(**values)
        (tmp_path / "04_pretrain.mine.yaml").write_text(yaml.safe_dump(values))
        with pytest.raises((TypeError, ValueError), match=f"04_pretrain.mine.yaml: {message}"):
            PretrainConfig.at_scale("mine")


def test_yaml_that_says_two_things_or_none_is_refused(tmp_path):
    file = tmp_path / "mine.yaml"
    for text, message in (
        ("alpha: 0.5\nq: 0.7\nalpha: 0.9\n", r"must differ, got \['alpha', 'q', 'alpha'\].*line 1"),
        ("- {a: 1, a: 1}", "must differ.*line 1"),
        ("a:\n\tb: 1\n", "cannot start any token.*line 2"),
        ("seed: 010", "seed should be int, got '010'"),  # 8 in YAML
        ("num_steps: 1:30", "num_steps should be int, got '1:30'"),  # 90 in YAML
        ("alpha: -1:30.5", "alpha should be float, got '-1:30.5'"),
        ("alpha:0.5", "must have names and values .*, got 'alpha:0.5'"),
        ("\0", "special characters are not allowed"),
    ):
        file.write_text(text)
        with pytest.raises(ValueError, match=rf"(?s)^{re.escape(str(file))}.*{message}"):
            PretrainConfig.from_yaml(file)
    file.write_text("# nothing\n")
    assert read_yaml(file) == {}
    file.write_text("a: &a {x: 10}\nb: {<<: *a, y: [0, -0.5, 1_000, 1.0e-4]}\n")
    assert read_yaml(file) == {"a": {"x": 10}, "b": {"x": 10, "y": [0, -0.5, 1000, 1e-4]}}


@pytest.mark.parametrize("stage", [PretrainConfig, OfflineConfig])
def test_fields_have_a_source_and_survive_yaml_and_scales_hold_only_differences(stage, tmp_path):
    assert all(row["meaning"] and row["source"] for row in stage().describe())
    config = stage(seed=np.int64(3), learning_rate=np.float64(3e-5))
    (tmp_path / "config.yaml").write_text(config.to_yaml())
    assert stage.from_yaml(tmp_path / "config.yaml") == config
    for file in paths.PARAMS.glob(f"{stage.STAGE}.*.yaml"):
        assert not read_yaml(file).items() & vars(stage()).items(), "a default is repeated"
        assert stage.at_scale(file.name.split(".")[1])
    assert stage.at_scale("paper") == stage()


def test_overrides_that_are_none_leave_the_scales_value():
    config = PretrainConfig.at_scale("smoke", alpha=0.7, num_steps=None)
    assert config == replace(PretrainConfig.at_scale("smoke"), alpha=0.7)
    with pytest.raises(OSError, match=r"04_pretrain\.huge\.yaml"):
        PretrainConfig.at_scale("huge")


def test_folders_follow_from_the_config(tmp_path):
    learnt = OfflineConfig(algorithm="cql", soft_backup=True, precision="auto")
    assert PretrainConfig(seed=2).folder(tmp_path) == tmp_path / "datasets/walker/behavioral-0.5-s2"
    place = tmp_path / "offline/walker/behavioral-0.5-s0"
    assert learnt.folder(tmp_path) == place / "cql-soft_backup/walker_stand-s0"
    assert learnt.folder(tmp_path, "zero") == place / "zero/walker_stand-s0"


def test_datasets_are_named_by_how_they_differ_from_the_papers():
    for name, objective, changes in (
        ("behavioral-0.5-s2", "behavioral", {"precision": "auto"}),
        ("shannon-long-s2", "shannon", {"label": "long"}),
        ("behavioral-0.5-observation-s2", "behavioral", {"representation": "observation"}),
        ("renyi-3-signed-random-s2", "renyi", {"renyi_form": "signed", "representation": "random"}),
        # what an objective does not use is not in its name
        ("shannon-s2", "shannon", {"renyi_form": "signed"}),
        ("rnd-s2", "rnd", {"representation": "observation"}),
    ):
        assert PretrainConfig(objective=objective, q=3, seed=2, **changes).dataset == name


def test_types():
    assert check_type("steps", None, int | None) is None
    assert check_type("tasks", ["a"], list[str]) == ["a"]
    assert check_type("seeds", np.arange(2), list[int]) == [0, 1]
    assert type(check_type("alpha", np.float32(0.5), float)) is float
    assert check_type("backup", np.True_, bool) is True
    with pytest.raises(TypeError, match=r"tasks should be list\[str\], got 'a'"):
        check_type("tasks", "a", list[str])
    with pytest.raises(TypeError, match=r"seeds\[1\] should be int, got 0.5"):
        check_type("seeds", [1, 0.5], list[int])


@pytest.mark.parametrize(
    ("injected", "values", "message"),
    [
        ("# Parameters\nalhpa = 0.7\n", {"alhpa": 0.7}, "no parameter 'alhpa' .nearest: 'alpha'"),
        ("# Parameters\nalpha = 'half'\n", {"alpha": "half"}, "alpha should be float, got 'half'"),
        ("# Parameters\nalpha = 1\n", {"alpha": 1}, None),
        ("x = 1", {"x": 1}, None),  # other variables are free
    ],
)
def test_notebook_parameters(injected, values, message):
    namespace = {"__annotations__": {"alpha": float}, "In": ["", injected], "alpha": 0.5, **values}
    with pytest.raises(TypeError, match=message) if message else nullcontext():
        check_parameters(namespace)
        assert type(namespace["alpha"]) is float


def test_notebooks_and_configs_spell_a_domain_as_folders_do():
    parameters = {"domain": "gymnasium/Pendulum-v1", "tasks": ["gymnasium/Pendulum-v1_reward"]}
    parameters["__annotations__"] = {"domain": str, "tasks": list[str]}
    check_parameters(parameters)
    config = OfflineConfig(domain=parameters["domain"], task="gymnasium/Pendulum-v1_reward")
    assert parameters["domain"] == config.domain == "gymnasium-Pendulum-v1"
    assert parameters["tasks"] == [config.task] == ["gymnasium-Pendulum-v1_reward"]


def test_an_entry_stands_for_all_combinations_of_its_lists_and_for_one_or_more():
    configs = PretrainConfig(k=3).expand({"seeds": 2, "objective": "renyi", "q": (0.5, 2)})
    assert [(c.q, c.seed, c.k) for c in configs] == [(0.5, 0, 3), (0.5, 1, 3), (2, 0, 3), (2, 1, 3)]
    with pytest.raises(TypeError, match="argument 'seeds'"):
        PretrainConfig().expand({"seeds": 2, "seed": 1})
    for nothing in ({"seeds": 0}, {"alpha": []}):
        with pytest.raises(ValueError, match="must have a value or more for every name"):
            PretrainConfig().expand(nothing)


@pytest.mark.parametrize("algorithm", ["bc", "crr"])
def test_learners_whose_loss_divides_by_the_noise_refuse_none(algorithm):
    assert OfflineConfig(stddev=0).stddev == 0
    with pytest.raises(ValueError, match=f"stddev must be positive for {algorithm}, got 0.0"):
        OfflineConfig(algorithm=algorithm, stddev=0)
