"""Checks of what people write in YAML, in Python and in a notebook's parameters.

`Config` is the base of the stages' configs: checked construction, YAML and scales.
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
"""What a value must be, in words and as a test."""

ANY: Rule = ("", lambda value: True)
AT_LEAST_ZERO: Rule = ("at least 0", lambda value: value >= 0)
AT_LEAST_ONE: Rule = ("at least 1", lambda value: value >= 1)
AT_LEAST_TWO: Rule = ("at least 2", lambda value: value >= 2)
POSITIVE: Rule = ("positive", lambda value: value > 0)
SHARE: Rule = ("above 0, at most 1", lambda value: 0 < value <= 1)

_LIMIT = 2**63  # of whole numbers, which arrays and tables must hold


def one_of(values: Collection[str]) -> Rule:
    """Return the rule that a value is one of `values`."""
    return f"one of {', '.join(values)}", lambda value: value in values


def check_type(name: str, value: Any, annotation: Any, rule: Rule = ANY) -> Any:
    """Return `value` as a plain Python object of the annotated type that keeps the rule.

    numpy's scalars and arrays become numbers and lists; an int becomes a float for a float.

    Raises TypeError for another type, ValueError for a value that breaks the rule, is not finite,
    or is a whole number of more than 63 bits.
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
    words, holds = rule
    if annotation is float:
        words = f"{words} and finite" if words else "finite"
    if not holds(value) or (annotation is float and not math.isfinite(value)):
        raise ValueError(f"{name} must be {words}, got {value!r}")
    return value


def _check_list(name: str, value: Any, item: type, rule: Rule) -> list:
    """Return the checked entries of a list; those of numbers are one or more, and none is twice."""
    if not isinstance(value, list | tuple):
        wanted = f"{name} should be a list of {item.__name__}"
        raise TypeError(f"{wanted}, got {value!r} (papermill: -y '{{{name}: [...]}}')")
    entries = [check_type(f"{name}[{i}]", entry, item, rule) for i, entry in enumerate(value)]
    if len(set(entries)) < len(entries) or not (entries or item is str):
        wanted = "entries that differ" if entries else "at least one number"
        raise ValueError(f"{name} must have {wanted}, got {value!r}")
    return entries


def unknown_name(name: str, names: Iterable[str]) -> str:
    """Return `'alhpa' (nearest: 'alpha')`, for messages."""
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f"{name!r}" + (f" (nearest: {near[0]!r})" if near else "")


@contextmanager
def named(place: object) -> Iterator[None]:
    """Put the place of a wrong value (a file, an entry) in front of the error's message."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{place}: {error}") from None


class _Loader(yaml.SafeLoader):
    """YAML without repeated names, and without numbers such as 010 (8) and 1:30 (90)."""

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
    """Return the names and values of a YAML file, which may be empty.

    Raises OSError; ValueError, with the file and line, for other files and repeated names.
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
    """Raise for misspelt or mistyped notebook parameters; the set-up cell gives its `globals()`.

    The parameters cell holds annotated literals. papermill only warns of a name that the cell
    lacks, and the run would go on with the default. Its own cell is recognised in the session's
    history by the first line, so variables that a person makes in JupyterLab are not checked.

    Raises TypeError and ValueError as `check_type` does; ints become floats in place.
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
    """Return the scales that `params/` has for a stage (`04_pretrain`), by name."""
    return sorted(path.name.split(".")[1] for path in paths.PARAMS.glob(f"{stage}.*.yaml"))


def setting(default: Any, rule: Rule, meaning: str, source: str, unit: str = "") -> Any:
    """Return a dataclass field with its validity rule, meaning, source and unit."""
    metadata = {"rule": rule, "meaning": meaning, "source": source, "unit": unit}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Config:
    """Checked construction, YAML and scales, common to all stages."""

    STAGE: ClassVar[str]
    MEMBER_FIELDS: ClassVar[tuple[str, ...]]
    """Fields in which members of one run may differ."""

    def __post_init__(self):
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        for name, value in self.checked(values).items():
            object.__setattr__(self, name, value)

    @property
    def unused_fields(self) -> tuple[str, ...]:
        """Fields that do not change this config's run."""
        return ()

    @classmethod
    def checked(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return checked values of fields; TypeError for an unknown name, with the nearest."""
        rules = {item.name: item.metadata["rule"] for item in fields(cls)}
        for name in values:
            if name not in rules:
                raise TypeError(f"{cls.__name__} has no field {unknown_name(name, rules)}")
        hints = typing.get_type_hints(cls)
        return {name: check_type(name, v, hints[name], rules[name]) for name, v in values.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Build a config from plain values; errors are those of `checked`."""
        return cls(**cls.checked(values))

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """Read a flat YAML file of differences from the defaults; errors name the file."""
        values = read_yaml(path)
        with named(path):
            return cls.from_dict(values)

    @classmethod
    def at_scale(cls, scale: str, **overrides: Any) -> Self:
        """Return the sizes of `params/<stage>.<scale>.yaml`, with `overrides` that are not None."""
        names = scales(cls.STAGE)
        if scale not in names:
            raise ValueError(f"scale must be one of {', '.join(names)}, got {scale!r}")
        values = read_yaml(file := paths.PARAMS / f"{cls.STAGE}.{scale}.yaml")
        with named(file):
            values = cls.checked(values)
        given = {name: value for name, value in overrides.items() if value is not None}
        return cls.from_dict({**values, "scale": scale, **given})

    def to_yaml(self) -> str:
        """Return all fields as flat YAML, which `from_yaml` reads back to an equal object."""
        return yaml.safe_dump(asdict(self), sort_keys=False)

    def describe(self) -> list[dict[str, Any]]:
        """Return a row a field (name, value, default, unit, meaning, source), for a DataFrame."""
        words = ("unit", "meaning", "source")
        return [
            {"setting": item.name, "value": getattr(self, item.name), "default": item.default}
            | {word: item.metadata[word] for word in words}
            for item in fields(self)
        ]

    def changed(self, *names: str) -> list[str]:
        """Return those of the named fields that do not have their default."""
        default = {item.name: item.default for item in fields(self)}
        return [name for name in names if getattr(self, name) != default[name]]
