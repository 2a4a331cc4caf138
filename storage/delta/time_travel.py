"""A table as an engine reads it at a version that need not be its newest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalake import DeltaTable

from storage.delta.scan import scanned
from storage.engines.plain_paths import engine_uri
from storage.errors import storing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.engines import Engine


def frame_at(engine: Engine, uri: str, table: DeltaTable, columns: list[str]) -> DataFrame:
    """Some columns at least of a table as it was opened. Raises StorageError.

    Where the engine may not find that version, the newest one is read if it has the same files, as behind a run that was taken back, else the rows come by way of the driver.
    """
    reader = engine.session.read.format("delta")
    if engine.loses_versions and (newest := _newest(uri)).version() > table.version():
        if sorted(newest.file_uris()) == sorted(table.file_uris()):
            return reader.load(engine_uri(uri))
        with storing(uri):
            return engine.from_arrow(scanned(table, columns))
    return reader.option("versionAsOf", table.version()).load(engine_uri(uri))


def _newest(uri: str) -> DeltaTable:
    with storing(uri):
        return DeltaTable(uri)
