"""Arrow tables as engines give and take them, brought to one set of types."""

import pyarrow as pa

__all__ = ["TIMESTAMP", "plain", "plain_type", "row_of_nulls", "without_dictionaries"]

TIMESTAMP = pa.timestamp("us", "UTC")


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


def row_of_nulls(schema: pa.Schema) -> pa.Table:
    """One row of these columns, all null."""
    return pa.table({column.name: pa.nulls(1, plain_type(column.type)) for column in schema})
