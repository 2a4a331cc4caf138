"""XML elements to typed batches, and the sections of a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import orjson

from changelog.lazy_imports import np, pa, pc
from storage.files.errors import Buffer, InputError
from storage.formats import limits
from storage.formats.base import CHUNK_BYTES, Column, Range, Reader, ReadPlan, Reject, document_text
from storage.formats.batches import gathered, next_block, typed_batches
from storage.formats.envelope import typed_section
from storage.formats.missing_columns import missing_columns
from storage.formats.xml.collector import Collector, Fields, Record
from storage.formats.xml.fast_records import Run
from storage.formats.xml.options import XmlReadOptions
from storage.formats.xml.parser import Scan
from storage.formats.xml.sections import SectionCollector
from storage.values.types import DYNAMIC, base_type

_Reader: TypeAlias = Reader[XmlReadOptions]
_BLOCK = 20_000
_TEXTS = DYNAMIC | {"string"}
"""Types of columns whose text keeps its white space."""
_SHORT = 500
"""Shorter runs are handled record by record."""


class Part(NamedTuple):
    """The head of a range of a document: the tags of the elements that are open at its beginning, and the DOCUMENT of its records."""

    opened: Sequence[str]
    document: str = ""

    @classmethod
    def of(cls, part: Range | None) -> Part | None:
        """The part that a range describes; None for a whole document."""
        return cls(**orjson.loads(part.head)) if part is not None and part.head else None


def document_of(part: Range) -> str | None:
    """The DOCUMENT of the records of a range; None for a whole document."""
    known = Part.of(part)
    return known.document if known else None


def read_records(reader: _Reader, data: Buffer, name: str, part: Range | None) -> Iterator[pa.RecordBatch]:
    """The records of a document or of a range. Raises InputError."""
    columns, row = reader.plan.declared if reader.gathers else reader.plan.columns, part.first_row if part else 1
    for text, size, rejected, undeclared in _blocks(reader, data, name, Part.of(part)):
        rows = pa.array(np.arange(row, row + size))
        yield from typed_batches(columns, text, rows, reader.plan.date_formats, rejected=rejected, undeclared=undeclared)
        row += size


class Block(NamedTuple):
    """Some records.

    Args:
        text: the text of their columns
        size: their number
        rejected: the errors of rejected records; None where there are none
        undeclared: the undeclared fields; None where they are not gathered
    """

    text: dict[str, pa.Array]
    size: int
    rejected: pa.Array | None = None
    undeclared: pa.Array | None = None


def _blocks(reader: _Reader, data: Buffer, name: str, part: Part | None) -> Iterator[Block]:
    known = frozenset(column.name for column in reader.plan.columns)
    most = limits.rows_at_once(len(reader.schema()), _BLOCK)
    scan = _scan(reader, data, name, wanted=known.__contains__, opened=part.opened if part else None)
    single, begun = list[Fields | Reject](), 0
    for item in scan:
        if isinstance(item, Run) and item.count >= _SHORT and not reader.gathers:
            yield from _of_records(reader, single, most)
            single, begun = [], scan.at
            yield Block({column: _clean(text) for column, text in item.columns().items()}, item.count)
            continue
        single += _plainly(item, reader.plan, data)
        if len(single) >= most or scan.at - begun >= CHUNK_BYTES:
            yield from _of_records(reader, single, most)
            single, begun = [], scan.at
    yield from _of_records(reader, single, most)


def _of_records(reader: _Reader, records: Sequence[Fields | Reject], most: int) -> Iterator[Block]:
    """Blocks of at most `most` records. Only columns of text keep the white space of CDATA sections."""
    columns = reader.plan.declared if reader.gathers else reader.plan.columns
    rest = iter(records)
    while block := next_block(rest, most, weigh=bool(reader.plan.array_paths)):
        errors = [record.json() if isinstance(record, Reject) else None for record in block]
        fields = [{} if isinstance(record, Reject) else record for record in block]
        text = {column.name: pa.array([record.get(column.name) for record in fields], pa.string()) for column in columns}
        text |= {column.name: _clean(text[column.name]) for column in columns if base_type(column.type) not in _TEXTS}
        undeclared = gathered(fields, reader.plan.undeclared, _json_text) if reader.gathers else None
        yield Block(text, len(block), pa.array(errors, pa.string()) if any(errors) else None, undeclared)


def _json_text(value: str | None) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


def _clean(text: Sequence[str] | pa.Array) -> pa.Array:
    """The text of fields without surrounding white space; null where nothing remains."""
    stripped = pc.utf8_trim_whitespace(text if isinstance(text, pa.Array) else pa.array(text, pa.string()))
    return pc.replace_with_mask(stripped, pc.equal(stripped, ""), pa.scalar(None, pa.string()))


def record_lines(reader: _Reader, data: Buffer, name: str) -> Iterator[bytes]:
    """The records of a document as lines of JSON. A reject is a line with its error, which is no JSON."""
    for item in _items(reader, data, name):
        for record in _plainly(item, reader.plan, data):
            yield " ".join(f"{record.detail}: {record.raw}".split()).encode() if isinstance(record, Reject) else orjson.dumps(record)


def undeclared_fields(reader: _Reader, data: Buffer, name: str) -> tuple[Column, ...]:
    """The fields that the schema does not name, in order of first appearance.

    Raises InputError where the policy is reject and there are some, and where required fields are missing (E238).
    """
    plan, met = reader.plan, dict[str, None]()
    number, known = 0, 0
    for number, record in _unlike_records(reader, data, name):
        extra = [field for field in record if field not in plan.names and field not in met]
        met |= dict.fromkeys(record)
        if extra and plan.on_unmapped == "reject":
            raise InputError(name, f"undeclared field '{extra[0]}' in record {number}: the schema does not name it and on_unmapped is reject")
        known += len(extra) if plan.on_unmapped == "auto_widen" else 0
        if known and len(plan.names) + known > limits.COLUMNS:
            raise limits.too_many_columns(name, len(plan.names) + known)
        if plan.on_unmapped == "drop" and not _lacking(reader, met.keys()):
            break
    lacking = _lacking(reader, met.keys()) if number else []
    if lacking and not _has_no_arrays(reader, data, name):
        raise missing_columns(plan, lacking, met, name, noun="element")
    return plan.undeclared_among((field for field in met if field not in plan.names), name)


def _unlike_records(reader: _Reader, data: Buffer, name: str) -> Iterator[tuple[int, Fields]]:
    """The number and the fields of the first record, and of each record with a new field. The records of a run have no new fields."""
    number, met = 0, None
    for item in _items(reader, data, name, names_only=True):
        if isinstance(item, Run):
            number += item.count
            continue
        for record in _plainly(item, reader.plan, data):
            number += 1
            if isinstance(record, dict) and (met is None or not record.keys() <= met):
                met = record.keys() | (met or set())
                yield number, record


def _lacking(reader: _Reader, met: AbstractSet[str]) -> list[Column]:
    """The required columns that no record has. An empty element counts as having everything inside it, an empty record as having its own text."""
    own = (reader.options.record_path or "").rstrip("/").rpartition("/")[2]
    return [column for column in reader.plan.lacking(met) if column.name != own and met.isdisjoint(accumulate(column.name.split("."), "{}.{}".format))]


def _has_no_arrays(reader: _Reader, data: Buffer, name: str) -> bool:
    """Whether fields may be missing because no record has an array to explode."""
    paths = [path for path in reader.plan.array_paths if path.mode == "explode"]
    items = _items(reader, data, name) if paths else ()
    return bool(paths) and not any(found for item in items if not isinstance(item, Run) for _, found, _ in item)


def _counts_records(reader: _Reader) -> bool:
    """Whether each element of the record path is one record."""
    return reader.options.record_path is not None and all(array.mode != "explode" for array in reader.plan.array_paths)


def ranges_of(reader: _Reader, data: Buffer, name: str, target: int) -> list[Range]:
    """Ranges of whole records. One range for a small document, where the root is the record, and where exploded arrays make an unknown number of records."""
    if len(data) <= target or not _counts_records(reader):
        return [Range(0, len(data))]
    document = document_text(sections_of(reader, data, name)) if reader.plan.document else ""
    scan = _scan(reader, data, name, names_only=True, longest=target)
    starts, seen = [(0, 1, Part((), document))], 0
    for item in scan:
        seen += item.count if isinstance(item, Run) else len(item)
        if scan.between and scan.at - starts[-1][0] >= target:
            starts.append((scan.at, seen + 1, Part(tuple(scan.collector.tags), document)))
    ends = [*(start for start, _, _ in starts[1:]), len(data)]
    parts = zip(starts, ends, strict=True)
    return [Range(start, end, row, orjson.dumps(part._asdict())) for (start, row, part), end in parts]


def _scan(reader: _Reader, data: Buffer, name: str, **how: Any) -> Scan:
    path = reader.options.record_path
    own = (path or "").rstrip("/").rpartition("/")[2]
    return Scan(data, name, _collector(reader, path, _arrays(reader.plan), own if own in reader.plan.names else None), **how)


def _items(reader: _Reader, data: Buffer, name: str, **how: Any) -> Iterator[list[Record] | Run]:
    return iter(_scan(reader, data, name, **how))


def _collector(reader: _Reader, path: str | None, arrays: Iterable[str], own: str | None = None) -> Collector:
    options = reader.options
    return Collector(path, options.attribute_prefix, arrays, strip=options.namespace_handling == "strip", own=own)


def _arrays(plan: ReadPlan) -> list[str]:
    """The fields whose elements may repeat."""
    return [*(".".join(array.steps) for array in plan.array_paths), *(column.name for column in plan.declared if base_type(column.type) == "array")]


def _plainly(item: list[Record] | Run, plan: ReadPlan, data: Buffer) -> Iterator[Fields | Reject]:
    """Every record as text by field name, with arrays exploded, joined or as JSON. A record that repeats other elements is a reject."""
    if isinstance(item, Run):
        yield from item.records()
        return
    for fields, found, repeated in item:
        twice = _read_of(repeated.names, plan) if repeated else None
        if repeated and twice is not None:
            detail = f"element '{twice}' comes more than once: name it in array_paths, or declare a column '{twice}' of type array"
            yield Reject("malformed_record", detail, raw=data[repeated.start : repeated.end].decode(errors="replace"))
        elif message := limits.explodes_too_much(len(found.get(".".join(array.steps), ())) for array in plan.array_paths if array.mode == "explode"):
            yield Reject("malformed_record", message, fields)
        else:
            yield from _expanded(fields, found, plan) if found else (fields,)


def _read_of(names: Iterable[str], plan: ReadPlan) -> str | None:
    """The first of some fields that is read, as a whole or in part; None where none is."""
    kept = (name for name in sorted(names) if plan.on_unmapped != "drop" or any(f"{column}.".startswith(f"{name}.") for column in plan.names))
    return next(kept, None)


def sections_of(reader: _Reader, data: Buffer, name: str) -> dict[str, dict[str, Any]]:
    """The declared sections of the document. The last one of several elements at a path counts."""
    if not reader.plan.sections:
        return {}
    found: dict[str, dict[str, Any]] = {}
    paths = {section.name: _collector(reader, "/" + section.where.strip("/"), ()) for section in reader.plan.sections}
    sections = {section.name: section for section in reader.plan.sections}

    def take(section: str, fields: Fields) -> None:
        found[section] = typed_section(sections[section], fields, name)

    for _ in Scan(data, name, SectionCollector(paths, take)):
        pass
    return {section: found[section] for section in sections if section in found}


def _expanded(fields: Fields, found: dict[str, list[Any]], plan: ReadPlan) -> list[Fields]:
    left = dict(found)
    made = [fields]
    for array in plan.array_paths:
        name = ".".join(array.steps)
        elements = left.pop(name, None)
        if elements is None:
            continue
        if array.mode == "join":
            text = array.separator.join(_plain(element) for element in elements)
            made = [{**each, name: text} for each in made]
        else:
            made = [{**each, **(element if isinstance(element, dict) else {name: element})} for each in made for element in elements]
    lists = {name: _array_text(elements) for name, elements in left.items()}
    return [{**each, **lists} for each in made] if lists else made


def _array_text(elements: Sequence[Fields | str | None]) -> str | None:
    """An array as JSON text. A single element that is such text, or empty, is the array itself."""
    (first, *others) = elements
    alone = not others and (first is None or (isinstance(first, str) and first.startswith("[")))
    return first if alone else orjson.dumps(elements).decode()  # type: ignore[return-value]  # then it is no map


def _plain(element: Fields | str | None) -> str:
    return orjson.dumps(element).decode() if isinstance(element, dict) else element or ""
