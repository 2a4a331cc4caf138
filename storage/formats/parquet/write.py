"""Records to row groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from typing_extensions import override

from changelog.lazy_imports import pa
from storage.formats.base import WritePlan
from storage.formats.typed.writing import GroupedSession

if TYPE_CHECKING:

    from storage.formats.parquet import ParquetWriteOptions


class ParquetSession(GroupedSession):
    """One Parquet file."""

    group_rows = 1 << 17

    def __init__(self, options: ParquetWriteOptions, plan: WritePlan) -> None:
        super().__init__(plan.columns)
        compression = None if options.compression == "none" else options.compression
        self._writer = pq.ParquetWriter(self.sink, self.schema, compression=compression, compression_level=options.level)

    @override
    def write_group(self, group: pa.Table) -> None:
        self._writer.write_table(group, row_group_size=self.group_rows)

    @override
    def close(self) -> None:
        self._writer.close()
