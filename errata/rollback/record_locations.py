"""Where source records stand in their files: from keys to file, row in the file, and row counted on across the files of a source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, cast

import polars as pl

from changelog.keys.decode import KeyBytes, arrow_keys, bare_keys
from changelog.keys.positions import row_label
from changelog.lazy_imports import F, pa
from errata.plan.plan import Plan
from errata.state.node_tables import Tables
from operators.core.run_values import RunValues
from operators.source.diff.by_key import rows_now
from operators.source.file_changes import FileRecord
from operators.source.node import SourceNode
from storage.files.stores import store_of
from storage.state.entry import Entry

if TYPE_CHECKING:
    from storage.engines.base import Engine

PLACE = {"file": pl.String, "row": pl.Int64, "number": pl.Int64}
"""The place of a record: its file, its row there, and `number`, which counts on across the files in discovery order; from 1.

A row of a table has neither row nor number; all are null of a record that has no place.
"""

BY_PLACE = b"\xff"
"""The first byte of the keys of rejected records of keyed sources: behind it stand the file's path, 00 and the label of the row."""

ROW_LABEL_BYTES = 7


@dataclass(frozen=True, slots=True)
class SourceState:
    """A source's number and its present files, which lead keys back to files."""

    number: int
    files: tuple[FileRecord, ...]

    @classmethod
    def left(cls, entry: Entry, plan: Plan) -> dict[str, SourceState]:
        """The plan's sources after an epoch."""
        return {name: cls(int(one["number"]), FileRecord.all_of(one)) for name, one in entry.sources.items() if name in plan.nodes}

    def offsets(self) -> dict[str, int]:
        """How many records the files before each file have, by its path."""
        before = accumulate((one.rows for one in self.files), initial=0)
        return dict(reversed([(one.path, offset) for offset, one in zip(before, self.files, strict=False)]))


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
    _offsets: dict[str, pl.DataFrame] = field(default_factory=dict)
    _keys: dict[bytes, pl.Series] = field(default_factory=dict)

    def of(self, source: str, keys: pl.Series, known: pl.DataFrame | None = None) -> pl.DataFrame:
        """The places (`PLACE`) of records by key without a rejection's mark. `known`: file and row in keyed sources, null where not known."""
        keyed = cast("SourceNode", self.plan[source].operator).keyed
        found = self._keyed(source, keys, known) if keyed else self._unkeyed(source, keys)
        if source not in self._offsets:
            offsets = self.sources[source].offsets()
            self._offsets[source] = pl.DataFrame({"file": list(offsets), "offset": list(offsets.values())}, schema={"file": pl.String, "offset": pl.Int64})
        placed = found.join(self._offsets[source], on="file", how="left", maintain_order="left")
        return placed.select("file", "row", number=pl.col("offset").fill_null(0) + pl.col("row"))

    def numbers(self, source: str, keys: Iterable[bytes]) -> dict[bytes, int]:
        """The numbers of the records that have one."""
        asked = pl.Series(list(keys), dtype=pl.Binary)
        return {key: number for key, number in zip(asked, self.of(source, asked)["number"], strict=True) if number is not None}

    # -- keyed sources

    def _keyed(self, source: str, keys: pl.Series, known: pl.DataFrame | None) -> pl.DataFrame:
        rows = pl.DataFrame({"key": keys}).hstack(known if known is not None else pl.DataFrame({"file": [None] * len(keys), "row": [None] * len(keys)}))
        rows = rows.select("key", pl.col("file").cast(pl.String), pl.col("row").cast(pl.Int64))
        rows = _filled(rows, self._keyed_rows(source, rows.filter(pl.col("file").is_null())["key"]))
        return self._named(source, _filled(self._as_now(source, rows), _by_place(rows.filter(pl.col("file").is_null())["key"])))

    def _named(self, source: str, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows with the paths that files have, where their records have another (`FileRecord.stored`)."""
        paths = {one.stored: one.path for one in self.sources[source].files if one.stored_as is not None}
        return rows.with_columns(pl.col("file").replace(paths)) if paths else rows

    def _keyed_rows(self, source: str, keys: pl.Series) -> pl.DataFrame:
        """Key, file and row of live records."""
        plain = keys.filter(~keys.bin.starts_with(BY_PLACE)).unique()
        if not len(plain):
            return pl.DataFrame(schema={"key": pl.Binary, "file": pl.String, "row": pl.Int64})

        asked = pl.DataFrame({"key": plain}).select("key", stored=pl.col("key"))
        asked = pl.concat([asked, asked.with_columns(stored=pl.col("key") + pl.lit(b"!"))])  # an admitted record comes ahead of a rejected one
        wanted = self.engine.from_arrow(pa.table({"_key": arrow_keys(asked["stored"])}))
        live = self.tables.live(self.engine, self.plan[source], self.values, self.at).as_frame().join(F.broadcast(wanted), "_key", "left_semi")
        rows = self.engine.to_arrow(live.select("_key", "_file", "_row"))
        found = pl.DataFrame({"stored": rows.column("_key"), "file": rows.column("_file"), "row": rows.column("_row")})
        return asked.join(found, on="stored", maintain_order="left").unique("key", keep="first", maintain_order=True).drop("stored")

    def _as_now(self, source: str, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows of today for records whose file was changed since it was read, where it is still the file of the epoch."""
        shifted = {record.stored: record for record in self.sources[source].files if record.shifted and record.present}
        for path in rows["file"].unique().to_list():
            if path in shifted:
                now = self._rows_now(source, shifted[path], rows.filter(pl.col("file") == path)["key"].unique())
                moved = rows.join(now, on="key", how="left", maintain_order="left")
                rows = moved.select("key", "file", row=pl.when(pl.col("file") == path).then(pl.coalesce("now", "row")).otherwise("row"))
        return rows

    def _rows_now(self, source: str, record: FileRecord, keys: pl.Series) -> pl.DataFrame:
        """Key and row of records in a file, none where the file changed since the epoch."""
        operator = cast("SourceNode", self.plan[source].operator)
        files = operator.files(self.sources[source].number, self.plan.settings.places)
        none = pl.DataFrame(schema={"key": pl.Binary, "now": pl.Int64})
        place = files.path(record)
        stamp = store_of(place).stamp(place)
        if stamp is None or not record.seen(stamp):
            return none
        found = rows_now(files, self.engine, record, arrow_keys(keys.sort()))
        return pl.DataFrame({"key": found.column("_key"), "now": found.column("_row")})

    # -- sources whose keys name the file and the row

    def _unkeyed(self, source: str, keys: pl.Series) -> pl.DataFrame:
        if not len(keys):
            return pl.DataFrame(schema={"file": pl.String, "row": pl.Int64})
        read = KeyBytes.of(keys)
        ends = read.label_ends(read.start() + 1)
        rows = pl.DataFrame({"key": keys, "end": ends, "first": read.first_numbers(ends)})
        rows = rows.with_columns(label=pl.col("key").bin.slice(1, pl.col("end") - 1))
        files = {row_label(one.label): one for one in self.sources[source].files}
        there = [(label, one.path, one.dense) for label, one in files.items()]
        labels = pl.DataFrame(there, schema={"label": pl.Binary, "file": pl.String, "dense": pl.Boolean}, orient="row")
        found = rows.join(labels, on="label", how="left", maintain_order="left").with_columns(row=pl.when("dense").then("first"))
        for label in found.filter(~pl.col("dense"))["label"].unique().to_list():
            of_file = pl.col("label") == label
            ranks = self._ranks(source, label, found.filter(of_file)["key"])
            moved = found.join(ranks, on="key", how="left", maintain_order="left")
            found = moved.with_columns(row=pl.when(of_file).then("rank").otherwise("row")).drop("rank")
        return found.select("file", "row")

    def _ranks(self, source: str, label: bytes, keys: pl.Series) -> pl.DataFrame:
        """The ranks (`rank` by `key`) of records among all of their file, whose row numbers moved: how many have no greater key.

        A rejected record's mark comes before every other key's bytes.
        """
        prefix = bytes([self.sources[source].number]) + label
        if prefix not in self._keys:
            live = self.tables.live(self.engine, self.plan[source], self.values, self.at).as_frame().select("_key")
            own = live.where((F.col("_key") >= F.lit(prefix)) & (F.col("_key") < F.lit(prefix + b"\xff")))
            self._keys[prefix] = bare_keys(pl.Series(self.engine.to_arrow(own).column("_key")))
        asked = keys.unique().sort()
        reached = pl.DataFrame({"at": asked.search_sorted(self._keys[prefix], side="left")}).group_by("at").len()
        ranks = pl.DataFrame({"key": asked}).with_row_index("at").join(reached, on="at", how="left", maintain_order="left")
        return ranks.select("key", rank=pl.col("len").fill_null(0).cast(pl.Int64).cum_sum())


def _filled(rows: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Key, file and row; the last known place of the key where there is no file."""
    both = rows.join(found, on="key", how="left", maintain_order="left", suffix="_found")
    missing = pl.col("file").is_null()
    return both.select("key", *(pl.when(missing).then(f"{name}_found").otherwise(name).alias(name) for name in ("file", "row")))


def _by_place(keys: pl.Series) -> pl.DataFrame:
    """Key, file and row of rejected records whose keys tell both."""
    size = pl.col("key").bin.size().cast(pl.Int64)
    label = size - ROW_LABEL_BYTES
    zeros = (pl.col("key").bin.slice(label - 1, 1) == b"\x00") & (pl.col("key").bin.tail(1) == b"\x00")
    placed = pl.DataFrame({"key": keys.unique()}).filter(pl.col("key").bin.starts_with(BY_PLACE) & (size > ROW_LABEL_BYTES + 1)).filter(zeros)
    if not placed.height:
        return pl.DataFrame(schema={"key": pl.Binary, "file": pl.String, "row": pl.Int64})
    read = KeyBytes.of(placed["key"])
    rows = pl.Series("row", read.first_numbers(read.ends - read.begins - ROW_LABEL_BYTES))
    return placed.select("key", pl.col("key").bin.slice(1, label - 2).cast(pl.String, strict=False).alias("file"), rows)

