"""Columns of numbers at the scale of a Decimal."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from changelog.lazy_imports import F, pa
from cxl.types.types import MOST_DIGITS, Kind, Type
from storage.values.decimals import DecimalType, converted

if TYPE_CHECKING:
    from pyspark.sql import Column

_INT_DIGITS = 19


def may_overflow(given: Type, wanted: Type) -> bool:
    """Whether Ints or Decimals may have more than 38 digits at the scale of a Decimal, which is not less than theirs."""
    if wanted.kind is not Kind.DECIMAL:
        return False
    return (given.kind is Kind.DECIMAL and given.scale < wanted.scale) or (given.kind is Kind.INT and wanted.scale > MOST_DIGITS - _INT_DIGITS)


def overflows(value: Column, given: Type, scale: int) -> Column:
    """Whether Ints or Decimals have more than 38 digits at a greater scale."""
    bound = F.lit(f"1{'0' * (MOST_DIGITS - scale)}").cast("bigint" if given.kind is Kind.INT else f"decimal({MOST_DIGITS},{given.scale})")
    return (value >= bound) | (value <= -bound)


def at_scale(value: Column, given: Type, scale: int) -> Column:
    """Return a column of Ints or Decimals at a scale that is not less than theirs; null where a value overflows."""
    if given.kind is Kind.DECIMAL and given.scale == scale:
        return value
    if given.kind is Kind.INT and scale <= MOST_DIGITS - _INT_DIGITS:
        return value.cast(f"decimal({MOST_DIGITS},{scale})")
    return computed(partial(_rescaled, scale), value, scale)


def computed(work: Any, value: Column, scale: int) -> Column:
    """Return decimals of a scale that Python computes from Arrow arrays."""
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.types import DecimalType as EngineDecimal

    def run(batch: pa.Array) -> pa.Array:
        return work(batch)

    made: Column = cast("Any", arrow_udf)(run, EngineDecimal(MOST_DIGITS, scale))(value)
    return made


def _rescaled(scale: int, values: pa.Array) -> pa.Array:
    return converted(values, DecimalType(MOST_DIGITS, scale))
