"""How the columns that users name are stored in a Delta table.

Parquet and Delta refuse some characters in names, and names that differ only in case; not all readers support column mapping. So a column is
stored under an escaped *physical* name, and the field's metadata keeps the logical name.

A column whose type changed gets a new physical column. The old one keeps the rows of older epochs, and readers get their values in the present type.
Text columns and JSON columns (dynamic values) are both strings; the metadata says which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from changelog.columns import quoted
from changelog.lazy_imports import F, pa, pc
from storage.delta.type_changes import JSON, converted, converted_array, in_words
from storage.engines.arrow import list_type, plain, plain_type, spark_schema, timestamp_type
from storage.lazy_deltalake import deltalake
from storage.values.decimals import DIGITS, decimal_type

if TYPE_CHECKING:
    import pyspark.sql.types as spark_types
    from deltalake.schema import ArrayType, Field, MapType, PrimitiveType, Schema, StructType, VariantType
    from pyspark.sql import Column

__all__ = [
    "Placement",
    "Storing",
    "TableSchema",
    "declared",
    "escaped",
    "in_place",
    "logical",
    "logical_column",
    "logical_table",
    "new_fields",
    "place",
    "stored_columns",
]

TableSchema: TypeAlias = "pa.Schema | spark_types.StructType | Mapping[str, str]"
"""Names and types of columns: an Arrow schema, a Spark schema, or type names (`bigint`, `string`, `text`, `json`, ...) by name."""

DeltaType: TypeAlias = "PrimitiveType | ArrayType | MapType | StructType | VariantType"

LOGICAL: Final = "errata.name"
HOLDS: Final = "errata.holds"
STRINGS: Final = frozenset({"text", JSON})
"""Kinds of users' string columns: plain text or JSON text. Errata's own columns have the kind `string`."""
REFUSED: Final = frozenset(" ,;{}()=.`~'\"\\/")


@cache
def _kinds() -> tuple[tuple[pa.DataType, str, str], ...]:
    """Return the plain types: in Arrow, and their names in Delta and in Spark."""
    return (
        (pa.string(), "string", "string"),
        (pa.int64(), "long", "bigint"),
        (pa.int32(), "integer", "int"),
        (pa.int16(), "short", "smallint"),
        (pa.int8(), "byte", "tinyint"),
        (pa.float64(), "double", "double"),
        (pa.float32(), "float", "float"),
        (pa.bool_(), "boolean", "boolean"),
        (pa.date32(), "date", "date"),
        (timestamp_type(), "timestamp", "timestamp"),
        (pa.binary(), "binary", "binary"),
    )


@cache
def _in_arrow(name: str) -> pa.DataType:
    """Return the plain type of a name, in Delta or in Spark. Raises KeyError for another name."""
    digits = decimal_type(name)
    return {name: arrow for arrow, *names in _kinds() for name in names}[name] if digits is None else pa.decimal128(*digits)


@cache
def _in_delta() -> dict[pa.DataType, str]:
    return {arrow: delta for arrow, delta, _ in _kinds()} | {kind: _decimal_name(kind) for kind in _decimals()}


@cache
def _in_spark() -> dict[pa.DataType, str]:
    return {arrow: spark for arrow, _, spark in _kinds()} | {kind: _decimal_name(kind) for kind in _decimals()}


def _decimals() -> list[pa.DataType]:
    """Return the types of decimals in tables."""
    return [pa.decimal128(DIGITS, scale) for scale in range(DIGITS + 1)]


def _decimal_name(kind: pa.DataType) -> str:
    """Return the name of a decimal's type, the same in Delta and in Spark."""
    return f"decimal({kind.precision},{kind.scale})"


@dataclass(frozen=True, slots=True)
class Placement:
    """A declared column and the stored field that holds it. `missing`: the table does not have the field yet.

    `older` are the fields of earlier types, newest first. A row has a value in at most one of all these fields.
    """

    column: pa.Field
    stored: Field
    missing: bool = False
    older: tuple[Field, ...] = ()

    @property
    def read(self) -> list[str]:
        """Names of the fields that a reader needs."""
        return [field.name for field in (*([] if self.missing else [self.stored]), *self.older)]


def declared(schema: TableSchema) -> list[pa.Field]:
    """Return the columns of a schema, each nullable and of a plain Arrow type."""
    if isinstance(schema, pa.Schema):
        return [pa.field(column.name, plain_type(column.type)) for column in schema]
    if isinstance(schema, Mapping):
        return [_holding(name, pa.string(), kind) if kind in STRINGS else pa.field(name, _in_arrow(kind)) for name, kind in schema.items()]
    return [_from_json(column) for column in schema.jsonValue()["fields"]]


def _holding(name: str, kind: pa.DataType, holds: str) -> pa.Field:
    return pa.field(name, kind, metadata={HOLDS: holds})


def holds(column: pa.Field) -> str:
    """Return `text` or `json` where the metadata of a column says so, else its type."""
    return str((column.metadata or {}).get(HOLDS.encode(), b"").decode() or column.type)


def _word(column: pa.Field) -> str:
    return JSON if holds(column) == JSON else in_words(column.type)


def _from_json(column: Mapping[str, Any]) -> pa.Field:
    return pa.field(column["name"], _kind_from_json(column["type"]))


def _kind_from_json(kind: str | Mapping[str, Any]) -> pa.DataType:
    if isinstance(kind, str):
        return _in_arrow(kind)
    return list_type(_kind_from_json(kind["elementType"])) if kind["type"] == "array" else pa.struct([_from_json(member) for member in kind["fields"]])


def logical(stored: Field) -> pa.Field:
    """Return a stored field as users see it: under its logical name, nullable."""
    name, kind = str(stored.metadata.get(LOGICAL, stored.name)), _arrow_type(stored.type, logical)
    return _holding(name, kind, str(stored.metadata[HOLDS])) if HOLDS in stored.metadata else pa.field(name, kind)


def _arrow_type(kind: DeltaType, member: Callable[[Field], pa.Field]) -> pa.DataType:
    if isinstance(kind, deltalake.schema.StructType):
        return pa.struct([member(inner) for inner in kind.fields])
    if isinstance(kind, deltalake.schema.ArrayType):
        return list_type(_arrow_type(kind.element_type, member))
    if isinstance(kind, deltalake.schema.PrimitiveType):
        return _in_arrow(kind.type)
    raise TypeError(f"a changelog has no columns of type {kind}")


def _physical(stored: Field) -> pa.Field:
    return pa.field(stored.name, _arrow_type(stored.type, _physical))


def place(stored: Sequence[Field], columns: Sequence[pa.Field] | None) -> list[Placement]:
    """Return the placement of each declared column: the stored field of its name and type, or a new field.

    Args:
        stored: The fields of the table.
        columns: The declared columns. None: the table's own columns; of several with one name, the newest.
    """
    if columns is None:
        columns = list({column.name: column for column in map(logical, stored)}.values())
    known: dict[str, dict[str, Field]] = {}
    for field in stored:
        column = logical(field)
        known.setdefault(column.name, {})[holds(column)] = field
    taken = {field.name.lower() for field in stored}
    return [_placed(column, known.get(column.name, {}), taken) for column in columns]


def in_place(stored: Sequence[Field]) -> list[Placement]:
    """Return each stored field as a column of its own."""
    return [Placement(_physical(field), field) for field in stored]


def new_fields(columns: Sequence[pa.Field]) -> Schema:
    """Return the schema of a new table with these columns."""
    return deltalake.schema.Schema([where.stored for where in place([], columns)])


def _placed(column: pa.Field, known: Mapping[str, Field], taken: set[str]) -> Placement:
    """Return the placement of a column. `known` are the stored fields of its name, by kind."""
    found = known.get(holds(column))
    older = tuple(field for field in reversed([*known.values()]) if field is not found and isinstance(field.type, deltalake.schema.PrimitiveType))
    return Placement(column, found or _new_field(column, taken), missing=found is None, older=older if _word(column) else ())


def _new_field(column: pa.Field, taken: set[str]) -> Field:
    name = _free_name(escaped(column.name), taken)
    kind = _new_type(column.type)
    metadata = {HOLDS: holds(column)} if holds(column) in STRINGS else {}
    return deltalake.schema.Field(name, kind, nullable=True, metadata=metadata if name == column.name else {LOGICAL: column.name} | metadata)


def _new_type(kind: pa.DataType) -> DeltaType:
    if pa.types.is_list(kind):
        return deltalake.schema.ArrayType(_new_type(kind.value_type), contains_null=True)
    return deltalake.schema.PrimitiveType(_in_delta()[kind]) if kind in _in_delta() else _new_struct(kind)


def _new_struct(kind: pa.StructType) -> StructType:
    taken: set[str] = set()
    return deltalake.schema.StructType([_new_field(member, taken) for member in kind])


def _free_name(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name.lower() in taken:
        number += 1
        name = f"{wanted}~{number}"
    taken.add(name.lower())
    return name


def escaped(name: str) -> str:
    """Return a name that every reader of Delta accepts: a refused character becomes `~`, its hexadecimal code, and `~`."""
    return "".join(f"~{ord(char):x}~" if char in REFUSED or not char.isprintable() else char for char in name) or "~~"


@dataclass(frozen=True, slots=True)
class Storing:
    """How rows are stored: all fields of a table, and the column that each holds, by field name. Picklable."""

    fields: tuple[pa.Field, ...]
    sources: Mapping[str, str]

    @classmethod
    def of(cls, stored: Sequence[Field], placements: Sequence[Placement]) -> Storing:
        """Return the storing of the columns of some placements."""
        return cls(tuple(map(_physical, stored)), {where.stored.name: where.column.name for where in placements})

    @classmethod
    def as_stored(cls, stored: Sequence[Field]) -> Storing:
        """Return the storing of rows that have the names of the fields."""
        return cls(tuple(map(_physical, stored)), {field.name: field.name for field in stored})

    def table(self, rows: pa.Table) -> pa.Table:
        """Return rows in the stored fields. Fields without a declared column are null."""
        return pa.table([_stored_array(rows, self.sources.get(field.name), field.type) for field in self.fields], schema=pa.schema(self.fields))


def _stored_array(table: pa.Table, source: str | None, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if source is None:
        return pa.nulls(table.num_rows, kind)
    found = table.column(source)
    return found if found.type == kind else _shaped(_whole(found), kind)


def logical_table(table: pa.Table, placements: Sequence[Placement]) -> pa.Table:
    """Return rows read from a table under the logical names. Columns that the table lacks are null."""
    found = plain(table)
    return pa.table([_logical_array(found, where) for where in placements], schema=pa.schema([where.column.remove_metadata() for where in placements]))


def _logical_array(table: pa.Table, where: Placement) -> pa.Array:
    want = where.column.type
    found = pa.nulls(table.num_rows, want) if where.missing else _shaped(_whole(table.column(where.stored.name)), want)
    older = [converted_array(_whole(table.column(field.name)), _pair(field, where), want) for field in where.older]
    return pc.coalesce(found, *older) if older else found


def _pair(field: Field, where: Placement) -> tuple[str, str]:
    return _word(logical(field)), _word(where.column)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    chunks = column.combine_chunks()
    return chunks if isinstance(chunks, pa.Array) else pa.concat_arrays(chunks.chunks)


def _shaped(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return the array in a type that differs only in the names of struct members, or in the width of numbers."""
    if not pa.types.is_struct(wanted):
        return array if array.type == wanted else array.cast(wanted)
    members = [_shaped(array.field(index), member.type) for index, member in enumerate(wanted)]
    return pa.StructArray.from_arrays(members, fields=list(wanted), mask=array.is_null())


def stored_columns(stored: Sequence[Field], placements: Sequence[Placement], given: Mapping[str, Column]) -> list[Column]:
    """Return the Columns for all stored fields of a frame, null where no column is declared. `given` replaces declared columns."""
    sources = {where.stored.name: where.column for where in placements}
    return [_stored_column(_physical(field), sources.get(field.name), given).alias(field.name) for field in stored]


def _stored_column(field: pa.Field, source: pa.Field | None, given: Mapping[str, Column]) -> Column:
    if source is None:
        return F.lit(None).cast(_spark_type(field.type))
    return given[source.name] if source.name in given else _aligned(F.col(quoted(source.name)), source.type, field.type)


def logical_column(where: Placement) -> Column:
    """Return the Column for a declared column, in a frame read from the table. Null where the table lacks it."""
    want = where.column.type
    found = F.lit(None).cast(_spark_type(want)) if where.missing else _aligned(F.col(quoted(where.stored.name)), _physical(where.stored).type, want)
    older = [converted(F.col(quoted(field.name)), _pair(field, where), _in_spark()[want]) for field in where.older]
    return (F.coalesce(found, *older) if older else found).alias(where.column.name)


def _aligned(value: Column, have: pa.DataType, want: pa.DataType) -> Column:
    if have == want and not _is_plain(want):
        return value
    if not pa.types.is_struct(want):
        return value.cast(_spark_type(want))
    members = [_aligned(value.getField(old.name), old.type, new.type).alias(new.name) for old, new in zip(have, want, strict=True)]
    return F.when(value.isNotNull(), F.struct(*members))


def _is_plain(kind: pa.DataType) -> bool:
    return kind in _in_spark()


def _spark_type(kind: pa.DataType) -> spark_types.DataType | str:
    from pyspark.sql.types import StructType as SparkStruct

    if _is_plain(kind):
        return _in_spark()[kind]
    if pa.types.is_list(kind):
        [field] = spark_schema(pa.schema([pa.field("list", kind)]))
        return field.dataType
    struct = SparkStruct()
    for member in kind:
        struct = struct.add(member.name, _spark_type(member.type))
    return struct
