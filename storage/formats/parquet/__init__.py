"""Parquet: typed columns in row groups.

Large files are read a few row groups at a time. The bytes that are written depend only on the records: row groups have 131,072 records, JSON text has
Parquet's own type for it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from storage.formats import register_reader, register_writer
from storage.formats.base import Session, Writer
from storage.formats.options import OptionError, Options
from storage.formats.parquet import read
from storage.formats.parquet.write import ParquetSession
from storage.formats.typed.reading import TypedFileReader, TypedFiles


class ParquetWriteOptions(Options):
    """`options:` of a Parquet output."""

    compression: Literal["zstd", "snappy", "gzip", "lz4", "brotli", "none"] = Field(default="zstd", description="The codec of the pages.")
    level: Annotated[int | None, Field(ge=1, le=22)] = Field(
        default=None, description="The level of the codec: up to 22 for zstd, 12 for lz4, 11 for brotli, 9 for gzip; by default the codec's own."
    )


@register_reader("parquet")
class ParquetReader(TypedFileReader):
    """Reads Parquet."""

    form: ClassVar[str] = "parquet"
    files: ClassVar[TypedFiles] = read


@register_writer("parquet")
class ParquetWriter(Writer[ParquetWriteOptions]):
    """Writes Parquet; a null is a null."""

    Options: ClassVar[type[Options]] = ParquetWriteOptions
    splittable: ClassVar[bool] = False
    sequential: ClassVar[bool] = True
    legible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        most = {"zstd": 22, "gzip": 9, "brotli": 11, "lz4": 12}.get(self.options.compression, 0)
        if self.options.level is not None and self.options.level > most:
            takes = f"takes levels up to {most}" if most else "has no levels"
            raise OptionError(f"options.level: compression '{self.options.compression}' {takes}", ("options", "level"))

    @override
    def open(self) -> Session:
        return ParquetSession(self.plan, None if self.options.compression == "none" else self.options.compression, self.options.level)
