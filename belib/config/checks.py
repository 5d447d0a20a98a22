"""Types and names of what people write: in YAML, in Python, in a notebook's parameters."""

import ast
import difflib
import types
import typing
from collections.abc import Iterable
from typing import Any


def check_type(name: str, value: Any, annotation: Any) -> Any:
    """`value`, an int widened where a float is wanted; TypeError where the types differ."""
    if isinstance(annotation, types.UnionType):
        options = typing.get_args(annotation)
        if value is None and type(None) in options:
            return None
        return check_type(name, value, next(o for o in options if o is not type(None)))
    if typing.get_origin(annotation) is list:
        (item,) = typing.get_args(annotation)
        if not isinstance(value, list | tuple):
            wanted = f"{name} should be a list of {item.__name__}"
            raise TypeError(f"{wanted}, got {value!r} (papermill: -y '{{{name}: [...]}}')")
        return [check_type(f"{name}[{i}]", entry, item) for i, entry in enumerate(value)]
    if annotation is float and type(value) is int:
        return float(value)
    if type(value) is not annotation:
        hint = ""
        if annotation is float and isinstance(value, str) and _is_number(value):
            hint = " (YAML reads 1e-4 as text: write 1.0e-4)"
        found = type(value).__name__
        raise TypeError(f"{name} should be {annotation.__name__}, got {value!r} ({found}){hint}")
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


def check_parameters(namespace: dict[str, Any]) -> None:
    """Refuse misspelt or mistyped notebook parameters; call it with `globals()` in the set-up cell.

    The parameters cell holds annotated literals. papermill only warns of a name that the cell lacks
    and hides the warning where it prints no progress, so a run would go on with the default.
    papermill's own cell is recognised in the session's history by its first line, which leaves the
    variables that a person makes in JupyterLab alone.

    Raises TypeError. Ints given for floats are widened in place.
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
