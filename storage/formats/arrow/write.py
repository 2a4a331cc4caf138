"""Records to record batches of an Arrow file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from typing_extensions import override

from storage.formats.base import WritePlan
from storage.formats.typed.writing import GroupedSession

if TYPE_CHECKING:
    from storage.formats.arrow import ArrowWriteOptions


class ArrowSession(GroupedSession):
    """One Arrow file."""

    group_rows = 1 << 16

    def __init__(self, options: ArrowWriteOptions, plan: WritePlan) -> None:
        super().__init__(plan.columns)
        compression = None if options.compression == "none" else options.compression
        self._writer = pa.ipc.new_file(self.sink, self.schema, options=pa.ipc.IpcWriteOptions(compression=compression))

    @override
    def write_group(self, group: pa.Table) -> None:
        (batch,) = group.to_batches()
        # A slice may carry more than its own rows; a copy has exactly them.
        self._writer.write_batch(batch.take(pa.arange(0, batch.num_rows)))

    @override
    def close(self) -> None:
        self._writer.close()
