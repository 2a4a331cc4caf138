"""The columns of a changelog: system columns, hidden columns and data columns.

A *delta* has `_op`, `_key`, `_cause`, optional hidden columns, and data columns. Stored op rows also have `_epoch`. *Live rows* have `_key`,
`_epoch`, hidden columns and data columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from changelog.lazy_imports import F

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField

EPOCH: Final = "_epoch"
OP: Final = "_op"
KEY: Final = "_key"
CAUSE: Final = "_cause"
CK: Final = "_ck"
EVENT_TIME: Final = "_event_time"
FILE: Final = "_file"
ROW: Final = "_row"
ERROR: Final = "_error"

ENVELOPE: Final = (EPOCH, OP, KEY, CAUSE)
"""Columns that say what happens to an image. All other columns are the image."""

RESERVED: Final = frozenset({*ENVELOPE, CK, EVENT_TIME, FILE, ROW, ERROR})
"""Names that data columns may not have."""

TYPES: Final[dict[str, str]] = {
    EPOCH: "bigint",
    OP: "tinyint",
    KEY: "binary",
    CAUSE: "string",
    EVENT_TIME: "timestamp",
    FILE: "string",
    ROW: "bigint",
    ERROR: "string",
}


def column(name: str) -> Column:
    """Return the Column of exactly this name. The name may contain dots, backticks and spaces."""
    return F.col(quoted(name))


def quoted(name: str) -> str:
    """Return a column name in backticks, for `select` and `drop`."""
    return "`" + name.replace("`", "``") + "`"


def data_columns(frame: DataFrame, hidden: Collection[str] = ()) -> list[str]:
    """Return the data columns of a changelog, a delta or live rows, in order: all columns but the reserved ones and `hidden`."""
    return [name for name in frame.columns if name not in RESERVED and name not in hidden]


def image_columns(frame: DataFrame) -> list[str]:
    """Return the columns of a row's image: all but `_epoch`, `_op`, `_key` and `_cause`."""
    return [name for name in frame.columns if name not in ENVELOPE]


def fields(names: Mapping[str, str]) -> list[StructField]:
    """Return Spark fields for type names (`bigint`, `decimal(38,2)`, ...) by column name. Raises KeyError for a type that changelogs do not have."""
    from pyspark.sql import types as T

    kinds: Mapping[str, DataType] = {
        "string": T.StringType(),
        "bigint": T.LongType(),
        "double": T.DoubleType(),
        "boolean": T.BooleanType(),
        "date": T.DateType(),
        "timestamp": T.TimestampType(),
        "binary": T.BinaryType(),
        "tinyint": T.ByteType(),
        "int": T.IntegerType(),
    } | {f"decimal(38,{scale})": T.DecimalType(38, scale) for scale in range(39)}
    return [T.StructField(name, kinds[kind]) for name, kind in names.items()]
