"""Tables of a schema as flatbuffers, in the order of bytes that ODF hashes.

The specification fixes that order: a table's texts, lists and tables come first, depth first in the order of the fields, its numbers after them.
What is read may come from anywhere: each place is checked against the end of the buffer.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any, Final

__all__ = ["DamagedBuffer", "Schema", "Table"]

Table = Mapping[str, Any]
"""The fields of a table by name. A union is a pair: the name of its table, the table."""

_NUMBERS: Final = {
    "i64": ("<q", "Int64"), "i32": ("<i", "Int32"), "i16": ("<h", "Int16"), "u64": ("<Q", "Uint64"), "u32": ("<I", "Uint32"), "u8": ("<B", "Uint8"), "bool": ("<?", "Bool"),
}  # fmt: skip
_MOMENT: Final = struct.Struct("<iHxxII")
_WORD: Final = struct.Struct("<I")
_DEEPEST: Final = 64
"""Tables within tables; a type has no more levels than that."""
_SHARED_TEXT: Final = 64
"""Bytes of a text that count as one more content."""


class DamagedBuffer(Exception):
    """A buffer that is not of its schema."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a table. `kind`: a number, `text`, `bytes`, `time`, or the name of a table or a union; `slot`: its place in the table's list of places."""

    name: str
    kind: str
    slot: int
    many: bool = False
    optional: bool = False


class _Buffer(bytes):
    """A buffer, and how many tables, texts and items may still be read of it. It may share them, but not so that they unfold to more than its own bytes."""

    left: int

    @classmethod
    def of(cls, data: bytes) -> _Buffer:
        """A buffer before anything was read."""
        made = cls(data)
        made.left = len(data) // 4
        return made

    def spend(self, number: int) -> None:
        """Count what is read. Raises ValueError where it is more than a buffer of this length has."""
        self.left -= number
        if self.left < 0:
            raise ValueError("its tables share others so often that they unfold to more than it has bytes")


class Schema:
    """The tables and unions of a schema.

    Args:
        tables: A line a table: `Seed: dataset_id bytes, dataset_kind i32`. `u64?` is a number that may be absent, `[text]` a list.
        unions: The tables of a union, in order.
    """

    def __init__(self, tables: str, unions: Mapping[str, Sequence[str]]) -> None:
        self.unions = unions
        self.tables = {name: self._fields(fields) for name, fields in re.findall(r"^(\w+):(.*)$", tables, re.MULTILINE)}

    def _fields(self, text: str) -> tuple[Field, ...]:
        made, slot = list[Field](), 0
        for name, kind in (one.split() for one in text.split(",") if one.strip()):
            word = kind.strip("[]?")
            slot += word in self.unions
            made.append(Field(name, word, slot, many=kind.startswith("["), optional=kind.endswith("?")))
            slot += 1
        return tuple(made)

    def encode(self, name: str, table: Table) -> bytes:
        """The bytes of a table. Needs the library flatbuffers."""
        builder = import_module("flatbuffers").Builder(1024)
        builder.Finish(self._written(builder, name, table))
        return bytes(builder.Output())

    def _written(self, builder: Any, name: str, table: Table) -> int:
        fields = [(one, table[one.name]) for one in self.tables[name] if table.get(one.name) is not None]
        places = {one.name: self._placed(builder, one, value) for one, value in fields if one.kind not in _NUMBERS and one.kind != "time"}
        builder.StartObject(max((one.slot + 1 for one in self.tables[name]), default=0))
        for one, value in fields:
            if one.kind == "time":
                builder.PrependStructSlot(one.slot, _moment(builder, value), 0)
            elif one.kind in _NUMBERS:
                getattr(builder, f"Prepend{_NUMBERS[one.kind][1]}Slot")(one.slot, value, None if one.optional else 0)
            else:
                if one.kind in self.unions:
                    builder.PrependUint8Slot(one.slot - 1, self.unions[one.kind].index(value[0]) + 1, 0)
                builder.PrependUOffsetTRelativeSlot(one.slot, places[one.name], 0)
        return int(builder.EndObject())

    def _placed(self, builder: Any, field: Field, value: Any) -> int:
        """The place of what lies outside of its table."""
        if field.many:
            places = [self._one(builder, field.kind, one) for one in value]
            builder.StartVector(4, len(places), 4)
            for place in reversed(places):
                builder.PrependUOffsetTRelative(place)
            return int(builder.EndVector())
        return self._one(builder, field.kind, value)

    def _one(self, builder: Any, kind: str, value: Any) -> int:
        if kind in ("text", "bytes"):
            return int(builder.CreateString(value) if kind == "text" else builder.CreateByteVector(value))
        return self._written(builder, *value) if kind in self.unions else self._written(builder, kind, value)

    def decode(self, name: str, data: bytes) -> dict[str, Any]:
        """The fields of a table, without absent ones. An absent number that is not optional is 0. Raises DamagedBuffer."""
        buffer = _Buffer.of(data)
        try:
            return self._read(name, buffer, _at(buffer, 0), 0)
        except (struct.error, IndexError, UnicodeDecodeError, ValueError, OverflowError) as wrong:
            raise DamagedBuffer(f"it is no {name} of the schema: {wrong}") from wrong

    def _read(self, name: str, data: _Buffer, start: int, depth: int) -> dict[str, Any]:
        if depth > _DEEPEST:
            raise ValueError("its tables are too deep")
        data.spend(1)
        places = _places(data, start, max((one.slot + 1 for one in self.tables[name]), default=0))
        found: dict[str, Any] = {}
        for one in self.tables[name]:
            at, kind = places.get(one.slot), places.get(one.slot - 1)
            if one.kind in self.unions:
                if at is not None and kind is not None and data[kind]:
                    found[one.name] = self._choice(one.kind, data[kind], data, _at(data, at), depth + 1)
            elif at is not None:
                found[one.name] = self._value(one, data, at, depth + 1)
            elif one.kind in _NUMBERS and not one.optional:
                found[one.name] = 0
        return found

    def _value(self, field: Field, data: _Buffer, at: int, depth: int) -> Any:
        if field.kind in _NUMBERS:
            return struct.unpack_from(_NUMBERS[field.kind][0], data, at)[0]
        if field.kind == "time":
            return _moment_of(*_MOMENT.unpack_from(data, at))
        target = _at(data, at)
        if not field.many:
            return self._content(field.kind, data, target, depth)
        (count,) = _WORD.unpack_from(data, target)
        if count * 4 > len(data):
            raise IndexError("a list is longer than the buffer")
        return [self._content(field.kind, data, _at(data, target + 4 + 4 * index), depth) for index in range(count)]

    def _content(self, kind: str, data: _Buffer, target: int, depth: int) -> Any:
        if kind not in ("text", "bytes"):
            return self._read(kind, data, target, depth)
        (length,) = _WORD.unpack_from(data, target)
        data.spend(1 + length // _SHARED_TEXT)
        content = data[target + 4 : target + 4 + length]
        if len(content) < length:
            raise IndexError("a text is longer than the buffer")
        return content.decode() if kind == "text" else content

    def _choice(self, union: str, number: int, data: _Buffer, target: int, depth: int) -> tuple[str, dict[str, Any]]:
        """The table of a union by its number; without fields where the schema leaves them out."""
        names = self.unions[union]
        if number > len(names):
            raise ValueError(f"{union} has no member {number}")
        name = names[number - 1]
        return name, self._read(name, data, target, depth) if name in self.tables else {}


def _places(data: bytes, start: int, slots: int) -> dict[int, int]:
    """Where the first fields of a table are, by their slots; absent ones are left out."""
    fields = start - int(struct.unpack_from("<i", data, start)[0])
    if not 0 <= fields <= len(data) - 4:
        raise IndexError("the list of fields is outside of the buffer")
    (size,) = struct.unpack_from("<H", data, fields)
    places = struct.unpack_from(f"<{min(slots, max(0, size // 2 - 2))}H", data, fields + 4)
    return {slot: start + place for slot, place in enumerate(places) if place}


def _at(data: bytes, place: int) -> int:
    """Where the offset at a place leads to."""
    target = place + int(_WORD.unpack_from(data, place)[0])
    if target > len(data) - 4:
        raise IndexError("an offset leads out of the buffer")
    return target


def _moment(builder: Any, value: datetime) -> int:
    """A time in UTC, written where the table is."""
    moment = value.astimezone(UTC)
    builder.Prep(4, _MOMENT.size)
    builder.PrependUint32(moment.microsecond * 1000)
    builder.PrependUint32(moment.hour * 3600 + moment.minute * 60 + moment.second)
    builder.Pad(2)
    builder.PrependUint16(moment.timetuple().tm_yday)
    builder.PrependInt32(moment.year)
    return int(builder.Offset())


def _moment_of(year: int, day: int, seconds: int, nanoseconds: int) -> datetime:
    return datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=day - 1, seconds=seconds, microseconds=nanoseconds // 1000)
