"""Rows of a source that is a table or an answer, not files: their keys, and the comparison of all of them with the prior rows.

A record is identified by its primary key. Without one, its key encodes all of its values and the number of the copy among equal rows, from 1.
The key of a rejected row encodes its error text and such a number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from changelog.columns import column
from changelog.keys.spark import key_column
from changelog.lazy_imports import F, Window, pa
from changelog.rows import Rows
from changelog.spark_algebra import diff
from operators.source.diff.sides import image_hash
from operators.source.file_changes import FileRecord
from operators.source.request import IngestRequest, IngestResult, InputChanged
from operators.source.row_layout import RowShape
from operators.source.unique_keys import UniqueKeys

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

REJECTED = b"\xff"
"""First byte of the key of a rejected row."""
BASE, HASH, COPY = "__base", "__hash", "__copy"


@dataclass(frozen=True, slots=True)
class TableRows(ABC):
    """The rows of one table or answer.

    Attributes:
        request: The request of its source.
        record: Its entry in the ledger.
    """

    request: IngestRequest
    record: FileRecord

    @property
    @abstractmethod
    def count(self) -> int | None:
        """The number of rows; None where it is not known."""

    @abstractmethod
    def rows(self) -> DataFrame:
        """Return all rows as op rows without keys."""

    def based(self, rows: DataFrame) -> DataFrame:
        """Add `__base`, the beginning of the key, and `__hash`, a hash of all values."""
        names = [name for name in self.request.files.shape.columns if name != "_row"]
        return rows.withColumns({BASE: self.base(rows), HASH: image_hash(rows, names)})

    def base(self, rows: DataFrame) -> Column:
        """The key of a row, without the number of its copy."""
        values = [(column(name), kind) for name, kind in self.request.source.identity]
        wrong = F.concat(F.lit(REJECTED), F.col("_error").cast("binary"), F.lit(b"\x00"))
        return F.when(F.col("_error").isNull(), key_column(values)).otherwise(wrong)

    @property
    def unique(self) -> bool:
        """Whether a base identifies one record."""
        return bool(self.request.config.merge.primary_key)

    def key(self) -> Column:
        """Return the key of a row that has `__base` and `__copy`. No place can be read from the key of a rejected row."""
        copy = key_column([(F.col(COPY), "int")])
        good = F.col(BASE) if self.unique else F.concat(F.col(BASE), copy)
        return F.when(F.col("_error").isNull(), good).otherwise(F.concat(F.col(BASE), copy, F.lit(b"\x01!")))

    def numbered(self, rows: DataFrame) -> DataFrame:
        """Rows with `__base` and `__hash` under their keys."""
        copy = F.lit(1) if self.unique else F.row_number().over(Window.partitionBy(BASE).orderBy(HASH))
        return rows.withColumn(COPY, copy.cast("bigint")).withColumn("_key", self.key())

    @property
    def refuse(self) -> Any:
        """The check that raises InputChanged for a written delta with duplicate keys; None without a primary key."""
        return partial(_refuse, self.request) if self.unique else None


def _refuse(request: IngestRequest, delta: DataFrame) -> None:
    UniqueKeys(request, None).check(delta)
    wrong = delta.where(F.col("_error").isNotNull() & F.col("_op").isin(0, 3)).groupBy("_key").agg(F.count(F.lit(1)).alias("n"), F.first("_error").alias("error"))
    twice = request.engine.to_arrow(wrong.where(F.col("n") > 1).orderBy("_key"), 1).to_pylist()
    if twice:
        raise InputChanged(f"{twice[0]['n']} equal rows cannot be read: {twice[0]['error']}")


def op_rows(typed: pa.RecordBatch, shape: RowShape, schema: pa.Schema, path: str, dynamic: frozenset[str]) -> pa.RecordBatch:
    """A batch of a reader as op rows without keys; the rows of a table have no numbers."""
    at, made = schema.get_field_index("_row"), shape.batch(typed, b"", path, 0, dynamic)
    return made.cast(schema).set_column(at, schema.field(at), pa.nulls(made.num_rows, pa.int64()))


def compared_whole(one: TableRows) -> IngestResult:
    """Compare all rows with all prior rows."""
    request = one.request
    rows = one.numbered(one.based(one.rows()))
    names = [column(name) for name in request.files.shape.columns]
    if request.files.limit is not None:
        rows = rows.orderBy("_key").limit(request.files.limit)
    bound = None if one.count is None else one.count + one.record.rows
    if request.prior_rows is None:
        fresh = rows.select("_op", "_key", F.lit(request.fresh_cause).alias("_cause"), *names)
        return IngestResult(Rows(request.engine, frame=fresh), False, (one.record,), (one.record,), bound, one.refuse)
    changed = diff(request.prior_rows, rows.select("_key", *names), request.cause, compare=request.compared())
    return as_result(one, changed, bound)


def as_result(one: TableRows, changed: DataFrame, bound: int | None) -> IngestResult:
    """The result of a consolidated delta, whose insertions get the cause of fresh rows."""
    fresh = F.when(F.col("_op") == 0, F.lit(one.request.fresh_cause)).otherwise(F.col("_cause"))
    return IngestResult(Rows(one.request.engine, frame=changed.withColumn("_cause", fresh)), True, (one.record,), (one.record,), bound, one.refuse)
