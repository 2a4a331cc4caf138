"""The lists of stretches of a source's files, kept in its state: one row a stretch (docs/how-it-works/architecture.md, "Changed files")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from changelog.keys.positions import parse_label, row_label, row_labels
from changelog.lazy_imports import np, pa, pc, pl
from operators.source.diff.chunk_index import ChunkList, chunk_schema
from operators.source.file_changes import FileRecord, Label
from storage.delta.changelog_table import ChangelogTable

FILE = "hash"
"""The column with the hash of the file's content."""


@dataclass(frozen=True, slots=True)
class ChunkIndex:
    """A list and the hash of the content that it is of."""

    content: str
    chunks: ChunkList


def read_lists(table: ChangelogTable, known: Sequence[FileRecord], changelog: ChangelogTable) -> dict[Label, ChunkIndex]:
    """The chunk lists of the last epoch's files whose records did not change since, by label. `changelog`: the source's table."""
    if not any(record.listed for record in known) or not table.exists():
        return {}
    rows = _in_order(table.read_arrow())
    base, found = changelog.statistics.first_epoch(), {}
    for label, start, stop in _files(rows):
        record = next((one for one in known if one.label == label and one.listed), None)
        content = rows.column(FILE)[start].as_py()
        if record is not None and record.hash == content:
            found[label] = ChunkIndex(content, _list(rows.slice(start, stop - start), base))
    return found


def _in_order(rows: pa.Table) -> pa.Table:
    """The rows by their keys, as they are mostly written: the hashes of records are many bytes to move."""
    return rows if pl.Series(rows.column("_key")).is_sorted() else rows.sort_by("_key")


def _list(rows: pa.Table, base: int) -> ChunkList:
    return ChunkList.of(rows.select(chunk_schema().names).cast(chunk_schema())).folded(base)


def _files(rows: pa.Table) -> list[tuple[Label, int, int]]:
    """The label of each file and where its rows are."""
    runs = pc.run_end_encode(pc.binary_slice(rows.column("_key").combine_chunks(), 0, -len(row_label((1,)))), pa.int64())
    stops = runs.run_ends.to_pylist()
    labels = [parse_label(prefix)[0] for prefix in runs.values.to_pylist()]
    return list(zip(labels, [0, *stops], stops, strict=False))


def write_lists(table: ChangelogTable, lists: Mapping[Label, ChunkIndex], epoch: int) -> None:
    """Let these lists take the place of all that the table has. One durable step, more where the table is new."""
    made = [_rows(label, one) for label, one in lists.items()]
    empty = pa.schema([pa.field("_key", pa.binary()), pa.field(FILE, pa.string()), *chunk_schema()]).empty_table()
    rows = pa.concat_tables([empty, *made])
    if not table.exists():
        table.append(rows, epoch)
    else:
        table.replace_before(rows.append_column("_epoch", pa.repeat(pa.scalar(epoch, pa.int64()), rows.num_rows)), epoch + 1, distinct=("digest", "hashes"))


def _rows(label: Label, one: ChunkIndex) -> pa.Table:
    rows = one.chunks.table
    keys = row_labels(row_label(label), np.arange(1, rows.num_rows + 1))
    content = pa.repeat(pa.scalar(one.content, pa.string()), rows.num_rows)
    return pa.Table.from_arrays([keys, content, *rows.columns], names=["_key", FILE, *rows.column_names])
