"""The live rows of a dataset, and what it takes to make them others. A row is known by its values alone, and equal rows are counted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from changelog.lazy_imports import pa, pc, pl, pq
from storage.odf.chain import Chain
from storage.odf.columns import Vocabulary

__all__ = ["LiveRows", "difference", "live_rows"]

_COPY, _AT, _TIME = "__copy", "__at", "__time"


@dataclass(frozen=True, slots=True)
class LiveRows:
    """Live rows in the order of their offsets, and the event time of each."""

    data: pa.Table
    event_times: pa.Array

    def original_times(self, data: pa.RecordBatch, wanted: pa.Array, otherwise: pa.Array) -> pa.Array:
        """The event times of rows: where `wanted`, that of a live row with the same values, if there is one."""
        names = data.schema.names
        known = _copies(self.data).with_columns(pl.Series(_TIME, self.event_times)).filter(pl.col(_COPY) == 0)
        asked = pl.DataFrame(pl.from_arrow(pa.Table.from_batches([data]))).with_row_index(_AT)
        found = asked.join(known, on=names, how="left", nulls_equal=True).sort(_AT)[_TIME].to_arrow().cast(otherwise.type)
        return pc.if_else(pc.and_(wanted, found.is_valid()), found, otherwise)


def live_rows(root: Path, chain: Chain | None, schema: pa.Schema, among: pa.Table | None = None) -> LiveRows:
    """Fold the files of a dataset.

    Args:
        root: Its folder.
        chain: Its chain; None for a dataset without rows.
        schema: The data columns that are wanted; one that a file lacks is null there.
        among: Rows with the values that are wanted; None for all rows.
    """
    names = Vocabulary() if chain is None else chain.vocabulary
    own = [pa.field(names.op, pa.uint8()), pa.field(names.event_time, pa.timestamp("ms", "UTC"))]
    wanted = pa.schema([*own, *schema])
    parts = [_with_values(_columns(pq.read_table(root / one.key), wanted), among) for one in (chain.slices if chain else ())]
    whole = pl.DataFrame(pl.from_arrow(pa.concat_tables([*parts, wanted.empty_table()]))).with_row_index(_AT)
    same = [name for name in whole.columns if name not in (_AT, names.op)]
    gone = pl.col(names.op).is_in([1, 2])
    counted = whole.with_columns(pl.int_range(pl.len()).over(*same, gone).alias(_COPY), gone.sum().over(*same).alias("__gone"))
    live = counted.filter(~gone & (pl.col(_COPY) >= pl.col("__gone"))).sort(_AT)
    return LiveRows(live.select(schema.names).to_arrow().cast(schema), live[names.event_time].to_arrow().cast(pa.timestamp("ms", "UTC")))


def difference(there: LiveRows, wanted: pa.Table) -> tuple[LiveRows, pa.Table]:
    """The rows that go and the rows that come, each in order."""
    before, after = (_copies(one).with_row_index(_AT) for one in (there.data, wanted))
    same = [*wanted.column_names, _COPY]
    gone = before.join(after, on=same, how="anti", nulls_equal=True).sort(_AT)[_AT].to_arrow()
    come = after.join(before, on=same, how="anti", nulls_equal=True).sort(_AT)[_AT].to_arrow()
    return LiveRows(there.data.take(gone), there.event_times.take(gone)), wanted.take(come)


def _copies(rows: pa.Table) -> pl.DataFrame:
    """Rows with the number of each among equal ones, from 0."""
    frame = pl.DataFrame(pl.from_arrow(rows))
    return frame.with_columns(pl.int_range(pl.len()).over(*rows.column_names).alias(_COPY))


def _columns(table: pa.Table, wanted: pa.Schema) -> pa.Table:
    """A file's columns of a schema."""
    made = [table.column(one.name).cast(one.type) if one.name in table.column_names else pa.nulls(table.num_rows, one.type) for one in wanted]
    return pa.Table.from_arrays(made, schema=wanted)


def _with_values(rows: pa.Table, among: pa.Table | None) -> pa.Table:
    """The rows that have the values of some others."""
    if among is None:
        return rows
    met = pl.DataFrame(pl.from_arrow(rows)).with_row_index(_AT).join(pl.DataFrame(pl.from_arrow(among)), on=among.column_names, how="semi", nulls_equal=True)
    return rows.take(met.sort(_AT)[_AT].to_arrow())
