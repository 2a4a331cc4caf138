"""Steps on DataFrames whose schema is known, so that no engine analyses a plan for it.

A Spark Connect DataFrame asks the server for its columns, and the server analyses the whole plan. That takes as long as a small query.
PySpark caches the answer with the frame. These functions fill the cache with a schema that is known beforehand. Where the cache lies is the
engine's knowledge: `use_cache` is given it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from changelog.columns import TYPES, column, fields
from changelog.lazy_imports import F, pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField, StructType

Batches: TypeAlias = "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]"
BATCH_ROWS: Final = 8192
"""Rows of a batch that Python gives back to an engine, as many as engines have in theirs."""


def mapped(frame: DataFrame, work: Batches, schema: StructType | str) -> DataFrame:
    """The batches of a frame as Python maps them (`mapInArrow`), whatever the names of its columns: a client does not quote them."""
    names = frame.columns
    if not all(map(str.isidentifier, names)):
        frame = _numbered(frame, names)
        work = _Named(work, tuple(names))
    return frame.mapInArrow(work, schema)


def mapped_groups(frame: DataFrame, key: str, work: Callable[[pa.Table], pa.Table], schema: StructType) -> DataFrame:
    """The same of all rows together that have one value of a column (`applyInArrow`)."""
    names = frame.columns
    numbered = _numbered(frame, names)
    return numbered.groupBy(numbered[f"c{names.index(key)}"]).applyInArrow(lambda rows: work(rows.rename_columns(names)), schema)


def _numbered(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    return frame.select(*(column(name).alias(f"c{at}") for at, name in enumerate(names)))


@dataclass(frozen=True, slots=True)
class _Named:
    """Work on batches whose columns have their own names again. Picklable."""

    work: Batches
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.work(batch.rename_columns(list(self.names)) for batch in batches)


class SchemaCache(Protocol):
    """Where a client keeps the schema of a frame."""

    def get(self, frame: DataFrame) -> StructType | None:
        """The schema of a frame where it is cached, else None."""

    def put(self, frame: DataFrame, schema: StructType) -> None:
        """Cache the schema of a frame that has none yet. A classic DataFrame is analysed already."""


class _NoCache:
    """Before the first engine: nothing is cached."""

    def get(self, frame: DataFrame) -> StructType | None:
        return None

    def put(self, frame: DataFrame, schema: StructType) -> None:
        pass


_caches: list[SchemaCache] = [_NoCache()]


def use_cache(cache: SchemaCache) -> None:
    """Take schemas of frames from a client's cache from now on."""
    _caches[:] = [cache]


def with_schema(frame: DataFrame, schema: StructType | None) -> DataFrame:
    """The frame with its schema cached; None where the schema is not known."""
    if schema is not None:
        _caches[0].put(frame, schema)
    return frame


def known(frame: DataFrame) -> StructType | None:
    """The schema of a frame where it is cached, else None."""
    return _caches[0].get(frame)


def typed(frame: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """The frame with its schema cached: columns in order and their types (`changelog.columns.TYPES`)."""
    from pyspark.sql.types import StructType

    return with_schema(frame, StructType(fields(columns)))


def chosen(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Columns of a frame."""
    return with_schema(frame.select(*map(column, names)), among(known(frame), names))


def without(frame: DataFrame, *names: str) -> DataFrame:
    """The frame without some columns, which it need not have."""
    schema = known(frame)
    return frame.drop(*names) if schema is None else chosen(frame, [name for name in schema.names if name not in names])


def of_keys(frame: DataFrame, keys: DataFrame, *on: str) -> DataFrame:
    """The rows of a frame whose columns `on` are those of one of the keys."""
    matched, schema = frame.join(keys, list(on), "left_semi"), known(frame)
    return matched if schema is None else with_schema(matched.select(*map(column, schema.names)), schema)  # a join puts `on` first


def united(one: DataFrame, *others: DataFrame) -> DataFrame:
    """All rows of frames with the same columns, in any order. Names are matched exactly, while an engine may take `Id` for `id`."""
    for other in others:
        schema = known(one) or known(other) or one.schema
        one = with_schema(_picked(one, schema).union(_picked(other, schema)), schema)
    return one


def _picked(frame: DataFrame, schema: StructType) -> DataFrame:
    own = known(frame)
    return frame if own is not None and own.names == schema.names else chosen(frame, schema.names)


def with_envelope(image: Iterable[StructField] | None, *names: str) -> StructType | None:
    """System columns of a changelog, then the fields of an image; None where these are not known."""
    from pyspark.sql.types import StructType

    return None if image is None else StructType([*fields({name: TYPES[name] for name in names}), *image])


def among(schema: StructType | None, names: Sequence[str]) -> StructType | None:
    """Some columns of a schema in the order of `names`."""
    from pyspark.sql.types import StructType

    if schema is None:
        return None
    known = {field.name: field for field in schema}  # a schema looks a name up by reading all of its fields
    return StructType([known[name] for name in names])


def any_of(conditions: Sequence[Column]) -> Column:
    """Whether one of the conditions holds; joined in pairs of pairs, since plans may nest only so deep."""
    left = list(conditions) or [F.lit(False)]
    while len(left) > 1:
        left = [reduce(or_, left[at : at + 2]) for at in range(0, len(left), 2)]
    return left[0]
