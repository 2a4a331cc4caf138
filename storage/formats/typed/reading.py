"""Readers of typed columns: Parquet, Arrow, Delta tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Protocol

from typing_extensions import override

from changelog.lazy_imports import pa
from storage.files.errors import Buffer
from storage.formats.base import CHUNK_BYTES, Column, Range, Reader
from storage.formats.options import OptionError, Options
from storage.formats.typed.columnar import undeclared_fields

_GIVEN = "<source:"
"""How names of rows begin that a program hands to a source."""


class TypedReader(Reader[Options]):
    """Reads typed columns. An optional column that the input lacks is null, undeclared ones have the type any."""

    undeclared_type: ClassVar[str] = "any"
    form: ClassVar[str]
    """The format's name in messages."""

    def __post_init__(self) -> None:
        if self.plan.sections:
            raise OptionError(f"envelope: a {self.form} source has none", ("envelope",))

    def undeclared_of(self, schema: pa.Schema, name: str) -> tuple[Column, ...]:
        """The columns of the input that the schema does not name. Raises InputError where the policy is reject and there are some."""
        return undeclared_fields(schema, self.plan, name, "DataFrame" if name.startswith(_GIVEN) else "file")


class TypedFiles(Protocol):
    """The module that reads the files of one format."""

    def schema_of(self, data: Buffer, name: str) -> pa.Schema:
        """The columns of a file. Raises InputError."""

    def ranges_of(self, data: Buffer, name: str, target: int) -> list[Range]:
        """Ranges of consecutive groups of records of about `target` bytes. Raises InputError."""

    def read_records(self, reader: Reader, data: Buffer, name: str, part: Range | None) -> Iterator[pa.RecordBatch]:
        """The records of a whole file or of a range. Raises InputError."""


class TypedFileReader(TypedReader):
    """Reads files of typed columns, a few groups of records at a time."""

    splittable: ClassVar[bool] = True
    files: ClassVar[TypedFiles]
    """The module that reads the bytes."""

    @override
    def undeclared(self, data: Buffer, name: str) -> tuple[Column, ...]:
        return self.undeclared_of(self.files.schema_of(data, name), name)

    @override
    def split(self, data: Buffer, name: str, target: int = CHUNK_BYTES) -> list[Range]:
        return self.files.ranges_of(data, name, target)

    @override
    def read(self, data: Buffer, name: str, part: Range | None = None) -> Iterator[pa.RecordBatch]:
        return self.documented(self.files.read_records(self, data, name, part))
