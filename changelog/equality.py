"""Equality of images: two images are equal where each column prints the same.

Null equals null, NaN equals NaN whatever its bits, and -0.0 differs from 0.0. The engines disagree on all three when they compare or group
doubles. So images are compared by *parts*. A double has two parts: its number, and a mark for NaN and the sign of zero. A struct has a part for
null, and the parts of its fields.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, cast

from changelog.columns import column
from changelog.lazy_imports import F

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType


def parts(frame: DataFrame, names: Sequence[str], value: Callable[[str], Column] = column) -> list[Column]:
    """Return the parts of the columns `names`. On both engines, parts are null-safe equal and grouped together exactly where the columns print the same.

    Args:
        frame: A frame with these columns. Its schema tells their types.
        names: The columns.
        value: Returns the column of a name, where the columns have other names by now.
    """
    types = {field.name: field.dataType for field in frame.schema.fields}
    return [part for name in names for part in _split(value(name), types[name])]


def whole(frame: DataFrame, names: Sequence[str], pieces: Sequence[str]) -> list[Column]:
    """Return the columns `names` of `frame`, rebuilt from its `parts`, which now have the names `pieces`."""
    types = {field.name: field.dataType for field in frame.schema.fields}
    rest = map(column, pieces)
    return [_together(types[name], rest).alias(name) for name in names]


def fingerprint(frame: DataFrame, names: Sequence[str]) -> Column:
    """Return a struct of the parts, for `alike`: `f` is 0, and `f0`, `f1`, ... are the parts in order."""
    return F.struct(F.lit(0).alias("f"), *(part.alias(f"f{at}") for at, part in enumerate(parts(frame, names))))


def alike(old: Column, new: Column, count: int) -> Column:
    """Return whether two fingerprints of `count` parts are equal. A null struct equals only another null.

    Parts are compared one by one, because an engine refuses to compare two structs where only one has a part that is never null.
    """
    fields = ["f", *(f"f{at}" for at in range(count))]
    return agree([old.getField(name) for name in fields], [new.getField(name) for name in fields])


def agree(old: Sequence[Column], new: Sequence[Column]) -> Column:
    """Return whether two images have equal parts."""
    same = [one.eqNullSafe(other) for one, other in zip(old, new, strict=True)] or [F.lit(True)]
    while len(same) > 1:  # in pairs of pairs: plans may nest only so deep
        same = [left & right for left, right in zip_longest(same[::2], same[1::2], fillvalue=F.lit(True))]
    return same[0]


def _split(value: Column, kind: DataType) -> Iterator[Column]:
    if kind.typeName() == "struct":
        yield value.isNull()
        for field in cast("StructType", kind).fields:
            yield from _split(value.getField(field.name), field.dataType)
    elif kind.typeName() == "double":
        yield F.when(F.isnan(value), F.lit(None)).otherwise(value)
        yield F.when(F.isnan(value), "NaN").when(value == 0.0, value.cast("string"))
    else:
        yield value


def _together(kind: DataType, rest: Iterator[Column]) -> Column:
    if kind.typeName() == "struct":
        missing = next(rest)
        return F.when(~missing, F.struct(*(_together(field.dataType, rest).alias(field.name) for field in cast("StructType", kind).fields)))
    if kind.typeName() == "double":
        number, mark = next(rest), next(rest)
        return F.when(mark == "NaN", float("nan")).when(mark == "-0.0", -0.0).when(mark == "0.0", 0.0).otherwise(number)
    return next(rest)
