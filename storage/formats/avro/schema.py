"""Schemas of files: as the library reads values by them, and as columns.

Each logical type has a name of ours in the schema that the library gets, and a function that makes the value, so that a value out of range is one bad cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any, NamedTuple, NoReturn
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


def _too_deep(*_given: object) -> NoReturn:
    raise ValueError(f"it has more than {2 * DEPTH} levels")


READERS: Mapping[str, Callable[..., Any]] = {
    "bytes-decimal": decimal_of, "fixed-decimal": decimal_of, "int-date": lambda data, *_: day(data),
    "int-time-millis": _time_of(1000), "long-time-micros": _time_of(1),
    "long-timestamp-millis": _moment_of(1000), "long-timestamp-micros": _moment_of(1), "long-timestamp-nanos": _moment_of(1, 1000),
    "long-local-timestamp-millis": _moment_of(1000), "long-local-timestamp-micros": _moment_of(1), "long-local-timestamp-nanos": _moment_of(1, 1000),
    "fixed-uuid": lambda data, *_: str(UUID(bytes=data)), "fixed-duration": duration_of,
    "bytes-text": text_of, "fixed-text": text_of, "string-json": lambda data, *_: JsonText(data), "float-single": lambda data, *_: SingleFloat(data),
    "boolean-deep": _too_deep,
}  # fmt: skip
"""Makers of the values of logical types, by type and name."""
_SIZES = {"uuid": 16, "duration": 12}


def register(readers: dict[str, Any]) -> None:
    """Give the library the functions under our names."""
    for key, make in READERS.items():
        kind, _, logical = key.partition("-")
        readers[f"{kind}-{_OWN}{logical}"] = make


class _At(NamedTuple):
    """A place in a schema.

    Args:
        space: the namespace
        open: the named types around it, of its copy
        copy: how often types around it refer to themselves
        level: its depth
    """

    space: str = ""
    open: frozenset[str] = frozenset()
    copy: int = 0
    level: int = 0

    def inside(self) -> _At:
        """A place one level below."""
        return self._replace(level=self.level + 1)


@dataclass(slots=True)
class Prepared:
    """A schema taken apart.

    A type that refers to itself is written out level by level, each level once: the library itself would follow values of any depth. A value of too many
    levels cannot be read.
    """

    given: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The named types of the file."""
    made: dict[tuple[str, int], tuple[str, pa.DataType, bool]] = field(default_factory=dict)
    """What was made of named types by their copies: the name for the library, the column, whether values take no bytes."""
    names: Iterator[str] = field(default_factory=lambda: map("t{}".format, count()))
    """Names for the library."""

    def record(self, schema: Any) -> tuple[dict[str, Any], pa.Schema, bool]:
        """The schema for the library, the columns, and whether records take no bytes. Raises UnreadableSchema."""
        if not isinstance(schema, dict) or schema.get("type") not in ("record", "error"):
            raise UnreadableSchema("its schema is no record")
        made, kind, empty = self._of(schema, _At(), top=True)
        return made, pa.schema(list(kind)), empty

    def _of(self, schema: Any, at: _At, *, top: bool = False) -> tuple[Any, pa.DataType, bool]:
        if at.copy and at.level > 2 * DEPTH:
            return {"type": "boolean", "logicalType": _OWN + "deep"}, pa.string(), False
        if not at.copy and at.level > DEPTH:
            raise UnreadableSchema(f"its schema has more than {DEPTH} levels")
        if isinstance(schema, list):
            return self._union(schema, at, top=top)
        if isinstance(schema, str):
            return self._used(_full(schema, at.space), at) if schema not in PRIMITIVE else self._of({"type": schema}, at, top=top)
        if not isinstance(schema, dict) or "type" not in schema:
            raise UnreadableSchema("a part of its schema has no type")
        kind = schema["type"]
        if not isinstance(kind, str) or kind not in PRIMITIVE | _NAMES | {"array", "map"}:
            return self._of(kind, at.inside(), top=top)
        if kind in _NAMES:
            return self._used(self._defined(schema, at.space), at, top=top)
        if kind in ("array", "map"):
            return self._repeated(schema, kind, at.inside())
        return _scalar(schema, kind, top=top)

    def _repeated(self, schema: Mapping[str, Any], kind: str, at: _At) -> tuple[Any, pa.DataType, bool]:
        """An array or a map."""
        part = "items" if kind == "array" else "values"
        inner, _, empty = self._of(schema.get(part), at)
        if empty and kind == "array":
            raise UnreadableSchema("it has arrays of values without any bytes")
        return {"type": kind, part: inner}, pa.string() if kind == "array" else _any_members(), False

    def _union(self, schema: list[Any], at: _At, *, top: bool) -> tuple[Any, pa.DataType, bool]:
        parts = [self._of(one, at.inside(), top=top and one != schema) for one in schema]
        kinds = [kind for made, kind, _ in parts if made != {"type": "null"}]
        return [made for made, _, _ in parts], kinds[0] if len(kinds) == 1 else pa.string(), False

    def _defined(self, schema: Mapping[str, Any], space: str) -> str:
        """The full name of a type that is defined here, and nowhere else."""
        name = schema.get("name")
        if not isinstance(name, str) or not name:
            raise UnreadableSchema("a type of its schema has no name")
        full = _full(name, str(schema.get("namespace") or space))
        if self.given.setdefault(full, schema) is not schema:
            raise UnreadableSchema(f"it has two types '{full}'")
        return full

    def _used(self, full: str, at: _At, *, top: bool = False) -> tuple[Any, pa.DataType, bool]:
        """A named type at a place: its name where it was made, else what it consists of."""
        if full not in self.given:
            raise UnreadableSchema(f"it has no type '{full}'")
        if full in at.open:
            at = at._replace(copy=at.copy + 1, open=frozenset())
        if (full, at.copy) in self.made:
            return self.made[full, at.copy]
        schema, name = self.given[full], next(self.names)
        if schema["type"] in ("record", "error"):
            made, kind, empty = self._record(schema, at._replace(space=full.rpartition(".")[0], open=at.open | {full}), top=top)
        else:
            made, kind, empty = _scalar(schema, schema["type"], top=top)
        self.made[full, at.copy] = name, kind, empty
        return {**made, "name": name}, kind, empty

    def _record(self, schema: Mapping[str, Any], at: _At, *, top: bool) -> tuple[dict[str, Any], pa.DataType, bool]:
        fields, made, empty = [], [], True
        given = schema.get("fields")
        for one in given if isinstance(given, list) else ():
            if not isinstance(one, dict) or not isinstance(one.get("name"), str):
                raise UnreadableSchema("a field of its schema has no name")
            inner, kind, nothing = self._of(_marked(one), at.inside(), top=top)
            made.append({"name": one["name"], "type": inner})
            fields.append(pa.field(one["name"], kind))
            empty = empty and nothing
        return {"type": "record", "fields": made}, _any_members() if at.copy else pa.struct(fields), empty


def _any_members() -> pa.DataType:
    """The column of values that have members of any name."""
    return pa.map_(pa.string(), pa.string())


def _scalar(schema: Mapping[str, Any], kind: str, *, top: bool) -> tuple[dict[str, Any], pa.DataType, bool]:
    """A type without parts, an enum or a fixed one, whose name is added."""
    made, size = dict[str, Any](type=kind), schema.get("size")
    if kind in _NAMES:
        made |= {"symbols": schema.get("symbols")} if kind == "enum" else {"size": size}
    found = _own_type(schema, kind, top=top)
    if found is not None:
        made |= {"logicalType": _OWN + found} | ({"scale": schema.get("scale", 0)} if found == "decimal" else {})
    return made, pa.string(), kind == "null" or (kind == "fixed" and size == 0)


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
