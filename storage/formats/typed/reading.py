"""What sources of typed columns (Parquet, Arrow, Delta tables) have in common. The library that knows their bytes is imported with the first of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Protocol

from typing_extensions import override

from changelog.lazy_imports import pa
from storage.formats.base import CHUNK_BYTES, Buffer, Column, OptionError, Range, Reader


class TypedReader(Reader):
    """Reads typed columns: an optional one that the input lacks is null, undeclared ones are of type any."""

    undeclared_type: ClassVar[str] = "any"
    form: ClassVar[str]
    """What messages call the input."""

    def __post_init__(self) -> None:
        if self.plan.sections:
            raise OptionError(f"envelope: a {self.form} source has none", ("envelope",))

    def undeclared_of(self, schema: pa.Schema, name: str) -> tuple[Column, ...]:
        """The columns of the input that the schema does not name. Raises InputError under reject."""
        from storage.formats.typed.columnar import undeclared_fields

        return undeclared_fields(schema, self.plan, name)


class TypedFiles(Protocol):
    """The module that reads the files of one format."""

    def schema_of(self, data: Buffer, name: str) -> pa.Schema:
        """The columns of a file. Raises InputError."""

    def ranges_of(self, data: Buffer, name: str, target: int) -> list[Range]:
        """Groups of records that follow each other, about `target` bytes together. Raises InputError."""

    def read_records(self, reader: Reader, data: Buffer, name: str, part: Range | None) -> Iterator[pa.RecordBatch]:
        """The records of a whole file or of a range. Raises InputError."""


class TypedFileReader(TypedReader):
    """Reads files of typed columns, a few groups of records at a time."""

    splittable: ClassVar[bool] = True

    @property
    @abstractmethod
    def files(self) -> TypedFiles:
        """What reads the bytes."""

    @override
    def undeclared(self, data: Buffer, name: str) -> tuple[Column, ...]:
        return self.undeclared_of(self.files.schema_of(data, name), name)

    @override
    def split(self, data: Buffer, name: str, target: int = CHUNK_BYTES) -> list[Range]:
        return self.files.ranges_of(data, name, target)

    @override
    def read(self, data: Buffer, name: str, part: Range | None = None) -> Iterator[pa.RecordBatch]:
        return self.documented(self.files.read_records(self, data, name, part))
