"""Delta tables (docs/tables.md, "Delta tables"): read by version, written by what changed.

A table is no file: its reader makes typed records of batches that somebody else takes out of the table, its writer has options alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from storage.formats import register_reader, register_writer
from storage.formats.contract import Column, OptionError, Options, Reader, Writer
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


class DeltaWriteOptions(Options):
    """`options:` of a Delta output: the rows that stand, or the op rows of every epoch in a form of `errata log`."""

    mode: Literal["upsert", "changelog"] = "upsert"
    form: Literal["two", "retract", "upsert", "single", "debezium", "flink"] | None = None


@register_writer("delta")
class DeltaWriter(Writer):
    """The options of a table that `storage.published` writes."""

    Options: ClassVar[type[Options]] = DeltaWriteOptions
    splittable: ClassVar[bool] = False
    versioned: ClassVar[bool] = True
    legible: ClassVar[bool] = False
    options: DeltaWriteOptions

    def __post_init__(self) -> None:
        if self.options.form is not None and self.options.mode != "changelog":
            raise OptionError("options.form: belongs to mode 'changelog'", ("options", "form"))
