"""Checks of values from YAML, Python and a notebook's parameters cell.

`Config` is the base class of the stages' configs.
"""

import ast
import difflib
import math
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import yaml

from belib import paths

Rule = tuple[str, Callable[[Any], bool]]
"""A rule for values: its text, and a test of a value."""

ANY: Rule = ("", lambda value: True)
AT_LEAST_ZERO: Rule = ("at least 0", lambda value: value >= 0)
AT_LEAST_ONE: Rule = ("at least 1", lambda value: value >= 1)
AT_LEAST_TWO: Rule = ("at least 2", lambda value: value >= 2)
POSITIVE: Rule = ("positive", lambda value: value > 0)
SHARE: Rule = ("above 0, at most 1", lambda value: 0 < value <= 1)

_LIMIT = 2**63  # of whole numbers, so that they fit int64


def one_of(values: Collection[str]) -> Rule:
    """Return the rule that a value is one of `values`."""
    return f"one of {', '.join(values)}", lambda value: value in values


def check_type(name: str, value: Any, annotation: Any, rule: Rule = ANY) -> Any:
    """Return `value` as a plain Python object of the annotated type.

    numpy scalars and arrays become numbers and lists; an int becomes a float for `float`.

    Raise TypeError for another type, and ValueError for a value that breaks the rule, is not
    finite, or is a whole number of more than 63 bits.
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(annotation, types.UnionType):  # of a type and None
        if value is None:
            return None
        annotation = next(o for o in typing.get_args(annotation) if o is not types.NoneType)
    if typing.get_origin(annotation) is list:
        (item,) = typing.get_args(annotation)
        return _check_list(name, value, item, rule)
    if type(value) is int and abs(value) >= _LIMIT:
        raise ValueError(f"{name} must be below 2**63, got {value}")
    if annotation is float and type(value) is int:
        value = float(value)
    if type(value) is not annotation:
        is_number = annotation is float and re.match(r"[-+.\d]+e[-+\d]+$", str(value), re.I)
        hint = " (YAML reads 1e-4 as text: write 1.0e-4)" if is_number else ""
        wanted = f"{name} should be {annotation.__name__}"
        raise TypeError(f"{wanted}, got {value!r} ({type(value).__name__}){hint}")
    text, holds = rule
    if annotation is float:
        text = f"{text} and finite" if text else "finite"
    if not holds(value) or (annotation is float and not math.isfinite(value)):
        raise ValueError(f"{name} must be {text}, got {value!r}")
    return value


def _check_list(name: str, value: Any, item: type, rule: Rule) -> list:
    """Return the checked entries of a list: distinct, and not empty if they are numbers."""
    if not isinstance(value, list | tuple):
        wanted = f"{name} should be a list of {item.__name__}"
        raise TypeError(f"{wanted}, got {value!r} (papermill: -y '{{{name}: [...]}}')")
    entries = [check_type(f"{name}[{i}]", entry, item, rule) for i, entry in enumerate(value)]
    if len(set(entries)) < len(entries) or not (entries or item is str):
        wanted = "entries that differ" if entries else "at least one number"
        raise ValueError(f"{name} must have {wanted}, got {value!r}")
    return entries


def unknown_name(name: str, names: Iterable[str]) -> str:
    """Return text for a message: `'alhpa' (nearest: 'alpha')`."""
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f"{name!r}" + (f" (nearest: {near[0]!r})" if near else "")


@contextmanager
def named(place: object) -> Iterator[None]:
    """Prefix errors of wrong values with their place (a file, an entry)."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{place}: {error}") from None


class _Loader(yaml.SafeLoader):
    """A loader that refuses repeated names, and numbers such as 010 (8) and 1:30 (90)."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node, names = super().compose_mapping_node(anchor), set()
        for key, _ in node.value:
            if not key.tag.endswith((":str", ":merge")):
                self._refuse(key, "names must be text")
            if key.value in names:
                self._refuse(key, f"{key.value!r} is there twice")
            names.add(key.value)
        return node

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node = super().compose_scalar_node(anchor)
        if node.tag.endswith((":int", ":float")) and re.match(r"[-+]?0[0-7]+$|.*:", node.value):
            self._refuse(node, f"numbers must be decimal, without a leading 0, got {node.value}")
        return node

    def _refuse(self, node: yaml.Node, why: str) -> None:
        raise yaml.MarkedYAMLError(problem=why, problem_mark=node.start_mark)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Return the names and values of a YAML file; an empty file has none.

    Raise OSError, and ValueError, with file and line, for other content and repeated names.
    """
    try:
        values = yaml.load(Path(path).read_bytes(), _Loader)
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}, line {mark.line + 1}" if mark else path
        raise ValueError(f"{place}: {getattr(error, 'problem', None) or error}") from None
    if not isinstance(values, dict | None):
        raise ValueError(f"{path} must have names and values (`alpha: 0.5`), got {values!r}")
    return values or {}


def check_parameters(namespace: dict[str, Any]) -> None:
    """Check a notebook's parameters: the annotated names of `namespace`, its `globals()`.

    Raise TypeError for a misspelt name: papermill only warns of it, and would run the default. The
    cell that papermill adds is recognised in the session's history by its first line. Other
    variables are not checked.

    Raise TypeError and ValueError as `check_type` does. Ints become floats in place.
    """
    annotations = namespace.get("__annotations__", {})
    for source in namespace.get("In", []):
        if source.startswith("# Parameters\n"):
            for name in (statement.targets[0].id for statement in ast.parse(source).body):
                if name not in annotations:
                    near = unknown_name(name, annotations)
                    raise TypeError(f"this notebook has no parameter {near}")
    for name, annotation in annotations.items():
        namespace[name] = check_type(name, namespace[name], annotation)


def scales(stage: str) -> list[str]:
    """Return the names of the scales that `params/` has for a stage (`04_pretrain`), sorted."""
    return sorted(path.name.split(".")[1] for path in paths.PARAMS.glob(f"{stage}.*.yaml"))


def setting(default: Any, rule: Rule, meaning: str, source: str, unit: str = "") -> Any:
    """Return a dataclass field with its validity rule, meaning, source and unit."""
    metadata = {"rule": rule, "meaning": meaning, "source": source, "unit": unit}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Config:
    """Base of the stages' configs: checked construction, YAML and scales."""

    STAGE: ClassVar[str]
    MEMBER_FIELDS: ClassVar[tuple[str, ...]]
    """The fields in which members of one run may differ."""

    def __post_init__(self):
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        for name, value in self.checked(values).items():
            object.__setattr__(self, name, value)

    @property
    def unused_fields(self) -> tuple[str, ...]:
        """The fields that do not affect this config's run."""
        return ()

    @classmethod
    def checked(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return checked values of fields. Raise TypeError for an unknown name."""
        rules = {item.name: item.metadata["rule"] for item in fields(cls)}
        for name in values:
            if name not in rules:
                raise TypeError(f"{cls.__name__} has no field {unknown_name(name, rules)}")
        hints = typing.get_type_hints(cls)
        return {name: check_type(name, v, hints[name], rules[name]) for name, v in values.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return a config of plain values; errors are those of `checked`."""
        return cls(**cls.checked(values))

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """Return a config from a flat YAML file of changed fields; errors name the file."""
        values = read_yaml(path)
        with named(path):
            return cls.from_dict(values)

    @classmethod
    def at_scale(cls, scale: str, **overrides: Any) -> Self:
        """Return the config of `params/<stage>.<scale>.yaml`; overrides of None are ignored."""
        names = scales(cls.STAGE)
        if scale not in names:
            raise ValueError(f"scale must be one of {', '.join(names)}, got {scale!r}")
        values = read_yaml(file := paths.PARAMS / f"{cls.STAGE}.{scale}.yaml")
        with named(file):
            values = cls.checked(values)
        given = {name: value for name, value in overrides.items() if value is not None}
        return cls.from_dict({**values, "scale": scale, **given})

    def to_yaml(self) -> str:
        """Return all fields as flat YAML, which `from_yaml` reads."""
        return yaml.safe_dump(asdict(self), sort_keys=False)

    def describe(self) -> list[dict[str, Any]]:
        """Return a row (name, value, default, unit, meaning, source) for every field."""
        keys = ("unit", "meaning", "source")
        return [
            {"setting": item.name, "value": getattr(self, item.name), "default": item.default}
            | {key: item.metadata[key] for key in keys}
            for item in fields(self)
        ]

    def changed(self, *names: str) -> list[str]:
        """Return those of the named fields that do not have their default values."""
        default = {item.name: item.default for item in fields(self)}
        return [name for name in names if getattr(self, name) != default[name]]
