"""Facts about a changelog table's op rows out of its log, mostly without reading a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from changelog.columns import CAUSE, EPOCH, ERROR, OP
from changelog.lazy_imports import pc
from changelog.ops import Op
from storage.delta.scan import Within, add_actions, scanned
from storage.errors import storing

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["TableStatistics"]

_BOUNDS = ("num_records", f"min.{EPOCH}", f"max.{EPOCH}", f"min.{OP}", f"max.{OP}")
"""Columns of a file: its rows, first and last epoch, lowest and highest op code."""


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """Counts of the op rows in one version of a table. A missing table (`table` is None) has no rows.

    `has_errors` says whether the table has the column `_error`.
    """

    uri: str
    table: DeltaTable | None
    has_errors: bool

    def rows(self) -> int:
        """Return the number of op rows."""
        return sum(rows for (rows,) in self._actions("num_records"))

    def rows_without(self, column: str) -> int:
        """Return the number of rows that are null in a column with statistics."""
        return sum(nulls or 0 for (nulls,) in self._actions(f"null_count.{column}"))

    def files(self, below: int | None = None) -> int:
        """Return the number of data files, or of those with fewer than `below` bytes."""
        return sum(below is None or size < below for (size,) in self._actions("size_bytes"))

    def rows_near(self, epochs: tuple[int, int]) -> int:
        """Return the number of op rows in the files that may hold rows of these epochs (first and last)."""
        return sum(rows for rows, first, last, *_ in self._actions(*_BOUNDS) if first <= epochs[1] and last >= epochs[0])

    def rows_before(self, epoch: int) -> int:
        """Return the number of op rows of earlier epochs. Reads `_epoch` of the files that hold rows of both sides."""
        files, first = self._actions(*_BOUNDS), epoch
        while across := [low for _, low, high, *_ in files if low < first <= high]:
            first = min(across)
        whole = sum(rows for rows, _, high, *_ in files if high < first)
        if first == epoch or self.table is None:
            return whole
        with storing(self.uri):
            return whole + int(scanned(self.table, [EPOCH], Within(EPOCH, first, epoch - 1)).num_rows)

    def first_epoch(self) -> int:
        """Return the earliest epoch of a row, 0 for an empty table. After a compaction this is the epoch of the base."""
        return min((first for _, first, *_ in self._actions(*_BOUNDS)), default=0)

    def retractions(self) -> int:
        """Return an upper bound of the rows that take something back: all rows of the files that may hold one."""
        return sum(rows for rows, *_, highest in self._actions(*_BOUNDS) if highest > Op.APPEND)

    def counts(self, epoch: int) -> dict[Op, int]:
        """Return the number of rows of each operation in an epoch. Reads `_op` where the bounds of the files leave it open."""
        files = self._of_epoch(epoch, *_BOUNDS)
        if all(_is_uniform(file) for file in files) or self.table is None:
            return _sums(files)
        with storing(self.uri):
            found = scanned(self.table, [OP], Within(EPOCH, epoch, epoch)).column(OP).value_counts().to_pylist()
        return dict.fromkeys(Op, 0) | {Op(entry["values"]): entry["counts"] for entry in found}

    def causes(self, epoch: int) -> dict[str, int]:
        """Return the number of op rows of an epoch by their cause, most first; `-C` is left out. Reads two columns of the epoch's files."""
        if self.table is None or not self._of_epoch(epoch, *_BOUNDS):
            return {}
        with storing(self.uri):
            rows = scanned(self.table, [OP, CAUSE], Within(EPOCH, epoch, epoch))
        counts = rows.filter(pc.not_equal(rows.column(OP), int(Op.CORRECT_FROM))).column(CAUSE).value_counts().to_pylist()
        return {entry["values"]: entry["counts"] for entry in sorted(counts, key=lambda entry: (-entry["counts"], entry["values"]))}

    def accepted_counts(self, epoch: int) -> dict[Op, int] | None:
        """Return the `counts` of an epoch without rejects. None where the epoch may have rejects, or where the log leaves it open. Reads no rows."""
        if not self.has_errors:
            files = self._of_epoch(epoch, *_BOUNDS)
            return _sums(files) if all(map(_is_uniform, files)) else None
        files = self._of_epoch(epoch, *_BOUNDS, f"null_count.{ERROR}")
        return _sums(files) if all(_is_uniform(file) and file[-1] == file[0] for file in files) else None

    def rejected_rows(self) -> int | None:
        """Return the number of op rows of rejects. None where the log leaves it open."""
        if not self.has_errors:
            return 0
        files = self._actions("num_records", f"null_count.{ERROR}")
        return None if any(nulls is None for _, nulls in files) else sum(rows - nulls for rows, nulls in files)

    def _of_epoch(self, epoch: int, *columns: str) -> list[tuple[int, ...]]:
        return [file for file in self._actions(*columns) if file[1] <= epoch <= file[2]]

    def _actions(self, *columns: str) -> list[tuple[int, ...]]:
        return [] if self.table is None else add_actions(self.table, *columns)


def _is_uniform(file: tuple[int, ...]) -> bool:
    """Return whether all rows of a file have one epoch and one operation."""
    return file[1] == file[2] and file[3] == file[4]


def _sums(files: list[tuple[int, ...]]) -> dict[Op, int]:
    return {op: sum(file[0] for file in files if file[3] == op) for op in Op}
