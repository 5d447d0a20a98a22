"""Checks of tables from any source: joined, sorted or filtered in pandas, read from CSV files."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from belib import paths

_LARGEST_EXACT = 2**53
"""A float holds every integer below it."""


def checked(
    table: pd.DataFrame,
    *,
    names: Iterable[str] = (),
    integers: Iterable[str] = (),
    numbers: Iterable[str] = (),
    others: Iterable[str] = (),
    optional: Iterable[str] = (),
    empty: bool = False,
) -> pd.DataFrame:
    """Return a copy of a table with rows numbered from 0 and columns of the required types.

    Args:
        table: rows and columns in any order, with any index; it may have further columns.
        names: columns of text without missing values.
        integers: columns of whole numbers without missing values, also as floats or text.
        numbers: columns of real numbers, finite or missing.
        others: required columns of any type.
        optional: columns that are checked as `numbers` if the table has them.
        empty: whether a table without rows is accepted.

    Categories become plain values. Raise ValueError that names the column, the rule, the value.
    """
    if not isinstance(table, pd.DataFrame):
        raise ValueError(f"table must be a pandas DataFrame, got {type(table).__name__}")
    if not (empty or len(table)):
        raise ValueError("table must have rows, got none")
    repeated = sorted({str(name) for name in table.columns[table.columns.duplicated()]})
    if repeated:
        raise ValueError(f"columns of a table must have different names, got two {repeated[0]!r}")
    checks = dict.fromkeys(others) | dict.fromkeys(names, _names)
    checks |= dict.fromkeys(integers, _integers) | dict.fromkeys(numbers, _numbers)
    _require(table, checks)
    checks |= {name: _numbers for name in optional if name in table}
    table = table.reset_index(drop=True)
    for name, column in table.items():
        table[name] = _converted(column, checks.get(str(name)))
    return table


def _require(table: pd.DataFrame, names: Iterable[str]) -> None:
    missing = [name for name in names if name not in table]
    if missing:
        columns = ", ".join(map(str, table.columns)) or "none"
        raise ValueError(f"table must have the columns {', '.join(missing)}, got {columns}")


def _converted(column: pd.Series, check: Callable[[pd.Series], pd.Series] | None) -> pd.Series:
    """Return a column with plain values instead of categories, checked."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    return check(column) if check else column


def once(table: pd.DataFrame, keys: Sequence[str], values: Sequence[str]) -> pd.DataFrame:
    """Return a checked table without rows that repeat the `keys` and `values` of another.

    Raises ValueError if rows with equal keys have different values.
    """
    table = table.drop_duplicates([*keys, *values]).reset_index(drop=True)
    repeated = table.duplicated(keys)
    if repeated.any():
        group = table.groupby(list(keys), dropna=False, sort=False).ngroup()
        one, other, *_ = table[group == group[repeated.idxmax()]].to_dict("records")
        name = next(name for name in values if repr(one[name]) != repr(other[name]))
        where = ", ".join(f"{key} {one[key]}" for key in keys)
        raise ValueError(f"table must have one {name} for {where}, got {one[name]}, {other[name]}")
    return table


def read_csv(*files: Path, text: Iterable[str] = (), **rules: Any) -> pd.DataFrame:
    """Return one table of the rows of CSV files, in order.

    Args:
        files: UTF-8 text with a line of headings; headings may differ between files.
        text: columns that stay text even if they look like numbers: names, revisions.
        rules: arguments of `checked`, which checks every file.

    Raise ValueError that names the file.
    """
    bodies: dict[str, list[str]] = {}  # pandas parses files with equal headings together
    for file in files:
        headings, body = _lines(file)
        bodies.setdefault(headings, []).append(body)
    types = dict.fromkeys(text, str)
    contents = [io.StringIO("\n".join([headings, *rows])) for headings, rows in bodies.items()]
    try:
        parts = [_parsed(content, types, **rules) for content in contents]
    except ValueError as error:
        if len(files) == 1:
            raise ValueError(f"{files[0]}: {error}") from error
        for file in files:
            read_csv(file, text=text, **rules)  # raises for the file at fault
        raise
    return pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)


def _parsed(content: io.StringIO, types: dict[str, type], **rules: Any) -> pd.DataFrame:
    """Return a checked table; a word among numbers leaves the numbers numbers."""
    table = pd.read_csv(content, dtype=types)
    numeric = {name for rule in ("integers", "numbers", "optional") for name in rules.get(rule, ())}
    for name in numeric & {*table}:
        if table[name].dtype.kind not in "iuf":
            values = pd.to_numeric(table[name], errors="coerce")
            table[name] = table[name].astype(object).where(values.isna(), values)
    return checked(table, **rules)


def _lines(file: Path) -> tuple[str, str]:
    """Return the headings and the rows of a CSV file.

    Raises ValueError if a row has more or fewer fields than headings: pandas would guess.
    """
    headings, _, body = paths.read_text(file).strip("\n").partition("\n")
    try:
        names = next(csv.reader([headings], strict=True), [])
        if not names or len(set(names)) < len(names):
            raise ValueError(f"headings must be there and differ, got {headings!r}")
        lines = csv.reader(io.StringIO(body), strict=True)
        for line in lines:
            if line and len(line) != len(names):
                rule = f"must have {len(names)} fields, as many as headings, got {len(line)}"
                raise ValueError(f"line {lines.line_num + 1} {rule}")
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{file}: {error}") from error
    return headings, body


def _names(column: pd.Series) -> pd.Series:
    _refuse(column, column.isna(), "given in every row")
    return column.astype(str)


def _integers(column: pd.Series) -> pd.Series:
    values = pd.to_numeric(column.astype(object), errors="coerce")
    exact = (values.abs() < _LARGEST_EXACT) | (values.dtype.kind in "iu")
    booleans = column.map(lambda value: isinstance(value, bool))
    _refuse(column, ~((values % 1 == 0) & exact) | booleans, "whole numbers")
    return values if values.dtype.kind in "iu" else values.astype("int64")


def _numbers(column: pd.Series) -> pd.Series:
    if column.dtype.kind not in "iuf":
        real = column.map(lambda value: isinstance(value, Real) and not isinstance(value, bool))
        _refuse(column, column.notna() & ~real.astype(bool), "numbers, or missing")
    if not (isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu"):
        column = column.astype(object).where(column.notna(), math.nan).astype("float64")
    _refuse(column, column.abs() == math.inf, "finite, or missing")
    return column


def _refuse(column: pd.Series, wrong: pd.Series, rule: str) -> None:
    """Raise ValueError for the first row that is `wrong`."""
    if wrong.any():
        row = int(wrong.to_numpy(bool).argmax())
        value = column.iloc[row]
        value = repr(value) if isinstance(value, str) else value
        raise ValueError(f"{column.name} must be {rule}, got {value} in row {row}")
