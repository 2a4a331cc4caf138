"""Window functions that Python computes from the values of each frame: `collect`, `distinct`, and arithmetic on dynamic values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any

from changelog.columns import column
from changelog.lazy_imports import F, pa
from cxl.spark.worker import arrow_type, decoded, encode
from cxl.typed.tree import WindowUse
from cxl.values.failure import CxlFailure
from operators.core.row_type import physical_type
from operators.transform.window.running_sum import running_sums

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


SUMS = frozenset({"sum", "cumulative_sum", "avg"})


def with_listed(frame: DataFrame, uses: Sequence[WindowUse], number: Column, *, whole: bool) -> DataFrame:
    """The frame with the calls' results; what failed goes to `__window_wrong`.

    A partition at a time goes through Python, its argument columns alone, in the window's order. `number`: a row's position.
    """
    members = [F.col("__number"), F.col("_key"), *map(column, dict.fromkeys(name for use in uses for name in use.columns))]
    rows = F.sort_array(F.collect_list(F.struct(*members))).alias("rows")
    partitions = frame.withColumn("__number", number).groupBy("__part").agg(rows).select("rows")
    types = ", ".join(f"{use.column} {physical_type(use.type)}" for use in uses)
    results = partitions.mapInArrow(_worker([_Call(use) for use in uses], whole), f"__row binary, {types}, __failed string")
    joined = frame.join(results, F.col("_key") == F.col("__row"), "left")
    wrong = F.coalesce(F.col("__window_wrong"), F.col("__failed")).alias("__window_wrong")
    kept = [column(name) for name in frame.columns if name != "__window_wrong"]
    return joined.select(*kept, *(column(use.column) for use in uses), wrong)


class _Call:
    """The part of a call that travels to the workers."""

    def __init__(self, use: WindowUse) -> None:
        self.column = use.column
        self.argument = use.columns[0]
        self.argument_type = use.args[0].type
        self.function = use.function
        self.type = use.type

    def values(self, flat: pa.Array) -> list[Any]:
        """The arguments of all rows of a batch."""
        return decoded(flat.field(self.argument), self.argument_type)

    def results(self, values: Sequence[Any], whole: bool) -> Iterator[tuple[Any, str | None]]:
        """For each row of a partition its value as the column holds it, and what failed."""
        if whole:
            yield from repeat(self._result(values), len(values))
        elif self.function.name in SUMS:
            mean = self.function.name == "avg"
            yield from ((encode(value, self.type), wrong) for value, wrong in running_sums(values, mean=mean))
        else:
            yield from (self._result(values[: place + 1]) for place in range(len(values)))

    def _result(self, values: Sequence[Any]) -> tuple[Any, str | None]:
        try:
            return encode(self.function.python(values), self.type), None  # type: ignore[misc]  # these functions have a Python form
        except CxlFailure as failure:
            return None, failure.message


def _worker(calls: Sequence[_Call], whole: bool) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _answered(batch.column("rows"), calls, whole)

    return work


def _answered(rows: pa.Array, calls: Sequence[_Call], whole: bool) -> pa.RecordBatch:
    flat = rows.flatten()
    offsets = rows.offsets.to_pylist()
    spans = [(start - offsets[0], end - offsets[0]) for start, end in pairwise(offsets)]
    failed: list[str | None] = [None] * len(flat)
    arrays = [flat.field("_key").cast(pa.binary())]
    for call in calls:
        values = call.values(flat)
        found = [result for start, end in spans for result in call.results(values[start:end], whole)]
        arrays.append(pa.array([value for value, _ in found], arrow_type(call.type)))
        failed = [before or now for before, (_, now) in zip(failed, found, strict=True)]
    return pa.RecordBatch.from_arrays([*arrays, pa.array(failed, pa.string())], ["__row", *(call.column for call in calls), "__failed"])
