"""Rows of the driver that are too large for a message to a server on the same machine: files that last as long as a query can name them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from weakref import finalize

from changelog.frames import told
from changelog.lazy_imports import F, pa
from storage.durable import undoing
from storage.engines.plain_paths import engine_uri

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["MESSAGE_BYTES", "by_file"]

MESSAGE_BYTES = 4 << 20
"""A server takes messages of 128 MB. A query is one message, which holds a table as often as the query names it."""


def by_file(session: Callable[[], SparkSession], table: pa.Table, folder: Path | None) -> DataFrame | None:
    """The rows of a table, written to a file of a folder (None: the one for temporary files) that nobody else may read; None where a file cannot hold their types.

    The file is removed once no frame needs it, at the latest when the process ends. Columns are numbered there: a file may not take their names.
    """
    import pyarrow.parquet as pq

    from storage.engines.arrow import spark_schema, without_dictionaries

    given = without_dictionaries(table)
    if any(pa.types.is_null(kind) for kind in given.schema.types):
        return None
    numbered = [f"c{at}" for at in range(given.num_columns)]
    handle, path = tempfile.mkstemp(prefix="errata-rows-", suffix=".parquet", dir=folder)
    with undoing(partial(_removed, path)):
        with os.fdopen(handle, "wb") as file:
            pq.write_table(given.rename_columns(numbered), file, compression="none", write_statistics=False)  # these leave NaN out
        read = session().read.parquet(engine_uri(path))
    finalize(cast("Any", read)._plan, _removed, path)  # noqa: SLF001  # every frame that is made of this one refers to its plan
    return told(read.select(*(F.col(place).alias(name) for place, name in zip(numbered, given.column_names, strict=True))), spark_schema(given.schema))


def _removed(path: str) -> None:
    Path(path).unlink(missing_ok=True)
