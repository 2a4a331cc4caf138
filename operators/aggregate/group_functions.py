"""Aggregates over all rows of a group, including functions that cannot be retracted (min, max, first, last, any, collect, dynamic values)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from changelog.columns import column
from changelog.exact.rounding import with_totals
from changelog.frames import mapped
from changelog.lazy_imports import F, pa
from cxl.spark.worker import arrow_type, decoded, encode
from cxl.typed.tree import AggregateUse
from cxl.types.types import Kind
from cxl.values.failure import CxlFailure
from operators.aggregate.accumulators import Accumulator, accumulator, native_aggregate, rounded
from operators.core.evaluate import first_case
from operators.core.operator import INEXACT_SUM

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def grouped(
    frame: DataFrame, groups: Sequence[str], calls: Sequence[AggregateUse], *, wide: bool = False, settle: Callable[[DataFrame], DataFrame]
) -> DataFrame:
    """One row a group: the group fields, the result of each call, and `__wrong` (why the group cannot be finalized, or null).

    In: positive op rows with `_key`, the group fields and the calls' argument columns. No groups: one row, also over nothing.
    `wide`: sums met values that limbs do not hold, so Python adds them up, exactly too. `settle`: see `RunValues`.
    """
    ways = _Ways.of(calls, wide=wide)
    fields = [*map(column, groups)]
    ready = frame.select("_key", *fields, *map(column, dict.fromkeys(name for use in calls for name in use.columns)), *ways.contributions())
    parts = [*ways.added(), F.count(F.lit(1)).alias("__rows")]
    added = ready.groupBy(*fields).agg(*parts) if groups else ready.agg(*parts)
    carried = added.select(*fields, *ways.carried(), *ways.kept(), "__rows")
    carried = with_totals(settle(carried) if ways.sums else carried, rounded(ways.sums.values()))
    wrong = first_true([*wrongs(ways.sums.values()), (F.col("__rows") < 0, INEXACT_SUM)])  # never a constant: an engine moves filters by constants below the total
    finished = carried.select(*fields, *ways.results(), *ways.kept(), wrong.alias("__wrong"))
    return _with_listed(finished, groups, calls, ways.listed) if ways.listed else finished


@dataclass(frozen=True, slots=True)
class _Ways:
    """How each call of an aggregate is computed: by exact sums, by a function of the engine, or by Python from a list of the group's rows."""

    sums: Mapping[str, Accumulator]
    native: Mapping[str, Column]
    listed: Sequence[AggregateUse]

    @classmethod
    def of(cls, calls: Sequence[AggregateUse], *, wide: bool) -> _Ways:
        sums = {use.column: found for use in calls if (found := accumulator(use)) is not None and not (wide and may_be_inexact(use))}
        native = {use.column: made for use in calls if use.column not in sums and (made := native_aggregate(use)) is not None}
        return cls(sums, native, [use for use in calls if use.column not in sums and use.column not in native])

    def contributions(self) -> Iterator[Column]:
        """The terms of each row in the sums."""
        return (part for one in self.sums.values() for part in one.contributions(F.lit(1).cast("bigint")))

    def added(self) -> list[Column]:
        """The aggregates of a group."""
        totals = [_total(name) for one in self.sums.values() for name in one.columns]
        return [*totals, *self.native.values(), *(_rows_of(use).alias(f"{use.column}_rows") for use in self.listed)]

    def carried(self) -> Iterator[Column]:
        """The sums in carried form."""
        return (part for one in self.sums.values() for part in one.carried())

    def kept(self) -> list[Column]:
        """The columns that are handed on unchanged."""
        return [*(column(name) for name in self.native), *(column(f"{use.column}_rows") for use in self.listed)]

    def results(self) -> list[Column]:
        """The values of the sums."""
        return [one.result().alias(name) for name, one in self.sums.items()]


def may_be_inexact(use: AggregateUse) -> bool:
    """Whether a call adds floats."""
    if use.type.kind is Kind.DECIMAL:
        return False
    return use.function.name in ("sum", "avg", "weighted_avg") and not (use.function.name != "weighted_avg" and use.args[0].type.kind is Kind.INT)


def _total(name: str) -> Column:
    return F.coalesce(F.sum(column(name)), F.lit(0).cast("bigint")).alias(name)


def wrongs(accumulators: Any) -> list[tuple[Column, str]]:
    """The faults that a group's sums can have, the more general first."""
    found: Sequence[Accumulator] = list(accumulators)
    return [(one.inexact(), INEXACT_SUM) for one in found] + [(one.overflows(), one.overflow) for one in found]


def first_true(cases: Sequence[tuple[Column, str]]) -> Column:
    """The text of the first condition that holds, null where none does."""
    return first_case([(condition, F.lit(text)) for condition, text in cases], F.lit(None).cast("string"))


def _rows_of(use: AggregateUse) -> Column:
    """The arguments of all rows of a group, by key: what Python gets to see."""
    return F.sort_array(F.collect_list(F.struct(F.col("_key"), *map(column, dict.fromkeys(use.columns)))))


def _with_listed(frame: DataFrame, groups: Sequence[str], calls: Sequence[AggregateUse], listed: Sequence[AggregateUse]) -> DataFrame:
    """Let Python compute the calls that have no column of their own, a batch of groups at a time."""
    from pyspark.sql.types import StringType, StructField, StructType

    from cxl.spark.columns import spark_type

    taken = {"__wrong", *(f"{use.column}_rows" for use in listed)}
    plain = [field for field in frame.schema.fields if field.name not in taken]
    schema = StructType([StructField(field.name, field.dataType) for field in plain])
    for use in listed:
        schema = schema.add(use.column, spark_type(use.type))
    schema = schema.add("__wrong", StringType())
    result = mapped(frame, _list_worker([field.name for field in plain], [_ListedCall.of(use) for use in listed]), schema)
    return result.select(*map(column, groups), *(column(use.column) for use in calls if use.column in schema.names), "__wrong")


class _ListedCall:
    """A call that Python computes: picklable."""

    def __init__(self, column_name: str, use: AggregateUse) -> None:
        self.column = column_name
        self.function = use.function
        self.types = tuple(arg.type for arg in use.args)
        self.arguments = use.columns
        self.type = use.type

    @classmethod
    def of(cls, use: AggregateUse) -> _ListedCall:
        """The call's part that travels."""
        return cls(use.column, use)

    def results(self, rows: pa.Array) -> tuple[list[Any], list[str | None]]:
        """Values as their column holds them, and what failed, one a group."""
        flat = rows.flatten()
        values = [decoded(flat.field(name), type_) for name, type_ in zip(self.arguments, self.types, strict=True)]
        offsets = rows.offsets.to_pylist()
        found: list[Any] = []
        wrong: list[str | None] = []
        for start, end in pairwise(offsets):
            try:
                found.append(encode(self.function.python(*(column[start - offsets[0] : end - offsets[0]] for column in values)), self.type))  # type: ignore[misc]  # aggregates have a Python function
                wrong.append(None)
            except CxlFailure as failure:
                found.append(None)
                wrong.append(failure.message)
        return found, wrong


def _list_worker(plain: Sequence[str], calls: Sequence[_ListedCall]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            arrays = [batch.column(name) for name in plain]
            wrong = batch.column("__wrong").to_pylist()
            for call in calls:
                found, failed = call.results(batch.column(f"{call.column}_rows"))
                arrays.append(pa.array(found, arrow_type(call.type)))
                wrong = [before or now for before, now in zip(wrong, failed, strict=True)]
            arrays.append(pa.array(wrong, pa.string()))
            yield pa.RecordBatch.from_arrays(arrays, [*plain, *(call.column for call in calls), "__wrong"])

    return work
