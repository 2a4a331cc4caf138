"""Records to blocks of an Avro file. The same records give the same bytes: the marker between blocks is made from schema and rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Context
from hashlib import blake2b
from io import BytesIO
from typing import Any

import orjson
from typing_extensions import override

from changelog.lazy_imports import pa
from storage.formats.avro.codecs import packed
from storage.formats.avro.container import SYNC, encoded, header
from storage.formats.base import Column, Session
from storage.formats.options import OptionError
from storage.formats.typed.writing import written_type

BLOCK_BYTES = 1 << 18
_EXACT = Context(prec=80)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_names(names: Sequence[str], path: tuple[str | int, ...]) -> None:
    """Raise OptionError (E631) for the name of a column that Avro does not have."""
    wrong = next((name for name in names if not _NAME.fullmatch(name)), None)
    if wrong is not None:
        message = f"'{wrong}' cannot be the name of a field in Avro: a letter or _, then letters, digits and _"
        raise OptionError(message, path, code="E631", help_text=f"call it otherwise: mapping: {{ other_name: {wrong} }}")


def check_namespace(space: str | None) -> None:
    """Raise OptionError (E631) for a namespace that Avro does not have."""
    if space is not None and not all(_NAME.fullmatch(part) for part in space.split(".")):
        raise OptionError(f"options.namespace: '{space}' is no namespace: names with dots between them", ("options", "namespace"), code="E631")


def record_name(output: str) -> str:
    """The name of the record of an output, with _ for what Avro does not have in names."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", output) or "record"
    return name if _NAME.fullmatch(name) else f"_{name}"


def fields_of(columns: Sequence[Column]) -> pa.Schema:
    """The Arrow columns of an output."""
    return pa.schema([(column.name, written_type(column.type)) for column in columns])


class AvroSession(Session):
    """One file."""

    def __init__(self, schema: pa.Schema, name: str, codec: str, namespace: str | None = None) -> None:
        import fastavro

        self._codec = codec
        fields = [{"name": one.name, "type": ["null", _type(one.type)]} for one in schema]
        self._schema = {"type": "record", "name": record_name(name), **({"namespace": namespace} if namespace else {}), "fields": fields}
        bare = [{"name": one["name"], "type": ["null", _bare(one["type"][1])]} for one in fields]
        self._bare = fastavro.parse_schema({**self._schema, "fields": bare})
        self._write = fastavro.schemaless_writer
        self._names = schema.names
        self._held, self._count, self._sync = BytesIO(), 0, b""

    @override
    def render(self, batch: pa.RecordBatch) -> bytes:
        columns = [_values(values) for values in batch.columns]
        made = []
        for row in zip(*columns, strict=True) if columns else iter([()] * batch.num_rows):
            self._write(self._held, self._bare, dict(zip(self._names, row, strict=True)))
            self._count += 1
            if self._held.tell() >= BLOCK_BYTES:
                made.append(self._block())
        return b"".join(made)

    @override
    def footer(self) -> bytes:
        return self._block() if self._count or not self._sync else b""

    def _block(self) -> bytes:
        """The records that wait, as a block; the header in front of the first one."""
        text, head = self._held.getvalue(), b""
        if not self._sync:
            schema = orjson.dumps(self._schema)
            self._sync = blake2b(schema + b"\0" + text, digest_size=SYNC).digest()
            head = header({"avro.schema": schema, "avro.codec": self._codec.encode()}, self._sync)
        body = packed(self._codec, text)
        block = encoded(self._count) + encoded(len(body)) + body + self._sync if self._count else b""
        self._held, self._count = BytesIO(), 0
        return head + block


def _type(kind: pa.DataType) -> Any:
    """Avro's type for one of Arrow."""
    if isinstance(kind, pa.BaseExtensionType):
        return {"type": "string", "errata": "json"}
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_date(kind):
        return {"type": "int", "logicalType": "date"}
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros"}
    if pa.types.is_integer(kind):
        return "long"
    if pa.types.is_floating(kind):
        return "double"
    return "boolean" if pa.types.is_boolean(kind) else "string"


def _bare(kind: Any) -> Any:
    """The type without its logical one: values are made here."""
    return kind["type"] if isinstance(kind, Mapping) else kind


def _values(values: pa.Array) -> Sequence[Any]:
    """Values as the bare schema has them."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    elif pa.types.is_date(kind):
        values = values.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_decimal(kind):
        return [None if value is None else _unscaled(int(value.scaleb(kind.scale, _EXACT))) for value in values.to_pylist()]
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        values = values.cast(pa.string())
    return list(values.to_pylist())


def _unscaled(number: int) -> bytes:
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
