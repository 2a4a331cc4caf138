"""Records to record batches of an Arrow file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from typing_extensions import override

from storage.formats.contract import Session, WritePlan
from storage.formats.parquet.write import Drained, typed_batch, typed_schema

if TYPE_CHECKING:
    from storage.formats.arrow import ArrowWriteOptions

BATCH_ROWS = 1 << 16


class ArrowSession(Session):
    """One Arrow file. Records are held until a batch is full, so that the bytes do not depend on how they came."""

    def __init__(self, options: ArrowWriteOptions, plan: WritePlan) -> None:
        self._schema = typed_schema(plan.columns)
        self._sink = Drained()
        self._held: list[pa.RecordBatch] = []
        self._count = 0
        compression = None if options.compression == "none" else options.compression
        self._writer = pa.ipc.new_file(self._sink, self._schema, options=pa.ipc.IpcWriteOptions(compression=compression))

    @override
    def render(self, batch: pa.RecordBatch) -> bytes:
        self._held.append(typed_batch(batch, self._schema))
        self._count += batch.num_rows
        while self._count >= BATCH_ROWS:
            self._write(BATCH_ROWS)
        return self._sink.take()

    @override
    def footer(self) -> bytes:
        if self._count:
            self._write(self._count)
        self._writer.close()
        return self._sink.take()

    def _write(self, rows: int) -> None:
        table = pa.Table.from_batches(self._held, self._schema)
        batch = table.slice(0, rows).combine_chunks().to_batches()[0]
        self._held = table.slice(rows).to_batches()
        self._count -= rows
        # A slice may carry more than its own rows; a copy has exactly them.
        self._writer.write_batch(batch.take(pa.array(range(batch.num_rows), pa.int64())))
