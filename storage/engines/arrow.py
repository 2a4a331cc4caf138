"""Arrow tables as engines give and take them, brought to one set of types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from changelog.frames import told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["TIMESTAMP", "collected", "frame_of", "plain", "plain_type", "row_of_nulls", "spark_schema", "without_dictionaries"]

TIMESTAMP = pa.timestamp("us", "UTC")
INLINE_BYTES = 1 << 19
"""Smaller tables go with the plan; the server may want larger ones to be sent ahead of it."""


def plain(table: pa.Table) -> pa.Table:
    """The table with plain types: no large, view or dictionary types, timestamps in UTC microseconds."""
    schema = pa.schema([pa.field(column.name, plain_type(column.type)) for column in table.schema])
    return table.replace_schema_metadata() if table.schema.equals(schema) else table.cast(schema)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The plain type that holds the same values."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(member.name, plain_type(member.type)) for member in kind])
    if pa.types.is_timestamp(kind):
        return TIMESTAMP
    return _PLAIN.get(kind, kind)


_PLAIN = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


def without_dictionaries(table: pa.Table) -> pa.Table:
    """The table as `createDataFrame` takes it on both engines."""
    return plain(table) if any(pa.types.is_dictionary(kind) for kind in table.schema.types) else table


def frame_of(session: Any, table: pa.Table) -> DataFrame:
    """A DataFrame of the rows of a table that has some. Its columns are known, so nobody need ask the engine for them."""
    given = without_dictionaries(table)
    schema = spark_schema(given.schema)
    if given.nbytes < INLINE_BYTES and type(session).__module__.startswith("pyspark.sql.connect"):
        return told(_inline(session, given, schema), schema)
    return told(session.createDataFrame(given), schema)


def _inline(session: Any, table: pa.Table, schema: StructType) -> DataFrame:
    """What `createDataFrame` makes of a small table, which asks the server for thirteen settings each time."""
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
    from pyspark.sql.connect.plan import LocalRelation
    from pyspark.sql.pandas.types import to_arrow_schema

    return cast("DataFrame", ConnectFrame(LocalRelation(table.cast(to_arrow_schema(schema, timezone="UTC"))), session))


def spark_schema(schema: pa.Schema) -> StructType:
    """The schema as an engine has it."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def collected(frame: DataFrame) -> pa.Table:
    """The rows of a DataFrame in the types of its columns.

    `toArrow` of a Spark Connect DataFrame has the query analysed for its types before it is run, though the rows come with theirs.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    fetch = getattr(frame, "_to_table", None)
    if fetch is None:
        return frame.toArrow()
    table, schema = fetch()
    return table.cast(to_arrow_schema(schema or frame.schema, timezone="UTC"))


def row_of_nulls(schema: pa.Schema) -> pa.Table:
    """One row of these columns, all null."""
    return pa.table({column.name: pa.nulls(1, plain_type(column.type)) for column in schema})
