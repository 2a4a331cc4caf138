"""Changelogs as text tables: one line a row, cells by `|`; the header names columns, with a type after a colon (default string).

    epoch | op | key | cause  | score:bigint
    1     | +A | a   | ingest | 100

`op`, `epoch`, `key` and `cause` are the system's columns, keys being the bytes of their text. An empty cell is null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from changelog.ops import BY_SYMBOL, Op

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.engines.base import Engine

TYPES = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64(), "boolean": pa.bool_()}
SYSTEM = {"epoch": ("_epoch", pa.int64()), "op": ("_op", pa.int8()), "key": ("_key", pa.binary()), "cause": ("_cause", pa.string())}
READ = {"bigint": int, "double": float, "boolean": lambda text: text == "true", "string": str}


def rows_of(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]


def frame(engine: Engine, text: str) -> DataFrame:
    """The DataFrame of a text table."""
    return engine.from_arrow(table(text))


def table(text: str) -> pa.Table:
    """The Arrow table of a text table."""
    header, *lines = rows_of(text)
    columns = {}
    for at, name in enumerate(header):
        column, kind, read = _column(name)
        columns[column] = pa.array([None if line[at] == "" else read(line[at]) for line in lines], kind)
    return pa.table(columns)


def _column(name: str) -> tuple[str, pa.DataType, Any]:
    if name in SYSTEM:
        reads = {"epoch": int, "op": lambda text: int(BY_SYMBOL[text]), "key": str.encode, "cause": str}
        return (*SYSTEM[name], reads[name])
    column, _, kind = name.partition(":")
    return column, TYPES[kind or "string"], READ[kind or "string"]


def lines_of(engine: Engine, result: DataFrame) -> list[list[str]]:
    """The rows of a changelog, sorted by epoch, key and op, as cells of text."""
    rows = engine.to_arrow(result).to_pylist()
    rows.sort(key=lambda row: (row.get("_epoch") or 0, row["_key"], row.get("_op", 0)))
    return [[_cell(name, value) for name, value in row.items()] for row in rows]


def _cell(name: str, value: Any) -> str:
    if name == "_op":
        return Op(value).symbol
    return "" if value is None else value.decode() if isinstance(value, bytes) else str(value)


def equals(engine: Engine, result: DataFrame, text: str) -> None:
    """Assert that a frame has exactly the columns and rows of a text table."""
    header, *lines = rows_of(text)
    assert result.columns == [_column(name)[0] for name in header]
    assert lines_of(engine, result) == lines
