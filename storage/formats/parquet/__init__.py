"""Parquet: typed columns in row groups (docs/tables.md, "Parquet and Arrow").

The values of a file are checked against the declared types as `storage.formats.columnar` says. Large files are read a few row groups at a time. What is
written depends on the records alone: row groups of 131,072 records, JSON text with Parquet's own type for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from storage.formats import register_reader, register_writer
from storage.formats.contract import CHUNK_BYTES, Buffer, Column, OptionError, Options, Range, Reader, Session, Writer

if TYPE_CHECKING:
    import pyarrow as pa


class ParquetWriteOptions(Options):
    """`options:` of a Parquet output."""

    compression: Literal["zstd", "snappy", "gzip", "lz4", "brotli", "none"] = "zstd"
    level: Annotated[int | None, Field(ge=1, le=22)] = None


@register_reader("parquet")
class ParquetReader(Reader):
    """Reads Parquet. A declared column that a file lacks is null; undeclared ones are of type any."""

    splittable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        refuse_text_settings(self, "parquet")

    @override
    def undeclared(self, data: Buffer, name: str) -> tuple[Column, ...]:
        from storage.formats.columnar import undeclared_fields
        from storage.formats.parquet.read import opened

        return undeclared_fields(opened(data, name).schema_arrow, self.plan, name)

    @override
    def split(self, data: Buffer, name: str, target: int = CHUNK_BYTES) -> list[Range]:
        from storage.formats.parquet.read import ranges_of

        return ranges_of(data, name, target)

    @override
    def read(self, data: Buffer, name: str, part: Range | None = None) -> Iterator[pa.RecordBatch]:
        from storage.formats.parquet.read import read_records

        return documented(self, read_records(self, data, name, part))


@register_writer("parquet")
class ParquetWriter(Writer):
    """Writes Parquet; a null is a null."""

    Options: ClassVar[type[Options]] = ParquetWriteOptions
    splittable: ClassVar[bool] = False
    sequential: ClassVar[bool] = True
    legible: ClassVar[bool] = False
    options: ParquetWriteOptions

    def __post_init__(self) -> None:
        most = {"zstd": 22, "gzip": 9, "brotli": 11, "lz4": 12}.get(self.options.compression, 0)
        if self.options.level is not None and self.options.level > most:
            takes = f"takes levels up to {most}" if most else "has no levels"
            raise OptionError(f"options.level: compression '{self.options.compression}' {takes}", ("options", "level"))

    @override
    def open(self) -> Session:
        from storage.formats.parquet.write import ParquetSession

        return ParquetSession(self.options, self.plan)


def refuse_text_settings(reader: Reader, form: str) -> None:
    """Raise OptionError for settings that only formats of text have."""
    given: Mapping[str, object] = {"envelope": reader.plan.sections, "array_paths": reader.plan.array_paths}
    wrong = next((name for name, value in given.items() if value), None)
    if wrong is not None:
        raise OptionError(f"{wrong}: a {form} source has none", (wrong,))


def documented(reader: Reader, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches with an empty `_doc` where one is wanted."""
    if not reader.plan.document:
        return batches
    from storage.formats.batches import document_text, with_document

    return with_document(batches, document_text({}))
