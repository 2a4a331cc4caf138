"""The columns of a changelog: the system's own, the hidden ones and the data (DESIGN, "A changelog row").

A *delta* has `_op`, `_key`, `_cause`, optional hidden columns and data; a stored row has `_epoch` besides. A *live* frame
has `_key`, `_epoch`, hidden columns and data.
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
"""The columns that say what happens to an image; all others are the image."""

RESERVED: Final = frozenset({*ENVELOPE, CK, EVENT_TIME, FILE, ROW, ERROR})
"""Names that a data column may not have."""

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
    """The column of exactly this name, whatever characters (dots, backticks, spaces) the name has."""
    return F.col(quoted(name))


def quoted(name: str) -> str:
    """A column name in backticks, as `select` and `drop` take it."""
    return "`" + name.replace("`", "``") + "`"


def data_columns(frame: DataFrame, hidden: Collection[str] = ()) -> list[str]:
    """The data columns of a changelog, delta or live frame in their order: all but the reserved names and `hidden`."""
    return [name for name in frame.columns if name not in RESERVED and name not in hidden]


def image_columns(frame: DataFrame) -> list[str]:
    """The columns of a row's image: all but `_epoch`, `_op`, `_key` and `_cause`."""
    return [name for name in frame.columns if name not in ENVELOPE]


def fields(names: Mapping[str, str]) -> list[StructField]:
    """Fields by name and name of the type. Raises KeyError for a type that is not among those of changelogs."""
    from pyspark.sql import types as T

    kinds: dict[str, DataType] = {
        "string": T.StringType(),
        "bigint": T.LongType(),
        "double": T.DoubleType(),
        "boolean": T.BooleanType(),
        "date": T.DateType(),
        "timestamp": T.TimestampType(),
        "binary": T.BinaryType(),
        "tinyint": T.ByteType(),
        "int": T.IntegerType(),
    }
    return [T.StructField(name, kinds[kind]) for name, kind in names.items()]
