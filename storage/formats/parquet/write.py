"""Records to row groups."""

from __future__ import annotations

from typing_extensions import override

from changelog.lazy_imports import pa, pq
from storage.formats.base import WritePlan
from storage.formats.typed.writing import GroupedSession


class ParquetSession(GroupedSession):
    """One Parquet file."""

    group_rows = 1 << 17

    def __init__(self, plan: WritePlan, compression: str | None, level: int | None) -> None:
        super().__init__(plan.columns)
        self._writer = pq.ParquetWriter(self.sink, self.schema, compression=compression, compression_level=level)

    @override
    def write_group(self, group: pa.Table) -> None:
        self._writer.write_table(group, row_group_size=self.group_rows)

    @override
    def close(self) -> None:
        self._writer.close()
