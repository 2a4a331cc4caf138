"""Rows whose files are gone, after their source declared other columns: each value moves to the column that has it now.

Present files are read again. For the others only the rows exist: undeclared values are in `_widened`, declared ones in their columns. A value that
cannot be read as its column's new type makes the record a reject, as in a file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from changelog.frames import any_of, chosen, mapped, united, with_schema
from changelog.lazy_imports import F, pa, pc
from changelog.ops import Op
from cxl.types.types import Schema
from operators.core.evaluate import Narrow
from operators.source.file_changes import FileRecord
from operators.source.node import SourceNode
from operators.source.request import IngestRequest
from operators.source.row_layout import RowShape, shaped_schema
from operators.source.strategies.keyed_events import place_key
from storage.formats.base import ERROR, Column
from storage.formats.batches import assembled
from storage.formats.dotted_members import Members
from storage.formats.values import coerce_values, text_of, text_of_value
from storage.values.json_text import canonical

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame


WIDENED = "_widened"


@dataclass(frozen=True, slots=True)
class Redeclared:
    """A change of the declared columns.

    Attributes:
        came: Columns that are declared now and were undeclared.
        went: Columns that were declared and are undeclared now, and whether they contain JSON text.
        rides: Columns whose values are a correlation key since then.
    """

    came: tuple[Column, ...]
    went: tuple[tuple[str, bool], ...]
    rides: tuple[str, ...] = ()

    @classmethod
    def between(cls, before: Schema, hidden: Collection[str], source: SourceNode) -> Redeclared:
        """`before` and `hidden`: the source's columns as they were, and its hidden ones."""
        plan, declared = source.reader().plan, source.shape.declared
        labels = {column.label for column in plan.declared}
        came = tuple(column for column in plan.declared if column.label in declared and column.label not in before)
        went = tuple((name, type_.is_dynamic) for name, type_ in before.items() if name not in labels)
        rides = tuple(name for rider, name in source.shape.riders if rider not in hidden)
        return cls(came if WIDENED in hidden else (), went if plan.on_unmapped == "auto_widen" else (), rides)

    def __bool__(self) -> bool:
        """Whether a row may have to change."""
        return bool(self.came or self.went or self.rides)

    def columns(self) -> set[str]:
        """Return the columns to read in addition to the source's present ones."""
        return {name for name, _ in self.went} | ({WIDENED} if self.came else set())

    def redeclared(self, record: FileRecord, source: SourceNode) -> FileRecord:
        """The record of a file that is gone or was overwritten, with the undeclared columns that its rows have now."""
        came, type_ = {column.name for column in self.came}, source.reader().undeclared_type
        stays = {name: kind for name, kind in record.undeclared if name not in came}
        return replace(record, undeclared=tuple((dict.fromkeys((name for name, _ in self.went), type_) | stays).items()))


def lasting(request: IngestRequest) -> list[FileRecord]:
    """Return the files whose rows are live although their content is gone."""
    overwritten = {record.path for record in request.delivered.changed}
    return [record for record in request.changes.now if (record.rows and not record.present) or record.replaced or record.path in overwritten]


def corrections(request: IngestRequest, stood: DataFrame, made: DataFrame | None, change: Redeclared, also: Narrow | None = None) -> DataFrame:
    """Return the op rows that move values of such rows, and of rows that `also` chooses.

    Args:
        request: The request of the source.
        stood: Prior rows with the columns of `change`.
        made: Op rows of this run; their keys are left out.
        change: The change of columns.
        also: Chooses further rows.
    """
    of_lasting = of_files(request, lasting(request))
    rows = stood.where(of_lasting)
    if also is not None:
        rows = united(rows, also(stood.where(~of_lasting)))
    return _moved(request.source, rows if made is None else rows.join(made.select("_key"), "_key", "left_anti"), change, request.cause)


def restated(source: SourceNode, rows: DataFrame, change: Redeclared) -> DataFrame:
    """Return prior rows (with the columns of `change`, rejects included) under the source's present columns."""
    moved = _moved(source, rows, change, "")
    gone = moved.where(F.col("_op").isin(int(Op.CORRECT_FROM), int(Op.RETRACT))).select("_key")
    came = moved.where(F.col("_op").isin(int(Op.CORRECT_TO), int(Op.APPEND)))
    names = ["_key", *source.shape.columns]
    return united(chosen(rows.join(gone, "_key", "left_anti"), names), chosen(came, names))


def _moved(source: SourceNode, rows: DataFrame, change: Redeclared, cause: str) -> DataFrame:
    """The op rows that give rows which are no rejects their values anew."""
    from pyspark.sql.pandas.types import from_arrow_schema

    shape, reader = source.shape, source.reader()
    kinds = {field.name: field.type for field in shaped_schema(shape, reader.schema())} | {"_key": pa.binary(), "_row": pa.int64()}
    schema = pa.schema([(name, kinds[name]) for name in ("_op", "_key", "_cause", *shape.columns)])
    work = _Work(shape, change, schema, reader.plan.date_formats, cause, typed=reader.undeclared_type == "any")
    taken = dict.fromkeys(["_key", *shape.columns, *sorted(change.columns())])
    spark_schema = from_arrow_schema(schema)
    moved = with_schema(mapped(chosen(rows.where(F.col("_error").isNull()), list(taken)), work, spark_schema), spark_schema)
    rejected = F.col("_error").isNotNull()
    return moved.withColumn("_key", F.when(rejected, place_key() if shape.keyed else F.concat("_key", F.lit(b"!"))).otherwise(F.col("_key")))


def of_files(request: IngestRequest, records: Sequence[FileRecord]) -> Expression:
    """Whether a row is of one of some files."""
    if not records:
        return F.lit(False)
    if request.files.shape.keyed:
        return F.col("_file").isin([record.stored for record in records])
    prefixes = [request.files.prefix(record) for record in records]
    return any_of([(F.col("_key") >= F.lit(low)) & (F.col("_key") < F.lit(low + b"\xff")) for low in prefixes])


@dataclass(frozen=True)
class _Work:
    """Takes batches of rows to the op rows that correct them. Picklable. `typed`: undeclared fields are JSON values, not texts."""

    shape: RowShape
    change: Redeclared
    schema: pa.Schema
    date_formats: Sequence[str]
    cause: str
    typed: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield from self._corrected(batch)

    def _corrected(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The images before and after of the rows in which a value moves."""
        members = [dict(self.opened(one)) for one in _members(batch)]
        declared, there = self._declared(members)
        moved = [self._move(batch.column(name), name, members, dynamic=dynamic) for name, dynamic in self.change.went]
        riding = [batch.column(name).is_valid() for name in self.change.rides if name in batch.schema.names]
        concerned = reduce(pc.or_, [*there, *moved, *riding])
        old = {name: batch.column(name) for name in batch.schema.names}
        new = old | {column.label: declared.column(column.label) for column in self.change.came if column.label in self.schema.names} | {"_error": declared.column(ERROR)}
        new |= {rider: new[name] for rider, name in self.shape.riders}
        if WIDENED in self.schema.names:
            new[WIDENED] = _texts(members)
        if "_event_time" in self.schema.names:
            new["_event_time"] = self.shape.event_times(new)
        good = pc.is_null(new["_error"])
        yield self._rows(old, pc.if_else(good, int(Op.CORRECT_FROM), int(Op.RETRACT)), concerned)
        yield self._rows(new, pc.if_else(good, int(Op.CORRECT_TO), int(Op.APPEND)), concerned)

    def opened(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Undeclared fields with those under their own names that are declared by a path now (`m.q`)."""
        came = [column for column in self.change.came if "." in column.name]
        return Members.of(came).record(fields) if came and self.typed else fields

    def _declared(self, members: Sequence[dict[str, Any]]) -> tuple[pa.RecordBatch, list[pa.Array]]:
        """The columns that are declared now, out of the fields beside them, with ERROR; of each, which rows have it."""
        columns = self.change.came
        values = {column.name: [one.pop(column.name, None) for one in members] for column in columns}
        there = [pa.array([value is not None for value in values[column.name]], pa.bool_()) for column in columns]
        done = {column.name: coerce_values(values[column.name], column.type, self.date_formats) for column in columns}
        cells = lambda name, where: [text_of_value(values[name][at]) for at in where.to_pylist()]  # noqa: E731
        return assembled(columns, done, pa.arange(0, len(members)), None, cells), there

    def _move(self, values: pa.Array, name: str, members: Sequence[dict[str, Any]], *, dynamic: bool) -> pa.Array:
        """Put the values of a column that is undeclared now among the fields beside the columns; which rows have one."""
        for member, value in zip(members, _plain(values, dynamic=dynamic, typed=self.typed), strict=True):
            if value is not None:
                member[name] = value
        return values.is_valid()

    def _rows(self, columns: Mapping[str, pa.Array], ops: pa.Array, concerned: pa.Array) -> pa.RecordBatch:
        whole = {**columns, "_op": ops, "_cause": pa.repeat(self.cause, len(ops))}
        return pa.RecordBatch.from_arrays([whole[field.name].cast(field.type) for field in self.schema], schema=self.schema).filter(concerned)


def _members(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    import orjson

    if WIDENED not in batch.schema.names:
        return [{} for _ in range(batch.num_rows)]
    return [orjson.loads(text) if text else {} for text in batch.column(WIDENED).to_pylist()]


def _texts(members: Iterable[Mapping[str, Any]]) -> pa.Array:
    return pa.array([canonical(one) if one else None for one in members], pa.string())


def _plain(values: pa.Array, *, dynamic: bool, typed: bool) -> list[Any]:
    """Return the values of a column as values of undeclared fields."""
    import orjson

    if dynamic:
        found = [None if text is None else orjson.loads(text) for text in values.to_pylist()]
        return found if typed else list(map(text_of_value, found))
    if typed and not pa.types.is_temporal(values.type):
        return list(values.to_pylist())
    return list(text_of(values, Column("", "string"), "text").to_pylist())
