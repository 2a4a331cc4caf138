"""Reading a Delta table on the driver with delta-rs, without an engine and without pyarrow's file systems.

(pyarrow reads through a file system written in Python from threads of its own, which may outlive the interpreter and abort it.)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from changelog.lazy_imports import pa

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["Condition", "Given", "Ranges", "Streaming", "Within", "add_actions", "scanned", "values"]


class Condition(Protocol):
    """What rows are chosen by, before they are read as far as statistics tell. Names of columns are our own, never a user's."""

    def conditions(self) -> list[str]:
        """The conditions as delta-rs reads them."""


@dataclass(frozen=True, slots=True)
class Within:
    """A whole-number column within bounds, both inclusive, or among some values."""

    column: str
    first: int | None = None
    last: int | None = None
    among: Collection[int] | None = None

    def conditions(self) -> list[str]:
        """Only whole numbers are written into them."""
        found = [f"{self.column} {sign} {int(bound)}" for sign, bound in ((">=", self.first), ("<=", self.last)) if bound is not None]
        if self.among is not None:
            found.append(f"{self.column} IN ({', '.join(str(int(value)) for value in sorted(self.among))})" if self.among else "false")
        return found


@dataclass(frozen=True, slots=True)
class Given:
    """A column that is not null."""

    column: str

    def conditions(self) -> list[str]:
        """One."""
        return [f"{self.column} IS NOT NULL"]


@dataclass(frozen=True, slots=True)
class Ranges:
    """A binary column within one of some ranges: from the first bytes up to those ahead of the second."""

    column: str
    ranges: Sequence[tuple[bytes, bytes]]

    def conditions(self) -> list[str]:
        """Only hexadecimal digits are written into it."""
        found = [f"({self.column} >= X'{low.hex()}' AND {self.column} < X'{high.hex()}')" for low, high in self.ranges]
        return [f"({' OR '.join(found)})" if found else "false"]


def scanned(table: DeltaTable, columns: list[str], *wanted: Condition) -> pa.Table:
    """The rows of a table that meet all conditions, some columns of them, in plain types and no order. Raises OSError."""
    from storage.engines.arrow import plain

    with Streaming():
        rows = pa.RecordBatchReader.from_stream(_scan(table, columns, wanted)).read_all()
    return plain(rows)  # without `pa.table`, which loads pandas


def values(table: DeltaTable, columns: list[str], *wanted: Condition) -> dict[str, list[Any]]:
    """The same rows as a list of Python values a column, without pyarrow: of few rows, to load it takes longer than all else. Raises OSError."""
    with Streaming():
        rows = _scan(table, columns, wanted).read_all()
    return {name: rows.column(name).to_pylist() for name in columns}


class Streaming:
    """Gives what goes wrong in a stream of delta-rs, and comes without a class of its own or as pyarrow's for what is invalid, the class OSError."""

    def __enter__(self) -> None:
        """Nothing."""

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, _: object) -> None:
        if kind is Exception or (kind is not None and (kind.__module__, kind.__name__) == ("pyarrow.lib", "ArrowInvalid")):
            raise OSError(str(problem)) from problem


def add_actions(table: DeltaTable, *columns: str) -> list[tuple[Any, ...]]:
    """What the log says of each file: `num_records`, `min.<column>`, `max.<column>`; None where it says nothing, as of columns that came later."""
    actions = table.get_add_actions(flatten=True)
    none, names = [None] * actions.num_rows, actions.schema.names
    return list(zip(*(actions.column(name).to_pylist() if name in names else none for name in columns), strict=True))


def _scan(table: DeltaTable, columns: list[str], wanted: Sequence[Condition]) -> Any:
    conditions = [condition for one in wanted for condition in one.conditions()]
    return table.scan(columns=columns, predicate=" AND ".join(conditions) or None)
