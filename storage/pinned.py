"""A table as an engine reads it at a version that need not be its newest."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from storage.failure import storing
from storage.locations import engine_uri
from storage.scan import scanned

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from storage.engines import Engine

MESSAGE_BYTES = 32 << 20
"""A server takes messages of 128 MB at most; what a table of so many bytes becomes in a message stays far below that."""


def frame_at(engine: Engine, uri: str, table: DeltaTable, columns: list[str]) -> DataFrame:
    """Some columns at least of a table as it was opened. Raises StorageError.

    Where the engine may not find that version, the newest one is read if it has the same files, as behind a run that was taken back, else the rows come by way of the driver.
    """
    reader = engine.session.read.format("delta")
    if engine.loses_versions and (newest := _newest(uri)).version() > table.version():
        if sorted(newest.file_uris()) == sorted(table.file_uris()):
            return reader.load(engine_uri(uri))
        with storing(uri):
            return _frame_of(engine, scanned(table, columns))
    return reader.option("versionAsOf", table.version()).load(engine_uri(uri))


def _frame_of(engine: Engine, rows: pa.Table) -> DataFrame:
    """Rows as a frame; many of them by way of a file, which lasts as long as the process, as no message holds them."""
    if rows.nbytes <= MESSAGE_BYTES:
        return engine.from_arrow(rows)
    import pyarrow.parquet as pq

    folder = tempfile.mkdtemp(prefix="errata-rows-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    pq.write_table(rows, f"{folder}/rows.parquet")
    return engine.session.read.parquet(folder)


def _newest(uri: str) -> DeltaTable:
    with storing(uri):
        return DeltaTable(uri)
