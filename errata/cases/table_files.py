"""Tables of a case that are files: CSV, JSON, JSON lines or Parquet."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import Field

from changelog.lazy_imports import pa, pq
from errata.cases.tables import Row, Table, read_table
from errata.core.failures import Usage
from operators.core.config import Strict


class TableFile(Strict):
    """A file beside a case file, in place of a table in it."""

    file: str = Field(description="The file, relative to the case file, maybe in another folder: .csv with a header and commas, .json, .jsonl, .ndjson or .parquet.")


Written = str | Sequence[Row] | TableFile
"""A table of a case: text, a list of maps, or a file."""


def table_of(written: Written, beside: Path) -> Table:
    """Return a table of a case as texts. An empty cell of CSV is null, and a blank line is no record.

    Args:
        written: The table.
        beside: Where relative paths of files begin.

    Raises:
        Usage: A file is not there, its ending says no format that is known here, or it does not hold rows.
    """
    if not isinstance(written, TableFile):
        return read_table(written)
    name, path = written.file, beside / written.file
    read = READERS.get(path.suffix.lower())
    if read is None:
        raise Usage(f"the file {name} of a case is not of a known format", help=f"its name ends with {', '.join(READERS)}")
    try:
        return read(path)
    except OSError as error:
        raise Usage(f"the file {name} of a case cannot be read: {error.strerror or error}") from error
    except RecursionError as error:
        raise Usage(f"the file {name} of a case holds no rows: its values are nested too deeply") from error
    except (ValueError, csv.Error, pa.ArrowException) as error:
        raise Usage(f"the file {name} of a case holds no rows: {error}") from error


def _of_csv(path: Path) -> Table:
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = [line for line in csv.reader(file, strict=True) if line]
    if not lines:
        raise ValueError("it has no line with the names of its columns")
    names, rows = lines[0], lines[1:]
    wrong = next((number for number, row in enumerate(rows, 1) if len(row) != len(names)), None)
    if wrong is not None:
        raise ValueError(f"record {wrong} has {len(rows[wrong - 1])} cells, its header {len(names)}")
    _once(names)
    return Table(names, [[text or None for text in row] for row in rows])


def _of_json(path: Path) -> Table:
    return _of_maps(_value(path.read_text("utf-8-sig")))


def _of_lines(path: Path) -> Table:
    lines = path.read_bytes().decode("utf-8-sig").split("\n")
    return _of_maps([_value_of_line(line, number) for number, line in enumerate(lines, 1) if line.strip(" \t\r")])


def _value_of_line(line: str, number: int) -> Any:
    try:
        return _value(line)
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from error


def _value(text: str) -> Any:
    return json.loads(text, parse_float=Decimal, object_pairs_hook=_object)


def _object(members: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    _once([name for name, _ in members])
    return dict(members)


def _of_parquet(path: Path) -> Table:
    _once(pq.read_schema(path).names)
    return _of_maps(pq.read_table(path).to_pylist())


def _once(names: Sequence[str]) -> None:
    """Raise ValueError for a name that comes twice."""
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise ValueError(f"it has the column '{twice}' twice; give each column a name of its own")


def _of_maps(rows: Any) -> Table:
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise ValueError("a row is an object, and the rows are an array")
    return read_table(rows)


READERS: Mapping[str, Callable[[Path], Table]] = {".csv": _of_csv, ".json": _of_json, ".jsonl": _of_lines, ".ndjson": _of_lines, ".parquet": _of_parquet}
"""How files are read, by the ending of their names."""
