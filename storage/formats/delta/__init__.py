"""Delta tables: read by version, written by their changes.

A table is no file. The reader types batches that `storage.delta.external_table` takes out of the table, the writer has only options.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from changelog.lazy_imports import pa
from storage.formats import register_reader, register_writer
from storage.formats.base import Writer
from storage.formats.options import OptionError, Options
from storage.formats.typed.columnar import typed_columns
from storage.formats.typed.reading import TypedReader


@register_reader("delta")
class DeltaReader(TypedReader):
    """Types the rows of a table. The rows have no numbers."""

    form: ClassVar[str] = "delta"
    versioned: ClassVar[bool] = True

    def typed(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Rows of the table as records, with each cell checked against its declared type."""
        return self.documented(typed_columns(self.plan, batch, 1))


class DeltaWriteOptions(Options):
    """`options:` of a Delta output: the live rows, or the op rows of every epoch in a form of `errata log`."""

    mode: Literal["upsert", "changelog"] = Field(default="upsert", description="upsert keeps the live rows in the table; changelog appends the op rows of each epoch.")
    form: Literal["two", "retract", "upsert", "single", "debezium", "flink"] | None = Field(default=None, description="How op rows are written, in mode changelog; by default two.")


@register_writer("delta")
class DeltaWriter(Writer[DeltaWriteOptions]):
    """The options of a table. `storage.delta.published_table` writes it."""

    Options: ClassVar[type[Options]] = DeltaWriteOptions
    splittable: ClassVar[bool] = False
    versioned: ClassVar[bool] = True
    legible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.options.form is not None and self.options.mode != "changelog":
            raise OptionError("options.form: belongs to mode 'changelog'", ("options", "form"))
