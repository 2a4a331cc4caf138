"""Avro object container files: the schema of the file decides what its values are, the declared types which of them fit.

Files are read some blocks at a time. A file that is none, or that is damaged, is an input error (E630), with the byte where it is.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field
from typing_extensions import override

from changelog.lazy_imports import pa
from storage.formats import register_reader, register_writer
from storage.formats.avro import read
from storage.formats.avro.codecs import CODECS
from storage.formats.avro.write import AvroSession, check_names, check_namespace, fields_of
from storage.formats.base import Session, Writer
from storage.formats.options import OptionError, Options
from storage.formats.typed.reading import TypedFileReader, TypedFiles
from storage.formats.typed.writing import typed_batch


class AvroWriteOptions(Options):
    """`options:` of an Avro output."""

    codec: Annotated[str, Field(description=f"How blocks are packed: {', '.join(CODECS)}.", examples=["snappy"])] = "deflate"
    namespace: Annotated[str | None, Field(description="The namespace of the record, which has the output's name.", examples=["com.example.shop"])] = None


@register_reader("avro")
class AvroReader(TypedFileReader):
    """Reads Avro files."""

    form: ClassVar[str] = "avro"
    files: ClassVar[TypedFiles] = read
    library: ClassVar[str] = "fastavro"
    extra: ClassVar[str] = "avro"


@register_writer("avro")
class AvroWriter(Writer[AvroWriteOptions]):
    """Writes an Avro file; a null is a null."""

    Options: ClassVar[type[Options]] = AvroWriteOptions
    splittable: ClassVar[bool] = False
    sequential: ClassVar[bool] = True
    legible: ClassVar[bool] = False
    library: ClassVar[str] = "fastavro"
    extra: ClassVar[str] = "avro"

    def __post_init__(self) -> None:
        if self.options.codec not in CODECS:
            raise OptionError(f"options.codec: there is no codec '{self.options.codec}'", ("options", "codec"), code="E631", help_text=f"known: {', '.join(CODECS)}")
        check_namespace(self.options.namespace)
        check_names([column.name for column in self.plan.columns], ("type",))

    @override
    def open(self) -> Session:
        return _Typed(AvroSession(schema := fields_of(self.plan.columns), self.plan.name, self.options.codec, self.options.namespace), schema)


class _Typed(Session):
    """A session whose batches come in the types of the plan."""

    def __init__(self, session: AvroSession, schema: pa.Schema) -> None:
        self._session, self._schema = session, schema

    @override
    def render(self, batch: pa.RecordBatch) -> bytes:
        return self._session.render(typed_batch(batch, self._schema))

    @override
    def footer(self) -> bytes:
        return self._session.footer()
