"""What is known of a DataFrame's columns stays with it, so that no engine is asked for it.

A Spark Connect DataFrame that is asked for its columns has the server analyse its whole plan, which takes as long as a small query. PySpark
keeps the answer with the frame and with what filters make of it; here it gets the answer from who knows it beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final, TypeAlias

from changelog.columns import TYPES, column, fields
from changelog.lazy_imports import F, pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField, StructType

_MADE: Final = "_errata_made"
Batches: TypeAlias = "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]"


@dataclass(frozen=True, slots=True)
class Made:
    """How tasks make rows in Python: `work` makes batches of them out of those of `seeds`."""

    seeds: DataFrame
    work: Batches


def mapped(frame: DataFrame, work: Batches, schema: StructType | str) -> DataFrame:
    """What Python makes of the batches of a frame (`mapInArrow`), whatever its columns are called: a client asks for them by names that it does not quote."""
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


def made_in_tasks(made: Made, schema: StructType) -> DataFrame:
    """The rows that tasks make, of a schema. How they do is kept with the frame, so that they can be written where they are made (`making`)."""
    frame = told(made.seeds.mapInArrow(made.work, schema), schema)
    vars(frame)[_MADE] = made
    return frame


def making(frame: DataFrame) -> Made | None:
    """How tasks make the rows of a frame, some columns of which it may have chosen; None of any other frame."""
    return vars(frame).get(_MADE)


def told(frame: DataFrame, schema: StructType | None) -> DataFrame:
    """The frame, which has this schema; None: it is not known. A classic DataFrame has been analysed already."""
    if schema is not None and getattr(frame, "_cached_schema", schema) is None:
        frame._cached_schema = schema  # type: ignore[attr-defined]  # noqa: SLF001  # where PySpark itself keeps it
    return frame


def known(frame: DataFrame) -> StructType | None:
    """The schema of a frame where it is known without asking."""
    return getattr(frame, "_cached_schema", None)


def typed(frame: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """The frame, which has these columns of these types (`changelog.columns.TYPES`) in this order."""
    from pyspark.sql.types import StructType

    return told(frame, StructType(fields(columns)))


def chosen(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Columns of a frame."""
    rows = told(frame.select(*map(column, names)), among(known(frame), names))
    if (made := making(frame)) is not None:
        vars(rows)[_MADE] = made
    return rows


def without(frame: DataFrame, *names: str) -> DataFrame:
    """The frame without some columns, which it need not have."""
    schema = known(frame)
    return frame.drop(*names) if schema is None else chosen(frame, [name for name in schema.names if name not in names])


def of_keys(frame: DataFrame, keys: DataFrame, *on: str) -> DataFrame:
    """The rows of a frame whose columns `on` are those of one of the keys."""
    met, schema = frame.join(keys, list(on), "left_semi"), known(frame)
    return met if schema is None else told(met.select(*map(column, schema.names)), schema)  # a join puts `on` first


def united(one: DataFrame, *others: DataFrame) -> DataFrame:
    """All rows of frames with the same columns, whatever their order; matched by exactly their names, while an engine may take `Id` for `id`."""
    for other in others:
        schema = known(one) or known(other) or one.schema
        one = told(_picked(one, schema).union(_picked(other, schema)), schema)
    return one


def _picked(frame: DataFrame, schema: StructType) -> DataFrame:
    own = known(frame)
    return frame if own is not None and own.names == schema.names else chosen(frame, schema.names)


def with_envelope(image: Iterable[StructField] | None, *names: str) -> StructType | None:
    """Columns that a changelog names, and the fields of an image behind them; None where these are not known."""
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
