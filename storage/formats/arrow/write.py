"""Records to record batches of an Arrow file."""

from __future__ import annotations

from typing_extensions import override

from changelog.lazy_imports import pa
from storage.formats.base import WritePlan
from storage.formats.typed.writing import GroupedSession


class ArrowSession(GroupedSession):
    """One Arrow file."""

    group_rows = 1 << 16

    def __init__(self, plan: WritePlan, compression: str | None) -> None:
        super().__init__(plan.columns)
        self._writer = pa.ipc.new_file(self.sink, self.schema, options=pa.ipc.IpcWriteOptions(compression=compression))

    @override
    def write_group(self, group: pa.Table) -> None:
        (batch,) = group.to_batches()
        # A slice may hold the memory of more rows than its own, a copy does not.
        self._writer.write_batch(batch.take(pa.arange(0, batch.num_rows)))

    @override
    def close(self) -> None:
        self._writer.close()
