"""Data files of a Delta table: their statistics in the log, their rows, and new files."""

from __future__ import annotations

import io
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import orjson

from changelog.lazy_imports import np, pa, pl

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction
    from numpy.typing import NDArray

__all__ = ["DataFile", "TableFiles", "first_fitting", "inside", "local_folder", "met", "removed", "values_of"]

FILE_BYTES = 8 << 20
"""Usual size of the files of an output table. Changes rewrite whole files."""
_COMPARED = ("long", "string", "date")
"""Delta types whose bounds decide which files to skip. Bounds of other types may be rounded, or leave values out."""
_COUNTED_COLUMNS = 32
"""Number of columns with bounds in the log; Delta's default."""
_LONG_TEXT = 32
"""Longest text in bounds. Longer ones would be cut, and some engines take them for values."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file, by its path in the table. `bounds` has the lowest and highest value of columns, `nulls` their number of nulls, where known."""

    path: str
    size: int
    rows: int
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    nulls: Mapping[str, int] = field(default_factory=dict)


def values_of(rows: pl.DataFrame, name: str) -> pl.Series:
    """Return the values of a column without its name, because Polars reads some names as patterns."""
    return rows[name].alias("")


def inside(file: DataFile, name: str, values: pl.Series) -> pl.Series:
    """Return which values of a column a file may hold."""
    bounds = file.bounds.get(name)
    within = values.is_not_null() if bounds is None else values.is_between(*bounds).fill_null(value=False)
    return within if file.nulls.get(name) == 0 else within | values.is_null()


def met(files: Sequence[DataFile], name: str, values: pl.Series) -> pl.Series:
    """Return how many values of a column each file may hold: `inside` for many files at once."""
    there, empty = values.drop_nulls().sort(), values.null_count()
    lows, highs = (pl.Series([file.bounds[name][end] if name in file.bounds else None for file in files], dtype=values.dtype) for end in (0, 1))
    known = lows.is_not_null()
    within = there.search_sorted(highs, "right").cast(pl.Int64) - there.search_sorted(lows, "left").cast(pl.Int64)
    nulls = pl.Series([0 if file.nulls.get(name) == 0 else empty for file in files], dtype=pl.Int64)
    return within.zip_with(known, pl.Series([there.len()], dtype=pl.Int64)) + nulls


def first_fitting(files: Sequence[DataFile], name: str, values: pl.Series) -> NDArray[np.int64]:
    """Return the number of the first file that may hold each value of a column, `len(files)` where none may. `inside` for many files and values at once."""
    points = pl.Series(sorted({bound for file in files for bound in file.bounds.get(name, ())}), dtype=values.dtype)
    fits = np.full(2 * len(points) + 1, len(files))  # of values before the first point, at it, between it and the second one, and so on
    for number, file in reversed(list(enumerate(files))):
        low, high = (points.index_of(bound) for bound in file.bounds[name]) if name in file.bounds else (None, None)
        fits[slice(None) if low is None or high is None else slice(2 * low + 1, 2 * high + 2)] = number
    there, known = values.is_not_null().to_numpy(), values.drop_nulls()
    found = np.full(len(values), next((number for number, file in enumerate(files) if file.nulls.get(name) != 0), len(files)))
    found[there] = fits[sum(points.search_sorted(known, side).to_numpy().astype(np.int64) for side in ("left", "right"))]
    return found


def local_folder(table: DeltaTable) -> Path | None:
    """Return the folder of a local table; None for other tables. delta-rs writes its place as a URL."""
    url = urlsplit(table.table_uri)
    return Path(unquote(url.path)) if url.scheme == "file" else None


class TableFiles:
    """Reads and writes files of a table through the object store of delta-rs."""

    def __init__(self, table: DeltaTable) -> None:
        from deltalake._internal import (
            DeltaFileSystemHandler,  # `deltalake.fs`, the file system for pyarrow, refuses what pyarrow writes
        )

        self._table = table
        self._store = DeltaFileSystemHandler(table.table_uri)

    def all(self) -> list[DataFile]:
        """Return all files of the table."""
        actions = pl.DataFrame(self._table.get_add_actions(flatten=True))
        known = [one.name for one in self._table.schema().fields if getattr(one.type, "type", None) in _COMPARED and {f"min.{one.name}", f"max.{one.name}"} <= {*actions.columns}]
        return [_data_file(row, known) for row in actions.iter_rows(named=True)]

    def place(self, file: DataFile) -> Path | None:
        """Return the path of a file of a local table; None for other tables."""
        folder = local_folder(self._table)
        return None if folder is None else folder / file.path

    def content(self, file: DataFile) -> bytes:
        """Return the bytes of a file."""
        return bytes(self._store.open_input_file(file.path).read(file.size))

    def read(self, file: DataFile, schema: pa.Schema) -> pl.DataFrame:
        """Return the rows of a file."""
        import pyarrow.parquet as pq

        content = io.BytesIO(self.content(file))
        if any(pa.types.is_timestamp(kind) for kind in schema.types):  # Spark writes nanoseconds, which end in the year 2262
            return pl.DataFrame(pq.read_table(content, coerce_int96_timestamp_unit="us").select(schema.names).cast(schema))
        rows = pl.read_parquet(content)  # in a third of the time
        return pl.DataFrame([rows.get_column(one.name).cast(one.dtype) for one in pl.DataFrame(schema.empty_table())])

    def write(self, rows: pl.DataFrame) -> AddAction:
        """Write a file and return the action that adds it. Readers see the file after the commit."""
        from deltalake.transaction import AddAction

        sink = io.BytesIO()
        rows.write_parquet(sink, compression="snappy", statistics=False)  # the log has the bounds; to write them twice takes a fifth of the time
        content, path = sink.getvalue(), f"part-{uuid4()}.snappy.parquet"
        self.put(path, content)
        return AddAction(path, len(content), {}, _now(), data_change=True, stats=_stats(rows))

    def put(self, path: str, content: bytes) -> None:
        """Write a file by its path in the table."""
        stream = self._store.open_output_stream(path)
        stream.write(content)
        stream.close()  # type: ignore[attr-defined]  # the stub lacks it


def removed(file: DataFile) -> RemoveAction:
    """Return the action that removes a file."""
    from deltalake.transaction import RemoveAction

    return RemoveAction(file.path, data_change=True, deletion_timestamp=_now(), size=file.size)


def _now() -> int:
    return time.time_ns() // 1_000_000


def _data_file(action: Mapping[str, Any], names: Iterable[str]) -> DataFile:
    bounds = {name: (action[f"min.{name}"], action[f"max.{name}"]) for name in names}
    nulls = {name: action.get(f"null_count.{name}") for name in names}
    return DataFile(
        action["path"], action["size_bytes"], action["num_records"] or 0,
        {name: pair for name, pair in bounds.items() if None not in pair}, {name: count for name, count in nulls.items() if count is not None},
    )  # fmt: skip


def _stats(rows: pl.DataFrame) -> str:
    """Return the statistics of a file for the log, in the JSON of Delta's protocol. Bounds are exact values of the column."""
    columns = rows.columns[:_COUNTED_COLUMNS]
    bounds = {name: pair for name in columns if (pair := _bounds(values_of(rows, name))) is not None}
    return orjson.dumps({
        "numRecords": rows.height,
        "minValues": {name: low for name, (low, _) in bounds.items()},
        "maxValues": {name: high for name, (_, high) in bounds.items()},
        "nullCount": {name: rows[name].null_count() for name in columns},
    }).decode()  # fmt: skip


def _bounds(values: pl.Series) -> tuple[Any, Any] | None:
    kind = values.dtype
    if kind not in (pl.Int64, pl.Float64, pl.String, pl.Date) or values.len() == values.null_count():
        return None
    low, high = values.min(), values.max()
    if kind == pl.Float64:
        return None if values.is_nan().any() else _float_bounds(low, high)
    if kind == pl.String and max(len(str(low)), len(str(high))) > _LONG_TEXT:
        return None
    return low, high


def _float_bounds(low: Any, high: Any) -> tuple[float, float] | None:
    """Return bounds that include zeros of both signs. None where a bound is no JSON number."""
    if math.isinf(low) or math.isinf(high):
        return None
    return (low or -0.0), (high or 0.0)
