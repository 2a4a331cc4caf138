"""A Delta table that is a source: its version, its rows, and its changes since a version.

A version is identified by more than its number, because a table may be restored from a copy, or replaced by another table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from changelog.lazy_imports import pa, pc
from storage.delta.scan import add_actions
from storage.engines.arrow import plain
from storage.engines.plain_paths import engine_uri
from storage.errors import StorageError, first_line, storing
from storage.lazy_deltalake import deltalake
from storage.uris import is_local

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalake import DeltaTable
    from pyspark.sql import DataFrame

    from storage.engines import Engine

__all__ = ["Change", "NotFollowed", "Versions", "table_at"]

QUIET = frozenset({"OPTIMIZE", "VACUUM START", "VACUUM END", "COMPUTE STATS", "ANALYZE", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES"})
"""Operations that change no row."""
MOST_CHANGES = 2_000_000
"""Most changed rows to read from the change data feed. With more changes the whole table is read."""
SMALL_ROWS = 50_000
"""Most rows of a table that is read on the driver."""
MOST_BYTES = 64 << 20
"""Most bytes that go from the driver to an engine at once."""
CHANGE_TYPE = "_change_type"
_FEED_COLUMNS = (CHANGE_TYPE, "_commit_version", "_commit_timestamp")
_GOES = ("delete", "update_preimage")


class NotFollowed(Exception):
    """The log does not give the changes since a version. The message gives the reason."""


@dataclass(frozen=True, slots=True)
class Change:
    """Rows that entered a table (weight 1) or left it (-1), in the table's own columns."""

    rows: pa.Table
    weights: pa.Array


@dataclass(frozen=True)
class Versions:
    """A Delta table in its newest version. `place` is its path or URI."""

    place: str
    table: DeltaTable = field(repr=False)

    @property
    def version(self) -> int:
        """Number of the newest version."""
        return int(self.table.version())

    @property
    def identity(self) -> str:
        """Id that distinguishes this table from another at the same place."""
        return str(self.table.metadata().id)

    @cached_property
    def mark(self) -> str:
        """Identity of the table, and of the commit of its newest version."""
        return f"{self.identity}:{self._commit_mark(self.version)}"

    @property
    def rows(self) -> int | None:
        """Number of rows, from the log. None where the log leaves it open."""
        counts = [count for (count,) in add_actions(self.table, "num_records")]
        features = self.table.protocol().reader_features or []
        return None if None in counts or "deletionVectors" in features else sum(counts)

    @property
    def size(self) -> int:
        """Bytes of the data files."""
        return sum(int(size) for (size,) in add_actions(self.table, "size_bytes"))

    @property
    def schema(self) -> pa.Schema:
        """Columns in Arrow types."""
        return pa.schema(self.table.schema())

    def check(self, version: int, mark: str) -> None:
        """Raise NotFollowed where this table does not continue the table with this version and mark."""
        if not mark.startswith(f"{self.identity}:"):
            raise NotFollowed("another table is in its place")
        if version > self.version:
            raise NotFollowed(f"version {version} was read, and it has {self.version} now")
        read = mark.partition(":")[2]
        if not read or self._commit_mark(version) != read:
            raise NotFollowed(f"its log no longer has version {version} as it was read")

    def is_unchanged_since(self, version: int) -> bool:
        """Return whether no commit since a version changed a row."""
        return all(entry.get("operation") in QUIET for entry in self._since(version))

    def changes(self, version: int) -> Change:
        """Return the rows that entered and left since a version, from the change data feed. Raises NotFollowed."""
        self._refuse_restored(version)
        self._refuse_retyped(version)
        found = self._feed(version)
        weights = _weights(found.column(CHANGE_TYPE))
        return Change(found.drop_columns(list(_FEED_COLUMNS)), weights)

    def has_feed(self) -> bool:
        """Return whether the table has a change data feed."""
        return str(self.table.metadata().configuration.get("delta.enableChangeDataFeed", "")).lower() == "true"

    def _refuse_restored(self, version: int) -> None:
        entry = next((entry for entry in self._since(version) if entry.get("operation") == "RESTORE"), None)
        if entry is not None:
            raise NotFollowed(f"it was restored to an earlier version (version {entry['version']})")

    def _refuse_retyped(self, version: int) -> None:
        """Raise NotFollowed where columns changed. The feed shows earlier rows in the present columns, so numbers may be spelled differently and removed columns are missing."""
        with storing(self.place):
            before = deltalake.DeltaTable(self.table.table_uri, version=version).schema()
        types = {one.name: one.type for one in self.table.schema().fields}
        changed = [one.name for one in before.fields if types.get(one.name) != one.type]
        if changed:
            raise NotFollowed(f"its columns changed since version {version}: {', '.join(changed)}")

    def _feed(self, version: int) -> pa.Table:
        """Return the rows of the change data feed after a version. Raises NotFollowed."""
        batches, rows = [], 0
        try:
            reader = pa.RecordBatchReader.from_stream(self.table.load_cdf(version + 1, self.version))
            for batch in reader:
                batches.append(batch)
                rows += batch.num_rows
                if rows > MOST_CHANGES:
                    raise NotFollowed(f"more than {MOST_CHANGES:,} rows changed")
            return pa.Table.from_batches(batches, reader.schema)
        except (deltalake.exceptions.DeltaError, pa.ArrowException, OSError) as wrong:
            raise NotFollowed(f"its changes since version {version} cannot be read: {first_line(wrong)}") from wrong

    def small(self) -> bool:
        """Return whether the table is read on the driver."""
        return self.rows is not None and self.rows <= SMALL_ROWS

    def content(self) -> pa.Table:
        """Return all rows on the driver. Raises StorageError."""
        with storing(self.place):
            return pa.table(self.table.scan())

    def frame(self, engine: Engine) -> DataFrame:
        """Return all rows, read by the engine. They come by way of the driver where the engine would misread NaN; StorageError where they are too many for that."""
        if engine.constants_hide_nan and self._nan_beside_one_value():
            rows = plain(self.content())
            if rows.nbytes > MOST_BYTES:
                raise StorageError(self.place, "it has NaN beside a single other value in a column, which Sail reads as that value; --engine spark reads it rightly")
            return engine.from_arrow(rows)
        return engine.session.read.format("delta").option("versionAsOf", self.version).load(engine_uri(self.place))

    def _nan_beside_one_value(self) -> bool:
        """Return whether a float column holds NaN, and the statistics of some file show a single value for it."""
        with storing(self.place):
            files = pa.table(self.table.get_add_actions(flatten=True))
            floats = [one.name for one in pa.schema(self.table.schema().to_arrow()) if pa.types.is_floating(one.type) and f"min.{one.name}" in files.column_names]
            single = [name for name in floats if pc.any(pc.equal(files[f"min.{name}"], files[f"max.{name}"])).as_py()]
            batches = pa.RecordBatchReader.from_stream(self.table.scan(columns=single)) if single else ()
            return any(pc.any(pc.is_nan(values)).as_py() for batch in batches for values in batch.columns)

    def _since(self, version: int) -> Sequence[dict[str, Any]]:
        """Return the log's commits after a version."""
        return [entry for entry in self._log(version) if int(entry["version"]) > version]

    def _commit_mark(self, version: int) -> str:
        """Return a hash of the log's entry for a commit. Empty where there is none."""
        entry = next((entry for entry in self._log(version) if entry["version"] == version), None)
        return "" if entry is None else blake2b(orjson.dumps(entry, option=orjson.OPT_SORT_KEYS, default=str), digest_size=8).hexdigest()

    def _log(self, first: int) -> list[dict[str, Any]]:
        """Return the log's commits from a version on."""
        with storing(self.place):
            return list(self.table.history(self.version - first + 1)) if first <= self.version else []


def _weights(kinds: pa.ChunkedArray) -> pa.Array:
    gone = pc.is_in(kinds.cast(pa.string()), pa.array(_GOES))
    return pc.if_else(gone, pa.scalar(-1, pa.int8()), pa.scalar(1, pa.int8())).combine_chunks()


def table_at(place: str) -> Versions:
    """Return the table at a path or URI. Raises StorageError where there is none."""
    try:
        with storing(place):
            return Versions(place, deltalake.DeltaTable(str(Path(place).resolve()) if is_local(place) else place))
    except StorageError as wrong:
        if isinstance(wrong.__cause__, deltalake.exceptions.TableNotFoundError):
            raise StorageError(place, "there is no Delta table") from wrong
        raise

