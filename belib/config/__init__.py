"""Configurations of runs: a flat frozen dataclass per stage, with defaults from the paper's tables.

YAML files in `params/`, a notebook's parameters cell and Python callers build the same classes.
Building one raises an error for a wrong value, type or name.
"""

import itertools
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from belib import paths
from belib.config.checks import (
    ANY,
    AT_LEAST_ONE,
    AT_LEAST_TWO,
    AT_LEAST_ZERO,
    POSITIVE,
    SHARE,
    Config,
    Rule,
    check_type,
    one_of,
    setting,
)
from belib.config.checks import check_parameters as check_parameters
from belib.config.checks import read_yaml as read_yaml
from belib.config.checks import scales as scales
from belib.config.checks import unknown_name as unknown_name
from belib.rewards import OBJECTIVES

EXPLORING = tuple(name for name in OBJECTIVES if name not in ("random", "task"))
ALGORITHMS = ("td3", "td3_bc", "bc", "cql", "crr")
PRECISIONS = ("float32", "tf32", "bfloat16", "auto")

_PRECISION = one_of(PRECISIONS)
_RENYI_FORM = one_of(("published", "signed"))
_REPRESENTATION = one_of(("learnt", "random", "observation"))
_REWARD_SCALE = one_of(("none", "rms"))
_COLLECTION_CONVENTION = one_of(("urlb", "corrected"))
_CQL_CONVENTION = one_of(("exorl", "standard"))
_CRR_WEIGHT = one_of(("indicator", "exp", "identity"))
_LABEL: Rule = ("letters and digits, or empty", lambda value: value == "" or value.isalnum())
_LISTS = (list, tuple, range, np.ndarray)


@dataclass(frozen=True, kw_only=True)
class LearnerConfig(Config):
    """The fields that collection and offline learning share (paper, tables 2 and 3)."""

    domain: str = setting("walker", ANY, "dm_control suite domain", "section 5")
    seed: int = setting(0, AT_LEAST_ZERO, "seed of the member's random draws", "ours")
    scale: str = setting("paper", ANY, "name of the set of sizes, in results", "ours")
    batch_size: int = setting(1024, AT_LEAST_TWO, "transitions a batch", "tables 2, 3; URLB")
    hidden_dim: int = setting(1024, AT_LEAST_ONE, "width of hidden layers", "tables 2, 3", "units")
    learning_rate: float = setting(1e-4, POSITIVE, "Adam's step size", "tables 2, 3")
    tau: float = setting(0.01, SHARE, "rate of the target critic", "tables 2, 3")
    discount: float = setting(0.99, SHARE, "gamma", "tables 2, 3")
    stddev: float = setting(
        0.2, AT_LEAST_ZERO, "policy noise", "table 2 (not in table 3)", "action"
    )
    stddev_clip: float = setting(0.3, POSITIVE, "noise clip in losses", "tables 2, 3", "action")
    precision: str = setting("float32", _PRECISION, "of products; auto: fastest", "ours")


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(LearnerConfig):
    """Collection of one dataset by a reward-free agent (paper, table 2; the rest from URLB)."""

    STAGE: ClassVar[str] = "04_pretrain"
    MEMBER_FIELDS: ClassVar[tuple[str, ...]] = (
        *("objective", "alpha", "q", "renyi_form", "task", "seed"),
    )

    objective: str = setting("behavioral", ANY, "what the agent is rewarded for", "section 4")
    alpha: float = setting(0.5, POSITIVE, "Prelec's alpha (behavioral)", "section 5")
    q: float = setting(0.5, POSITIVE, "Renyi's order (renyi)", "section 5")
    renyi_form: str = setting("published", _RENYI_FORM, "R^(1-q), or signed", "Yuan et al. 2022")
    task: str = setting("", ANY, "task to learn, for the objective task", "section 5")
    num_steps: int = setting(500_000, AT_LEAST_ONE, "environment steps", "section 5", "steps")
    random_steps: int = setting(4_000, AT_LEAST_ZERO, "uniform-random first steps", "URLB", "steps")
    update_every: int = setting(2, AT_LEAST_ONE, "steps between updates", "table 2", "steps")
    n_step: int = setting(3, AT_LEAST_ONE, "steps before the bootstrap", "URLB", "steps")
    replay_capacity: int = setting(1_000_000, AT_LEAST_TWO, "replay rows", "table 2", "rows")
    representation: str = setting("learnt", _REPRESENTATION, "see belib.agents.apt", "table 2")
    representation_dim: int = setting(512, AT_LEAST_TWO, "APT's, RND's; M of beta", "table 2")
    k: int = setting(12, AT_LEAST_ONE, "neighbours averaged", "table 2; URLB")
    intrinsic_reward_scale: str = setting("none", _REWARD_SCALE, "rms: divide by its RMS", "ours")
    convention: str = setting("urlb", _COLLECTION_CONVENTION, "see belib.agents.ddpg", "URLB")
    rnd_obs_clip: float = setting(5.0, POSITIVE, "RND's clip of scaled observations", "table 2")
    skill_dim: int = setting(4, AT_LEAST_TWO, "SMM's skills", "table 2", "skills")
    discriminator_learning_rate: float = setting(1e-3, POSITIVE, "SMM's discriminator", "table 2")
    vae_learning_rate: float = setting(1e-2, POSITIVE, "SMM's autoencoder", "table 2")
    label: str = setting("", _LABEL, "part of the dataset's name", "ours")

    def __post_init__(self):
        super().__post_init__()
        if self.objective not in OBJECTIVES:  # objectives can be added later
            names = ", ".join(OBJECTIVES)
            raise ValueError(f"objective must be one of {names}, got {self.objective!r}")
        if self.k >= self.batch_size:
            raise ValueError(f"k must be below batch_size = {self.batch_size}, got {self.k}")
        if (self.objective == "task") != bool(self.task):
            raise ValueError(
                f"task must be given for the objective task, and for no other, got {self.task!r} "
                f"for {self.objective}"
            )
        if self.replay_capacity <= self.n_step:
            raise ValueError(
                f"replay_capacity must exceed n_step = {self.n_step}, got {self.replay_capacity}"
            )

    @property
    def unused_fields(self) -> tuple[str, ...]:
        """Fields that only other objectives use."""
        objective = OBJECTIVES[self.objective]
        unused = [name for name in ("alpha", "q") if name != objective.parameter]
        unused += ["renyi_form"] if self.objective != "renyi" else []
        return (*unused, *([] if objective.agent == "apt" else ["representation"]))

    @property
    def variant(self) -> str:
        """The changed choices in the dataset's name: `signed`, `observation-long`, or ""."""
        names = self.changed("renyi_form", "representation", "label")
        return "-".join(getattr(self, name) for name in names if name not in self.unused_fields)

    @property
    def parameter(self) -> float | None:
        """The value of the objective's parameter, alpha or q, or None."""
        name = OBJECTIVES[self.objective].parameter
        return getattr(self, name) if name else None

    @property
    def dataset(self) -> str:
        """The dataset's name: `behavioral-0.5-s0`, `renyi-2-signed-s0`, `shannon-long-s0`."""
        parameter = "" if self.parameter is None else f"{self.parameter:.12g}"
        parts = (self.objective, parameter, self.task, self.variant, f"s{self.seed}")
        return "-".join(part for part in parts if part)

    def folder(self, runs_dir: str | Path) -> Path:
        """Return `<runs_dir>/datasets/<domain>/<dataset>`."""
        return paths.resolve(runs_dir) / "datasets" / self.domain / self.dataset


@dataclass(frozen=True, kw_only=True)
class OfflineConfig(LearnerConfig):
    """One policy, learnt from one dataset for one task (paper, table 3; the rest from ExORL)."""

    STAGE: ClassVar[str] = "05_offline_rl"
    MEMBER_FIELDS: ClassVar[tuple[str, ...]] = ("task", "seed")

    dataset: str = setting("behavioral-0.5-s0", ANY, "name of the dataset", "section 5")
    task: str = setting("walker_stand", ANY, "domain and task of the reward", "section 5")
    algorithm: str = setting("td3", one_of(ALGORITHMS), "learner", "section 5")
    num_steps: int = setting(100_000, AT_LEAST_ONE, "gradient updates", "table 3", "updates")
    eval_every: int = setting(10_000, AT_LEAST_ONE, "between evaluations", "ExORL", "updates")
    eval_episodes: int = setting(10, AT_LEAST_ONE, "per evaluation", "ExORL", "episodes")
    eval_first: bool = setting(False, ANY, "evaluate before the first update too", "ExORL")
    # the first transitions of the dataset, in whole episodes
    replay_capacity: int = setting(1_000_000, AT_LEAST_TWO, "learnt from", "ExORL", "transitions")
    convention: str = setting("exorl", _CQL_CONVENTION, "CQL of ExORL or as published", "ours")
    cql_weight: float = setting(0.01, AT_LEAST_ZERO, "weight of CQL's penalty", "table 3")
    num_action_samples: int = setting(3, AT_LEAST_ONE, "CQL's actions per proposal", "table 3")
    soft_backup: bool = setting(False, ANY, "entropy in CQL's targets (ExORL: none)", "ours")
    num_value_samples: int = setting(10, AT_LEAST_ONE, "CRR's actions per value", "table 3")
    crr_weight: str = setting("indicator", _CRR_WEIGHT, "CRR's f of the advantage", "table 3")
    td3_bc_weight: float = setting(2.5, AT_LEAST_ZERO, "weight of TD3+BC's value", "ExORL")

    def __post_init__(self):
        super().__post_init__()
        if self.algorithm in ("bc", "crr") and self.stddev == 0:
            raise ValueError(f"stddev must be positive for {self.algorithm}, got {self.stddev}")

    @property
    def variant(self) -> str:
        """The algorithm and its changed choices in tables and paths, such as `cql-standard`.

        Runs that differ in numbers (weights, sizes) or precision have the same variant, and need
        different `runs_dir`s.
        """
        choices = {"cql": ("convention", "soft_backup"), "crr": ("crr_weight",)}
        names = self.changed(*choices.get(self.algorithm, ()))
        parts = [name if name == "soft_backup" else getattr(self, name) for name in names]
        return "-".join((self.algorithm, *parts))

    def folder(self, runs_dir: str | Path, algorithm: str | None = None) -> Path:
        """Return `<runs_dir>/offline/<domain>/<dataset>/<variant or algorithm>/<task>-s<seed>`."""
        parent = paths.resolve(runs_dir) / "offline" / self.domain / self.dataset
        return parent / (algorithm or self.variant) / f"{self.task}-s{self.seed}"

    def source(self, runs_dir: str | Path) -> Path:
        """Return the dataset's folder, `<runs_dir>/datasets/<domain>/<dataset>`."""
        return paths.resolve(runs_dir) / "datasets" / self.domain / self.dataset


AnyConfig = TypeVar("AnyConfig", bound=Config)


def expand(entry: dict[str, Any], sizes: AnyConfig) -> list[AnyConfig]:
    """Return a config for each combination of the values in an entry's lists.

    `seeds: 5` is short for `seed: [0, 1, 2, 3, 4]`, and `times: 6` multiplies `num_steps`. Fields
    that are not in the entry are those of `sizes`.

    Raise TypeError for a wrong name or type, ValueError for a wrong value or an empty list.
    """
    entry = dict(entry)
    if "seeds" in entry:
        if "seed" in entry:
            raise ValueError(f"seed and seeds must not both be given, got {entry}")
        seeds = entry.pop("seeds")
        if not isinstance(seeds, _LISTS):
            seeds = range(check_type("seeds", seeds, int, AT_LEAST_ONE))
        entry["seed"] = seeds
    lists = {k: list(v) if isinstance(v, _LISTS) else [v] for k, v in entry.items()}
    for name, values in lists.items():
        if not values:
            raise ValueError(f"{name} must have a value or more, got an empty list")
    configs = []
    for combination in itertools.product(*lists.values()):
        values = dict(zip(lists, combination, strict=True))
        times = check_type("times", values.pop("times", 1), int, AT_LEAST_ONE)
        values = sizes.checked({**asdict(sizes), **values})
        configs.append(sizes.from_dict({**values, "num_steps": times * values["num_steps"]}))
    return configs
