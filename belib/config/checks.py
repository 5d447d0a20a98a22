"""Checks of values from YAML, Python and a notebook's parameters cell."""

import difflib
import inspect
import math
import re
import typing
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import yaml

RULES: dict[str, Callable[[Any], bool]] = {
    "any": lambda value: True,
    "at least 0": lambda value: value >= 0,
    "at least 0, below 2**63": lambda value: 0 <= value < 2**63,
    "at least 1": lambda value: value >= 1,
    "at least 2": lambda value: value >= 2,
    "positive": lambda value: value > 0,
    "in (0, 1]": lambda value: 0 < value <= 1,
    "letters and digits, or empty": lambda value: value == "" or value.isalnum(),
}


def check_type(name: str, value: Any, annotation: Any, rule: Collection[str] = "any") -> Any:
    """Return `value` as a plain Python object of the annotated type.

    numpy scalars and arrays become numbers and lists; an int becomes a float for `float`. `rule` is
    one of `RULES`, or the allowed values. Raise TypeError for another type, ValueError for a value
    that breaks the rule or is not finite.
    """
    value = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
    kind, *none = typing.get_args(annotation) or [annotation]
    if value is None and none:
        return None
    is_list = typing.get_origin(annotation) is list
    if is_list and isinstance(value, list | tuple):
        return [check_type(f"{name}[{i}]", entry, kind, rule) for i, entry in enumerate(value)]
    value = float(value) if kind is float and type(value) is int else value
    if is_list or type(value) is not kind:
        wanted = f"{name} should be {inspect.formatannotation(annotation)}"
        raise TypeError(f"{wanted}, got {value!r} ({type(value).__name__})")
    if kind is float and not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}")
    if type(value) is str and name.startswith(("domain", "task")):
        value = value.replace("/", "-")  # as in folders: gymnasium-HalfCheetah-v5
    if not (RULES[rule](value) if isinstance(rule, str) else value in rule):
        text = rule if isinstance(rule, str) else f"one of {', '.join(rule)}"
        raise ValueError(f"{name} must be {text}, got {value!r}")
    return value


def unknown_name(name: object, names: Iterable[str]) -> str:
    """Return text for a message: `'alhpa' (nearest: 'alpha')`."""
    near = difflib.get_close_matches(str(name), list(names), n=1, cutoff=0.5)
    return f"{name!r}" + (f" (nearest: {near[0]!r})" if near else "")


@contextmanager
def named(place: object) -> Iterator[None]:
    """Turn errors of wrong values into ValueErrors with their place (a file, an entry)."""
    try:
        yield
    except (TypeError, ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{place}: {error}") from None


class _Loader(yaml.SafeLoader):
    """A loader that refuses repeated names, of which YAML would take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        names = [str(key.value) for key, _ in node.value]
        if len({*names}) < len(names):
            raise ValueError(f"names must differ, got {names}{node.start_mark}")
        return super().construct_mapping(node, deep)


# 010 and 1:30, which YAML reads as 8 and 90, stay text, which no number's check accepts
_TEXT = ("tag:yaml.org,2002:str", re.compile(r"[-+]?0[\d_]|[-+]?\d.*:"))
_RESOLVERS = yaml.SafeLoader.yaml_implicit_resolvers
_Loader.yaml_implicit_resolvers = {sign: [_TEXT, *rest] for sign, rest in _RESOLVERS.items()}


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Return the names and values of a YAML file; an empty file has none.

    Raise OSError, and ValueError, with the file's name, for other content and repeated names.
    """
    with named(path), open(path, "rb") as file:
        values = yaml.load(file, _Loader) or {}
        if not isinstance(values, dict):
            raise ValueError(f"a file must have names and values (`alpha: 0.5`), got {values!r}")
        return values


def check_parameters(namespace: dict[str, Any]) -> None:
    """Check a notebook's parameters: the annotated names of `namespace`, its `globals()`.

    Ints become floats in place. Raise the errors of `check_type`. Raise TypeError for a misspelt
    name in the cell that papermill adds; otherwise the notebook would silently use the default.
    """
    annotations = namespace.get("__annotations__", {})
    cells = [cell for cell in namespace.get("In", []) if cell.startswith("# Parameters\n")]
    for name in re.findall(r"^(\w+) = ", "\n".join(cells), re.MULTILINE):
        if name not in annotations:
            raise TypeError(f"this notebook has no parameter {unknown_name(name, annotations)}")
    for name, annotation in annotations.items():
        namespace[name] = check_type(name, namespace[name], annotation)
