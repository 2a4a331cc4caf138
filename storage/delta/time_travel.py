"""Reading a table with an engine at a version that may not be the newest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.delta.scan import scanned
from storage.engines.plain_paths import engine_uri
from storage.errors import storing
from storage.lazy_deltalake import deltalake

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame

    from storage.engines import Engine


def frame_at(engine: Engine, uri: str, table: DeltaTable, columns: list[str]) -> DataFrame:
    """Return at least these columns of the opened version of a table. Raises StorageError.

    Where the engine may not find that version, it reads the newest version if that has the same files, as after a run that was undone.
    Else the rows come by way of the driver.
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
        return deltalake.DeltaTable(uri)
