"""Schemas of files: as the library reads values by them, and as columns.

Each logical type has a name of ours in the schema that the library gets, and a function that makes the value, so that a value out of range is one bad cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from changelog.lazy_imports import pa
from storage.formats.typed.mixed import JsonText, SingleFloat, day, moment

PRIMITIVE = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
DEPTH = 64
"""Levels of a schema."""
_NAMES = frozenset({"record", "error", "enum", "fixed"})
_OWN = "errata-"


class UnreadableSchema(ValueError):
    """A schema that records cannot be read by."""


def decimal_of(data: bytes, schema: Any, _reader: Any = None) -> Decimal:
    """A decimal of its unscaled number."""
    number = int.from_bytes(data, "big", signed=True)
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -schema.get("scale", 0)))


def text_of(data: bytes, _schema: Any = None, _reader: Any = None) -> str:
    """Bytes as text, as hexadecimal digits where they are no UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.hex()


def duration_of(data: bytes, _schema: Any = None, _reader: Any = None) -> str:
    """Months, days and milliseconds in ISO form."""
    months, days, milliseconds = (int.from_bytes(data[at : at + 4], "little") for at in (0, 4, 8))
    seconds = f"{milliseconds / 1000:.3f}".rstrip("0").rstrip(".")
    return f"P{months}M{days}DT{seconds}S"


def _time_of(scale: int) -> Callable[..., str | int]:
    def of(data: int, _schema: Any = None, _reader: Any = None) -> str | int:
        micros = data * scale
        return (datetime.min + timedelta(microseconds=micros)).time().isoformat() if 0 <= micros < 86_400_000_000 else data

    return of


def _moment_of(up: int, down: int = 1) -> Callable[..., datetime | int]:
    return lambda data, _schema=None, _reader=None: moment(data * up // down)


READERS: Mapping[str, Callable[..., Any]] = {
    "bytes-decimal": decimal_of, "fixed-decimal": decimal_of, "int-date": lambda data, *_: day(data),
    "int-time-millis": _time_of(1000), "long-time-micros": _time_of(1),
    "long-timestamp-millis": _moment_of(1000), "long-timestamp-micros": _moment_of(1), "long-timestamp-nanos": _moment_of(1, 1000),
    "long-local-timestamp-millis": _moment_of(1000), "long-local-timestamp-micros": _moment_of(1), "long-local-timestamp-nanos": _moment_of(1, 1000),
    "fixed-uuid": lambda data, *_: str(UUID(bytes=data)), "fixed-duration": duration_of,
    "bytes-text": text_of, "fixed-text": text_of, "string-json": lambda data, *_: JsonText(data), "float-single": lambda data, *_: SingleFloat(data),
}  # fmt: skip
"""Makers of the values of logical types, by type and name."""
_SIZES = {"uuid": 16, "duration": 12}


def register(readers: dict[str, Any]) -> None:
    """Give the library the functions under our names."""
    for key, make in READERS.items():
        kind, _, logical = key.partition("-")
        readers[f"{kind}-{_OWN}{logical}"] = make


@dataclass(slots=True)
class Prepared:
    """A schema taken apart."""

    columns: dict[str, pa.DataType] = field(default_factory=dict)
    """The types of named records, for references."""
    empty: dict[str, bool] = field(default_factory=dict)
    """Whether values of a named type take no bytes."""

    def record(self, schema: Any) -> tuple[dict[str, Any], pa.Schema, bool]:
        """The schema for the library, the columns, and whether records take no bytes. Raises UnreadableSchema."""
        if not isinstance(schema, dict) or schema.get("type") not in ("record", "error"):
            raise UnreadableSchema("its schema is no record")
        made, kind, empty = self._of(schema, "", (), top=True)
        return made, pa.schema(list(kind)), empty

    def _of(self, schema: Any, space: str, open_: tuple[str, ...], *, top: bool = False) -> tuple[Any, pa.DataType, bool]:
        if len(open_) > DEPTH:
            raise UnreadableSchema(f"its schema has more than {DEPTH} levels")
        if isinstance(schema, list):
            return self._union(schema, space, open_, top=top)
        if isinstance(schema, str):
            return self._named(schema, space, open_) if schema not in PRIMITIVE else self._of({"type": schema}, space, open_, top=top)
        if not isinstance(schema, dict) or "type" not in schema:
            raise UnreadableSchema("a part of its schema has no type")
        kind = schema["type"]
        if not isinstance(kind, str) or kind not in PRIMITIVE | _NAMES | {"array", "map"}:
            return self._of(kind, space, (*open_, ""), top=top)
        if kind in ("record", "error"):
            return self._record(schema, space, open_, top=top)
        if kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            inner, _, empty = self._of(schema.get(part), space, (*open_, ""))
            if empty and kind == "array":
                raise UnreadableSchema("it has arrays of values without any bytes")
            return {"type": kind, part: inner}, pa.string(), False
        return self._scalar(schema, kind, space, top=top)

    def _union(self, schema: list[Any], space: str, open_: tuple[str, ...], *, top: bool) -> tuple[Any, pa.DataType, bool]:
        parts = [self._of(one, space, (*open_, ""), top=top and one != schema) for one in schema]
        kinds = [kind for made, kind, _ in parts if made != {"type": "null"}]
        return [made for made, _, _ in parts], kinds[0] if len(kinds) == 1 else pa.string(), False

    def _named(self, name: str, space: str, open_: tuple[str, ...]) -> tuple[Any, pa.DataType, bool]:
        full = _full(name, space)
        if full in open_:
            raise UnreadableSchema(f"its type '{full}' refers to itself")
        if full not in self.columns:
            raise UnreadableSchema(f"it has no type '{full}'")
        return full, self.columns[full], self.empty[full]

    def _record(self, schema: Mapping[str, Any], space: str, open_: tuple[str, ...], *, top: bool) -> tuple[Any, pa.DataType, bool]:
        full = self._name(schema, space)
        fields, made, empty = [], [], True
        given = schema.get("fields")
        for one in given if isinstance(given, list) else ():
            if not isinstance(one, dict) or not isinstance(one.get("name"), str):
                raise UnreadableSchema("a field of its schema has no name")
            inner, kind, nothing = self._of(_marked(one), full.rpartition(".")[0], (*open_, full), top=top)
            made.append({"name": one["name"], "type": inner})
            fields.append(pa.field(one["name"], kind))
            empty = empty and nothing
        self.columns[full], self.empty[full] = pa.struct(fields), empty
        return {"type": "record", "name": full, "fields": made}, self.columns[full], empty

    def _scalar(self, schema: Mapping[str, Any], kind: str, space: str, *, top: bool) -> tuple[Any, pa.DataType, bool]:
        made, size = dict[str, Any](type=kind), schema.get("size")
        if kind in _NAMES:
            full = self._name(schema, space)
            self.columns[full], self.empty[full] = pa.string(), kind == "fixed" and size == 0
            made |= {"name": full} | ({"symbols": schema.get("symbols")} if kind == "enum" else {"size": size})
        found = _own_type(schema, kind, top=top)
        if found is not None:
            made |= {"logicalType": _OWN + found} | ({"scale": schema.get("scale", 0)} if found == "decimal" else {})
        return made, pa.string(), kind == "null" or (kind == "fixed" and size == 0)

    def _name(self, schema: Mapping[str, Any], space: str) -> str:
        name = schema.get("name")
        if not isinstance(name, str) or not name:
            raise UnreadableSchema("a type of its schema has no name")
        full = _full(name, str(schema.get("namespace") or space))
        if full in self.columns:
            raise UnreadableSchema(f"it has two types '{full}'")
        return full


def _own_type(schema: Mapping[str, Any], kind: str, *, top: bool) -> str | None:
    """The reader of `READERS` that takes the values of a type, None where the library's values are right."""
    if top and kind == "float":
        return "single"
    if top and kind == "string" and schema.get("errata") == "json":
        return "json"
    logical, size = schema.get("logicalType"), schema.get("size")
    known = f"{kind}-{logical}" in READERS and _SIZES.get(str(logical), size) == size
    if known and (logical != "decimal" or _has_scale(schema)):
        return str(logical)
    return "text" if kind in ("bytes", "fixed") else None


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _has_scale(schema: Mapping[str, Any]) -> bool:
    scale = schema.get("scale", 0)
    return isinstance(scale, int) and 0 <= scale < 10_000


def _marked(given: Mapping[str, Any]) -> Any:
    """The type of a field, which may have the mark of JSON itself."""
    kind = given.get("type")
    return {"type": "string", "errata": "json"} if kind == "string" and given.get("errata") == "json" else kind
