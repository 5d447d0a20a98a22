"""What a run is: flat frozen dataclasses, one a stage, whose defaults are the paper's tables.

YAML files in `params/`, a notebook's parameters cell and Python callers all build the same class. A
wrong value, type or name is refused when the object is built, before any time is spent.
"""

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from belib import paths
from belib.config.checks import (
    AT_LEAST_ONE,
    AT_LEAST_TWO,
    AT_LEAST_ZERO,
    POSITIVE,
    SHARE,
)
from belib.config.checks import check_parameters as check_parameters
from belib.config.checks import read_yaml as read_yaml
from belib.config.checks import unknown_name as unknown_name
from belib.config.settings import Config, expand, one_of, setting
from belib.config.settings import scales as scales
from belib.rewards import OBJECTIVES

EXPLORING = tuple(name for name in OBJECTIVES if name not in ("random", "task"))
ALGORITHMS = ("td3", "td3_bc", "bc", "cql", "crr")
CONVENTIONS = ("exorl", "standard")
CRR_WEIGHTS = ("indicator", "exp", "identity")
PRECISIONS = ("float32", "tf32", "bfloat16", "auto")


@dataclass(frozen=True, kw_only=True)
class LearnerConfig(Config):
    """What collection and offline learning share (paper, tables 2 and 3)."""

    domain: str = setting("walker", "dm_control suite domain", source="section 5")
    seed: int = setting(0, "all randomness of the member", source="ours", rule=AT_LEAST_ZERO)
    scale: str = setting("paper", "label of the set of sizes, kept with results", source="ours")
    batch_size: int = setting(
        1024, "transitions a batch", source="tables 2, 3; URLB", rule=AT_LEAST_TWO
    )
    hidden_dim: int = setting(
        1024, "width of hidden layers", unit="units", source="tables 2, 3", rule=AT_LEAST_ONE
    )
    learning_rate: float = setting(1e-4, "Adam's step size", source="tables 2, 3", rule=POSITIVE)
    tau: float = setting(0.01, "critic target rate, an update", source="tables 2, 3", rule=SHARE)
    discount: float = setting(0.99, "gamma", source="tables 2, 3", rule=SHARE)
    stddev: float = setting(
        0.2, "policy noise (table 3 omits it)", unit="action", source="table 2", rule=AT_LEAST_ZERO
    )
    stddev_clip: float = setting(
        0.3, "noise clip in losses", unit="action", source="tables 2, 3", rule=POSITIVE
    )
    precision: str = setting(
        "float32",
        "of the networks' products; auto: the engine takes bfloat16 where that is faster",
        source="ours",
        rule=one_of(PRECISIONS),
    )


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(LearnerConfig):
    """Collection of one dataset by a reward-free agent (paper, table 2; the rest from URLB)."""

    STAGE: ClassVar[str] = "04_pretrain"
    MEMBER_FIELDS: ClassVar[tuple[str, ...]] = (
        *("objective", "alpha", "q", "renyi_form", "task", "seed"),
    )

    objective: str = setting("behavioral", "what the intrinsic reward estimates", source="s. 4")
    alpha: float = setting(
        0.5, "Prelec's alpha, of the behavioral objective", source="section 5", rule=POSITIVE
    )
    q: float = setting(0.5, "Renyi's order, of that objective", source="section 5", rule=POSITIVE)
    renyi_form: str = setting(
        "published",
        "R^(1-q), which falls with R for q > 1, or signed: the q-logarithm of 1 + R",
        source="Yuan et al. 2022",
        rule=one_of(("published", "signed")),
    )
    task: str = setting(
        "", "whose reward the task objective learns (the online reference)", source="section 5"
    )
    num_steps: int = setting(
        500_000, "environment steps", unit="steps", source="section 5", rule=AT_LEAST_ONE
    )
    random_steps: int = setting(
        4_000, "uniform-random first steps", unit="steps", source="URLB", rule=AT_LEAST_ZERO
    )
    update_every: int = setting(
        2, "steps between updates", unit="steps", source="table 2", rule=AT_LEAST_ONE
    )
    n_step: int = setting(
        3, "steps before the bootstrap", unit="steps", source="URLB", rule=AT_LEAST_ONE
    )
    replay_capacity: int = setting(
        1_000_000, "replay rows", unit="rows", source="table 2", rule=AT_LEAST_TWO
    )
    representation: str = setting(
        "learnt",
        "where APT takes distances: see belib.agents.apt",
        source="table 2",
        rule=one_of(("learnt", "random", "observation")),
    )
    representation_dim: int = setting(
        512, "APT's and RND's; M of Prelec's beta", source="table 2", rule=AT_LEAST_TWO
    )
    k: int = setting(
        12, "neighbours averaged, self counted", source="table 2; URLB", rule=AT_LEAST_ONE
    )
    intrinsic_reward_scale: str = setting(
        "none",
        "rms divides the reward by its running root mean square",
        source="ours",
        rule=one_of(("none", "rms")),
    )
    convention: str = setting(
        "urlb",
        "URLB's code, or the papers where it differs: see belib.agents.ddpg",
        source="URLB",
        rule=one_of(("urlb", "corrected")),
    )
    rnd_obs_clip: float = setting(
        5.0, "RND's clip of scaled observations", source="table 2", rule=POSITIVE
    )
    skill_dim: int = setting(4, "SMM's skills", unit="skills", source="table 2", rule=AT_LEAST_TWO)
    discriminator_learning_rate: float = setting(
        1e-3, "SMM's, of the discriminator of skills", source="table 2", rule=POSITIVE
    )
    vae_learning_rate: float = setting(
        1e-2, "SMM's, of the autoencoder of states", source="table 2", rule=POSITIVE
    )
    label: str = setting(
        "",
        "tells datasets of equal objective and seed apart, as `long`",
        source="ours",
        rule=("letters and digits, or empty", lambda value: value == "" or value.isalnum()),
    )

    def __post_init__(self):
        super().__post_init__()
        if self.objective not in OBJECTIVES:  # which may have grown since this class was made
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
        """What other objectives use."""
        objective = OBJECTIVES[self.objective]
        unused = [name for name in ("alpha", "q") if name != objective.parameter]
        unused += ["renyi_form"] if self.objective != "renyi" else []
        return (*unused, *([] if objective.agent == "apt" else ["representation"]))

    @property
    def variant(self) -> str:
        """What else tells datasets of an objective apart: `signed`, `observation-long`, or ""."""
        default = {item.name: item.default for item in fields(self)}
        names = (n for n in ("renyi_form", "representation") if n not in self.unused_fields)
        choices = [v for n in names if (v := getattr(self, n)) != default[n]]
        return "-".join([*choices, self.label] if self.label else choices)

    @property
    def parameter(self) -> float | None:
        """The objective's own parameter: alpha, q, or None."""
        name = OBJECTIVES[self.objective].parameter
        return getattr(self, name) if name else None

    @property
    def dataset(self) -> str:
        """The dataset's name: `behavioral-0.5-s0`, `renyi-2-signed-s0`, `shannon-long-s0`."""
        parameter = "" if self.parameter is None else f"{self.parameter:.12g}"
        parts = (self.objective, parameter, self.task, self.variant, f"s{self.seed}")
        return "-".join(part for part in parts if part)


@dataclass(frozen=True, kw_only=True)
class OfflineConfig(LearnerConfig):
    """One policy, learnt from one dataset for one task (paper, table 3; the rest from ExORL)."""

    STAGE: ClassVar[str] = "05_offline_rl"
    MEMBER_FIELDS: ClassVar[tuple[str, ...]] = ("task", "seed")

    dataset: str = setting("behavioral-0.5-s0", "name of the dataset", source="section 5")
    task: str = setting("walker_stand", "domain and task of the reward", source="section 5")
    algorithm: str = setting("td3", "learner", source="section 5", rule=one_of(ALGORITHMS))
    num_steps: int = setting(
        100_000, "gradient updates", unit="updates", source="table 3", rule=AT_LEAST_ONE
    )
    eval_every: int = setting(
        10_000, "updates between evaluations", unit="updates", source="ExORL", rule=AT_LEAST_ONE
    )
    eval_episodes: int = setting(
        10, "episodes an evaluation", unit="episodes", source="ExORL", rule=AT_LEAST_ONE
    )
    eval_first: bool = setting(
        False, "evaluate before the first update too, as ExORL does", source="ExORL"
    )
    replay_capacity: int = setting(
        1_000_000,
        "transitions learnt from, the oldest, in whole episodes",
        unit="transitions",
        source="ExORL",
        rule=AT_LEAST_TWO,
    )
    convention: str = setting(
        "exorl", "which CQL: ExORL's or the published one", source="ours", rule=one_of(CONVENTIONS)
    )
    cql_weight: float = setting(
        0.01, "CQL's penalty over its TD error", source="table 3", rule=AT_LEAST_ZERO
    )
    num_action_samples: int = setting(
        3, "CQL's actions a state and proposal", source="table 3", rule=AT_LEAST_ONE
    )
    soft_backup: bool = setting(
        False, "entropy in CQL's targets; ExORL's and the published code have none", source="ours"
    )
    num_value_samples: int = setting(
        10, "CRR's actions in a state's value", source="table 3", rule=AT_LEAST_ONE
    )
    crr_weight: str = setting(
        "indicator", "CRR's function of advantages", source="table 3", rule=one_of(CRR_WEIGHTS)
    )
    td3_bc_weight: float = setting(
        2.5, "TD3+BC's value term over its imitation", source="ExORL", rule=AT_LEAST_ZERO
    )

    def __post_init__(self):
        super().__post_init__()
        if self.algorithm in ("bc", "crr") and self.stddev == 0:
            raise ValueError(f"stddev must be positive for {self.algorithm}, got {self.stddev}")

    @property
    def variant(self) -> str:
        """The algorithm and what is not its default, such as `cql-standard`, in tables and paths.

        Numbers (weights, sizes) and the precision are not part of it: runs that differ in them
        need different `runs_dir`s.
        """
        choices = {"cql": ("convention", "soft_backup"), "crr": ("crr_weight",)}
        default = {item.name: item.default for item in fields(self)}
        names = choices.get(self.algorithm, ())
        changed = [name for name in names if getattr(self, name) != default[name]]
        words = [name if name == "soft_backup" else getattr(self, name) for name in changed]
        return "-".join((self.algorithm, *words))


def read_grid(scale: str) -> dict[str, Any]:
    """`params/grid.<scale>.yaml` as it is; `belib.grid` makes jobs of it."""
    return read_yaml(paths.PARAMS / f"grid.{scale}.yaml")


def paper_grid(scale: str, **overrides: Any) -> list[PretrainConfig]:
    """The paper's datasets at the sizes of any scale, with `overrides` for all (`seed`, `domain`).

    References that learn tasks of other domains than an overriding one are left out. Those of one
    domain and equal `num_steps` can be members of one `pretrain` call.
    """
    sizes = PretrainConfig.at_scale(scale)
    given = {name: value for name, value in overrides.items() if value is not None}
    lines = read_grid("paper")["datasets"]
    configs = [config for line in lines for config in expand({**line, **given}, sizes)]
    return [each for each in configs if not each.task or each.task.startswith(f"{each.domain}_")]
