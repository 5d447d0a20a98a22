"""What the configs of all stages share: rules, checked construction, YAML, scales."""

import itertools
import typing
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import yaml

from belib import paths
from belib.config.checks import (
    AT_LEAST_ONE,
    NO_RULE,
    check_type,
    named,
    read_yaml,
    unknown_name,
)

_LISTS = (list, tuple, range, np.ndarray)


def one_of(values: Iterable[str]) -> tuple[str, Callable[[str], bool]]:
    """The rule that a value is one of `values`."""
    values = tuple(values)
    return "one of " + ", ".join(values), lambda value: value in values


def setting(default: Any, meaning: str, *, unit: str = "", source: str, rule: Any = None) -> Any:
    """A dataclass field with its meaning, unit, source, and the rule that its value keeps."""
    metadata = {"meaning": meaning, "unit": unit, "source": source, "rule": rule}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Config:
    """Checked construction, YAML and scales, common to all stages."""

    STAGE: ClassVar[str]
    MEMBER_FIELDS: ClassVar[tuple[str, ...]]
    """What members of one run may differ in."""

    def __post_init__(self):
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        for name, value in self.checked(values).items():
            object.__setattr__(self, name, value)

    @property
    def unused_fields(self) -> tuple[str, ...]:
        """Fields that make no difference to this config's run."""
        return ()

    @classmethod
    def checked(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Values by name, each as its field wants it; TypeError for a name that is no field's."""
        known, hints = {item.name: item for item in fields(cls)}, typing.get_type_hints(cls)
        for name in values:
            if name not in known:
                raise TypeError(f"{cls.__name__} has no field {unknown_name(name, known)}")
        rules = {name: known[name].metadata["rule"] or NO_RULE for name in values}
        return {
            name: check_type(name, value, hints[name], rules[name])
            for name, value in values.items()
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Build from plain values; raises TypeError for an unknown name, with the nearest known."""
        return cls(**cls.checked(values))

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """Read a flat YAML file of differences from the defaults, which errors name."""
        values = read_yaml(path)
        with named(path):
            return cls.from_dict(values)

    @classmethod
    def at_scale(cls, scale: str, **overrides: Any) -> Self:
        """The sizes of `params/<stage>.<scale>.yaml`, with `overrides` that are not None on top."""
        known = scales(cls.STAGE)
        if scale not in known:
            raise ValueError(f"scale must be one of {', '.join(known)}, got {scale!r}")
        values = read_yaml(file := paths.PARAMS / f"{cls.STAGE}.{scale}.yaml")
        with named(file):
            values = cls.checked(values)
        given = {name: value for name, value in overrides.items() if value is not None}
        return cls.from_dict({**values, "scale": scale, **given})

    def to_yaml(self) -> str:
        """Every field as flat YAML, which `from_yaml` reads back to an equal object."""
        return yaml.safe_dump(asdict(self), sort_keys=False)

    def describe(self) -> list[dict[str, Any]]:
        """A row a field (name, value, paper's default, unit, meaning, source), for a DataFrame."""
        return [
            {
                "setting": item.name,
                "value": getattr(self, item.name),
                "default": item.default,
                "unit": item.metadata["unit"],
                "meaning": item.metadata["meaning"],
                "source": item.metadata["source"],
            }
            for item in fields(self)
        ]


AnyConfig = TypeVar("AnyConfig", bound=Config)


def expand(entry: dict[str, Any], sizes: AnyConfig) -> list[AnyConfig]:
    """The configs that an entry with lists stands for, one for each combination of their values.

    `seeds: 5` is short for `seed: [0, 1, 2, 3, 4]`, and `times: 6` multiplies `num_steps`.

    Args:
        sizes: what the entry does not name.

    Raises TypeError for a wrong name or type, ValueError for a wrong value or an empty list.
    """
    entry = dict(entry)
    if "seeds" in entry:
        if "seed" in entry:
            raise ValueError(f"seed and seeds must not both be given, got {entry}")
        seeds = entry.pop("seeds")
        if not isinstance(seeds, _LISTS):
            seeds = range(check_type("seeds", seeds, int, AT_LEAST_ONE))
        entry["seed"] = seeds
    lists = {n: list(each) if isinstance(each, _LISTS) else [each] for n, each in entry.items()}
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


def scales(stage: str) -> list[str]:
    """The scales that `params/` has for a stage (`04_pretrain`), by name."""
    return sorted(path.name.split(".")[1] for path in paths.PARAMS.glob(f"{stage}.*.yaml"))
