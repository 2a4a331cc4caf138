"""Arrow IPC files, also known as Feather 2 (docs/tables.md, "Parquet and Arrow"): typed columns in record batches.

The values of a file are checked against the declared types as `storage.formats.typed.columnar` says.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from typing_extensions import override

from storage.formats import register_reader, register_writer
from storage.formats.base import Options, Session, Writer
from storage.formats.typed.reading import TypedFileReader, TypedFiles


class ArrowWriteOptions(Options):
    """`options:` of an Arrow output."""

    compression: Literal["zstd", "lz4", "none"] = "zstd"


@register_reader("arrow")
class ArrowReader(TypedFileReader):
    """Reads Arrow IPC files."""

    form: ClassVar[str] = "arrow"

    @property
    @override
    def files(self) -> TypedFiles:
        from storage.formats.arrow import read

        return read


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
