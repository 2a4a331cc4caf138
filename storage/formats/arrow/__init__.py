"""Arrow IPC files, also known as Feather 2: typed columns in record batches."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from storage.formats import register_reader, register_writer
from storage.formats.arrow import read
from storage.formats.arrow.write import ArrowSession
from storage.formats.base import Session, Writer
from storage.formats.options import Options
from storage.formats.typed.reading import TypedFileReader, TypedFiles


class ArrowWriteOptions(Options):
    """`options:` of an Arrow output."""

    compression: Literal["zstd", "lz4", "none"] = Field(default="zstd", description="The codec of the record batches.")


@register_reader("arrow")
class ArrowReader(TypedFileReader):
    """Reads Arrow IPC files."""

    form: ClassVar[str] = "arrow"
    files: ClassVar[TypedFiles] = read


@register_writer("arrow")
class ArrowWriter(Writer[ArrowWriteOptions]):
    """Writes an Arrow IPC file; a null is a null."""

    Options: ClassVar[type[Options]] = ArrowWriteOptions
    splittable: ClassVar[bool] = False
    sequential: ClassVar[bool] = True
    legible: ClassVar[bool] = False

    @override
    def open(self) -> Session:
        return ArrowSession(self.plan, None if self.options.compression == "none" else self.options.compression)
