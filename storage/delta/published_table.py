"""A Delta table that a run writes for others: replaced, appended to, or merged with what changed (docs/tables.md, "Delta tables").

Every commit carries a mark, which says what the table held after it; so a run that died is noticed, and so is a commit by somebody else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from changelog.lazy_imports import pa, pl
from storage import durable
from storage.delta.copy_on_write import Rewriting
from storage.delta.data_files import FILE_BYTES, TableFiles
from storage.delta.external_table import QUIET
from storage.delta.maintenance import SMALL_FILE, is_fragmented
from storage.delta.multisets import Leaving
from storage.delta.scan import add_actions
from storage.errors import storing
from storage.uris import is_local

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

__all__ = ["PublishedTable"]

_LATEST = 20
"""Among so many commits the last one that changed rows is looked for, before it is among all."""
_METADATA = "userMetadata"
_PLAIN_WRITER = 2
"""The version of Delta's protocol for writers that has no features that a commit of files would have to heed."""


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
            histories = (self._table.history(limit) for limit in (_LATEST, None))
            entry = next((entry for history in histories for entry in history if entry.get("operation") not in QUIET), {})
        mark = entry.get(_METADATA)
        return None if mark is None else str(mark)

    def replace(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema, mark: str) -> None:
        """Let rows take the place of all that the table holds, making it where it is not there. One durable step."""
        from deltalake import write_deltalake

        rows = pa.RecordBatchReader.from_batches(schema, batches)
        write = partial(
            write_deltalake, self._table or self.place, rows, mode="overwrite", schema_mode="overwrite", target_file_size=FILE_BYTES,
            commit_properties=_marked(mark),
        )  # fmt: skip
        self._commit("replace", write)

    def append(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema, mark: str) -> None:
        """Add rows, and columns that the table lacks. One durable step, and another one where the table has come to have many small files."""
        from deltalake import write_deltalake

        rows = pa.RecordBatchReader.from_batches(schema, batches)
        self._commit("append", partial(write_deltalake, self._table or self.place, rows, mode="append", schema_mode="merge", commit_properties=_marked(mark)))
        self._put_together()

    def merge(self, gone: pa.Table, copies: pl.Series, came: pa.Table, mark: str) -> bool:
        """Take rows away, each as often as `copies` says, and add others; steps as of `append`. False, and nothing is done, where the table has not what is to go."""
        if not gone.num_rows:
            self.append(iter(came.to_batches()), came.schema, mark)
            return True
        assert self._table is not None  # nothing goes out of what is not there
        leaving = Leaving(pl.DataFrame(gone), copies)
        with storing(self.place):
            commit = (self._rewriting if self._plain() else self._merging)(leaving, came, mark)
        if not leaving.all_gone:
            return False
        self._commit("merge", commit)
        self._put_together()
        return True

    def _plain(self) -> bool:
        """Whether the table is as it is made here: no change data feed, deletion vectors, names of columns or partitions that its commits have to heed."""
        protocol = self._known().protocol()
        return protocol.min_reader_version == 1 and protocol.min_writer_version <= _PLAIN_WRITER and not self._known().metadata().partition_columns

    def _rewriting(self, leaving: Leaving, came: pa.Table, mark: str) -> Callable[[], object]:
        """What commits the files without the rows that leave, which are written by then, in place of those with them."""
        table = self._known()
        store = TableFiles(table)
        actions = Rewriting(store, store.all(), leaving, came).actions()
        return partial(table.create_write_transaction, actions, "append", table.schema(), commit_properties=_marked(mark))

    def _merging(self, leaving: Leaving, came: pa.Table, mark: str) -> Callable[[], object]:
        """What merges by whole rows, as delta-rs does it where a table has features of its own: every row goes that equals one that leaves, so the others of them come again."""
        table, bounds = self._known(), _bounds(leaving.rows)
        stay = leaving.staying(_scanned(table, bounds, came.schema))
        gone, came = leaving.rows.to_arrow().cast(came.schema), pa.concat_tables([came, stay.to_arrow().cast(came.schema)])
        names = came.column_names
        comes = max(names, key=len) + "_"  # what no column is called
        sides = [side.append_column(comes, pa.repeat(told, side.num_rows)) for side, told in ((gone, False), (came, True))]
        same = [f"(t.{_quoted(name)} IS NOT DISTINCT FROM s.{_quoted(name)})" for name in names]
        found = " AND ".join([*same, f"NOT s.{_quoted(comes)}", *(f"t.{bound}" for bound in bounds)])
        merger = table.merge(pa.concat_tables(sides), found, source_alias="s", target_alias="t", commit_properties=_marked(mark))
        values = {_quoted(name): f"s.{_quoted(name)}" for name in names}
        return merger.when_matched_delete().when_not_matched_insert(values, predicate=f"s.{_quoted(comes)}").execute

    def _put_together(self) -> None:
        """Make few files of many small ones; no row changes."""
        table = self._known()
        if is_fragmented(size for (size,) in add_actions(table, "size_bytes")) and self._plain():
            self._commit("optimize", partial(table.optimize.compact, target_size=SMALL_FILE))

    def _known(self) -> DeltaTable:
        assert self._table is not None  # nobody asks about a table that is not there
        return self._table

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


def _bounds(rows: pl.DataFrame) -> list[str]:
    """Between which whole numbers the values of columns lie, as conditions that delta-rs passes over files by; only digits are written into them."""
    whole = [values for values in rows if values.dtype == pl.Int64 and not values.null_count()]
    bounds = [(values.name, cast("int", values.min()), cast("int", values.max())) for values in whole]
    return [f"{_quoted(name)} BETWEEN {low:d} AND {high:d}" for name, low, high in bounds]


def _scanned(table: DeltaTable, bounds: list[str], schema: pa.Schema) -> Iterator[pl.DataFrame]:

    for batch in pa.RecordBatchReader.from_stream(table.scan(predicate=" AND ".join(bounds) or None)):
        yield pl.DataFrame(pa.Table.from_batches([batch]).select(schema.names).cast(schema))
