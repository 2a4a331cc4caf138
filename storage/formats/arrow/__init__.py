"""Arrow IPC files, also known as Feather 2 (docs/tables.md, "Parquet and Arrow"): typed columns in record batches.

The values of a file are checked against the declared types as `storage.formats.columnar` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from typing_extensions import override

from storage.formats import register_reader, register_writer
from storage.formats.contract import CHUNK_BYTES, Buffer, Column, Options, Range, Reader, Session, Writer
from storage.formats.parquet import documented, refuse_text_settings

if TYPE_CHECKING:
    import pyarrow as pa


class ArrowWriteOptions(Options):
    """`options:` of an Arrow output."""

    compression: Literal["zstd", "lz4", "none"] = "zstd"


@register_reader("arrow")
class ArrowReader(Reader):
    """Reads Arrow IPC files. A declared column that a file lacks is null; undeclared ones are of type any."""

    splittable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        refuse_text_settings(self, "arrow")

    @override
    def undeclared(self, data: Buffer, name: str) -> tuple[Column, ...]:
        from storage.formats.arrow.read import opened
        from storage.formats.columnar import undeclared_fields

        return undeclared_fields(opened(data, name).schema, self.plan, name)

    @override
    def split(self, data: Buffer, name: str, target: int = CHUNK_BYTES) -> list[Range]:
        from storage.formats.arrow.read import ranges_of

        return ranges_of(data, name, target)

    @override
    def read(self, data: Buffer, name: str, part: Range | None = None) -> Iterator[pa.RecordBatch]:
        from storage.formats.arrow.read import read_records

        return documented(self, read_records(self, data, name, part))


@register_writer("arrow")
class ArrowWriter(Writer):
    """Writes an Arrow IPC file; a null is a null."""

    Options: ClassVar[type[Options]] = ArrowWriteOptions
    splittable: ClassVar[bool] = False
    sequential: ClassVar[bool] = True
    legible: ClassVar[bool] = False
    options: ArrowWriteOptions

    @override
    def open(self) -> Session:
        from storage.formats.arrow.write import ArrowSession

        return ArrowSession(self.options, self.plan)
