"""Records as files of all formats and as Delta tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from tests.invariants.scripts import EXTENSIONS, Files, Record, Source
from tests.support.pipelines import Folder

TYPES = {"int": pa.int64(), "float": pa.float64(), "string": pa.string(), "date_time": pa.timestamp("us")}


def lay_out(folder: Folder, sources: Sequence[Source], files: Mapping[str, Files]) -> None:
    """Make the sources' folders and tables hold exactly these records. Files that stay as they are may get another time of change."""
    for source in sources:
        if source.form == "delta":
            _lay_table(folder.path / "tables" / f"of_{source.name}", source, [row for name in sorted(files[source.name]) for row in files[source.name][name]])
        else:
            _lay_files(folder, source, files[source.name])


def _lay_files(folder: Folder, source: Source, files: Files) -> None:
    wanted = {f"{name}.{EXTENSIONS[source.form]}": (name, rows) for name, rows in files.items()}
    place = folder.path / f"of_{source.name}"
    place.mkdir(exist_ok=True)
    for old in place.iterdir():
        if old.name not in wanted:
            old.unlink()
    for file, (name, rows) in wanted.items():
        header = source.header(name)
        if source.form == "csv":
            folder.write_csv(f"{place.name}/{file}", header, rows)
        elif source.form == "parquet":
            pq.write_table(_table(source, header, rows), place / file)
        else:
            folder.write(f"{place.name}/{file}", _text(source.form, [{column: row[column] for column in header} for row in rows]))


def _text(form: str, rows: Sequence[Record]) -> str:
    if form == "ndjson":
        return "".join(json.dumps(row) + "\n" for row in rows)
    return json.dumps(rows) if form == "json" else f"<rows>{''.join(map(_element, rows))}</rows>"


def _element(row: Record) -> str:
    return f"<row>{''.join(f'<{name}>{escape(str(value))}</{name}>' for name, value in row.items() if value is not None)}</row>"


def _table(source: Source, header: Sequence[str], rows: Sequence[Record]) -> pa.Table:
    """The rows with columns of the declared types; `g`, which holds more than numbers, is text."""
    fields = [pa.field(name, pa.string() if name == "g" else TYPES[source.declared.get(name, "string")]) for name in header]
    return pa.Table.from_pylist([{field.name: _value(row[field.name], field.type) for field in fields} for row in rows], pa.schema(fields))


def _value(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    return str(value) if type_ == pa.string() else datetime.fromisoformat(value) if pa.types.is_timestamp(type_) else value


def _lay_table(place: Path, source: Source, rows: Sequence[Record]) -> None:
    """Of a table with a change data feed, records whose number has others than before are taken out and put in; other tables are written anew."""
    header = source.header("")
    if not (source.feed and place.exists()):
        configuration = {"delta.enableChangeDataFeed": "true" if source.feed else "false"}
        write_deltalake(str(place), _table(source, header, rows), mode="overwrite", configuration=None if place.exists() else configuration)
        return
    table = DeltaTable(str(place))
    had, have = (_by_number(source, found) for found in (pa.table(table.to_pyarrow_table()), _table(source, header, rows)))
    changed = [number for number in {**had, **have} if had.get(number) != have.get(number)]
    if changed:
        table.delete(f"{source.key} in ({', '.join(map(str, changed))})")
        write_deltalake(str(place), _table(source, header, [row for row in rows if row[source.key] in changed]), mode="append")


def _by_number(source: Source, table: pa.Table) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for row in table.to_pylist():
        found.setdefault(row[source.key], []).append(repr(sorted(row.items(), key=lambda item: item[0])))
    return {number: sorted(rows) for number, rows in found.items()}
