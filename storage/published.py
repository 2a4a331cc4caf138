"""A Delta table that a run writes for others: replaced, appended to, or merged with what changed (docs/tables.md, "Delta tables").

Every commit carries a mark, which says what the table held after it; so a run that died is noticed, and so is a commit by somebody else.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from storage import durable
from storage.failure import storing
from storage.locations import is_local
from storage.versions import QUIET

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable

__all__ = ["PublishedTable"]

FILE_BYTES = 16 << 20
"""About how large the files of a table are: a merge writes the files anew that hold changed rows."""
_METADATA = "userMetadata"
_COMES = "__comes"


class PublishedTable:
    """The table at a path or URI, as it is when it is first looked at; a commit fails where another came in between. Raises StorageError."""

    def __init__(self, place: str) -> None:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        self.place = place.removeprefix("file://") if is_local(place) else place
        self.name = self.place.rstrip("/").rpartition("/")[2]
        self._table: DeltaTable | None = None
        with storing(self.place):
            try:
                self._table = DeltaTable(self.place)
            except TableNotFoundError:
                self._table = None

    @property
    def exists(self) -> bool:
        """Whether there is a table."""
        return self._table is not None

    def mark(self) -> str | None:
        """The mark of the last commit that changed rows; None where it has none."""
        if self._table is None:
            return None
        with storing(self.place):
            entry = next((entry for entry in self._table.history() if entry.get("operation") not in QUIET), {})
        mark = entry.get(_METADATA)
        return None if mark is None else str(mark)

    def replace(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema, mark: str) -> None:
        """Let rows take the place of all that the table holds, making it where it is not there. One durable step."""
        import pyarrow as pa
        from deltalake import write_deltalake

        rows = pa.RecordBatchReader.from_batches(schema, batches)
        write = partial(
            write_deltalake, self._table or self.place, rows, mode="overwrite", schema_mode="overwrite", target_file_size=FILE_BYTES,
            commit_properties=_marked(mark),
        )  # fmt: skip
        self._commit("replace", write)

    def append(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema, mark: str) -> None:
        """Add rows. One durable step."""
        import pyarrow as pa
        from deltalake import write_deltalake

        rows = pa.RecordBatchReader.from_batches(schema, batches)
        self._commit("append", partial(write_deltalake, self._table or self.place, rows, mode="append", commit_properties=_marked(mark)))

    def merge(self, gone: pa.Table, came: pa.Table, mark: str) -> None:
        """Take every row away that equals one of `gone`, and add the rows `came`. One durable step."""
        import pyarrow as pa

        if not gone.num_rows:
            self.append(iter(came.to_batches()), came.schema, mark)
            return
        assert self._table is not None  # nothing goes out of what is not there
        names = gone.column_names
        sides = [side.append_column(_COMES, pa.repeat(comes, side.num_rows)) for side, comes in ((gone, False), (came, True))]
        same = " AND ".join([f"(t.{_quoted(name)} IS NOT DISTINCT FROM s.{_quoted(name)})" for name in names])
        merger = self._table.merge(
            pa.concat_tables(sides), f"{same} AND NOT s.{_COMES}", source_alias="s", target_alias="t", commit_properties=_marked(mark)
        )
        values = {_quoted(name): f"s.{_quoted(name)}" for name in names}
        merger = merger.when_matched_delete().when_not_matched_insert(values, predicate=f"s.{_COMES}")
        self._commit("merge", merger.execute)

    def _commit(self, kind: str, action: partial[None] | object) -> None:
        from deltalake import DeltaTable

        with storing(self.place):
            durable.step(f"{kind}:{self.name}", action)  # type: ignore[arg-type]  # any callable
            self._table = DeltaTable(self.place)


def _marked(mark: str) -> CommitProperties:
    from deltalake import CommitProperties

    return CommitProperties(custom_metadata={_METADATA: mark}, max_commit_retries=0)


def _quoted(name: str) -> str:
    """A column's name as delta-rs takes it in expressions, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'
