"""Two versions of a large file by their chunks: which are unchanged, and where the records of the others belong.

The source's state contains the chunk list of each large file. It locates the records of each chunk in the source's changelog: between two order keys
without a primary key, in spans of rows with one (`operators.source.diff.chunk_spans`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from changelog.keys.positions import parse_label, row_labels
from changelog.lazy_imports import F, np, pa
from operators.source.diff.alignment import Positions, align
from operators.source.file_changes import Label
from storage.engines import Engine
from storage.formats import record_hashes
from storage.formats.content_chunks import ContentChunks, KnownChunks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.formats.record_hashes import RecordHashes


FETCHED_ROWS: Final = 500_000
FETCHED_BYTES: Final = 32 << 20
"""Records of at most this many bytes of text are brought to the driver with all columns, so that differing ones need not be read again."""
REGION_BYTES: Final = 4 << 20
"""Bytes of changed chunks that one task reads, about."""
MOST_CHANGED: Final = 1 / 3
"""Share of changed chunks above which comparing the whole file takes less time."""
FEW_RANGES: Final = 8
"""Ranges of keys that are written as conditions of a query, at most; more ranges are joined."""
BIN_BYTES: Final = 5


@cache
def chunk_schema() -> pa.Schema:
    """Return the Arrow schema of a list of chunks: hash, hash of the begin, number of records and bytes of each, and where its records are.

    `salt` is that of all hashes. `first` and `last` are the order keys of the first and the last record, for sources without a primary key. `spans` belong to sources with one:
    triples of 8 bytes each, the epoch that read the records, their first row and their last row.
    """
    numbers = ("digest", "begin", "records", "size", "salt")
    names = ("digest", "begin", "records", "size", "first", "last", "spans", "salt")
    return pa.schema([pa.field(name, pa.int64() if name in numbers else pa.binary()) for name in names])


@dataclass(frozen=True, slots=True)
class Records:
    """The records of some chunks of a file that was read, in order.

    Attributes:
        hashes: Hashes of their bytes.
        rows: Their numbers in the file.
        epochs: The epochs that read them.
        stored: The numbers that they had then.
    """

    hashes: RecordHashes
    rows: Positions
    epochs: Positions
    stored: Positions


def _nothing(digests: pa.Array) -> pa.Array:
    """Find no hashes of records."""
    return pa.nulls(len(digests), pa.binary())


@dataclass(frozen=True)
class ChunkList:
    """The chunks of a file in order.

    Attributes:
        made: Makes the table of the chunks.
        found: Finds the hashes of the records of chunks by the hashes of these, as they are stored; null where there are none.
        added: Makes the pairs of a chunk's hash and the hashes of its records that are not stored yet.
    """

    made: Callable[[], pa.Table]
    found: Callable[[pa.Array], pa.Array] = _nothing
    added: Callable[[], tuple[pa.Array, pa.Array] | None] = lambda: None

    @cached_property
    def table(self) -> pa.Table:
        """The chunks with the columns of `chunk_schema`. Made on first use, since it waits for the hashes of the file."""
        return self.made()

    @property
    def rows(self) -> Positions:
        """The row number of each chunk's first record and, at the end, the number after the last record."""
        counts = self.table.column("records").to_numpy()
        return np.concatenate([[1], 1 + np.cumsum(counts)])

    @cached_property
    def known(self) -> KnownChunks:
        """The chunks by which the next version of the file finds the same ones."""
        digests, begins, sizes, records = (self.table.column(name).to_numpy() for name in ("digest", "begin", "size", "records"))
        return KnownChunks(digests.view(np.uint64), begins.view(np.uint64), sizes, records, self.table.column("salt")[0].as_py())

    def hashes_of(self, numbers: Positions) -> RecordHashes | None:
        """Return the hashes of the records of some chunks, as they are stored; None where one of them has none."""
        chosen = self.table.select(["digest", "records"]).take(pa.array(numbers))
        return record_hashes.of_chunks(self.found(chosen.column("digest").combine_chunks()), chosen.column("records").to_numpy())

    @classmethod
    def of(cls, table: pa.Table, found: Callable[[pa.Array], pa.Array] = _nothing) -> ChunkList:
        """The list that a table has. `found`: as in the class."""
        return cls(lambda: table, found)

    @classmethod
    def by_labels(cls, chunks: ContentChunks, first: pa.Array, last: pa.Array) -> ChunkList:
        """The list of a file whose records have labels."""
        return cls(lambda: _table(chunks, first, last, pa.nulls(len(first), pa.binary())))

    @classmethod
    def by_spans(cls, chunks: ContentChunks, spans: pa.Array, before: ChunkList | None = None) -> ChunkList:
        """The list of a file whose records have primary keys. `before`: that of its last version."""
        none = pa.nulls(len(spans), pa.binary())
        return cls(lambda: _table(chunks, none, none, spans), _nothing if before is None else before.found, lambda: _not_stored(chunks, before))

    @classmethod
    def of_new_file(cls, chunks: ContentChunks) -> ChunkList:
        """The list of a file that is read for the first time, so that record n has label n."""
        return cls.by_labels(chunks, own_labels(chunks.rows[:-1]), own_labels(chunks.rows[1:] - 1))

    def folded(self, base: int) -> ChunkList:
        """The list where all earlier epochs are folded into `base`."""
        texts = self.table.column("spans").to_pylist()
        if texts[0] is None or bool((np.frombuffer(b"".join(texts), "<i8")[::3] >= base).all()):
            return self
        spans = [np.frombuffer(text, "<i8").reshape(-1, 3) for text in texts]
        lifted = pa.array([np.maximum(one, (base, 0, 0)).astype("<i8").tobytes() for one in spans], pa.binary())
        return ChunkList.of(self.table.set_column(self.table.schema.get_field_index("spans"), "spans", lifted), self.found)

    def label_behind(self, number: int) -> Label | None:
        """Return the order key of the last record before a chunk; None before the first."""
        return parse_label(self.table.column("last")[number - 1].as_py())[0] if number else None

    def label_at(self, number: int) -> Label | None:
        """Return the order key of the first record of a chunk; None after the last."""
        return parse_label(self.table.column("first")[number].as_py())[0] if number < self.table.num_rows else None

    def changed(self, now: ContentChunks, stayed: tuple[Positions, Positions], chosen: Positions, first: pa.Array, last: pa.Array) -> ChunkList:
        """Return the new list: unchanged chunks keep their order keys, the chunks `chosen` get new ones."""
        order = np.argsort(np.concatenate([stayed[1], chosen]))
        kept = [self.table.column(name).combine_chunks().take(pa.array(stayed[0])) for name in ("first", "last")]
        ends = [pa.concat_arrays([one, fresh]).take(pa.array(order)) for one, fresh in zip(kept, (first, last), strict=True)]
        return ChunkList.by_labels(now, *ends)

    def ranges(self, bounds: Sequence[tuple[int, int]]) -> list[tuple[bytes, bytes]]:
        """Return the ranges of order keys of ranges of chunks, the end excluded."""
        first = self.table.column("first")
        return [(first[low].as_py() if low else b"", first[high].as_py() if high < self.table.num_rows else b"\xff") for low, high in bounds if low < high]

    def standing(self, rows: DataFrame, bounds: Sequence[tuple[int, int]], prefix: bytes, engine: Engine) -> DataFrame:
        """Return the file's rows in ranges of chunks."""
        ends = self.ranges(bounds)
        if len(ends) > FEW_RANGES:
            return _in_bins(rows, ends, self.table.column("last")[-1].as_py(), prefix, engine)
        within = [(F.col("_key") >= F.lit(prefix + low)) & (F.col("_key") < F.lit(prefix + high)) for low, high in ends]
        return rows.where(reduce(or_, within)) if within else rows.where(F.lit(False))


def _in_bins(rows: DataFrame, ends: Sequence[tuple[bytes, bytes]], last: bytes, prefix: bytes, engine: Engine) -> DataFrame:
    """Return the rows whose keys lie in one of many ranges. They are joined by the first bytes of their order keys, which 256 neighbours share."""
    spread = [(bin_, low, high) for low, high in ends for bin_ in range(_bin(low), _bin(min(high, last)) + 1)]
    bins = pa.array([f"{one:0{2 * BIN_BYTES}X}" for one, _, _ in spread])
    columns = {"__low": [prefix + low for _, low, _ in spread], "__high": [prefix + high for _, _, high in spread]}
    wanted = engine.from_arrow(pa.table({"__bin": bins, **{name: pa.array(values, pa.binary()) for name, values in columns.items()}}))
    inside = (F.substring(F.hex("_key"), 2 * len(prefix) + 1, 2 * BIN_BYTES) == F.col("__bin")) & (F.col("_key") >= F.col("__low")) & (F.col("_key") < F.col("__high"))
    return rows.join(F.broadcast(wanted), inside, "left_semi")


def _bin(label: bytes) -> int:
    return int.from_bytes(label[:BIN_BYTES], "big")


def own_labels(rows: Positions) -> pa.Array:
    """The labels that the records of these numbers have in a file that is read for the first time."""
    return row_labels(b"", rows)


def _table(chunks: ContentChunks, first: pa.Array, last: pa.Array, spans: pa.Array) -> pa.Table:
    columns = [chunks.digests, chunks.begins, pa.array(np.diff(chunks.rows)), pa.array(np.diff(chunks.starts)), first, last, spans]
    return pa.Table.from_arrays([*columns, pa.repeat(pa.scalar(chunks.salt, pa.int64()), chunks.count)], schema=chunk_schema())


def _not_stored(chunks: ContentChunks, before: ChunkList | None) -> tuple[pa.Array, pa.Array] | None:
    """The hashes of chunks that the last version of the file did not have, and the hashes of their records; each chunk once."""
    hashes = chunks.hashes
    if hashes is None:
        return None
    digests = chunks.digests if chunks.hashed is None else chunks.digests.take(chunks.hashed)
    kept, places = np.unique(digests.to_numpy(), return_index=True)
    if before is not None:
        places = places[np.isin(kept, before.known.digests.view(np.int64), invert=True)]
    places = np.sort(places)
    if len(places) < len(digests):
        digests, hashes = (column.take(pa.array(places)) for column in (digests, hashes))
    there = hashes.is_valid()
    return (digests, hashes) if not hashes.null_count else (digests.filter(there), hashes.filter(there))


def matched(old: ChunkList, new: ContentChunks, *, same_rows: bool = False) -> tuple[Positions, Positions]:
    """Return the numbers of the unchanged chunks, before and now. `same_rows`: only those whose records have the same row numbers."""
    digests = pa.concat_arrays([old.table.column("digest").combine_chunks(), new.digests])
    codes = digests.dictionary_encode().indices.to_numpy().astype(np.int64)
    left, right = align(codes[: old.table.num_rows], codes[old.table.num_rows :])
    if not same_rows:
        return left, right
    alike = old.rows[left] == new.rows[right]
    return left[alike], right[alike]


def is_little(now: ContentChunks, chosen: Positions) -> bool:
    """Return whether few enough records are in these chunks that comparing only them saves time."""
    return int((now.rows[chosen + 1] - now.rows[chosen]).sum()) <= now.records * MOST_CHANGED


@dataclass(frozen=True, slots=True)
class Region:
    """A place where two versions of a file differ: a range of old chunks and the range of new chunks in their place, ends excluded."""

    old: tuple[int, int]
    new: tuple[int, int]


def regions_between(stayed: tuple[Positions, Positions], old: int, new: int) -> list[Region]:
    """Return the regions between the unchanged chunks. `old` and `new` are the numbers of chunks."""
    opens, closes = ([np.concatenate([[-1], one]) + 1 for one in stayed], [np.concatenate([one, [count]]) for one, count in zip(stayed, (old, new), strict=True)])
    bounds = zip(opens[0].tolist(), closes[0].tolist(), opens[1].tolist(), closes[1].tolist(), strict=True)
    return [Region((low, high), (start, end)) for low, high, start, end in bounds if low < high or start < end]


def numbered(rows: Positions, chosen: Positions) -> Positions:
    """Return the numbers of the records of some chunks. `rows` are the numbers of the chunks' first records, then the one after the last record."""
    counts = rows[chosen + 1] - rows[chosen]
    return np.repeat(rows[chosen] - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))


def numbers_in(bounds: Sequence[tuple[int, int]]) -> Positions:
    """All numbers of some ascending ranges."""
    return np.concatenate([np.empty(0, np.int64), *(np.arange(low, high) for low, high in bounds)])


def groups(rows: Positions, bounds: Sequence[tuple[int, int]]) -> Iterator[slice]:
    """Yield the positions of the records of each range when the ranges are concatenated. `rows` are the numbers of the chunks' first records."""
    at = 0
    for low, high in bounds:
        count = int(rows[high] - rows[low])
        yield slice(at, at + count)
        at += count
