"""What the configs of all stages share: rules, checked construction, YAML, scales."""

import math
import typing
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import yaml

from belib import paths
from belib.config.checks import check_type, unknown_name

POSITIVE = ("positive and finite", lambda value: 0 < value < math.inf)
AT_LEAST_ZERO = ("at least 0", lambda value: value >= 0)
AT_LEAST_ONE = ("at least 1", lambda value: value >= 1)
AT_LEAST_TWO = ("at least 2", lambda value: value >= 2)
SHARE = ("above 0 and at most 1", lambda value: 0 < value <= 1)


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
        annotations = typing.get_type_hints(type(self))
        for item in fields(self):
            value = check_type(item.name, getattr(self, item.name), annotations[item.name])
            object.__setattr__(self, item.name, value)
            words, holds = item.metadata["rule"] or ("", lambda _: True)
            if not holds(value):
                shown = repr(value) if isinstance(value, str) else value
                raise ValueError(f"{item.name} must be {words}, got {shown}")

    @property
    def unused_fields(self) -> tuple[str, ...]:
        """Fields that make no difference to this config's run."""
        return ()

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Build from plain values; raises TypeError for an unknown name, with the nearest known."""
        known = [item.name for item in fields(cls)]
        for name in values:
            if name not in known:
                raise TypeError(f"{cls.__name__} has no field {unknown_name(name, known)}")
        return cls(**values)

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """Read a flat YAML file of differences from the defaults."""
        return cls.from_dict(yaml.safe_load(Path(path).read_text()) or {})

    @classmethod
    def at_scale(cls, scale: str, **overrides: Any) -> Self:
        """The sizes of `params/<stage>.<scale>.yaml`, with `overrides` that are not None on top."""
        known = scales(cls.STAGE)
        if scale not in known:
            raise ValueError(f"scale must be one of {', '.join(known)}, got {scale!r}")
        values = yaml.safe_load((paths.PARAMS / f"{cls.STAGE}.{scale}.yaml").read_text())
        given = {name: value for name, value in overrides.items() if value is not None}
        return cls.from_dict({**(values or {}), "scale": scale, **given})

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


def scales(stage: str) -> list[str]:
    """The scales that `params/` has for a stage (`04_pretrain`), by name."""
    return sorted(path.name.split(".")[1] for path in paths.PARAMS.glob(f"{stage}.*.yaml"))
