"""Running totals of integer columns: window functions of the engine, or, where tasks hold their rows in Python, sums of whole columns there.

An engine sorts all columns of the rows, and Sail adds up each row by itself. In Python only the columns that decide the order are sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from changelog.columns import column
from changelog.frames import BATCH_ROWS, mapped, with_schema
from changelog.lazy_imports import F, pa, pc

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from operators.transform.window.frames import Frames


_PLACE = "__place"


def with_running_totals(frame: DataFrame, names: Sequence[str], frames: Frames, *, in_tasks: bool) -> DataFrame:
    """The frame with bigint columns as their totals over the frame of each row.

    Args:
        frame: Rows with `_key` and the columns of partitions and order.
        names: The columns that are added up.
        frames: The frame of each row.
        in_tasks: Whether tasks may hold all rows in Python.
    """
    if not names:
        return frame
    if not in_tasks or frames.whole:
        return frame.withColumns({name: F.sum(column(name)).over(frames.rows) for name in names})
    schema, parts = frame.schema, frames.parts if frames.order else []
    placed = frame.withColumns({f"{_PLACE}{at}": part.value for at, part in enumerate(parts)}) if parts else frame
    order = (*((name, False, True) for name in frames.fields), *((f"{_PLACE}{at}", part.descending, part.nulls_first) for at, part in enumerate(parts)))
    work = _Totals(tuple(schema.names), len(frames.fields), (*order, ("_key", False, True)), tuple(names))
    return with_schema(mapped(placed.repartition(*map(column, frames.fields)), work, schema), schema)


@dataclass(frozen=True, slots=True)
class _Totals:
    """The work of a task, which has all rows of its partitions. Picklable.

    Attributes:
        columns: The columns that it gives.
        partition: How many columns the rows of a partition have in common, the first ones of the order.
        order: The columns that decide the order, partitions first: name, whether it descends, whether nulls are first.
        summed: The columns that become totals.
    """

    columns: tuple[str, ...]
    partition: int
    order: tuple[tuple[str, bool, bool], ...]
    summed: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if held := list(batches):
            yield from self._added_up(pa.Table.from_batches(held)).to_batches(max_chunksize=BATCH_ROWS)

    def _added_up(self, rows: pa.Table) -> pa.Table:
        order, starts = self._sorted(rows)
        for name in self.summed:
            rows = rows.set_column(rows.schema.get_field_index(name), name, _running(rows.column(name), order, starts))
        return rows.select(self.columns)

    def _sorted(self, rows: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The positions of the rows in their order, and which of them are the first of a partition."""
        import polars as pl

        names, descending, first = zip(*self.order, strict=True)
        places = [str(at) for at in range(len(names))]  # Polars reads some names as patterns
        narrow = pl.DataFrame(pa.table(rows.select(names).columns, places))
        order = narrow.select(pl.arg_sort_by(places, descending=list(descending), nulls_last=[not one for one in first])).to_series()
        partitions = narrow.select(places[: self.partition])[order]
        starts = partitions.select(pl.any_horizontal(pl.all().ne_missing(pl.all().shift()), pl.int_range(pl.len()) == 0)).to_series()
        return order.to_numpy(), starts.to_numpy()


def _running(values: pa.ChunkedArray, order: NDArray[np.int64], starts: NDArray[np.bool_]) -> pa.Array:
    """The totals of values so far in their partitions, null before the first value."""
    totals = _summed(pc.fill_null(values, 0).to_numpy(), order, starts)
    missing = _summed(pc.is_valid(values).cast(pa.int64()).to_numpy(), order, starts) == 0 if values.null_count else None
    return pa.array(totals, mask=missing)


def _summed(values: NDArray[np.int64], order: NDArray[np.int64], starts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The totals by position. The sum over all partitions may overflow; what came before a partition is taken off, and the overflow with it."""
    import numpy as np

    placed = values[order]
    sums = np.cumsum(placed)
    before = (sums - placed)[starts]
    totals = np.empty_like(sums)
    totals[order] = sums - before[np.cumsum(starts) - 1]
    return totals
