"""Columns of numbers at the scale of a Decimal."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from changelog.lazy_imports import pa
from cxl.types.types import MOST_DIGITS, Kind, Type
from storage.files.errors import OutputError
from storage.values.decimals import DecimalType, converted, plain_digits

if TYPE_CHECKING:
    from pyspark.sql import Column

_INT_DIGITS = 19


def at_scale(name: str, value: Column, given: Type, scale: int) -> Column:
    """Return a column of Ints or Decimals at a scale that is not less than theirs.

    Where a value has more than 38 digits there, the engine fails with an OutputError in its message, which names the column.
    """
    if given.kind is Kind.DECIMAL and given.scale == scale:
        return value
    if given.kind is Kind.INT and scale <= MOST_DIGITS - _INT_DIGITS:
        return value.cast(f"decimal({MOST_DIGITS},{scale})")
    return computed(partial(_rescaled, name, scale), value, scale)


def computed(work: Any, value: Column, scale: int) -> Column:
    """Return decimals of a scale that Python computes from Arrow arrays."""
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.types import DecimalType as EngineDecimal

    def run(batch: pa.Array) -> pa.Array:
        return work(batch)

    made: Column = cast("Any", arrow_udf)(run, EngineDecimal(MOST_DIGITS, scale))(value)
    return made


def _rescaled(name: str, scale: int, values: pa.Array) -> pa.Array:
    found = converted(values, DecimalType(MOST_DIGITS, scale))
    if found.null_count > values.null_count:
        lost = next(value for value, made in zip(values.to_pylist(), found.to_pylist(), strict=True) if value is not None and made is None)
        shown = str(lost) if isinstance(lost, int) else plain_digits(lost)
        raise OutputError(f"column '{name}': {shown} has more than {MOST_DIGITS} digits with {scale} of them behind the point")
    return found
