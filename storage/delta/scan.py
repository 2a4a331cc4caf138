"""Reading a Delta table on the driver with delta-rs: without an engine, and without pyarrow's file systems.

A file system of pyarrow written in Python is called by threads that may outlive the interpreter and abort it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from changelog.lazy_imports import pa
from storage.engines.arrow import plain

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["Condition", "Given", "Ranges", "Streaming", "Within", "add_actions", "scanned", "scanned_within", "values"]


class Condition(Protocol):
    """A filter of rows. Files are skipped by their statistics. Column names are Errata's own, never a user's."""

    def conditions(self) -> list[str]:
        """Return the conditions in the syntax of delta-rs."""


@dataclass(frozen=True, slots=True)
class Within:
    """A whole-number column between two bounds, both inclusive, or among some values."""

    column: str
    first: int | None = None
    last: int | None = None
    among: Collection[int] | None = None

    def conditions(self) -> list[str]:
        """Return the conditions. Only whole numbers are formatted into them."""
        found = [f"{self.column} {sign} {int(bound)}" for sign, bound in ((">=", self.first), ("<=", self.last)) if bound is not None]
        if self.among is not None:
            found.append(f"{self.column} IN ({', '.join(str(int(value)) for value in sorted(self.among))})" if self.among else "false")
        return found


@dataclass(frozen=True, slots=True)
class Given:
    """A column that is not null."""

    column: str

    def conditions(self) -> list[str]:
        """Return one condition."""
        return [f"{self.column} IS NOT NULL"]


@dataclass(frozen=True, slots=True)
class Ranges:
    """A binary column in one of some ranges. A range includes its first value and excludes its second."""

    column: str
    ranges: Sequence[tuple[bytes, bytes]]

    def conditions(self) -> list[str]:
        """Return one condition. Only hexadecimal digits are formatted into it."""
        found = [f"({self.column} >= X'{low.hex()}' AND {self.column} < X'{high.hex()}')" for low, high in self.ranges]
        return [f"({' OR '.join(found)})" if found else "false"]


def scanned(table: DeltaTable, columns: list[str], *wanted: Condition, most: int | None = None) -> pa.Table:
    """Return some columns of the rows that meet all conditions, in plain types and in any order; `most` ends after that number of rows. Raises OSError."""
    with Streaming():
        reader = pa.RecordBatchReader.from_stream(_scan(table, columns, wanted))
        rows = reader.read_all() if most is None else pa.Table.from_batches(_first(reader, most), reader.schema)
    return plain(rows)  # without `pa.table`, which loads pandas


def scanned_within(table: DeltaTable, columns: list[str], size: int, *wanted: Condition) -> pa.Table | None:
    """Return the same rows where they take at most `size` bytes, else None. They are read until they take more. Raises OSError."""
    found: list[pa.Table] = []
    with Streaming():
        reader = pa.RecordBatchReader.from_stream(_scan(table, columns, wanted))
        for batch in reader:
            found.append(plain(pa.Table.from_batches([batch])))
            size -= found[-1].nbytes
            if size < 0:
                return None
    return pa.concat_tables(found) if found else plain(reader.schema.empty_table())


def _first(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if most > 0:
            yield batch.slice(0, most)
        most -= batch.num_rows
        if most <= 0:
            return


def values(table: DeltaTable, columns: list[str], *wanted: Condition) -> dict[str, list[Any]]:
    """Return the same rows as lists of Python values by column. Does not load pyarrow, which takes longer than reading few rows. Raises OSError."""
    with Streaming():
        rows = _scan(table, columns, wanted).read_all()
    return {name: rows.column(name).to_pylist() for name in columns}


class Streaming:
    """Turn errors in a stream of delta-rs into OSError. They come as plain `Exception`, or as pyarrow's error for invalid data."""

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, _: object) -> None:
        if kind is Exception or (kind is not None and (kind.__module__, kind.__name__) == ("pyarrow.lib", "ArrowInvalid")):
            raise OSError(str(problem)) from problem


def add_actions(table: DeltaTable, *columns: str) -> list[tuple[Any, ...]]:
    """Return what the log says about each data file.

    Columns are `path`, `size_bytes`, `num_records`, `min.<column>`, `max.<column>` and `null_count.<column>`. A value is None where the log has none,
    for example for a column that was added later.
    """
    actions = table.get_add_actions(flatten=True)
    none, names = [None] * actions.num_rows, actions.schema.names
    return list(zip(*(actions.column(name).to_pylist() if name in names else none for name in columns), strict=True))


def _scan(table: DeltaTable, columns: list[str], wanted: Sequence[Condition]) -> Any:
    conditions = [condition for one in wanted for condition in one.conditions()]
    return table.scan(columns=columns, predicate=" AND ".join(conditions) or None)
