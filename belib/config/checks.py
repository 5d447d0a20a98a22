"""Types, rules and names of what people write: in YAML, in Python, in a notebook's parameters."""

import ast
import difflib
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import yaml

Rule = tuple[str, Callable[[Any], bool]]
"""What a value keeps, in words and as a function."""

NO_RULE: Rule = ("", lambda value: True)
AT_LEAST_ZERO: Rule = ("at least 0", lambda value: value >= 0)
AT_LEAST_ONE: Rule = ("at least 1", lambda value: value >= 1)
AT_LEAST_TWO: Rule = ("at least 2", lambda value: value >= 2)
POSITIVE: Rule = ("positive", lambda value: value > 0)
SHARE: Rule = ("above 0, at most 1", lambda value: 0 < value <= 1)

_LIMIT = 2**63
"""Of whole numbers, which arrays and tables must hold."""


def check_type(name: str, value: Any, annotation: Any, rule: Rule = NO_RULE) -> Any:
    """`value` as plain Python has it, once it has the type and keeps the rule.

    numpy's scalars and arrays become numbers and lists, an int a float where that is wanted.

    Raises TypeError where the type differs, ValueError for what breaks the rule, is not finite, or
    is a whole number of more than 63 bits.
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(annotation, types.UnionType):
        options = typing.get_args(annotation)
        if value is None and type(None) in options:
            return None
        return check_type(name, value, next(o for o in options if o is not type(None)), rule)
    if typing.get_origin(annotation) is list:
        (item,) = typing.get_args(annotation)
        if not isinstance(value, list | tuple):
            wanted = f"{name} should be a list of {item.__name__}"
            raise TypeError(f"{wanted}, got {value!r} (papermill: -y '{{{name}: [...]}}')")
        entries = [check_type(f"{name}[{i}]", each, item, rule) for i, each in enumerate(value)]
        if len(set(entries)) < len(entries) or not (entries or item is str):
            wanted = "entries that differ" if entries else "at least one number"
            raise ValueError(f"{name} must have {wanted}, got {value!r}")
        return entries
    if annotation is float and type(value) is int and abs(value) < _LIMIT:
        value = float(value)
    if type(value) is int and abs(value) >= _LIMIT:
        raise ValueError(f"{name} must be below 2**63, got {value}")
    if type(value) is not annotation:
        hint = ""
        if annotation is float and isinstance(value, str) and _is_number(value):
            hint = " (YAML reads 1e-4 as text: write 1.0e-4)"
        found = type(value).__name__
        raise TypeError(f"{name} should be {annotation.__name__}, got {value!r} ({found}){hint}")
    words, holds = rule
    if annotation is float:
        words = f"{words} and finite" if words else "finite"
    if not holds(value) or (annotation is float and not math.isfinite(value)):
        raise ValueError(f"{name} must be {words}, got {value!r}")
    return value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def unknown_name(name: str, known: Iterable[str]) -> str:
    """`'alhpa' (nearest: 'alpha')`, for messages."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"{name!r}" + (f" (nearest: {near[0]!r})" if near else "")


@contextmanager
def named(place: object) -> Iterator[None]:
    """Put the place of a wrong value (a file, an entry) in front of what is said about it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{place}: {error}") from None


class _Loader(yaml.SafeLoader):
    """YAML in which a name stands once, and 010 is not 8 nor 1:30 the number 90."""

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
    """The names and values of a YAML file, none of an empty one.

    Raises OSError; ValueError, with the file and line, for what is no YAML or has a name twice.
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
    """Refuse misspelt or mistyped notebook parameters; call it with `globals()` in the set-up cell.

    The parameters cell holds annotated literals. papermill only warns of a name that the cell lacks
    and hides the warning where it prints no progress, so a run would go on with the default.
    papermill's own cell is recognised in the session's history by its first line, which leaves the
    variables that a person makes in JupyterLab alone.

    Raises TypeError and ValueError as `check_type` does, which also widens in place.
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
