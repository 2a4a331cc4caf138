"""The chunk lists of a source's files, kept in its state: a row for each chunk, and a row for the records of each chunk of a file with a primary key.

The rows of chunks are few bytes, and are written anew with each change of a file. The hashes of records are many bytes. They are the same wherever the
chunk is, so they are found by its hash: rows of new chunks are added, others stay. Rows of chunks that are gone leave where most of them are such.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from changelog.columns import EPOCH, KEY
from changelog.keys.positions import parse_label, row_label, row_labels
from changelog.lazy_imports import np, pa, pc
from operators.source.diff.alignment import Positions
from operators.source.diff.chunk_index import ChunkList, chunk_schema
from operators.source.file_changes import FileRecord, Label
from storage.delta.changelog_table import ChangelogTable
from storage.delta.chosen_rows import InValues
from storage.formats import record_hashes

FILE: Final = "hash"
"""The column with the hash of the file's content; rows with the hashes of records have none."""
HASHES: Final = "hashes"
"""The column with the hashes of the records of a chunk, in rows of their own."""
DISTINCT: Final = ("digest", "begin", HASHES)
"""Columns whose values hardly repeat."""
MOST_GONE: Final = 2
"""Rows with the hashes of records are written anew where there are more than this for each chunk."""
FEW: Final = 1000
"""As many rows of chunks that are gone stay in any case."""
_BEHIND_LABELS: Final = b"\xff"
"""No label begins so."""


@dataclass(frozen=True, slots=True)
class ChunkIndex:
    """A list and the hash of the content that it is of."""

    content: str
    chunks: ChunkList


def read_lists(table: ChangelogTable, known: Sequence[FileRecord], changelog: ChangelogTable) -> dict[Label, ChunkIndex]:
    """The chunk lists of the last epoch's files whose records did not change since, by label. `changelog`: the source's table."""
    if not any(record.listed for record in known) or not table.exists():
        return {}
    rows = table.given_arrow(FILE).sort_by(KEY)
    base, found = changelog.statistics.first_epoch(), {}
    for label, start, stop in _files(rows):
        record = next((one for one in known if one.label == label and one.listed), None)
        content = rows.column(FILE)[start].as_py()
        if record is not None and record.hash == content:
            found[label] = ChunkIndex(content, _list(rows.slice(start, stop - start), _Stored(table, label), base))
    return found


@dataclass(frozen=True, slots=True)
class _Stored:
    """Finds the hashes of records in the state."""

    table: ChangelogTable
    label: Label

    def __call__(self, digests: pa.Array) -> pa.Array:
        """Return the hashes of the records of chunks, null for chunks without them. `digests`: the hashes of the chunks."""
        wanted = np.unique(digests.to_numpy())
        rows = self.table.chosen_arrow(InValues(KEY, sorted(_keys(self.label, wanted).to_pylist())))
        hashes = rows.column(HASHES).combine_chunks() if HASHES in rows.column_names else pa.nulls(rows.num_rows, pa.binary())
        return hashes.cast(pa.binary()).take(pc.index_in(digests, rows.column("digest").combine_chunks().cast(pa.int64())))


def _list(rows: pa.Table, found: _Stored, base: int) -> ChunkList:
    return ChunkList.of(rows.select(chunk_schema().names).cast(chunk_schema()), found).folded(base)


def _files(rows: pa.Table) -> list[tuple[Label, int, int]]:
    """The label of each file and where its rows are."""
    runs = pc.run_end_encode(pc.binary_slice(rows.column(KEY).combine_chunks(), 0, -len(row_label((1,)))), pa.int64())
    stops = runs.run_ends.to_pylist()
    labels = [parse_label(prefix)[0] for prefix in runs.values.to_pylist()]
    return list(zip(labels, [0, *stops], stops, strict=False))


def write_lists(table: ChangelogTable, lists: Mapping[Label, ChunkIndex], epoch: int) -> None:
    """Let these lists take the place of all that the table has. Two durable steps at most, more where the table is new."""
    rows = _together([_chunks(label, one) for label, one in lists.items()])
    hashes = _together([_added(label, one.chunks) for label, one in lists.items()])
    there = table.statistics.rows_without(FILE)
    if there and there + hashes.num_rows > MOST_GONE * rows.num_rows + FEW:
        kept = _together([_kept(label, one.chunks) for label, one in lists.items()])
        table.replace_before(_stamped(pa.concat_tables([rows, hashes, kept]), epoch), epoch + 1, distinct=DISTINCT)
        return
    if hashes.num_rows:
        table.append(hashes, epoch, distinct=DISTINCT)
    if table.exists():
        table.replace_before(_stamped(rows, epoch), epoch + 1, distinct=DISTINCT, given=FILE)
    else:
        table.append(rows, epoch, distinct=DISTINCT)


def _together(parts: Sequence[Mapping[str, pa.Array]]) -> pa.Table:
    """Rows with all columns of the table; the others of each part are null."""
    schema = pa.schema([pa.field(KEY, pa.binary()), pa.field(FILE, pa.string()), *chunk_schema(), pa.field(HASHES, pa.binary())])
    made = [pa.Table.from_arrays([part[one.name] if one.name in part else pa.nulls(len(part[KEY]), one.type) for one in schema], schema=schema) for part in parts]
    return pa.concat_tables([schema.empty_table(), *made])


def _chunks(label: Label, one: ChunkIndex) -> dict[str, pa.Array]:
    """The rows of the chunks of a file."""
    rows = one.chunks.table
    keys = row_labels(row_label(label), np.arange(1, rows.num_rows + 1))
    return {KEY: keys, FILE: pa.repeat(pa.scalar(one.content, pa.string()), rows.num_rows), **dict(zip(rows.column_names, rows.columns, strict=True))}


def _added(label: Label, chunks: ChunkList) -> dict[str, pa.Array]:
    """The rows with the hashes of the records of chunks that are new."""
    return _hashes(label, *(chunks.added() or (pa.nulls(0, pa.int64()), pa.nulls(0, pa.binary()))))


def _kept(label: Label, chunks: ChunkList) -> dict[str, pa.Array]:
    """The rows with the hashes of the records of a file's other chunks; none where these are more than a column holds."""
    if record_hashes.WIDTH * int(chunks.known.records.sum()) > record_hashes.MOST:
        return _hashes(label, pa.nulls(0, pa.int64()), pa.nulls(0, pa.binary()))
    fresh = chunks.added()
    own = np.unique(chunks.table.column("digest").to_numpy())
    digests = pa.array(own if fresh is None else np.setdiff1d(own, fresh[0].to_numpy()))
    hashes = chunks.found(digests)
    there = hashes.is_valid()
    return _hashes(label, digests.filter(there), hashes.filter(there))


def _hashes(label: Label, digests: pa.Array, hashes: pa.Array) -> dict[str, pa.Array]:
    return {KEY: _keys(label, digests.to_numpy(zero_copy_only=False)), "digest": digests, HASHES: hashes}


def _keys(label: Label, digests: Positions) -> pa.Array:
    """The keys of rows with the hashes of the records of chunks, by the hashes of the chunks."""
    prefix = np.frombuffer(_BEHIND_LABELS + row_label(label), np.uint8)
    keys = np.empty((len(digests), len(prefix) + record_hashes.WIDTH), np.uint8)
    keys[:, : len(prefix)] = prefix
    keys[:, len(prefix) :] = digests.astype(">i8").view(np.uint8).reshape(-1, record_hashes.WIDTH)
    offsets = np.arange(len(digests) + 1, dtype=np.int32) * keys.shape[1]
    return pa.Array.from_buffers(pa.binary(), len(digests), [None, pa.py_buffer(offsets), pa.py_buffer(keys)])


def _stamped(rows: pa.Table, epoch: int) -> pa.Table:
    return rows.append_column(EPOCH, pa.repeat(pa.scalar(epoch, pa.int64()), rows.num_rows))
