"""Messages of change feeds: Debezium, Singer, Maxwell, Canal. Each message becomes one or more events.

A feed takes the row out of its envelope and says what becomes of it. It knows nothing of types: `change_feeds` makes columns of its events.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from storage.files.errors import InputError
from storage.formats.base import ACTIVATES, GOES, PASSED, STANDS, TRUNCATES, Reject
from storage.formats.json.exact_numbers import parsed_exactly
from storage.values.json_text import canonical

UNAVAILABLE: Final = "__debezium_unavailable_value"
"""Debezium's text for a value that the database did not send."""


_SCALE: Final = re.compile(r"-?[0-9]{1,4}")


class Logical(NamedTuple):
    """A logical type of Kafka Connect: its name, and the scale of a decimal."""

    name: str
    scale: int = 0


Types = Mapping[str, Logical]
_NO_TYPES: Final[Types] = {}


@dataclass(frozen=True, slots=True)
class Event:
    """The content of one message about one row.

    Attributes:
        kind: What it does, such as `STANDS`.
        image: The row; of a deletion the key is enough.
        envelope: The message around the row.
        before: The row before the event, or what is known of it, where its key may be another.
        types: The logical types of the members of the row.
        stream: The version of the stream.
    """

    kind: int
    image: Mapping[str, Any] = field(default_factory=dict)
    envelope: Mapping[str, Any] = field(default_factory=dict)
    before: Mapping[str, Any] | None = None
    types: Types = field(default_factory=dict)
    stream: int | None = None


NOTHING: Final = Event(PASSED)
Found = Event | Reject
Feed = Callable[[dict[str, Any], str], Iterator[Found]]
"""The events of a message. Messages of errors call the file by the name that is given. Raises InputError."""


def feed(form: str, *, table: str | None, stream: str | None, versioned: bool) -> Feed:
    """Return the function that reads the messages of a format.

    Args:
        form: The format.
        table: The table whose events count; None for all.
        stream: The stream whose records count; None for all.
        versioned: Whether events have versions.
    """
    if form == "debezium":
        return lambda message, name: _debezium(message, table, versioned=versioned)
    if form == "singer":
        return lambda message, name: _singer(message, stream, name)
    if form == "maxwell":
        return lambda message, name: _maxwell(message, table)
    return lambda message, name: _canal(message, table)


def _unknown(message: Mapping[str, Any], what: str) -> Reject:
    return Reject("unknown_operation", what, raw=canonical(message))


def _malformed(message: Mapping[str, Any], what: str) -> Reject:
    return Reject("malformed_record", what, raw=canonical(message))


# -- Debezium


class _Wrapped(NamedTuple):
    """A value of Kafka Connect, and the schema beside it."""

    value: Any
    schema: Any = None


def _unwrapped(value: Any) -> _Wrapped:
    """A value without its schema. Text is JSON. Raises ValueError for another text."""
    if isinstance(value, str):
        value = parsed_exactly(value.encode())
    if isinstance(value, dict) and "payload" in value and value.keys() <= {"schema", "payload"}:
        return _Wrapped(value["payload"], value.get("schema"))
    return _Wrapped(value)


def _types_of(schema: Any, *path: str) -> Types:
    """The logical types of the fields of a struct, which `path` leads to."""
    for step in path:
        schema = next((one for one in _fields(schema) if one.get("field") == step), None)
    named = [(one.get("field"), one.get("name"), one.get("parameters")) for one in _fields(schema)]
    return {name: Logical(logical, _scale(parameters)) for name, logical, parameters in named if isinstance(name, str) and isinstance(logical, str)}


def _fields(schema: Any) -> list[dict[str, Any]]:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    return [one for one in fields if isinstance(one, dict)] if isinstance(fields, list) else []


def _scale(parameters: Any) -> int:
    text = str(parameters.get("scale", "0")) if isinstance(parameters, dict) else "0"
    return int(text) if _SCALE.fullmatch(text) else 0


def _debezium(message: dict[str, Any], table: str | None, *, versioned: bool) -> Iterator[Found]:
    key, value = _Wrapped(None), _Wrapped(message)
    try:
        if "key" in message and "value" in message and "op" not in message:
            key, value = _unwrapped(message["key"]), _unwrapped(message["value"])
        else:
            value = _unwrapped(message)
    except orjson.JSONDecodeError:
        yield _malformed(message, "key or value is a text that is no JSON")
        return
    if value.value is None:
        yield _tombstone(key, versioned=versioned)
    elif not isinstance(value.value, dict):
        yield _malformed(message, "the value is no JSON object")
    elif _is_beside(value.value) or not _is_of(table, value.value.get("source"), ("schema", "db")):
        yield NOTHING
    else:
        yield _change(message, key, value)


def _tombstone(key: _Wrapped, *, versioned: bool) -> Event:
    if versioned or not isinstance(key.value, dict):
        return NOTHING
    return Event(GOES, key.value, types=_types_of(key.schema))


def _is_beside(value: Mapping[str, Any]) -> bool:
    """Whether a message is no change of a row: a mark of a transaction, a schema change, a heartbeat."""
    if "op" in value:
        return bool(value["op"] == "m")
    return (value.get("status") in ("BEGIN", "END") and "id" in value) or "ddl" in value or value.keys() == {"ts_ms"}


def _is_of(table: str | None, names: Any, above: tuple[str, ...]) -> bool:
    """Whether an event belongs to a table, which may be named with the schema or database before it."""
    if table is None:
        return True
    if not isinstance(names, dict):
        return False
    own = names.get("table")
    return bool(table == own) or any(names.get(one) is not None and table == f"{names[one]}.{own}" for one in above)


def _change(message: Mapping[str, Any], key: _Wrapped, value: _Wrapped) -> Found:
    envelope, op = value.value, value.value.get("op")
    before, after = envelope.get("before"), envelope.get("after")
    if op == "t":
        return Event(TRUNCATES, envelope=envelope)
    if op == "d":
        if isinstance(before, dict):
            return Event(GOES, before, envelope, types=_types_of(value.schema, "before"))
        return Event(GOES, key.value if isinstance(key.value, dict) else {}, envelope, types=_types_of(key.schema))
    if op not in ("c", "r", "u"):
        return _unknown(message, f"op is {canonical(op)}, which is no operation")
    if not isinstance(after, dict):
        return _malformed(message, f"an event with op '{op}' has no object in 'after'")
    return Event(STANDS, after, envelope, before if isinstance(before, dict) else None, _types_of(value.schema, "after"))


# -- Singer


def _singer(message: dict[str, Any], stream: str | None, name: str) -> Iterator[Found]:
    kind = message.get("type")
    if kind in ("SCHEMA", "STATE") or (kind in ("RECORD", "ACTIVATE_VERSION", "BATCH") and stream is not None and message.get("stream") != stream):
        yield NOTHING
    elif kind == "BATCH":
        raise InputError(name, "a BATCH message names files that are elsewhere; let the tap write RECORD messages")
    elif kind == "RECORD":
        yield _record(message)
    elif kind == "ACTIVATE_VERSION":
        version = _whole(message.get("version"))
        yield _malformed(message, "ACTIVATE_VERSION has no version") if version is None else Event(ACTIVATES, envelope=message, stream=version)
    else:
        yield _unknown(message, f"type is {canonical(kind)}, which is no type of message")


def _record(message: Mapping[str, Any]) -> Found:
    record = message.get("record")
    if not isinstance(record, dict):
        return _malformed(message, "a RECORD has no object in 'record'")
    kind = STANDS if record.get("_sdc_deleted_at") is None else GOES
    return Event(kind, record, message, stream=_whole(message.get("version")))


def _whole(value: Any) -> int | None:
    """A whole number within 64 bits; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None


# -- Maxwell and Canal


def _maxwell(message: dict[str, Any], table: str | None) -> Iterator[Found]:
    kind = message.get("type")
    if not _is_of(table, message, ("database",)) or "sql" in message or kind in ("bootstrap-start", "bootstrap-complete"):
        yield NOTHING
    elif kind not in ("insert", "bootstrap-insert", "update", "delete"):
        yield _unknown(message, f"type is {canonical(kind)}, which is no operation")
    else:
        yield _row(message, message.get("data"), message.get("old"), is_gone=kind == "delete")


def _row(message: Mapping[str, Any], data: Any, old: Any, *, is_gone: bool) -> Found:
    if not isinstance(data, dict):
        return _malformed(message, "'data' is no object")
    before = {**data, **old} if isinstance(old, dict) and not is_gone else None
    return Event(GOES if is_gone else STANDS, data, message, before)


def _canal(message: dict[str, Any], table: str | None) -> Iterator[Found]:
    kind, data, old = message.get("type"), message.get("data"), message.get("old")
    if not _is_of(table, message, ("database",)) or message.get("isDdl") is True:
        yield NOTHING
    elif kind not in ("INSERT", "UPDATE", "DELETE"):
        yield _unknown(message, f"type is {canonical(kind)}, which is no operation")
    elif not isinstance(data, list):
        yield _malformed(message, "'data' is no array")
    elif not data:
        yield NOTHING
    else:
        earlier = old if isinstance(old, list) else []
        for at, row in enumerate(data):
            yield _row(message, row, earlier[at] if at < len(earlier) else None, is_gone=kind == "DELETE")
