"""Configurations of runs: a flat frozen dataclass per stage, with defaults from the paper's tables.

YAML files in `params/`, a notebook's parameters cell and Python callers build the same classes.
Building one raises an error for a wrong value, type or name.
"""

import itertools
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import yaml

from belib import paths
from belib.config.checks import check_parameters as check_parameters
from belib.config.checks import check_type, named, read_yaml
from belib.rewards import OBJECTIVES

ALGORITHMS = ("td3", "td3_bc", "bc", "cql", "crr")
PRECISIONS = ("float32", "tf32", "bfloat16", "auto")
_RENYI_FORMS = ("published", "signed")
_REPRESENTATIONS = ("learnt", "random", "observation")
_WITHOUT_AGENT = ("domain", "seed", "scale", "objective", "num_steps", "label")
_CRR_WEIGHTS = ("indicator", "exp", "identity")


def setting(default: Any, rule: Collection[str], meaning: str, source: str, unit: str = "") -> Any:
    """Return a dataclass field with its rule (see `check_type`), unit, meaning and source."""
    facts = {"unit": unit, "meaning": meaning, "source": source}
    return field(default=default, metadata={"rule": rule, "facts": facts})


@dataclass(frozen=True, kw_only=True)
class LearnerConfig:
    """The fields that collection and offline learning share (paper, tables 2 and 3)."""

    STAGE: ClassVar[str]
    MEMBER_FIELDS: ClassVar[tuple[str, ...]]  # in which members of one run may differ

    domain: str = setting("walker", "any", "of dm_control, or gymnasium/<id>", "section 5")
    seed: int = setting(0, "at least 0, below 2**63", "seed of the member's random draws", "ours")
    scale: str = setting("paper", "any", "name of the set of sizes, in results", "ours")
    batch_size: int = setting(1024, "at least 2", "transitions a batch", "tables 2, 3; URLB")
    hidden_dim: int = setting(1024, "at least 1", "width of hidden layers", "tables 2, 3", "units")
    learning_rate: float = setting(1e-4, "positive", "Adam's step size", "tables 2, 3")
    tau: float = setting(0.01, "in (0, 1]", "rate of the target critic", "tables 2, 3")
    discount: float = setting(0.99, "in (0, 1]", "gamma", "tables 2, 3")
    stddev: float = setting(0.2, "at least 0", "policy noise", "table 2, not table 3", "action")
    stddev_clip: float = setting(0.3, "positive", "noise clip in losses", "tables 2, 3", "action")
    precision: str = setting("float32", PRECISIONS, "of products; auto: fastest", "ours")

    def __post_init__(self):
        for item in fields(self):
            value, rule = getattr(self, item.name), item.metadata["rule"]
            object.__setattr__(self, item.name, check_type(item.name, value, item.type, rule))

    @property
    def unused_fields(self) -> tuple[str, ...]:
        """The fields that do not affect this config's run."""
        return ()

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """Return a config from a flat YAML file of changed fields; errors name the file."""
        values = read_yaml(path)
        with named(path):
            return cls(**values)

    @classmethod
    def at_scale(cls, scale: str, **overrides: Any) -> Self:
        """Return the config of `params/<stage>.<scale>.yaml`; overrides of None are ignored."""
        config = cls.from_yaml(paths.PARAMS / f"{cls.STAGE}.{scale}.yaml")
        given = {name: value for name, value in overrides.items() if value is not None}
        return replace(config, **{"scale": scale, **given})

    def to_yaml(self) -> str:
        """Return all fields as flat YAML, which `from_yaml` reads."""
        return yaml.safe_dump(asdict(self), sort_keys=False)

    def describe(self) -> list[dict[str, Any]]:
        """Return a row (setting, value, default, unit, meaning, source) for every field."""
        return [
            {"setting": item.name, "value": getattr(self, item.name), "default": item.default}
            | item.metadata["facts"]
            for item in fields(self)
        ]

    def expand(self, entry: dict[str, Any]) -> list[Self]:
        """Return a copy for each combination of the values in an entry's lists.

        `seeds: 5` is short for `seed: [0, 1, 2, 3, 4]`. Raise TypeError for a wrong name or type,
        ValueError for a wrong value or an empty list.
        """
        if "seeds" in entry and "seed" not in entry:
            entry = {**entry, "seed": [*range(entry["seeds"])]}
            del entry["seeds"]
        lists = [[*v] if isinstance(v, list | tuple) else [v] for v in entry.values()]
        if [] in lists:
            raise ValueError(f"entries must have a value or more for every name, got {entry}")
        choices = itertools.product(*lists)
        return [replace(self, **dict(zip(entry, choice, strict=True))) for choice in choices]

    def changed(self, *names: str) -> list[str]:
        """Return those of the named fields that do not have their default values."""
        return [name for name in names if getattr(self, name) != getattr(type(self), name)]


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(LearnerConfig):
    """Collection of one dataset, by an agent or at random (paper, table 2; the rest from URLB)."""

    STAGE: ClassVar[str] = "04_pretrain"
    MEMBER_FIELDS: ClassVar = ("objective", "alpha", "q", "renyi_form", "task", "seed")

    objective: str = setting("behavioral", OBJECTIVES, "what pays the agent", "section 4")
    alpha: float = setting(0.5, "positive", "Prelec's alpha (behavioral)", "section 5")
    q: float = setting(0.5, "positive", "Renyi's order (renyi)", "section 5")
    renyi_form: str = setting("published", _RENYI_FORMS, "R^(1-q), or signed", "Yuan et al. 2022")
    task: str = setting("", "any", "task to learn, for the objective task", "section 5")
    num_steps: int = setting(500_000, "at least 1", "environment steps", "section 5", "steps")
    random_steps: int = setting(4_000, "at least 0", "uniform-random at first", "URLB", "steps")
    update_every: int = setting(2, "at least 1", "steps between updates", "table 2", "steps")
    n_step: int = setting(3, "at least 1", "steps before the bootstrap", "URLB", "steps")
    replay_capacity: int = setting(1_000_000, "at least 2", "replay rows", "table 2", "rows")
    representation: str = setting("learnt", _REPRESENTATIONS, "see belib.agents.apt", "table 2")
    representation_dim: int = setting(512, "at least 2", "APT's, RND's; M of beta", "table 2")
    k: int = setting(12, "at least 1", "neighbours averaged", "table 2; URLB")
    intrinsic_reward_scale: str = setting("none", ("none", "rms"), "rms: divide by its RMS", "ours")
    convention: str = setting("urlb", ("urlb", "corrected"), "see belib.agents.ddpg", "URLB")
    rnd_obs_clip: float = setting(5.0, "positive", "RND's clip of scaled observations", "table 2")
    skill_dim: int = setting(4, "at least 2", "SMM's skills", "table 2", "skills")
    discriminator_learning_rate: float = setting(1e-3, "positive", "SMM's discriminator", "table 2")
    vae_learning_rate: float = setting(1e-2, "positive", "SMM's autoencoder", "table 2")
    label: str = setting("", "letters and digits, or empty", "part of the dataset's name", "ours")

    def __post_init__(self):
        super().__post_init__()
        if self.k >= self.batch_size:
            raise ValueError(f"k must be below batch_size = {self.batch_size}, got {self.k}")
        if self.replay_capacity <= self.n_step:
            raise ValueError(f"replay_capacity must exceed n_step, got {self.replay_capacity}")
        if (self.objective == "task") != bool(self.task):
            raise ValueError(f"task must be set if, and only if, objective is task: {self.task!r}")

    @property
    def unused_fields(self) -> tuple[str, ...]:
        """Fields that only other objectives use; random actions use no learner's."""
        objective = OBJECTIVES[self.objective]
        if objective.agent is None:
            return tuple(item.name for item in fields(self) if item.name not in _WITHOUT_AGENT)
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
        return getattr(self, OBJECTIVES[self.objective].parameter or "", None)

    @property
    def dataset(self) -> str:
        """The dataset's name: `behavioral-0.5-s0`, `renyi-2-signed-s0`, `shannon-long-s0`."""
        parameter = "" if self.parameter is None else f"{self.parameter:.12g}"
        parts = (self.objective, parameter, self.task, self.variant, f"s{self.seed}")
        return "-".join(filter(None, parts))

    def folder(self, runs_dir: str | Path) -> Path:
        """Return `<runs_dir>/datasets/<domain>/<dataset>`."""
        return paths.resolve(runs_dir) / "datasets" / self.domain / self.dataset


@dataclass(frozen=True, kw_only=True)
class OfflineConfig(LearnerConfig):
    """One policy, learnt from one dataset for one task (paper, table 3; the rest from ExORL).

    Table 3's "agent update frequency 2" has no counterpart in ExORL's learners or here.
    """

    STAGE: ClassVar[str] = "05_offline_rl"
    MEMBER_FIELDS: ClassVar = ("task", "seed")

    dataset: str = setting("behavioral-0.5-s0", "any", "name of the dataset", "section 5")
    task: str = setting("walker_stand", "any", "domain and task of the reward", "section 5")
    algorithm: str = setting("td3", ALGORITHMS, "learner", "section 5")
    num_steps: int = setting(100_000, "at least 1", "gradient updates", "table 3", "updates")
    eval_every: int = setting(10_000, "at least 1", "between evaluations", "ExORL", "updates")
    eval_episodes: int = setting(10, "at least 1", "per evaluation", "ExORL", "episodes")
    eval_first: bool = setting(False, "any", "evaluate before the first update too", "ExORL")
    # the first transitions of the dataset, in whole episodes
    replay_capacity: int = setting(1_000_000, "at least 2", "learnt from", "ExORL", "transitions")
    convention: str = setting("exorl", ("exorl", "standard"), "version of CQL", "ours")
    cql_weight: float = setting(0.01, "at least 0", "weight of CQL's penalty", "table 3")
    num_action_samples: int = setting(3, "at least 1", "n of CQL's 3n proposals", "table 3")
    soft_backup: bool = setting(False, "any", "entropy in CQL's targets (ExORL: none)", "ours")
    num_value_samples: int = setting(10, "at least 1", "CRR's actions per value", "table 3")
    crr_weight: str = setting("indicator", _CRR_WEIGHTS, "CRR's f of the advantage", "table 3")
    td3_bc_weight: float = setting(2.5, "at least 0", "weight of TD3+BC's value", "ExORL")

    def __post_init__(self):
        super().__post_init__()
        if self.algorithm in ("bc", "crr") and self.stddev == 0:
            raise ValueError(f"stddev must be positive for {self.algorithm}, got {self.stddev}")

    @property
    def variant(self) -> str:
        """The algorithm and its changed choices in tables and paths, such as `cql-standard`.

        Runs that differ in numbers (weights, sizes) or precision have the same variant, and need
        a different `runs_dir`.
        """
        choices = {"cql": ("convention", "soft_backup"), "crr": ("crr_weight",)}
        names = self.changed(*choices.get(self.algorithm, ()))
        parts = (name if name == "soft_backup" else getattr(self, name) for name in names)
        return "-".join((self.algorithm, *parts))

    def folder(self, runs_dir: str | Path, algorithm: str | None = None) -> Path:
        """Return `<runs_dir>/offline/<domain>/<dataset>/<variant or algorithm>/<task>-s<seed>`."""
        parent = paths.resolve(runs_dir) / "offline" / self.domain / self.dataset
        name = (algorithm or self.variant).replace(" ", "-")
        return parent / name / f"{self.task}-s{self.seed}"
