"""Parquet: typed columns in row groups (docs/tables.md, "Parquet and Arrow").

The values of a file are checked against the declared types as `storage.formats.typed.columnar` says. Large files are read a few row groups at a time. What is
written depends on the records alone: row groups of 131,072 records, JSON text with Parquet's own type for it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from storage.formats import register_reader, register_writer
from storage.formats.base import OptionError, Options, Session, Writer
from storage.formats.typed.reading import TypedFileReader, TypedFiles


class ParquetWriteOptions(Options):
    """`options:` of a Parquet output."""

    compression: Literal["zstd", "snappy", "gzip", "lz4", "brotli", "none"] = "zstd"
    level: Annotated[int | None, Field(ge=1, le=22)] = None


@register_reader("parquet")
class ParquetReader(TypedFileReader):
    """Reads Parquet."""

    form: ClassVar[str] = "parquet"

    @property
    @override
    def files(self) -> TypedFiles:
        from storage.formats.parquet import read

        return read


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
