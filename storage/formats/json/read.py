"""JSON text to records: where the records of a document lie, their members as columns, nested arrays exploded or joined."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson

from storage.formats.batches import record_batches
from storage.formats.contract import Buffer, Column, InputError, Range, Reject
from storage.formats.envelope import typed_section
from storage.formats.json.arrays import expanded
from storage.formats.lines import line_ranges_of

if TYPE_CHECKING:
    import pyarrow as pa

    from storage.formats.json import JsonReader, JsonReadOptions

Record: TypeAlias = dict[str, Any] | Reject
BOM = b"\xef\xbb\xbf"
BLOCK = 20_000


def read_records(reader: JsonReader, data: Buffer, name: str, part: Range | None) -> Iterator[pa.RecordBatch]:
    """The records of a whole file or of a range of lines."""
    row = part.first_row if part else 1
    pick = _picker(reader)
    records = iter(_expanded(reader, data, name, part))
    while block := list(islice(records, BLOCK)):
        picked = [record if isinstance(record, Reject) else pick(record) for record in block]
        yield from record_batches(reader.plan.columns, picked, row, reader.plan.date_formats)
        row += len(block)


def undeclared_members(reader: JsonReader, data: Buffer, name: str) -> tuple[Column, ...]:
    """Members of any record that the schema does not name, in order of first appearance. Raises InputError under reject."""
    plan = reader.plan
    if plan.on_unmapped == "drop":
        return ()
    roots = plan.names | {column.name.partition(".")[0] for column in plan.declared}
    found: dict[str, None] = {}
    for number, record in enumerate(_expanded(reader, data, name), 1):
        if isinstance(record, Reject) or record.keys() <= roots:
            continue
        extra = [key for key in record if key not in roots]
        if plan.on_unmapped == "reject":
            raise InputError(
                name, f"undeclared field '{extra[0]}' in record {number}: the schema does not name it and on_unmapped is reject"
            )
        found.update(dict.fromkeys(extra))
    return tuple(Column(key, "any") for key in found)


def record_lines(reader: JsonReader, data: Buffer, name: str) -> Iterator[bytes]:
    """The records of a document as lines, those that are rejected as their raw text."""
    for record in _expanded(reader, data, name):
        yield (record.raw or "null").encode() if isinstance(record, Reject) else orjson.dumps(record)


def line_ranges(reader: JsonReader, data: Buffer, name: str, target: int) -> list[Range]:
    """Ranges of lines of an NDJSON file; one range where the form is another, or where exploded arrays make records of unknown number."""
    if len(data) <= target or not has_plain_lines(reader, data):
        return [Range(0, len(data))]
    return line_ranges_of(data, name, target)


def has_plain_lines(reader: JsonReader, data: Buffer) -> bool:
    """Whether each line is one record."""
    exploding = any(path.mode == "explode" for path in reader.plan.array_paths)
    return not exploding and form_of(reader.options, data) == "ndjson"


def form_of(options: JsonReadOptions, data: Buffer) -> str:
    """array, object or ndjson: as the options say or, without them, as the content looks."""
    if options.format:
        return options.format
    first = re.compile(rb"(?:\xef\xbb\xbf)?\s*([^\s])").match(data)
    if first and first[1] == b"[":
        return "array"
    if options.steps:
        return "object"
    line = re.compile(rb"(?:\xef\xbb\xbf)?\s*([^\n]*)").match(data)
    return "ndjson" if not line or _is_json(line[1]) or not _is_json(bytes(data).removeprefix(BOM)) else "object"


def sections_of(reader: JsonReader, data: Buffer, name: str) -> dict[str, dict[str, Any]]:
    """The declared sections that the document has. Raises InputError for a target that is no object or a value of another type."""
    if not reader.plan.sections:
        return {}
    document = _document(bytes(data), name)
    found = {}
    for section in reader.plan.sections:
        target = _pointed(document, section.where)
        if target is not None:
            if not isinstance(target, dict):
                raise InputError(name, f"envelope section '{section.name}': {section.where} is no object")
            found[section.name] = typed_section(section, target, name)
    return found


def _pointed(document: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, list):
            document = document[int(key)] if key.isdecimal() and int(key) < len(document) else None
        else:
            document = document.get(key) if isinstance(document, dict) else None
    return document


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _expanded(reader: JsonReader, data: Buffer, name: str, part: Range | None = None) -> Iterable[Record]:
    text = bytes(data).removeprefix(BOM)
    records = _line_records(text, part.first_row, name) if part and part.head else _records(reader.options, text, name)
    return expanded(records, reader.plan.array_paths) if reader.plan.array_paths else records


def _line_records(data: bytes, first_row: int, name: str) -> Iterator[Record]:
    return (_line(line, number, name) for number, line in enumerate(_lines(data), first_row))


def _records(options: JsonReadOptions, data: bytes, name: str) -> Iterator[Record]:
    form = form_of(options, data)
    if form == "ndjson":
        yield from _line_records(data, 1, name)
        return
    if not data.strip():
        raise InputError(name, "the file is empty where a JSON document is expected")
    document = _document(data, name)
    if form == "array":
        if not isinstance(document, list):
            raise InputError(name, "the document is no array, as format 'array' has it")
        found = document
    else:
        found = _target(document, options, name)
    for element in found:
        yield element if isinstance(element, dict) else _no_object(orjson.dumps(element).decode())


def _lines(data: bytes) -> Iterator[bytes]:
    return (line for line in data.split(b"\n") if line and not line.isspace())


def _line(line: bytes, number: int, name: str) -> Record:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as wrong:
        if "depth limit" in wrong.msg:
            raise InputError(name, "nested deeper than 1000 levels", line=number) from None
        raw = line.rstrip(b"\r").decode("utf-8", "replace")
        return Reject("malformed_record", f"not valid JSON: {_reason(wrong)} at column {wrong.colno}", raw=raw)
    return value if isinstance(value, dict) else _no_object(line.strip().decode())


def _no_object(raw: str) -> Reject:
    return Reject("malformed_record", "not a JSON object", raw=raw)


def _document(data: bytes, name: str) -> Any:
    try:
        return orjson.loads(data.removeprefix(BOM))
    except orjson.JSONDecodeError as wrong:
        if "depth limit" in wrong.msg:
            raise InputError(name, "nested deeper than 1000 levels") from None
        raise InputError(name, f"not valid JSON: {_reason(wrong)}, column {wrong.colno}", line=wrong.lineno) from None


def _reason(wrong: orjson.JSONDecodeError) -> str:
    return wrong.msg.partition(": line ")[0]


def _target(document: Any, options: JsonReadOptions, name: str) -> list[Any]:
    if not isinstance(document, dict):
        raise InputError(name, "the document is no object, as format 'object' or record_path have it")
    value: Any = document
    for step in options.steps:
        value = value.get(step) if isinstance(value, dict) else None
    if not options.steps:
        return [document]
    if not isinstance(value, list):
        raise InputError(name, f"record_path '{options.record_path}' leads to no array")
    return value


def _picker(reader: JsonReader) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What takes a record's values by column name: by a dotted name's path where the record has no member of the whole name."""
    dotted = [column.name for column in reader.plan.declared if "." in column.name]
    if not dotted:
        return lambda record: record
    return lambda record: {**{name: _walked(record, name) for name in dotted}, **record}


def _walked(record: Any, dotted: str) -> Any:
    value = record
    for step in dotted.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value
