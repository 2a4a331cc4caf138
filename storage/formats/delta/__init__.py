"""Delta tables (docs/tables.md, "Delta tables"): read by version, written by what changed.

A table is no file: its reader makes typed records of batches that somebody else takes out of the table, its writer has options alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from storage.formats import register_reader
from storage.formats.contract import Column, Reader
from storage.formats.parquet import documented, refuse_text_settings

if TYPE_CHECKING:
    import pyarrow as pa


@register_reader("delta")
class DeltaReader(Reader):
    """Types the rows of a table. A declared column that it lacks is null; undeclared ones are of type any. Rows of a table have no number."""

    versioned: ClassVar[bool] = True

    def __post_init__(self) -> None:
        refuse_text_settings(self, "delta")

    def undeclared_of(self, schema: pa.Schema, name: str) -> tuple[Column, ...]:
        """The table's columns that the schema does not name. Raises InputError under reject."""
        from storage.formats.columnar import undeclared_fields

        return undeclared_fields(schema, self.plan, name)

    def typed(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Rows of the table as records, each cell checked against its declared type."""
        from storage.formats.columnar import typed_columns

        return documented(self, typed_columns(self.plan, batch, 1))
