"""Some rows of a Delta table on the driver, chosen file by file by the values of few columns.

Many scattered rows lie in nearly every page. Polars decodes whole columns in less time than a query needs to test many conditions.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from changelog.columns import EPOCH
from changelog.lazy_imports import np, pa, pl
from storage.delta.columns import in_place
from storage.delta.data_files import TableFiles
from storage.engines.arrow import plain

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from numpy.typing import NDArray

    from storage.delta.data_files import DataFile

    Mask: TypeAlias = NDArray[np.bool_]

__all__ = ["Choice", "FileSpans", "InRanges", "InSpans", "chosen_rows"]


class Choice(Protocol):
    """Chooses rows by some of their columns."""

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns that it needs. They are Errata's own."""

    def mask(self, rows: pl.DataFrame) -> Mask:
        """Return which rows are chosen."""


@dataclass(frozen=True, slots=True)
class InRanges:
    """Rows with a binary column in one of some ranges. Ranges ascend and do not overlap; each includes its first value and excludes its second."""

    column: str
    ranges: Sequence[tuple[bytes, bytes]]

    @property
    def columns(self) -> Sequence[str]:
        """The column."""
        return (self.column,)

    def mask(self, rows: pl.DataFrame) -> Mask:
        """Return the rows within the ranges. In a sorted file the ends of the ranges are looked up, else each value."""
        values = rows[self.column]
        ends = pl.Series([end for pair in self.ranges for end in pair], dtype=pl.Binary)
        if values.is_sorted():
            at = values.search_sorted(ends, "left").to_numpy().astype(np.int64)
            return _between(at[::2], at[1::2], len(values))
        return (ends.search_sorted(values, "right").to_numpy() & 1).astype(np.bool_)


@dataclass(frozen=True, slots=True)
class FileSpans:
    """Spans of rows of a file of a source, each with the epoch that read it.

    Attributes:
        file: The file, as the column `_file` names it.
        epochs: The epoch of each span.
        first: Its first row.
        last: Its last row.
    """

    file: str
    epochs: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def mask(self, rows: pl.DataFrame) -> Mask:
        """Return the rows within the spans."""
        epochs, found = rows[EPOCH].to_numpy(), np.zeros(rows.height, np.bool_)
        numbers = rows["_row"].fill_null(0).to_numpy()
        for epoch in np.intersect1d(epochs, self.epochs):
            own = self.epochs == epoch
            found |= _between(self.first[own], self.last[own] + 1, int(numbers.max(initial=0)) + 1)[numbers] & (epochs == epoch)
        found &= (rows["_file"] == self.file).fill_null(value=False).to_numpy()
        return found


@dataclass(frozen=True, slots=True)
class InSpans:
    """Rows within the spans of some files."""

    files: Sequence[FileSpans]

    @property
    def columns(self) -> Sequence[str]:
        """The columns that hold epoch, file and row."""
        return (EPOCH, "_file", "_row")

    def mask(self, rows: pl.DataFrame) -> Mask:
        """Return the rows within the spans."""
        inside: Mask = reduce(or_, (file.mask(rows) for file in self.files), np.zeros(rows.height, np.bool_))
        return inside


def _between(starts: NDArray[np.int64], stops: NDArray[np.int64], count: int) -> Mask:
    """Return which of `count` places lie in one of some ranges, ends excluded. Ranges may overlap, and reach beyond the last place."""
    steps = np.zeros(count + 1, np.int64)
    np.add.at(steps, np.minimum(starts, count), 1)
    np.add.at(steps, np.minimum(stops, count), -1)
    inside: Mask = np.cumsum(steps[:-1]) > 0
    return inside


def chosen_rows(table: DeltaTable, names: Sequence[str], choice: Choice, last_epoch: int | None = None) -> pa.Table:
    """Return some stored columns of the chosen rows up to an epoch, in plain types and in any order. Raises OSError."""
    kinds = {where.column.name: where.column.type for where in in_place(table.schema().fields)}
    schema = pa.schema([pa.field(name, kinds[name]) for name in names])
    files = TableFiles(table)
    made = [_File(files, one).rows(schema, choice, last_epoch) for one in files.all()]
    return pa.concat_tables([schema.empty_table(), *made])


@dataclass(frozen=True, slots=True)
class _File:
    """A data file of a table."""

    files: TableFiles
    file: DataFile

    def rows(self, schema: pa.Schema, choice: Choice, last_epoch: int | None) -> pa.Table:
        """Return the chosen rows in the columns of a schema. A column that the file lacks is null."""
        content = self.files.place(self.file) or io.BytesIO(self.files.content(self.file))
        try:
            there = list(pl.read_parquet_schema(content))
            seen = _polars(content, there, [*dict.fromkeys([EPOCH, *choice.columns])])
            mask = choice.mask(seen)
            mask &= True if last_epoch is None else (seen[EPOCH] <= last_epoch).to_numpy()
            if not mask.any():
                return schema.empty_table()
            return self._decoded(content, there, schema, mask, seen)
        except (pl.exceptions.PolarsError, pa.ArrowInvalid) as problem:
            raise OSError(f"{self.file.path}: {problem}") from problem

    def _decoded(self, content: Any, there: Sequence[str], schema: pa.Schema, mask: Mask, seen: pl.DataFrame) -> pa.Table:
        names = [name for name in schema.names if name in there]
        if any(pa.types.is_timestamp(kind) for kind in schema.types):  # Spark writes nanoseconds, which end in the year 2262
            import pyarrow.parquet as pq

            rows = pq.ParquetFile(content, coerce_int96_timestamp_unit="us").read(names).filter(pa.array(mask))
        else:
            others = _polars(content, there, [name for name in names if name not in seen.columns]).filter(mask)
            known = seen.filter(mask)
            rows = pa.table({name: (known if name in known.columns else others)[name].to_arrow() for name in names})
        found = plain(rows)
        columns = [found.column(one.name).cast(one.type) if one.name in names else pa.nulls(found.num_rows, one.type) for one in schema]
        return pa.Table.from_arrays(columns, schema=schema)


def _polars(content: Any, there: Sequence[str], names: Sequence[str]) -> pl.DataFrame:
    """Return columns of a file. They are chosen by their places, because Polars reads some names as patterns."""
    places = {name: place for place, name in enumerate(there)}
    return pl.read_parquet(content, columns=[places[name] for name in names], glob=False)
