"""When two images are the same: each column prints the same.

Null equals null, NaN equals NaN whatever its bits, and -0.0 is not 0.0. The engines disagree on all three when doubles are
compared, grouped or sorted, so a double is compared as two fields: the number, and a mark for NaN and for the sign of zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, StructType

from changelog.schema import column

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


def comparables(frame: DataFrame, names: Sequence[str]) -> list[Column]:
    """Columns that are null-safe equal on both engines exactly where the columns `names` of `frame` print the same."""
    types = {field.name: field.dataType for field in frame.schema.fields}
    return [part for name in names for part in _parts(column(name), types[name])]


def _parts(value: Column, kind: DataType) -> Iterator[Column]:
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from _parts(value.getField(field.name), field.dataType)
    elif isinstance(kind, DoubleType | FloatType):
        yield F.when(F.isnan(value), F.lit(None)).otherwise(value)
        yield F.when(F.isnan(value), "NaN").when(value == 0.0, value.cast("string"))
    else:
        yield value


def fingerprint(frame: DataFrame, names: Sequence[str]) -> Column:
    """One struct of the `comparables`: compare it with `eqNullSafe`, at a cost linear in the number of columns."""
    parts = comparables(frame, names)
    return F.struct(F.lit(0).alias("f"), *(part.alias(f"f{at}") for at, part in enumerate(parts)))
