"""Change feeds: the events of messages (`messages`) as columns, with what becomes of each row beside its values.

Times and decimals of Kafka Connect become text, which is then read as any other. A version becomes bytes that compare as its members do.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

from changelog.keys.arrow import encoded
from changelog.lazy_imports import pa, pc
from storage.formats.base import (
    BEFORE,
    EVENT,
    EVENT_KEPT,
    EVENT_STREAM,
    EVENT_VERSION,
    GOES,
    SEPARATOR,
    STANDS,
    Column,
    EventPlan,
    Reader,
    ReadPlan,
    Reject,
)
from storage.formats.batches import record_batches
from storage.formats.dotted_members import Members, walked
from storage.formats.json.messages import NOTHING, UNAVAILABLE, Event, Feed, Found, Logical, Types, feed
from storage.formats.json.options import ChangeFeed, JsonReadOptions
from storage.formats.values import coerce_values
from storage.values.json_text import WrittenFloat, canonical
from storage.values.types import arrow_type, base_type

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = 86_400_000_000
_UNITS: Final = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
"""Microseconds in one of a unit, as a fraction."""
_LOGICAL: Final = {
    "io.debezium.time.Date": "days",
    "io.debezium.time.Timestamp": "ms",
    "io.debezium.time.MicroTimestamp": "us",
    "io.debezium.time.NanoTimestamp": "ns",
    "org.apache.kafka.connect.data.Date": "days",
    "org.apache.kafka.connect.data.Timestamp": "ms",
}
_LONGEST: Final = 1_500
"""The longest text of a decimal in base64, and its greatest scale: a short message makes no long number."""
_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
_NUMBERS: Final = ("int", "float", "numeric", "bool")


def event_fields(plan: ReadPlan) -> list[pa.Field]:
    """The columns that batches of a change feed have in addition to the ones of records."""
    events = plan.events
    assert events is not None  # only change feeds have them
    types = {column.label: column.type for column in plan.declared}
    beside = [pa.field(EVENT, pa.int8()), pa.field(EVENT_VERSION, pa.binary()), pa.field(EVENT_STREAM, pa.int64()), pa.field(EVENT_KEPT, pa.string())]
    return [*beside, *(pa.field(BEFORE + name, arrow_type(types[name])) for name in events.key)]


@dataclass(frozen=True)
class EventReader:
    """Makes batches of the events of a feed."""

    plan: ReadPlan
    options: ChangeFeed

    @classmethod
    def of(cls, reader: Reader[JsonReadOptions]) -> EventReader:
        """The reader of the events of a reader's files."""
        assert reader.options.cdc is not None  # only change feeds are read so
        return cls(reader.plan, reader.options.cdc)

    @property
    def event_plan(self) -> EventPlan:
        """The key and the version of events."""
        assert self.plan.events is not None  # only change feeds are read so
        return self.plan.events

    @cached_property
    def _feed(self) -> Feed:
        return feed(self.options.format, table=self.options.table, stream=self.options.stream, versioned=bool(self.event_plan.version))

    @cached_property
    def _row_columns(self) -> dict[str, Column]:
        """The columns that are members of the row, by their names in messages."""
        return {column.name: column for column in self.plan.declared if not column.path}

    @cached_property
    def _members(self) -> Members:
        return Members.of(self._row_columns.values())

    @cached_property
    def _key(self) -> list[Column]:
        by_label = {column.label: column for column in self.plan.declared}
        return [by_label[name] for name in self.event_plan.key]

    def events(self, messages: Iterable[dict[str, Any] | Reject], name: str) -> Iterator[Found]:
        """The events of messages. A line `null` is nothing to Debezium. Raises InputError."""
        for message in messages:
            if not isinstance(message, Reject):
                yield from self._feed(message, name)
            elif message.raw == "null" and self.options.format == "debezium":
                yield NOTHING
            else:
                yield message

    def names(self, event: Event) -> Iterator[str]:
        """The columns that an event has."""
        yield from self._members.reached(event.image)

    def batches(self, events: Sequence[Found], first_row: int, *, gathers: bool) -> Iterator[pa.RecordBatch]:
        """Batches of events, numbered from `first_row` on."""
        records = [event if isinstance(event, Reject) else self._record(event) for event in events]
        plain = [Event(STANDS) if isinstance(event, Reject) else event for event in events]
        beside = [
            pa.array([event.kind for event in plain], pa.int8()),
            self._versions(plain),
            pa.array([event.stream for event in plain], pa.int64()),
            pa.array([self._kept(event) for event in plain], pa.string()),
            *self._before(plain),
        ]
        fields, at = event_fields(self.plan), 0
        for batch in record_batches(self.plan, records, first_row, gathers=gathers):
            own = [values.slice(at, batch.num_rows) for values in beside]
            yield pa.RecordBatch.from_arrays([*batch.columns, *own], schema=pa.schema([*batch.schema, *fields]))
            at += batch.num_rows

    def _record(self, event: Event) -> dict[str, Any]:
        """The values of an event by column name: of a deletion the key alone."""
        if event.kind not in (STANDS, GOES):
            return {}
        row = self._members.record(event.image)
        if event.kind == GOES:
            row = {column.name: row.get(column.name) for column in self._key}
        made = {name: self._value(name, value, event.types) for name, value in row.items() if value != UNAVAILABLE}
        wanted = self.plan.declared if event.kind == STANDS else self._key
        return made | {column.name: self._plain(column, walked(event.envelope, column.path)) for column in wanted if column.path}

    def _value(self, name: str, value: Any, types: Types) -> Any:
        column = self._row_columns.get(name)
        return _typed(value, types.get(name), base_type(column.type) if column else "any", self.options.time_unit)

    def _plain(self, column: Column, value: Any) -> Any:
        return _typed(value, None, base_type(column.type), self.options.time_unit)

    def _kept(self, event: Event) -> str | None:
        """The columns whose values an event does not have, each between separators; None for none."""
        if event.kind != STANDS or UNAVAILABLE not in event.image.values():
            return None
        names = [name for name, value in self._members.record(event.image).items() if value == UNAVAILABLE]
        labels = [self._row_columns[name].label if name in self._row_columns else name for name in names]
        return f"{SEPARATOR}{SEPARATOR.join(labels)}{SEPARATOR}" if labels else None

    def _before(self, events: Sequence[Event]) -> list[pa.Array]:
        """The columns of the key before each event, null where nothing is known of it."""
        rows = [self._members.record(event.before) if event.before is not None else {} for event in events]
        return [self._column(column, [self._value(column.name, row.get(column.name), event.types) for row, event in zip(rows, events, strict=True)]) for column in self._key]

    def _column(self, column: Column, values: Sequence[Any]) -> pa.Array:
        return coerce_values(values, column.type, self.plan.date_formats).values

    def _versions(self, events: Sequence[Event]) -> pa.Array:
        """The version of each event; null where a member of it is."""
        parts = [self._version_part(member, events) for member in self.event_plan.version]
        if not parts:
            return pa.nulls(len(events), pa.binary())
        return pc.binary_join_element_wise(*parts, b"") if len(parts) > 1 else parts[0]

    def _version_part(self, member: str, events: Sequence[Event]) -> pa.Array:
        column = next((one for one in self.plan.declared if one.label == member), None)
        if column is None:
            steps = member.split(".")
            return pa.array([ordered(walked(event.envelope, steps)) for event in events], pa.binary())
        if column.path:
            values = [self._plain(column, walked(event.envelope, column.path)) for event in events]
        else:
            values = [self._value(column.name, self._members.record(event.image).get(column.name), event.types) for event in events]
        typed = self._column(column, values)
        return pc.if_else(typed.is_valid(), encoded([(typed, _key_type(column))]), pa.scalar(None, pa.binary()))


def _key_type(column: Column) -> str:
    kind = base_type(column.type)
    if kind.startswith("decimal"):
        return "decimal"
    return kind if kind in ("int", "float", "bool", "date", "date_time") else "string"


def ordered(value: Any) -> bytes | None:
    """A value of JSON as bytes that compare as values do: numbers by value, then texts by code point; None for null and for a number that no float holds. Other values count as their text."""
    if value is None or (isinstance(value, WrittenFloat) and value.is_beyond):
        return None
    if isinstance(value, bool | int | float | Decimal):
        return b"\x02" + _number(Decimal(repr(value)) if isinstance(value, float) else Decimal(value))
    text = value if isinstance(value, str) else canonical(value)
    return b"\x03" + text.encode("utf-8", "surrogatepass").replace(b"\x00", b"\x00\x01") + b"\x00\x00"


def _number(value: Decimal) -> bytes:
    """A number: its sign, its magnitude and its digits; the ones of a negative number are inverted."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # JSON has neither infinity nor NaN
    text = "".join(map(str, digits)).lstrip("0")
    if not text:
        return b"\x01"
    body = (exponent + len(text) + (1 << 31)).to_bytes(4, "big") + text.rstrip("0").encode() + b"\x00"
    return b"\x00" + bytes(255 - byte for byte in body) if sign else b"\x02" + body


def _typed(value: Any, logical: Logical | None, kind: str, unit: str) -> Any:
    """A value in a form that its column's type is read from: numbers of times as ISO text, decimals as digits."""
    if logical is not None and logical.name == _DECIMAL:
        return _decimal(value, logical.scale)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    unit_of_type = _LOGICAL.get(logical.name) if logical else None
    if kind not in ("date", "date_time") and (unit_of_type is None or kind in _NUMBERS or kind.startswith("decimal")):
        return value
    return _time_text(value, unit_of_type or ("days" if kind == "date" else unit), kind)


def _time_text(value: float, unit: str, kind: str) -> Any:
    """A number of days or units since 1970 as ISO text; the number itself where no calendar has it."""
    try:
        if unit == "days":
            moment = _EPOCH + timedelta(microseconds=int(value) * _DAY)
        else:
            times, parts = _UNITS[unit]
            moment = _EPOCH + timedelta(microseconds=value * times // parts if isinstance(value, int) else round(value * times / parts))
    except (OverflowError, ValueError):
        return value
    is_date = kind == "date" or (unit == "days" and kind != "date_time")
    return moment.date().isoformat() if is_date else moment.replace(tzinfo=None).isoformat()


def _decimal(value: Any, scale: int) -> Any:
    """The digits of a decimal in base64; other values unchanged, and numbers longer than any database has."""
    if not isinstance(value, str) or len(value) > _LONGEST or abs(scale) > _LONGEST:
        return value
    try:
        unscaled = int.from_bytes(b64decode(value, validate=True), "big", signed=True)
    except ValueError:  # no base64, or not even ASCII
        return value
    digits = str(abs(unscaled)).rjust(scale + 1, "0") if scale > 0 else str(abs(unscaled)) + "0" * -scale
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale > 0 else digits
    return f"-{text}" if unscaled < 0 else text
