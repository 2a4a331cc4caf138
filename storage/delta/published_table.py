"""A Delta table that is an output: a run replaces it, appends to it, or merges changes into it.

Every commit carries a mark that names the content after it. So the next run notices a run that died, and a commit of somebody else.
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
from storage.delta.maintenance import fragmented_below
from storage.delta.multisets import Leaving
from storage.delta.scan import add_actions
from storage.errors import storing
from storage.lazy_deltalake import deltalake
from storage.uris import is_local

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

__all__ = ["PublishedTable"]

_LATEST = 20
"""Number of recent commits among which the last change of rows is looked for first."""
_METADATA = "userMetadata"
_PLAIN_WRITER = 2
"""Highest writer version of Delta's protocol without features that a commit of files must respect."""


class PublishedTable:
    """The table at a path or URI, in the version of the first look. A commit fails where another one came in between. Methods raise StorageError."""

    def __init__(self, place: str) -> None:
        self.place = place.removeprefix("file://") if is_local(place) else place
        self.name = self.place.rstrip("/").rpartition("/")[2]
        self._table: DeltaTable | None = None
        with storing(self.place):
            try:
                self._table = deltalake.DeltaTable(self.place)
            except deltalake.exceptions.TableNotFoundError:
                self._table = None

    @property
    def exists(self) -> bool:
        """Whether the table exists."""
        return self._table is not None

    def mark(self) -> str | None:
        """Return the mark of the last commit that changed rows. None where it has none."""
        if self._table is None:
            return None
        with storing(self.place):
            histories = (self._table.history(limit) for limit in (_LATEST, None))
            entry = next((entry for history in histories for entry in history if entry.get("operation") not in QUIET), {})
        mark = entry.get(_METADATA)
        return None if mark is None else str(mark)

    def replace(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema, mark: str) -> None:
        """Replace the content of the table; create the table if it is missing. One durable step."""
        rows = pa.RecordBatchReader.from_batches(schema, batches)
        write = partial(
            deltalake.write_deltalake, self._table or self.place, rows, mode="overwrite", schema_mode="overwrite", target_file_size=FILE_BYTES,
            commit_properties=_marked(mark),
        )  # fmt: skip
        self._commit("replace", write)

    def append(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema, mark: str) -> None:
        """Add rows, and columns that the table lacks. One durable step, and a second one where small files are compacted."""
        rows = pa.RecordBatchReader.from_batches(schema, batches)
        self._commit("append", partial(deltalake.write_deltalake, self._table or self.place, rows, mode="append", schema_mode="merge", commit_properties=_marked(mark)))
        self._compact()

    def merge(self, gone: pa.Table, copies: pl.Series, came: pa.Table, mark: str) -> bool:
        """Remove rows and add others. Durable steps as for `append`.

        Args:
            gone: The distinct rows to remove.
            copies: Number of copies of each to remove.
            came: The rows to add.
            mark: Mark of the commit.

        Returns:
            False, without a change, where the table lacks rows to remove.
        """
        if not gone.num_rows:
            self.append(iter(came.to_batches()), came.schema, mark)
            return True
        assert self._table is not None  # a missing table has no rows to remove
        leaving = Leaving(pl.DataFrame(gone), copies)
        with storing(self.place):
            commit = (self._rewriting if self._plain() else self._merging)(leaving, came, mark)
        if not leaving.all_gone:
            return False
        self._commit("merge", commit)
        self._compact()
        return True

    def _plain(self) -> bool:
        """Return whether the table has only features of `replace`: no change data feed, deletion vectors, column mapping or partitions."""
        protocol = self._known().protocol()
        return protocol.min_reader_version == 1 and protocol.min_writer_version <= _PLAIN_WRITER and not self._known().metadata().partition_columns

    def _rewriting(self, leaving: Leaving, came: pa.Table, mark: str) -> Callable[[], object]:
        """Rewrite the files with leaving rows, and return the commit that replaces them."""
        table = self._known()
        store = TableFiles(table)
        actions = Rewriting(store, store.all(), leaving, came).actions()
        return partial(table.create_write_transaction, actions, "append", table.schema(), commit_properties=_marked(mark))

    def _merging(self, leaving: Leaving, came: pa.Table, mark: str) -> Callable[[], object]:
        """Return a merge by whole rows with delta-rs, for a table with other features. It removes every row equal to a leaving one, so the rows that stay are added again."""
        table, bounds = self._known(), _bounds(leaving.rows)
        stay = leaving.staying(_scanned(table, bounds, came.schema))
        gone, came = leaving.rows.to_arrow().cast(came.schema), pa.concat_tables([came, stay.to_arrow().cast(came.schema)])
        names = came.column_names
        comes = max(names, key=len) + "_"  # no column has this name
        sides = [side.append_column(comes, pa.repeat(enters, side.num_rows)) for side, enters in ((gone, False), (came, True))]
        same = [f"(t.{_quoted(name)} IS NOT DISTINCT FROM s.{_quoted(name)})" for name in names]
        found = " AND ".join([*same, f"NOT s.{_quoted(comes)}", *(f"t.{bound}" for bound in bounds)])
        merger = table.merge(pa.concat_tables(sides), found, source_alias="s", target_alias="t", commit_properties=_marked(mark))
        values = {_quoted(name): f"s.{_quoted(name)}" for name in names}
        return merger.when_matched_delete().when_not_matched_insert(values, predicate=f"s.{_quoted(comes)}").execute

    def _compact(self) -> None:
        """Compact small files where there are many; no row changes."""
        table = self._known()
        below = fragmented_below(size for (size,) in add_actions(table, "size_bytes"))
        if below and self._plain():
            self._commit("optimize", partial(table.optimize.compact, target_size=below))

    def _known(self) -> DeltaTable:
        assert self._table is not None  # callers check `exists`
        return self._table

    def _commit(self, kind: str, action: partial[None] | object) -> None:
        with storing(self.place):
            durable.step(f"{kind}:{self.name}", action)  # type: ignore[arg-type]  # any callable
            self._table = deltalake.DeltaTable(self.place)


def _marked(mark: str) -> CommitProperties:
    return deltalake.CommitProperties(custom_metadata={_METADATA: mark}, max_commit_retries=0)


def _quoted(name: str) -> str:
    """Return a column name for expressions of delta-rs."""
    return '"' + name.replace('"', '""') + '"'


def _bounds(rows: pl.DataFrame) -> list[str]:
    """Return the bounds of whole-number columns, as conditions by which delta-rs skips files. Only digits are formatted into them."""
    whole = [values for values in rows if values.dtype == pl.Int64 and not values.null_count()]
    bounds = [(values.name, cast("int", values.min()), cast("int", values.max())) for values in whole]
    return [f"{_quoted(name)} BETWEEN {low:d} AND {high:d}" for name, low, high in bounds]


def _scanned(table: DeltaTable, bounds: list[str], schema: pa.Schema) -> Iterator[pl.DataFrame]:
    for batch in pa.RecordBatchReader.from_stream(table.scan(predicate=" AND ".join(bounds) or None)):
        yield pl.DataFrame(pa.Table.from_batches([batch]).select(schema.names).cast(schema))
