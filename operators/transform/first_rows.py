"""The first rows of groups: by a window of the engine, or, where tasks hold their rows in Python, by looking at batches as they come there.

An engine sorts all columns of all rows. In Python only the columns that decide are sorted, and only first rows are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from changelog.columns import column
from changelog.frames import BATCH_ROWS, mapped, with_schema
from changelog.lazy_imports import F, Window, pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


COMPARED_BYTES: Final = 64 << 20
"""Bytes of rows that are gathered before they are compared, at least."""


def with_first_rows(frame: DataFrame, same: Sequence[str], compared: str, *, in_tasks: bool) -> DataFrame:
    """The rows, of each group only the first one by `_key`.

    Args:
        frame: Rows with `_key`.
        same: The columns that the rows of a group have in common, none where all are one group.
        compared: A bool column. Rows where it is false stay.
        in_tasks: Whether tasks may hold the first rows in Python.
    """
    if in_tasks and same:
        schema = frame.schema
        return with_schema(mapped(frame.repartition(*map(column, same)), Firsts(tuple(same), compared), schema), schema)
    alike = Window.partitionBy(*same, compared).orderBy("_key").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return frame.withColumn("__place", F.row_number().over(alike)).where(~column(compared) | (F.col("__place") == 1)).drop("__place")


@dataclass(frozen=True, slots=True)
class Firsts:
    """The work of a task, which has all rows of its groups. Picklable.

    Attributes:
        same: The columns that the rows of a group have in common.
        compared: A bool column. Rows where it is false stay.
    """

    same: tuple[str, ...]
    compared: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows that stay."""
        firsts, gathered, size = None, [], 0
        for batch in batches:
            gathered.append(batch)
            size += batch.nbytes
            if size >= max(COMPARED_BYTES, firsts.nbytes if firsts else 0):  # so that each row is compared a few times, also where all rows are first ones
                firsts, gathered, size = self._first(firsts, gathered), [], 0
        if gathered:
            firsts = self._first(firsts, gathered)
        if firsts is not None:
            yield from firsts.to_batches(max_chunksize=BATCH_ROWS)

    def _first(self, firsts: pa.Table | None, batches: Sequence[pa.RecordBatch]) -> pa.Table:
        """The first rows of known first ones and of others."""
        import polars as pl

        rows = pa.Table.from_batches(batches)
        rows = rows if firsts is None else pa.concat_tables([firsts, rows])
        places = pl.DataFrame(rows.select([*self.same, "_key", self.compared])).with_row_index("__row")
        first = places.filter(self.compared).sort("_key").group_by(self.same).agg(pl.first("__row")).get_column("__row")
        stays = ~places.get_column(self.compared).to_numpy()
        stays[first.to_numpy()] = True
        return rows.filter(pa.array(stays)).combine_chunks()  # `take` makes one array of a column, and an array of texts holds 2 GiB
