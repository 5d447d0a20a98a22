import dataclasses
import math

import pytest
import yaml

from belib import paths
from belib.config import (
    OfflineConfig,
    PretrainConfig,
    check_parameters,
    paper_grid,
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
        ({"replay_capacity": 3}, "replay_capacity must exceed n_step = 3, got 3"),
    ],
)
def test_values_that_break_a_rule(values, message):
    with pytest.raises(ValueError, match=message):
        PretrainConfig(**values)


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(TypeError, match="no field 'alhpa' \\(nearest: 'alpha'\\)"):
        PretrainConfig.from_dict({"alhpa": 0.5})


@pytest.mark.parametrize("stage", STAGES)
def test_yaml_round_trip(stage, tmp_path):
    config = stage(seed=3, learning_rate=3e-5)
    (tmp_path / "config.yaml").write_text(config.to_yaml())
    assert stage.from_yaml(tmp_path / "config.yaml") == config


def test_yaml_number_that_yaml_reads_as_text(tmp_path):
    (tmp_path / "config.yaml").write_text("learning_rate: 1e-4\n")
    with pytest.raises(TypeError, match=r"learning_rate should be float, .* write 1\.0e-4"):
        PretrainConfig.from_yaml(tmp_path / "config.yaml")


@pytest.mark.parametrize("stage", STAGES)
def test_scales_are_the_files_and_hold_differences_only(stage):
    assert {"smoke", "laptop", "paper"} <= set(scales(stage.STAGE))
    default = stage()
    for scale in scales(stage.STAGE):
        given = yaml.safe_load((paths.ROOT / f"params/{stage.STAGE}.{scale}.yaml").read_text())
        for name, value in (given or {}).items():
            assert value != getattr(default, name), f"{name} in {scale} is the default"
    assert stage.at_scale("paper") == default


def test_laptop_keeps_the_representation_that_prelecs_beta_is_conditioned_on():
    assert PretrainConfig.at_scale("laptop").representation_dim == 512


def test_overrides_that_are_none_leave_the_scales_value():
    config = PretrainConfig.at_scale("smoke", alpha=0.7, num_steps=None)
    assert config.alpha == 0.7
    assert config.num_steps == PretrainConfig.at_scale("smoke").num_steps


def test_unknown_scale():
    with pytest.raises(ValueError, match=r"scale must be one of .*smoke.*, got 'huge'"):
        PretrainConfig.at_scale("huge")


@pytest.mark.parametrize(
    ("objective", "name"),
    [("behavioral", "behavioral-0.5-s2"), ("renyi", "renyi-3-s2"), ("shannon", "shannon-s2")],
)
def test_dataset_names(objective, name):
    assert PretrainConfig(objective=objective, q=3, seed=2).dataset == name


def test_types():
    assert check_type("alpha", 1, float) == 1.0
    assert check_type("steps", None, int | None) is None
    assert check_type("tasks", ["a"], list[str]) == ["a"]
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
    with pytest.raises(TypeError, match="alpha should be float, got 'half'"):
        check_parameters(namespace("# Parameters\nalpha = 'half'\n", alpha="half"))


def test_the_papers_grid_names_each_dataset_once():
    configs = paper_grid("paper")
    assert len(configs) == 2 * (17 + 4)
    assert len({(config.domain, config.dataset) for config in configs}) == len(configs)
    assert sorted({c.alpha for c in configs if c.objective == "behavioral"}) == list(ALPHAS)
    assert sorted({c.q for c in configs if c.objective == "renyi"}) == list(QS)
    lengths = {config.dataset: config.num_steps for config in configs}
    assert lengths.pop("shannon-long-s0") == 3_000_000
    assert set(lengths.values()) == {500_000}


def test_the_grid_takes_scales_and_overrides():
    configs = paper_grid("laptop", domain="walker", seed=3)
    assert len(configs) == 21
    assert {(config.domain, config.seed, config.scale) for config in configs} == {
        ("walker", 3, "laptop")
    }
    with pytest.raises(ValueError, match="scale must be one of"):
        paper_grid("huge")
