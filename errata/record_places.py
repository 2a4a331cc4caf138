"""Where source records stand in their files: from keys to file, row in the file, and row counted on across the files of a source."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, cast

from changelog.labels import first_number, label_end, parse_label, row_label
from operators.ingest.files import FileRecord
from operators.rows import KeyShape

if TYPE_CHECKING:
    from errata.plan import Node, Plan
    from errata.tables import Tables
    from operators.evaluation import RunValues
    from operators.source import Source
    from storage.engines import Engine


@dataclass(frozen=True, slots=True)
class SourceState:
    """What is needed to lead keys back to files: a source's number and its present files."""

    number: int
    files: tuple[FileRecord, ...]

    def offsets(self) -> dict[str, int]:
        """How many records the files before each file have, by its path."""
        before = accumulate((one.rows for one in self.files), initial=0)
        return dict(reversed([(one.path, offset) for offset, one in zip(before, self.files, strict=False)]))


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a record: its file, its row there, and `number`, which counts on across the files in discovery order; from 1.

    A row of a table has neither row nor number.
    """

    file: str
    row: int | None
    number: int | None


@dataclass(frozen=True, slots=True)
class Lead:
    """What a key leads back to: a record of a source, or (`grouped`) a row of an aggregate; `key` is its key there."""

    node: str
    key: bytes
    grouped: bool = False


def lead_of(shape: KeyShape, key: bytes) -> Lead | None:
    """The record or the aggregate's row inside a key of this shape; None where neither is behind it."""
    if shape.kind == "merge":
        return lead_of(shape.parts[key[0]], key[1:]) if key and key[0] < len(shape.parts) else None
    if shape.parts:
        return lead_of(shape.parts[0], key)
    if not shape.source:
        return None
    return Lead(shape.source, own_key(shape, key), shape.kind == "group")


def own_key(shape: KeyShape, key: bytes) -> bytes:
    """The key of the record (or of the group) at the head of a key, without what other operators put behind it."""
    from changelog.keys import decode_key, encode_key

    if shape.types is not None:
        return encode_key(decode_key(key, shape.types), shape.types)
    return key[: label_end(key, label_end(key, 1))]


def bare(key: bytes) -> bytes:
    """The key of a record without the mark of its rejection."""
    return key.removesuffix(b"!")


@dataclass(slots=True)
class Places:
    """Finds the places of records, as they are after epoch `at` (None: now, a run under way counted in).

    Keys of a file whose row numbers moved are read once.
    """

    plan: Plan
    tables: Tables
    engine: Engine
    values: RunValues
    sources: Mapping[str, SourceState]
    at: int | None = None
    _ranks: dict[tuple[str, bytes], list[bytes]] = field(default_factory=dict)
    _offsets: dict[str, dict[str, int]] = field(default_factory=dict)
    _labelled: dict[str, dict[bytes, FileRecord]] = field(default_factory=dict)

    def of(self, source: str, keys: Iterable[bytes], rows: Mapping[bytes, tuple[str, int | None]] | None = None) -> dict[bytes, Place]:
        """The places of records by key (as it is without a rejection's mark). `rows`: file and row of those of keyed sources, where known."""
        keyed = cast("Source", self.plan[source].operator).keyed
        wanted = set(keys)
        known = self._as_now(source, self._keyed_rows(source, wanted - set(rows or ())) | dict(rows or {})) if keyed else {}
        found = {key: self._keyed_place(source, key, known) if keyed else self._unkeyed_place(source, key) for key in wanted}
        return {key: place for key, place in found.items() if place is not None}

    def _placed(self, source: str, file: str, row: int | None) -> Place:
        if row is None:
            return Place(file, None, None)
        if source not in self._offsets:
            self._offsets[source] = self.sources[source].offsets()
        return Place(file, row, self._offsets[source].get(file, 0) + row)

    def _keyed_rows(self, source: str, keys: set[bytes]) -> dict[bytes, tuple[str, int | None]]:
        from pyspark.sql import functions as F

        plain = [key for key in keys if not key.startswith(b"\xff")]
        if not plain:
            return {}
        wanted = self.engine.keys_frame([*plain, *(key + b"!" for key in plain)])
        live = self.tables.live(self.engine, self.plan[source], self.values, self.at).join(F.broadcast(wanted), "_key", "left_semi")
        rows = self.engine.to_arrow(live.select("_key", "_file", "_row")).to_pylist()
        found = {row["_key"]: (row["_file"], row["_row"]) for row in rows}
        return {key: found.get(key) or found[key + b"!"] for key in plain if key in found or key + b"!" in found}

    def _as_now(self, source: str, known: Mapping[bytes, tuple[str, int | None]]) -> dict[bytes, tuple[str, int | None]]:
        """The places with the rows of today for records whose file was changed since it was read, where it is still the file of the epoch."""
        shifted = {record.path: record for record in self.sources[source].files if record.shifted and record.present}
        by_file: dict[str, list[bytes]] = {}
        for key, (file, _) in known.items():
            if file in shifted:
                by_file.setdefault(file, []).append(key)
        rows = {file: self._rows_now(source, shifted[file], keys) for file, keys in by_file.items()}
        return {key: (file, rows.get(file, {}).get(key, row)) for key, (file, row) in known.items()}

    def _rows_now(self, source: str, record: FileRecord, keys: Collection[bytes]) -> dict[bytes, int]:
        from operators.ingest.keyed import rows_now

        operator = cast("Source", self.plan[source].operator)
        files = operator.files(self.sources[source].number, self.plan.settings.folder)
        try:
            stat = files.path(record).stat()
        except OSError:
            return {}
        if (stat.st_size, stat.st_mtime_ns) != (record.size, record.mtime_ns):
            return {}
        return rows_now(files, self.engine, operator.config.merge.primary_key, record, keys)

    def _keyed_place(self, source: str, key: bytes, known: Mapping[bytes, tuple[str, int | None]]) -> Place | None:
        if key in known and known[key][0] is not None:
            return self._placed(source, *known[key])
        if not key.startswith(b"\xff") or len(key) <= 8 or key[-8:-7] + key[-1:] != b"\x00\x00":
            return None
        return self._placed(source, key[1:-8].decode(errors="replace"), parse_label(key, len(key) - 7)[0][0])

    def _unkeyed_place(self, source: str, key: bytes) -> Place | None:
        behind = label_end(key, 1)
        if source not in self._labelled:
            self._labelled[source] = {row_label(one.label): one for one in self.sources[source].files}
        record = self._labelled[source].get(key[1:behind])
        if record is None:
            return None
        row = first_number(key, behind) if record.dense else bisect_right(self._keys_of(source, record), key + b"!")
        return self._placed(source, record.path, row)

    def _keys_of(self, source: str, record: FileRecord) -> list[bytes]:
        """The keys of all records of a file in order, those of rejected ones with their mark: it comes before every other key's bytes."""
        from pyspark.sql import functions as F

        prefix = bytes([self.sources[source].number]) + row_label(record.label)
        if (source, prefix) not in self._ranks:
            live = self.tables.live(self.engine, self.plan[source], self.values, self.at).select("_key")
            own = live.where((F.col("_key") >= F.lit(prefix)) & (F.col("_key") < F.lit(prefix + b"\xff")))
            self._ranks[source, prefix] = sorted(self.engine.to_arrow(own).column("_key").to_pylist())
        return self._ranks[source, prefix]


def branch_of(plan: Plan, node: Node, key: bytes) -> str:
    """The branch of the nearest route above a node through which a row of this key came; empty where there is none."""
    rejecting = True
    while node.inputs:
        index = 0
        if node.kind == "merge" or (node.kind == "combine" and rejecting):
            index, key = (key[0], key[1:]) if key and key[0] < len(node.inputs) else (0, key)
        elif node.kind == "combine":
            index = getattr(node.operator, "driver", 0)
        name, port = node.inputs[index]
        if plan[name].kind == "route":
            return port or ""
        node, rejecting = plan[name], False
    return ""
