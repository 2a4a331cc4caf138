"""Arrow tables as engines take and give them, brought to one set of types."""

from __future__ import annotations

import os
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from weakref import finalize

from changelog.frames import with_schema
from changelog.lazy_imports import F, pa
from storage.durable import undoing
from storage.engines.plain_paths import engine_uri
from storage.process_folders import files_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["MESSAGE_BYTES", "collected", "frame_from_file", "frame_of", "list_type", "plain", "plain_type", "row_of_nulls", "spark_schema", "timestamp_type"]

INLINE_BYTES = 1 << 19
"""Tables below this size travel with the query; a server may want larger ones ahead of it."""
MESSAGE_BYTES = 4 << 20
"""Tables above this size go to a server by way of a file. A server takes messages of 128 MB, and a query may hold a table several times."""


@cache
def timestamp_type() -> pa.DataType:
    """Return the type of all timestamps: microseconds in UTC."""
    return pa.timestamp("us", "UTC")


def plain(table: pa.Table) -> pa.Table:
    """Return the table in plain types: no large, view or dictionary types, and timestamps in UTC microseconds."""
    schema = pa.schema([pa.field(column.name, plain_type(column.type)) for column in table.schema])
    return table.replace_schema_metadata() if table.schema.equals(schema) else table.cast(schema)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the plain type that holds the same values."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(member.name, plain_type(member.type)) for member in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_list_view(kind):
        return list_type(plain_type(kind.value_type))
    if pa.types.is_timestamp(kind):
        return timestamp_type()
    return _plain_types().get(kind, kind)


def list_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of lists, with the one name for their elements that engines and tables use."""
    return pa.list_(pa.field("element", kind))


@cache
def _plain_types() -> dict[pa.DataType, pa.DataType]:
    return {pa.large_string(): pa.string(), pa.string_view(): pa.string(), pa.large_binary(): pa.binary(), pa.binary_view(): pa.binary()}


def _without_dictionaries(table: pa.Table) -> pa.Table:
    """Return the table as `createDataFrame` of both engines takes it."""
    return plain(table) if any(pa.types.is_dictionary(kind) for kind in table.schema.types) else table


def frame_of(session: Any, table: pa.Table) -> DataFrame:
    """Return a DataFrame of a table with at least one row. Its schema is known, so the engine need not be asked for it."""
    plain = _without_dictionaries(table)
    schema = spark_schema(plain.schema)
    if plain.nbytes < INLINE_BYTES and type(session).__module__.startswith("pyspark.sql.connect"):
        return with_schema(_inline(session, plain, schema), schema)
    return with_schema(session.createDataFrame(plain), schema)


def _inline(session: Any, table: pa.Table, schema: StructType) -> DataFrame:
    """Do what `createDataFrame` does for a small table, which asks the server for thirteen settings each time."""
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
    from pyspark.sql.connect.plan import LocalRelation
    from pyspark.sql.pandas.types import to_arrow_schema

    return cast("DataFrame", ConnectFrame(LocalRelation(table.cast(to_arrow_schema(schema, timezone="UTC"))), session))


def frame_from_file(session: Callable[[], SparkSession], table: pa.Table, folder: Path | None) -> DataFrame | None:
    """Write a table to a private file, and return a DataFrame that reads it. None where a file cannot hold the types.

    The file is removed when no frame needs it, at the latest when the process ends. Its columns are numbered, because a file may not take their names.

    Args:
        session: Returns the session; not called where the result is None.
        table: The rows.
        folder: Folder for the file. None: the process's folder for temporary files.
    """
    import pyarrow.parquet as pq

    plain = _without_dictionaries(table)
    typed = [at for at, kind in enumerate(plain.schema.types) if not pa.types.is_null(kind)]  # a file has no column of nothing but nulls
    if not typed:
        return None
    handle, path = tempfile.mkstemp(prefix="errata-rows-", suffix=".parquet", dir=folder or files_folder())
    with undoing(partial(_remove, path)):
        with os.fdopen(handle, "wb") as file:
            pq.write_table(plain.select(typed).rename_columns([f"c{at}" for at in typed]), file, compression="none", write_statistics=False)  # statistics leave NaN out
        read = session().read.parquet(engine_uri(path))
    finalize(cast("Any", read)._plan, _remove, path)  # noqa: SLF001  # every frame made from this one refers to its plan
    columns = (F.col(f"c{at}") if at in typed else F.lit(None) for at in range(plain.num_columns))
    return with_schema(read.select(*(one.alias(name) for one, name in zip(columns, plain.column_names, strict=True))), spark_schema(plain.schema))


def _remove(path: str) -> None:
    Path(path).unlink(missing_ok=True)


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the schema in the engine's types."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def collected(frame: DataFrame) -> pa.Table:
    """Return the rows of a DataFrame in the types of its columns.

    `toArrow` of a Spark Connect DataFrame first asks the server for the types, although they come with the rows.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    fetch = getattr(frame, "_to_table", None)
    if fetch is None:
        return frame.toArrow()
    table, schema = fetch()
    return table.cast(to_arrow_schema(schema or frame.schema, timezone="UTC"))


def row_of_nulls(schema: pa.Schema) -> pa.Table:
    """Return one row of these columns, all null."""
    return pa.table({column.name: pa.nulls(1, plain_type(column.type)) for column in schema})
