"""Checks of tables from any source: joined, sorted or filtered in pandas, read from CSV files."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd


def checked(
    table: pd.DataFrame,
    *,
    names: Sequence[str] = (),
    integers: Sequence[str] = (),
    numbers: Sequence[str] = (),
    others: Sequence[str] = (),
    optional: Sequence[str] = (),
    empty: bool = False,
) -> pd.DataFrame:
    """Return a copy of a table with rows numbered from 0 and columns of the required types.

    Args:
        names, integers: columns of text, and of whole numbers, without missing values.
        numbers: columns of real numbers, finite or missing.
        others: required columns of any type.
        optional: columns that are checked as `numbers` if the table has them.
        empty: whether a table without rows is accepted.

    Categories become plain values. Raise ValueError that names the column, the rule, the value.
    """
    if table.columns.has_duplicates:
        raise ValueError("table must have columns with different names")
    if table.empty and not empty:
        raise ValueError("table must have rows, got none")
    required = dict.fromkeys([*others, *names, *integers, *numbers])
    if missing := [name for name in required if name not in table]:
        got = ", ".join(map(str, table.columns))
        raise ValueError(f"table must have the columns {', '.join(missing)}, got {got}")
    table = table.reset_index(drop=True)
    for name in table.select_dtypes("category"):
        table[name] = table[name].astype(table[name].cat.categories.dtype)
    for name in names:
        if table[name].isna().any():
            raise ValueError(f"{name} must be given in every row")
        table[name] = table[name].astype(str)
    for name in [*integers, *numbers, *(name for name in optional if name in table)]:
        table[name] = _numbers(table[name], whole=name in integers)
    return table


def _numbers(column: pd.Series, *, whole: bool) -> pd.Series:
    """Return a column as numbers, whole or finite; `nan` and `NA` are missing."""
    missing = column.isna() | column.isin(["nan", "NaN", "NA"])
    try:
        values = pd.to_numeric(column.astype(object).where(~missing, math.nan))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{column.name} must be numbers: {error}") from None
    wrong = values % 1 != 0 if whole else values.abs() == math.inf
    if wrong.any():
        rule = "whole numbers" if whole else "finite, or missing"
        raise ValueError(f"{column.name} must be {rule}, got {column[wrong].iloc[0]}")
    return values.astype("int64") if whole else values


def once(table: pd.DataFrame, keys: Sequence[str], values: Sequence[str]) -> pd.DataFrame:
    """Return a checked table without rows that repeat the `keys` and `values` of another.

    Raise ValueError if rows with equal keys have different values.
    """
    table = table.drop_duplicates([*keys, *values]).reset_index(drop=True)
    repeated = table[table.duplicated(keys)]
    if len(repeated):
        row = repeated.iloc[0]
        where = ", ".join(f"{key} {row[key]}" for key in keys)
        got = ", ".join(f"{name} {row[name]}" for name in values)
        raise ValueError(f"table must have one value for {where}, got another: {got}")
    return table


def read_csv(*files: Path, text: Iterable[str] = (), **rules: Any) -> pd.DataFrame:
    """Return one table of the rows of CSV files (UTF-8); files with the same headings are together.

    Columns of `text` stay text even if they look like numbers or `null`: only an empty field is
    missing. `rules` are arguments of `checked`. Raise ValueError that names the file, also if a row
    has more or fewer fields than headings, which pandas would shift or fill.
    """
    parts: dict[str, list[str]] = {}  # pandas parses files with equal headings together
    try:
        for file in files:
            content = file.read_text("utf-8-sig").strip("\n")
            lines = [line for line in csv.reader(io.StringIO(content), strict=True) if line]
            if any(len(line) != len(lines[0]) for line in lines):
                raise ValueError("every row must have as many fields as there are headings")
            headings, _, rows = content.partition("\n")
            parts.setdefault(headings, []).append(rows)
        joined = (io.StringIO("\n".join([key, *rows])) for key, rows in parts.items())
        options = {"dtype": dict.fromkeys(text, str), "keep_default_na": False, "na_values": [""]}
        tables = [checked(pd.read_csv(part, **options), **rules) for part in joined]
    except (ValueError, csv.Error) as error:
        if len(files) == 1:
            raise ValueError(f"{files[0]}: {error}") from error
        tables = [read_csv(file, text=text, **rules) for file in files]  # names the file at fault
    return pd.concat([table for table in tables if len(table)] or tables, ignore_index=True)
