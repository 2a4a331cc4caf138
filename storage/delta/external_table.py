"""A Delta table that others write: which version it has, what it holds, and what became of it since a version (docs/tables.md, "Delta tables").

Versions are told apart by more than their numbers: a table may be restored from a copy, or another one may have taken its place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import orjson

from changelog.lazy_imports import pa, pc
from storage.engines.plain_paths import engine_uri
from storage.errors import StorageError, storing
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
"""So many changed rows are followed one by one; of more, the whole table is read."""
SMALL_ROWS = 50_000
"""A table that has no more rows is read on the driver."""
MOST_BYTES = 64 << 20
"""So much goes from the driver to an engine at once."""
CHANGE_TYPE = "_change_type"
_FEED_COLUMNS = (CHANGE_TYPE, "_commit_version", "_commit_timestamp")
_GOES = ("delete", "update_preimage")


class NotFollowed(Exception):
    """What became of a table since a version cannot be told from its log; the message says why."""


@dataclass(frozen=True, slots=True)
class Change:
    """Rows that came into a table (`weight` 1) or went (-1), in the table's own columns."""

    rows: pa.Table
    weights: pa.Array


@dataclass(frozen=True)
class Versions:
    """A Delta table as it is now. `place` is its path or URI."""

    place: str
    table: DeltaTable = field(repr=False)

    @property
    def version(self) -> int:
        """Its newest version."""
        return int(self.table.version())

    @property
    def identity(self) -> str:
        """What tells this table from another at the same place."""
        return str(self.table.metadata().id)

    @cached_property
    def mark(self) -> str:
        """Which table this is and which commit made its newest version."""
        return f"{self.identity}:{self._commit_mark(self.version)}"

    @property
    def rows(self) -> int | None:
        """How many rows it has, from its log; None where the log does not say."""
        from storage.delta.scan import add_actions

        counts = [count for (count,) in add_actions(self.table, "num_records")]
        features = self.table.protocol().reader_features or []
        return None if None in counts or "deletionVectors" in features else sum(counts)

    @property
    def size(self) -> int:
        """The bytes of its files."""
        from storage.delta.scan import add_actions

        return sum(int(size) for (size,) in add_actions(self.table, "size_bytes"))

    @property
    def schema(self) -> pa.Schema:
        """Its columns in Arrow's types."""
        return pa.schema(self.table.schema())

    def check(self, version: int, mark: str) -> None:
        """Raise NotFollowed where the table that had this version and mark is not the one that goes on here."""
        if not mark.startswith(f"{self.identity}:"):
            raise NotFollowed("another table is in its place")
        if version > self.version:
            raise NotFollowed(f"version {version} was read, and it has {self.version} now")
        read = mark.partition(":")[2]
        if not read or self._commit_mark(version) != read:
            raise NotFollowed(f"its log no longer has version {version} as it was read")

    def only_kept(self, version: int) -> bool:
        """Whether no commit since a version changed a row."""
        return all(entry.get("operation") in QUIET for entry in self._since(version))

    def changes(self, version: int) -> Change:
        """The rows that came and went since a version, from the table's change data feed. Raises NotFollowed."""
        self._refuse_restored(version)
        self._refuse_retyped(version)
        found = self._feed(version)
        weights = _weights(found.column(CHANGE_TYPE))
        return Change(found.drop_columns(list(_FEED_COLUMNS)), weights)

    def has_feed(self) -> bool:
        """Whether the table keeps a change data feed."""
        return str(self.table.metadata().configuration.get("delta.enableChangeDataFeed", "")).lower() == "true"

    def _refuse_restored(self, version: int) -> None:
        entry = next((entry for entry in self._since(version) if entry.get("operation") == "RESTORE"), None)
        if entry is not None:
            raise NotFollowed(f"it was restored to an earlier version (version {entry['version']})")

    def _refuse_retyped(self, version: int) -> None:
        """The feed shows rows of before in the columns of now: another text of a number, or nothing of a column that is gone."""
        from deltalake import DeltaTable

        with storing(self.place):
            before = DeltaTable(self.table.table_uri, version=version).schema()
        types = {one.name: one.type for one in self.table.schema().fields}
        changed = [one.name for one in before.fields if types.get(one.name) != one.type]
        if changed:
            raise NotFollowed(f"its columns changed since version {version}: {', '.join(changed)}")

    def _feed(self, version: int) -> pa.Table:
        """The change data feed's rows behind a version. Raises NotFollowed."""
        from deltalake.exceptions import DeltaError

        batches, rows = [], 0
        try:
            reader = pa.RecordBatchReader.from_stream(self.table.load_cdf(version + 1, self.version))
            for batch in reader:
                batches.append(batch)
                rows += batch.num_rows
                if rows > MOST_CHANGES:
                    raise NotFollowed(f"more than {MOST_CHANGES:,} rows changed")
            return pa.Table.from_batches(batches, reader.schema)
        except (DeltaError, pa.ArrowException, OSError) as wrong:
            raise NotFollowed(f"its changes since version {version} cannot be read: {_first_line(wrong)}") from wrong

    def small(self) -> bool:
        """Whether the table is read on the driver."""
        return self.rows is not None and self.rows <= SMALL_ROWS

    def content(self) -> pa.Table:
        """All rows, on the driver. Raises StorageError."""
        with storing(self.place):
            return pa.table(self.table.scan())

    def frame(self, engine: Engine) -> DataFrame:
        """All rows, where the engine reads them; by way of the driver where it would take NaN for a number. Raises StorageError where these are too many."""
        if engine.constants_hide_nan and self._nan_beside_one_value():
            from storage.engines.arrow import plain

            rows = plain(self.content())
            if rows.nbytes > MOST_BYTES:
                raise StorageError(self.place, "it has NaN beside a single other value in a column, which Sail reads as that value; --engine spark reads it rightly")
            return engine.from_arrow(rows)
        return engine.session.read.format("delta").option("versionAsOf", self.version).load(engine_uri(self.place))

    def _nan_beside_one_value(self) -> bool:
        """Whether a column of floats holds NaN in a table of which some file has, as its statistics say, a single value there."""
        with storing(self.place):
            files = pa.table(self.table.get_add_actions(flatten=True))
            floats = [one.name for one in pa.schema(self.table.schema().to_arrow()) if pa.types.is_floating(one.type) and f"min.{one.name}" in files.column_names]
            single = [name for name in floats if pc.any(pc.equal(files[f"min.{name}"], files[f"max.{name}"])).as_py()]
            batches = pa.RecordBatchReader.from_stream(self.table.scan(columns=single)) if single else ()
            return any(pc.any(pc.is_nan(values)).as_py() for batch in batches for values in batch.columns)

    def _since(self, version: int) -> Sequence[dict[str, Any]]:
        """What the log says of the commits behind a version."""
        return [entry for entry in self._log(version) if int(entry["version"]) > version]

    def _commit_mark(self, version: int) -> str:
        """A hash of what the log says of a commit; empty where it says nothing."""
        entry = next((entry for entry in self._log(version) if entry["version"] == version), None)
        return "" if entry is None else blake2b(orjson.dumps(entry, option=orjson.OPT_SORT_KEYS, default=str), digest_size=8).hexdigest()

    def _log(self, first: int) -> list[dict[str, Any]]:
        """What the log says of the commits from a version on."""
        with storing(self.place):
            return list(self.table.history(self.version - first + 1)) if first <= self.version else []


def _weights(kinds: pa.ChunkedArray) -> pa.Array:

    gone = pc.is_in(kinds.cast(pa.string()), pa.array(_GOES))
    return pc.if_else(gone, pa.scalar(-1, pa.int8()), pa.scalar(1, pa.int8())).combine_chunks()


def table_at(place: str) -> Versions:
    """The table at a path or URI. Raises StorageError where none is."""
    from pathlib import Path

    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        with storing(place):
            return Versions(place, DeltaTable(str(Path(place).resolve()) if is_local(place) else place))
    except StorageError as wrong:
        if isinstance(wrong.__cause__, TableNotFoundError):
            raise StorageError(place, "there is no Delta table") from wrong
        raise


def _first_line(problem: Exception) -> str:
    return (str(problem).splitlines() or [type(problem).__name__])[0]
