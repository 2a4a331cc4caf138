"""JSON text to records, a piece of the file at a time, with nested arrays exploded or joined."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

import orjson
import re2

from changelog.lazy_imports import pa
from storage.files.errors import Buffer, InputError
from storage.formats import limits
from storage.formats.base import STANDS, Column, Range, Reader, Reject, document_text
from storage.formats.batches import cut, next_block, record_batches
from storage.formats.dotted_members import Members, walked
from storage.formats.envelope import typed_section
from storage.formats.json.array_bounds import Located, is_too_deep, located
from storage.formats.json.arrays import expanded, with_whole_objects
from storage.formats.json.change_feeds import EventReader
from storage.formats.json.exact_numbers import Parser, exact_text, parser_of
from storage.formats.json.fast_lines import flat_batch, records_with_all_members
from storage.formats.json.options import JsonReadOptions
from storage.formats.json.repeated_keys import Unique
from storage.formats.line_files import line_ranges_of
from storage.formats.missing_columns import missing_columns
from storage.values.json_text import canonical, pointed

_Reader: TypeAlias = Reader[JsonReadOptions]
Record: TypeAlias = dict[str, Any] | Reject
BOM = b"\xef\xbb\xbf"
BLOCK = 20_000
PIECE = 4 << 20
"""Bytes of elements that are parsed at a time."""
LINES = 2 << 20
"""Bytes of lines that are parsed at a time."""
ELEMENTS = b"elements "
"""The beginning of the head of a range of elements. The DOCUMENT of its records follows where the plan asks for it."""


def document_of(part: Range) -> str | None:
    """The DOCUMENT of the records of a range of elements; None for other ranges."""
    return part.head.removeprefix(ELEMENTS).decode() if part.head.startswith(ELEMENTS) else None


def read_records(reader: _Reader, data: Buffer, name: str, part: Range | None) -> Iterator[pa.RecordBatch]:
    """The records of a whole file or of a range of lines or elements. Raises InputError."""
    row = part.first_row if part else 1
    if reader.plan.events is not None:
        yield from _event_batches(reader, data, name, part, row)
    elif _of_lines(reader, data, part):
        unique = _unique(reader)
        all_known = unique is not None and reader.plan.on_unmapped != "drop"
        for text in _pieces(data, name):
            flat = None if reader.gathers else flat_batch(reader.plan, text, row, all_known=all_known)
            batches = cut(flat) if flat else _batches(reader, _with_arrays(reader, _line_records(reader, text, row, name, unique)), row)
            for batch in batches:
                yield batch
                row += batch.num_rows
    else:
        groups = [_element_records(reader, data[:], part.start, name)] if part and part.head else _groups(reader, data, name)
        for group in groups:
            for batch in _batches(reader, _with_arrays(reader, group), row):
                yield batch
                row += batch.num_rows


def _event_batches(reader: _Reader, data: Buffer, name: str, part: Range | None, row: int) -> Iterator[pa.RecordBatch]:
    """The events of a whole feed or of a range of it, numbered from `row` on. Raises InputError."""
    found = EventReader.of(reader)
    events = found.events(_messages(reader, data, name, part, row), name)
    while block := next_block(events, limits.rows_at_once(len(reader.schema()), BLOCK), weigh=False):
        yield from found.batches(block, row, gathers=reader.gathers)
        row += len(block)


def _messages(reader: _Reader, data: Buffer, name: str, part: Range | None = None, row: int = 1) -> Iterator[Record]:
    """The messages of a whole feed or of a range of it."""
    if part and part.head:
        return iter(_element_records(reader, data[:], part.start, name))
    if form_of(reader.options, data) != "ndjson":
        return _records(reader, data, name)
    return _all_lines(reader, data, name, _unique(reader), row)


def _batches(reader: _Reader, found: Iterable[Record], row: int) -> Iterator[pa.RecordBatch]:
    """Parsed records as batches, numbered from `row` on."""
    pick = Members.of(reader.plan.declared).record
    records = iter(found)
    while block := next_block(records, limits.rows_at_once(len(reader.schema()), BLOCK), weigh=bool(reader.plan.array_paths or reader.options.steps)):
        picked = [record if isinstance(record, Reject) else pick(record) for record in block]
        yield from record_batches(reader.plan, picked, row, gathers=reader.gathers)
        row += len(block)


def _unique(reader: _Reader) -> Unique | None:
    """The finder of repeated members; None where the last one counts."""
    lines_lead_on = reader.options.format == "ndjson"
    if reader.plan.events is not None:
        return Unique(None) if reader.options.duplicate_keys == "reject" else None
    return Unique.of(reader.plan, reader.options.steps if lines_lead_on else ()) if reader.options.duplicate_keys == "reject" else None


def _of_lines(reader: _Reader, data: Buffer, part: Range | None) -> bool:
    """Whether the file or range consists of lines, each one record."""
    return not part.head.startswith(ELEMENTS) if part and part.head else has_plain_lines(reader, data)


def undeclared_fields(reader: _Reader, data: Buffer, name: str) -> tuple[Column, ...]:
    """The members of any record that the schema does not name, in order of first appearance.

    Raises InputError where the policy is reject and there are some, and where required members are missing (E238).
    """
    plan = reader.plan
    if plan.events is not None:
        return _undeclared_in_events(reader, data, name)
    members = Members.of(plan.declared)
    found = _names_in(reader, members, data, name)
    lacking = plan.lacking(found) if found is not None else []
    if lacking and not _has_no_arrays(reader, data, name):
        raise missing_columns(plan, lacking, found or (), name, noun="member")
    extra = [key for key in found or () if key not in plan.names]
    if extra and plan.on_unmapped == "reject":
        records = enumerate(_expanded(reader, data, name), 1)
        number = next(number for number, record in records if not isinstance(record, Reject) and extra[0] in members.record(record))
        raise InputError(name, f"undeclared field '{extra[0]}' in record {number}: the schema does not name it and on_unmapped is reject")
    return plan.undeclared_among(extra, name, type_=reader.undeclared_type)


def _undeclared_in_events(reader: _Reader, data: Buffer, name: str) -> tuple[Column, ...]:
    """The members of the rows of a feed that the schema does not name. Raises InputError as `undeclared_fields` does."""
    plan, rows = reader.plan, EventReader.of(reader)
    inside, found, any_row = replace(plan, declared=tuple(column for column in plan.declared if not column.path)), dict[str, None](), False
    for event in rows.events(_messages(reader, data, name), name):
        if isinstance(event, Reject) or event.kind != STANDS:
            continue
        any_row = True
        found.update(dict.fromkeys(rows.names(event)))
        if plan.on_unmapped == "drop" and not inside.lacking(found):
            break
    if any_row and (lacking := inside.lacking(found)):
        raise missing_columns(plan, lacking, found, name, noun="member")
    return plan.undeclared_among([key for key in found if key not in plan.names], name, type_=reader.undeclared_type)


def _names_in(reader: _Reader, members: Members, data: Buffer, name: str) -> dict[str, None] | None:
    """The members of any record; None without a record. Where undeclared members are dropped, it stops once all required ones occurred."""
    plan, found = reader.plan, dict[str, None]()
    any_record, most = False, len(plan.declared) + limits.COLUMNS
    for some in _members(reader, members, data, name):
        any_record, before = True, len(found)
        found.update(dict.fromkeys(some))
        if plan.on_unmapped == "drop" and not plan.lacking(found):
            break
        if plan.on_unmapped != "drop" and len(found) > max(most, before):
            plan.undeclared_among(found, name)
    return found if any_record else None


def _has_no_arrays(reader: _Reader, data: Buffer, name: str) -> bool:
    """Whether members may be missing because no record has an array to explode."""
    paths = [path for path in reader.plan.array_paths if path.mode == "explode"]
    records = _records(reader, data, name) if paths else ()
    return bool(paths) and not any(isinstance(walked(record, path.steps), list) for record in records for path in paths)


def _members(reader: _Reader, members: Members, data: Buffer, name: str) -> Iterator[Iterable[str]]:
    """The members of the records, piece by piece for files of lines, which need not all be parsed."""
    each = (members.reached(record) for record in _expanded(reader, data, name) if isinstance(record, dict))
    if reader.plan.array_paths or not has_plain_lines(reader, data):
        yield from each
        return
    in_pieces = partial(_members_of_pieces, reader, members, data, name)
    try:
        if reader.plan.on_unmapped == "drop":
            yield from in_pieces(map)
            return
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            yield from in_pieces(pool.map)
    except InputError:  # raised again below, with the number of the line
        yield from each


def _members_of_pieces(
    reader: _Reader, members: Members, data: Buffer, name: str, mapping: Callable[..., Iterable[Iterable[str] | None]]
) -> Iterator[Iterable[str]]:
    """The members of the records of each piece with records."""
    pieces = mapping(lambda bound: _members_of_lines(reader, members, data[slice(*bound)], name), _bounds(data, name))
    return (some for some in pieces if some is not None)


def _members_of_lines(reader: _Reader, members: Members, text: bytes, name: str) -> Iterable[str] | None:
    records = records_with_all_members(text) or (record for record in _line_records(reader, text, 1, name, _unique(reader)) if isinstance(record, dict))
    found = [members.reached(record) for record in records]
    return dict.fromkeys(chain.from_iterable(found)) if found else None


def record_lines(reader: _Reader, data: Buffer, name: str) -> Iterator[bytes]:
    """The records of a document as lines of JSON; the raw text of rejects."""
    for record in _expanded(reader, data, name):
        yield ((record.raw or "null") if isinstance(record, Reject) else exact_text(record)).encode()


def ranges_of(reader: _Reader, data: Buffer, name: str, target: int) -> list[Range]:
    """Ranges of lines of an NDJSON file or of elements of an array; one range where exploded arrays make an unknown number of records."""
    whole = [Range(0, len(data))]
    if len(data) <= target or _explodes(reader):
        return whole
    form = form_of(reader.options, data)
    if form == "ndjson":
        return whole if reader.options.steps else line_ranges_of(data, name, target)
    array = _array(reader.options, form, data, name, target)
    if array is None or not array.pieces:
        return whole
    head = ELEMENTS + (document_text(_sections(reader, data, array, name)) if reader.plan.document else "").encode()
    _skeleton(reader, data, array, name)
    return [Range(piece.start, piece.end, piece.first, head) for piece in array.pieces]


def has_plain_lines(reader: _Reader, data: Buffer) -> bool:
    """Whether each line is one record."""
    return not _explodes(reader) and form_of(reader.options, data) == "ndjson" and not reader.options.steps


def _explodes(reader: _Reader) -> bool:
    """Whether a record of the file may become several."""
    cdc = reader.options.cdc if reader.plan.events is not None else None
    return any(path.mode == "explode" for path in reader.plan.array_paths) or (cdc is not None and cdc.format == "canal")


def form_of(options: JsonReadOptions, data: Buffer) -> str:
    """`array`, `object` or `ndjson`, by the options or the content."""
    if options.format:
        return options.format
    first = re.compile(rb"(?:\xef\xbb\xbf)?\s*([^\s])").match(data)
    if first and first[1] == b"[":
        return "array"
    if options.steps:
        return "object"
    line = re.compile(rb"(?:\xef\xbb\xbf)?\s*([^\n]*)").match(data)
    if not line or _is_json(line[1]) or len(data) > limits.RECORD_BYTES:
        return "ndjson"
    return "object" if _is_json(bytes(data).removeprefix(BOM)) else "ndjson"


def sections_of(reader: _Reader, data: Buffer, name: str) -> dict[str, dict[str, Any]]:
    """The declared sections of the document; none for several lines. Raises InputError for a target that is no object, and for a value of another type."""
    if not reader.plan.sections:
        return {}
    form = form_of(reader.options, data)
    if form == "ndjson" and (len(data) > limits.RECORD_BYTES or not _is_json(bytes(data).removeprefix(BOM))):
        return {}
    return _sections(reader, data, _array(reader.options, form, data, name, len(data)), name)


def _sections(reader: _Reader, data: Buffer, array: Located | None, name: str) -> dict[str, dict[str, Any]]:
    below = any(section.where.split("/")[1:][: len(reader.options.steps)] == list(reader.options.steps) for section in reader.plan.sections)
    document = _document(bytes(data), name) if array is None or below else _skeleton(reader, data, array, name)
    found = {}
    for section in reader.plan.sections:
        target = pointed(document, section.where)
        if target is not None:
            if not isinstance(target, dict):
                raise InputError(name, f"envelope section '{section.name}': {section.where} is no object")
            found[section.name] = typed_section(section, target, name)
    return found



def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _expanded(reader: _Reader, data: Buffer, name: str) -> Iterable[Record]:
    """The records of a whole file."""
    return _with_arrays(reader, _records(reader, data, name))


def _with_arrays(reader: _Reader, records: Iterable[Record]) -> Iterable[Record]:
    """The records with their arrays exploded or joined. What is in the place of an object is lost where undeclared members are dropped, so it rejects the record."""
    made = expanded(records, reader.plan.array_paths) if reader.plan.array_paths else records
    members = Members.of(reader.plan.declared) if reader.plan.on_unmapped == "drop" else None
    return with_whole_objects(made, members) if members is not None and members.dotted else made


def empty_arrays_of(reader: _Reader, data: Buffer, name: str) -> Mapping[str, int]:
    """The number of empty arrays by their path, where they are exploded. Only text that may have one is parsed. Raises InputError."""
    paths = [path for path in reader.plan.array_paths if path.mode == "explode"]
    empty = _empty_member([path.steps[-1] for path in paths])
    counts = dict.fromkeys((path.path for path in paths), 0)
    groups: Iterable[Iterable[Record]]
    if _of_lines(reader, data, None):
        groups = (_line_records(reader, text, 1, name, _unique(reader)) for text in _pieces(data, name) if empty.search(text))
    else:
        groups = _groups(reader, data, name) if empty.search(data) else ()
    for _ in expanded(chain.from_iterable(groups), reader.plan.array_paths, counts):
        pass
    return counts


def _empty_member(names: Sequence[str]) -> Any:
    """An RE2 pattern for an empty array at one of the names or at any name with an escaped character. It takes linear time for every text."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes, which need not be UTF-8
    spelled = "|".join(re.escape(json.dumps(name, ensure_ascii=False)) for name in names)
    return re2.compile(rf'(?:{spelled}|\\.[^"\n]*")\s*:\s*\[\s*\]'.encode(), options)


def _all_lines(reader: _Reader, data: Buffer, name: str, unique: Unique | None, row: int = 1) -> Iterator[Record]:
    for text in _pieces(data, name):
        for record in _line_records(reader, text, row, name, unique):
            yield record
            row += 1


def _line_records(reader: _Reader, text: bytes, first_row: int, name: str, unique: Unique | None) -> Iterator[Record]:
    lines = [line for line in text.split(b"\n") if line and not line.isspace()]
    parse = parser_of(reader.plan)
    records = [_line(line, number, name, parse) for number, line in enumerate(lines, first_row)]
    wrong = unique.in_lines(lines, records) if unique else {}
    return (_twice(wrong[index], lines[index]) if index in wrong else record for index, record in enumerate(records))


def _records(reader: _Reader, data: Buffer, name: str) -> Iterator[Record]:
    return chain.from_iterable(_groups(reader, data, name))


def _groups(reader: _Reader, data: Buffer, name: str) -> Iterator[Iterable[Record]]:
    """The records of a file in groups that are parsed together."""
    options = reader.options
    form = form_of(options, data)
    if form == "ndjson":
        lines = _all_lines(reader, data, name, _unique(reader))
        yield chain.from_iterable(_below(line, options) for line in lines) if options.steps else lines
        return
    array = _array(options, form, data, name, PIECE)
    if array is None:
        yield _whole(reader, form, data, name)
        return
    _skeleton(reader, data, array, name)
    for piece in array.pieces:
        yield _element_records(reader, data[piece.start : piece.end], piece.start, name, data)


def _element_records(reader: _Reader, text: bytes, start: int, name: str, whole: Buffer | None = None) -> Iterator[Record]:
    """The records of a piece of an array, which begins at byte `start` of the file. Raises InputError."""
    values, unique = _elements(parser_of(reader.plan), text, start, name, whole), _unique(reader)
    wrong = unique.in_elements(text, values) if unique else {}
    return (_twice(*wrong[index]) if index in wrong else _element(value) for index, value in enumerate(values))


def _below(line: Record, options: JsonReadOptions) -> Iterable[Record]:
    """The records of a line that is a document with an array of them."""
    if isinstance(line, Reject):
        return (line,)
    value = walked(line, options.steps)
    if isinstance(value, list):
        return map(_element, value)
    return (Reject("malformed_record", f"record_path '{options.record_path}' leads to no array", raw=canonical(line)),)


def _array(options: JsonReadOptions, form: str, data: Buffer, name: str, target: int) -> Located | None:
    """The array whose elements are the records; None where the document has no whole one."""
    return located(data, options.steps, target, name) if form == "array" or options.steps else None


def _skeleton(reader: _Reader, data: Buffer, array: Located, name: str) -> Any:
    """The document without its records. Raises InputError, also for a repeated member around the records."""
    text = array.skeleton(data).removeprefix(BOM)
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _document(bytes(data), name)  # its error has the place in the file
    twice = Unique(None).in_text(text, found) if reader.options.duplicate_keys == "reject" else None
    if twice is not None:
        raise InputError(name, f"the member '{twice}' of the document comes twice; options.duplicate_keys: last takes the last one")
    return found


def _elements(parse: Parser, text: bytes, start: int, name: str, whole: Buffer | None = None) -> list[Any]:
    """The elements of a piece of an array, which begins at byte `start` of the file. Raises InputError."""
    try:
        found: list[Any] = parse(b"[" + text + b"]")
    except orjson.JSONDecodeError as wrong:
        raise _broken(wrong, text, start, name, whole) from None
    if not found:
        raise InputError(name, "not valid JSON: an element is missing between two commas", offset=start)
    return found


def _bad_byte(text: bytes) -> UnicodeDecodeError | None:
    """The error of a text that is not UTF-8, whose place orjson does not report; None for UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError as wrong:
        return wrong
    return None


def _broken(wrong: orjson.JSONDecodeError, text: bytes, start: int, name: str, whole: Buffer | None) -> InputError:
    """The error of a text that begins at byte `start` of the file. With the `whole` file it has the line and the column."""
    if "depth limit" in wrong.msg:
        return limits.too_deep(name)
    bad = _bad_byte(text)
    if bad is not None:
        return InputError(name, f"not valid UTF-8, as JSON is: {bad.reason}", offset=start + bad.start)
    at = start + len(wrong.doc[: wrong.pos].encode()) - 1
    if whole is None:
        return InputError(name, f"not valid JSON: {_reason(wrong)}", offset=at)
    before = whole[:at]
    column = at - before.rfind(b"\n")
    return InputError(name, f"not valid JSON: {_reason(wrong)}, column {column}", line=before.count(b"\n") + 1)


def _whole(reader: _Reader, form: str, data: Buffer, name: str) -> list[Record]:
    """The records of a document that has no whole array of records. Raises InputError, always for format `array`."""
    options = reader.options
    if not data[:].strip():
        raise InputError(name, "the file is empty where a JSON document is expected")
    if len(data) > limits.RECORD_BYTES:
        raise limits.record_too_long(name, what="the array of records is missing or cut off, and the document as one record")
    document = _document(bytes(data), name, parser_of(reader.plan))
    if form == "array":
        if isinstance(document, list):
            raise InputError(name, f"the document is an array, in which record_path '{options.record_path}' leads nowhere")
        raise InputError(name, "the document is no array, as format 'array' has it")
    unique = _unique(reader) if isinstance(document, dict) and not options.steps else None
    twice = unique.in_text(bytes(data).removeprefix(BOM), document) if unique else None
    return [_twice(twice, bytes(data).strip()) if twice else _element(value) for value in _target(document, options, name)]


def _element(value: Any) -> Record:
    return value if isinstance(value, dict) else _no_object(canonical(value))


def _pieces(data: Buffer, name: str) -> Iterator[bytes]:
    """Pieces of whole lines of about `LINES` bytes. Raises InputError for a line that is too long."""
    return (data[start:end] for start, end in _bounds(data, name))


def _bounds(data: Buffer, name: str) -> Iterator[tuple[int, int]]:
    at = len(BOM) if data[: len(BOM)] == BOM else 0
    while at < len(data):
        end = data.find(b"\n", at + LINES) + 1 or len(data)
        if end - at > LINES + limits.RECORD_BYTES:
            raise limits.record_too_long(name, offset=at, what="a line")
        yield at, end
        at = end


def _line(line: bytes, number: int, name: str, parse: Parser) -> Record:
    try:
        value = parse(line)
    except orjson.JSONDecodeError as wrong:
        if "depth limit" in wrong.msg:
            raise limits.too_deep(name, line=number) from None
        raw, bad = line.rstrip(b"\r").decode("utf-8", "replace"), _bad_byte(line)
        reason = f"{_reason(wrong)} at column {wrong.colno}" if bad is None else f"not UTF-8: {bad.reason}, byte {bad.start} of the line"
        return Reject("malformed_record", f"not valid JSON: {reason}", raw=raw)
    if is_too_deep(line):
        raise limits.too_deep(name, line=number)
    return value if isinstance(value, dict) else _no_object(line.strip().decode())


def _twice(path: str, raw: bytes) -> Reject:
    """The reject of a record with a repeated member. Its raw text is on one line."""
    shown = path if len(path) <= 200 else f"{path[:100]}...{path[-100:]}"
    detail = f"the member '{shown}' comes twice; options.duplicate_keys: last takes the last one"
    return Reject("malformed_record", detail, raw=raw.strip().replace(b"\r", b" ").replace(b"\n", b" ").decode())


def _no_object(raw: str) -> Reject:
    return Reject("malformed_record", "not a JSON object", raw=raw)


def _document(data: bytes, name: str, parse: Parser = orjson.loads) -> Any:
    try:
        value = parse(data.removeprefix(BOM))
    except orjson.JSONDecodeError as wrong:
        if "depth limit" in wrong.msg:
            raise limits.too_deep(name) from None
        bad = _bad_byte(data)
        if bad is not None:
            raise InputError(name, f"not valid UTF-8, as JSON is: {bad.reason}", offset=bad.start) from None
        raise InputError(name, f"not valid JSON: {_reason(wrong)}, column {wrong.colno}", line=wrong.lineno) from None
    if is_too_deep(data):
        raise limits.too_deep(name)
    return value


def _reason(wrong: orjson.JSONDecodeError) -> str:
    return wrong.msg.partition(": line ")[0]


def _target(document: Any, options: JsonReadOptions, name: str) -> list[Any]:
    if not isinstance(document, dict):
        raise InputError(name, "the document is no object, as format 'object' or record_path have it")
    value = walked(document, options.steps)
    if not options.steps:
        return [document]
    if not isinstance(value, list):
        raise InputError(name, f"record_path '{options.record_path}' leads to no array")
    return value
