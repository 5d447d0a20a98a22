"""Tables as people have them: joined, sorted, filtered, edited, read from files of any editor."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from belib import paths

_EXACT = 2**53
"""Whole numbers that were floats once may have lost digits from here on."""


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
    """Return a copy of a table with rows numbered from 0 and columns of the types that are wanted.

    Args:
        table: rows in any order, with any index; columns in any order, more than are asked for.
        names: columns of text, given in every row.
        integers: columns of whole numbers, given in every row, also as floats or as text.
        numbers: columns of real numbers, finite or missing.
        others: columns that must be there.
        optional: columns that are `numbers` where they are there.
        empty: whether there may be no rows.

    Categories become plain values. Raises ValueError that names the column, the rule, the value.
    """
    if not isinstance(table, pd.DataFrame):
        raise ValueError(f"table must be a pandas DataFrame, got {type(table).__name__}")
    if not (empty or len(table)):
        raise ValueError("table must have rows, got none")
    twice = sorted({str(name) for name in table.columns[table.columns.duplicated()]})
    if twice:
        raise ValueError(f"columns of a table must have different names, got two {twice[0]!r}")
    kinds = (
        dict.fromkeys(others) | dict.fromkeys(names, _names) | dict.fromkeys(integers, _integers)
    )
    kinds |= dict.fromkeys(numbers, _numbers)
    missing = [name for name in kinds if name not in table]
    if missing:
        found = ", ".join(map(str, table.columns)) or "none"
        raise ValueError(f"table must have the columns {', '.join(missing)}, got {found}")
    kinds |= {name: _numbers for name in optional if name in table}
    table = table.reset_index(drop=True)
    for name, column in table.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.astype(column.cat.categories.dtype)
        convert = kinds.get(str(name))
        table[name] = convert(column) if convert else column
    return table


def once(table: pd.DataFrame, keys: Sequence[str], values: Sequence[str]) -> pd.DataFrame:
    """Return the rows of a checked table without those that only repeat `keys` and `values`.

    Raises ValueError where rows with equal keys have different values.
    """
    found = table.drop_duplicates([*keys, *values]).reset_index(drop=True)
    again = found.duplicated(keys)
    if again.any():
        group = found.groupby(list(keys), dropna=False, sort=False).ngroup()
        one, other, *_ = found[group == group[again.idxmax()]].to_dict("records")
        name = next(name for name in values if repr(one[name]) != repr(other[name]))
        where = ", ".join(f"{key} {one[key]}" for key in keys)
        raise ValueError(f"table must have one {name} for {where}, got {one[name]}, {other[name]}")
    return found


def read_csv(*files: Path, text: Iterable[str] = (), **wanted: Any) -> pd.DataFrame:
    """Return one table of the rows of CSV files with commas and a line of headings, in order.

    Args:
        files: in UTF-8, with or without a byte order mark and a last end of line. Some may have
            columns that others lack.
        text: columns that stay text although they may look like numbers: names, revisions.
        wanted: for `checked`, of each file.

    Raises ValueError that names the file.
    """
    bodies: dict[str, list[str]] = {}  # files with equal headings are read at once
    for file in files:
        headings, body = _lines(file)
        bodies.setdefault(headings, []).append(body)
    types = dict.fromkeys(text, str)
    contents = [io.StringIO("\n".join([headings, *rows])) for headings, rows in bodies.items()]
    try:
        parts = [_parsed(content, types, **wanted) for content in contents]
    except ValueError as error:
        if len(files) == 1:
            raise ValueError(f"{files[0]}: {error}") from error
        for file in files:
            read_csv(file, text=text, **wanted)  # the one at fault raises
        raise
    return pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)


def _parsed(content: io.StringIO, types: dict[str, type], **wanted: Any) -> pd.DataFrame:
    """A checked table, in which one word does not make words of the numbers around it."""
    table = pd.read_csv(content, dtype=types)
    kinds = ("integers", "numbers", "optional")
    for name in {name for kind in kinds for name in wanted.get(kind, ()) if name in table}:
        if table[name].dtype.kind not in "iuf":
            found = pd.to_numeric(table[name], errors="coerce")
            table[name] = table[name].astype(object).where(found.isna(), found)
    return checked(table, **wanted)


def _lines(file: Path) -> tuple[str, str]:
    """The headings of a file and its rows, each with as many fields: pandas would guess."""
    headings, _, body = paths.read_text(file).strip("\n").partition("\n")
    try:
        names = next(csv.reader([headings], strict=True), [])
        if not names or len(set(names)) < len(names):
            raise ValueError(f"headings must be there and differ, got {headings!r}")
        count, lines = len(names), csv.reader(io.StringIO(body), strict=True)
        for line in lines:
            if line and len(line) != count:
                rule = f"{count} fields, as many as headings"
                raise ValueError(f"line {lines.line_num + 1} must have {rule}, got {len(line)}")
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{file}: {error}") from error
    return headings, body


def _names(column: pd.Series) -> pd.Series:
    _refuse(column, column.isna(), "given in every row")
    return column.astype(str)


def _integers(column: pd.Series) -> pd.Series:
    found = pd.to_numeric(column.astype(object), errors="coerce")
    whole = (found % 1 == 0) & ((found.abs() < _EXACT) | (found.dtype.kind in "iu"))
    _refuse(column, ~whole | column.map(lambda value: isinstance(value, bool)), "whole numbers")
    return found if found.dtype.kind in "iu" else found.astype("int64")


def _numbers(column: pd.Series) -> pd.Series:
    def number(value: object) -> bool:
        return isinstance(value, Real) and not isinstance(value, bool)

    if column.dtype.kind not in "iuf":
        wrong = column.notna() & ~column.astype(object).map(number).astype(bool)
        _refuse(column, wrong, "numbers, or missing")
    plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu"
    found = column if plain else _floats(column)
    _refuse(column, found.abs() == math.inf, "finite, or missing")
    return found


def _floats(column: pd.Series) -> pd.Series:
    return column.astype(object).where(column.notna(), math.nan).astype("float64")


def _refuse(column: pd.Series, wrong: pd.Series, rule: str) -> None:
    if wrong.any():
        row = int(wrong.to_numpy(bool).argmax())
        value = column.iloc[row]
        shown = repr(value) if isinstance(value, str) else value
        raise ValueError(f"{column.name} must be {rule}, got {shown} in row {row}")
