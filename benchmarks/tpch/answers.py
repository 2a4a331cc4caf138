"""DuckDB's answers of the queries over the same files, and the first place where another answer differs."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from benchmarks.tpch.tables import COLUMNS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

HERE: Final = Path(__file__).parent
QUERIES: Final = tuple(range(1, 23))
WITH_FRACTION: Final = 11
"""The query whose threshold is 0.0001 by the scale factor."""
DIGITS: Final = 1e-12
SMALL_NUMBERS: Final = ("l_linenumber", "o_shippriority", "p_size", "ps_availqty")
AMOUNTS: Final = ("l_quantity", "l_discount", "l_tax", "l_extendedprice", "o_totalprice", "p_retailprice", "ps_supplycost", "c_acctbal", "s_acctbal")

Row = Sequence[Any]


def pipeline(number: int) -> Path:
    """The pipeline file of a query."""
    return HERE / f"q{number:02}.yaml"


def fraction(scale: float) -> Decimal:
    """The share of the whole stock from which on query 11 lists a part."""
    return Decimal("0.0001") / Decimal(str(scale))


def answer(number: int, data: Path, scale: float) -> list[Row]:
    """Read the columns that the pipeline reads from the CSV files of a folder and compute the query. Returns its rows in order."""
    import duckdb

    with duckdb.connect() as connection:
        for table, columns in columns_of(number).items():
            _load(connection, data, table, columns)
        query = (HERE / f"q{number:02}.sql").read_text(encoding="utf-8")
        values = {"fraction": str(fraction(scale))} if number == WITH_FRACTION else None
        return list(connection.execute(query, values).fetchall())


def columns_of(number: int) -> Mapping[str, Sequence[str]]:
    """The columns that the sources of a query's pipeline declare, by table."""
    nodes = yaml.safe_load(pipeline(number).read_text(encoding="utf-8"))["nodes"]
    return {node["name"]: [column["name"] for column in node["config"]["schema"]] for node in nodes if node["type"] == "source"}


def _load(connection: DuckDBPyConnection, data: Path, table: str, columns: Sequence[str]) -> None:
    types = {column: duckdb_type(column) for column in COLUMNS[table].split()}
    found = connection.read_csv(str(data / f"{table}.csv"), header=True, delimiter=",", quotechar='"', columns=types)
    found.project(", ".join(columns)).create(table)


def duckdb_type(column: str) -> str:
    """The type of a column in DuckDB."""
    if column in AMOUNTS:
        return "DECIMAL(15,2)"
    if column.endswith("date"):
        return "DATE"
    return "BIGINT" if column.endswith("key") or column in SMALL_NUMBERS else "VARCHAR"


def difference(found: Path, expected: Sequence[Row]) -> str | None:
    """The first place where a CSV file differs from the rows: decimals, counts and texts by every digit, floats by twelve. None where nothing differs."""
    with found.open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    if len(rows) != len(expected):
        return f"{len(rows)} rows, not {len(expected)}"
    for number, (cells, values) in enumerate(zip(rows, expected, strict=True), 1):
        if len(cells) != len(values) or not all(map(_agrees, cells, values)):
            return f"row {number} is {cells}, not {list(values)}"
    return None


def _agrees(cell: str, value: object) -> bool:
    if value is None:
        return not cell
    if isinstance(value, float):
        return bool(cell) and math.isclose(float(cell), value, rel_tol=DIGITS, abs_tol=DIGITS)
    if isinstance(value, Decimal):
        return bool(cell) and Decimal(cell) == value
    return cell == (value.isoformat() if isinstance(value, date) else str(value))
