"""Rows in order, on the driver or in an engine, read a batch at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from changelog.lazy_imports import F, pa, pl
from changelog.ops import is_positive
from changelog.rows import Rows
from errata.plan.plan import Node
from errata.state.node_tables import accepted
from errata.state.run_state import RunState
from operators.core.provenance import file_of
from operators.output.operator import Output
from operators.output.provenance_columns import CAUSE, CHANGED_AT, EPOCH, REASON
from operators.output.provenance_columns import COLUMNS as PROVENANCE
from storage.formats.limits import rows_at_once
from storage.values.types import timestamp_type

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame

    from storage.engines.base import Engine

BATCH_ROWS = 50_000
FILE_ORDER = ("_sorted", "_lookup", "_key")
"""The columns that the rows of an output are in the order of, as far as they have them."""
ORIGIN = "__origin"
"""The path of the source file that a row came from, where an output is written by source file."""


@dataclass(frozen=True, slots=True)
class OutputRows:
    """The live rows of an output in their order: on the driver, or as a frame that is sorted where it is read."""

    table: pa.Table | None
    frame: DataFrame | None

    def batches(self, engine: Engine, shape: Callable[[pa.RecordBatch], pa.RecordBatch], columns: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows in batches, on the driver one after the other.

        shape: makes the batch to give out from a batch of rows. columns: how many columns it then has; 0 sets no limit by columns.
        """
        if self.table is not None:
            yield from (shape(batch) for batch in self.table.to_batches(rows_at_once(columns, BATCH_ROWS)))
        elif self.frame is not None:
            yield from (_unpacked(blob) for blob in engine.in_order(self.frame, lambda batch: _packed(shape(batch))))

    @property
    def empty(self) -> bool:
        """Whether there are no rows."""
        if self.table is not None:
            return not self.table.num_rows
        return self.frame is None or self.frame.limit(1).count() == 0

    def header_elements(self, section: str) -> Sequence[str] | None:
        """The complete header elements in a section of the first row's document that has them."""
        if self.table is not None:
            names = self.table.column_names
            texts = iter(self.table.column("_doc").to_pylist()) if "_doc" in names else iter(())
        elif self.frame is not None and "_doc" in self.frame.columns:
            texts = iter([row["_doc"] for row in self.frame.where(self.frame["_doc"].isNotNull()).limit(1).collect()])
        else:
            return None
        found = (json.loads(text).get(section, {}).get("_elements") for text in texts if text)
        return next((elements for elements in found if elements), None)

    def rendered(self, engine: Engine, render: Callable[[pa.RecordBatch], bytes]) -> Iterator[bytes]:
        """The rows as text, a piece a batch; large outputs are rendered by the engine's tasks."""
        if self.table is not None:
            yield from (render(batch) for batch in self.table.to_batches(BATCH_ROWS))
        elif self.frame is not None:
            yield from engine.in_order(self.frame, render)


def _packed(batch: pa.RecordBatch) -> bytes:

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return cast("bytes", sink.getvalue().to_pybytes())


def _unpacked(blob: bytes) -> pa.RecordBatch:

    table = pa.ipc.open_stream(blob).read_all()
    return table.combine_chunks().to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], table.schema)


def _with_provenance(run: RunState, node: Node, live: DataFrame, epochs: Sequence[tuple[int, datetime, str | None]]) -> DataFrame:
    """Live rows with the columns that say when and why they last changed."""
    op_rows = run.tables.rows(run.engine, node, run.values).as_frame()
    causes = op_rows.where(is_positive(F.col("_op"))).select("_epoch", "_key", F.col("_cause").alias(CAUSE))
    numbers, moments, reasons = zip(*epochs, strict=True) if epochs else ((), (), ())
    provenance = pa.table({EPOCH: pa.array(numbers, pa.int64()), CHANGED_AT: pa.array(moments, timestamp_type()), REASON: pa.array(reasons, pa.string())})
    known = live.join(causes, ["_epoch", "_key"], "left").withColumn(EPOCH, F.col("_epoch"))
    return known.join(F.broadcast(run.engine.from_arrow(provenance)), EPOCH, "left")


def output_rows(run: RunState, node: Node, output: Output, *, marked: bool = False, epochs: Sequence[tuple[int, datetime, str | None]] | None = None) -> OutputRows:
    """The live rows of an output in the order of its file: on the driver where they are few.

    Args:
        run: The run that writes them.
        node: The output.
        output: Its operator.
        marked: Whether they have the source file of each.
        epochs: Begin and reason of each epoch, for the columns of provenance; None for rows without them.
    """
    order = [name for name in FILE_ORDER if name == "_key" or name in output.output.hidden]
    names = [*order, *(name for name in ("_widened", "_doc", "_split") if name in output.output.hidden), *output.projection.data]
    few = run.engine.limits.are_small(run.live_rows.get(node.name))
    rows = accepted(run.tables.live(run.engine, node, run.values, few=few))
    if marked:
        frame, path = file_of(rows.as_frame(), output.output, run.values.labels)
        rows = Rows(run.engine, frame=frame.withColumn(ORIGIN, path))
        names.append(ORIGIN)
    if epochs is not None:
        rows = Rows(run.engine, frame=_with_provenance(run, node, rows.as_frame(), epochs))
        names += PROVENANCE
    rows = rows.select(names)
    if not few:
        return OutputRows(None, rows.as_frame().orderBy(*(F.col(name) for name in order)))
    table = rows.as_table()
    position = pl.DataFrame({name: table.column(name) for name in order}).with_row_index("at").sort(order)["at"]
    return OutputRows(table.take(position.to_arrow()), None)
