"""Delta tables (docs/tables.md, "Delta tables"): read by version, written by what changed.

A table is no file: its reader makes typed records of batches that somebody else takes out of the table, its writer has options alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from changelog.lazy_imports import pa
from storage.formats import register_reader, register_writer
from storage.formats.base import OptionError, Options, Writer
from storage.formats.typed.reading import TypedReader


@register_reader("delta")
class DeltaReader(TypedReader):
    """Types the rows of a table. Rows of a table have no number."""

    form: ClassVar[str] = "delta"
    versioned: ClassVar[bool] = True

    def typed(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Rows of the table as records, each cell checked against its declared type."""
        from storage.formats.typed.columnar import typed_columns

        return self.documented(typed_columns(self.plan, batch, 1))


class DeltaWriteOptions(Options):
    """`options:` of a Delta output: the rows that stand, or the op rows of every epoch in a form of `errata log`."""

    mode: Literal["upsert", "changelog"] = "upsert"
    form: Literal["two", "retract", "upsert", "single", "debezium", "flink"] | None = None


@register_writer("delta")
class DeltaWriter(Writer):
    """The options of a table that `storage.delta.published_table` writes."""

    Options: ClassVar[type[Options]] = DeltaWriteOptions
    splittable: ClassVar[bool] = False
    versioned: ClassVar[bool] = True
    legible: ClassVar[bool] = False
    options: DeltaWriteOptions

    def __post_init__(self) -> None:
        if self.options.form is not None and self.options.mode != "changelog":
            raise OptionError("options.form: belongs to mode 'changelog'", ("options", "form"))
