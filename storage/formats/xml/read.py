"""XML elements to typed batches, and the sections of a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from storage.formats.batches import document_text, typed_batches
from storage.formats.contract import ArrayPath, Buffer, Column, InputError, Range
from storage.formats.envelope import typed_section
from storage.formats.xml.runs import Run
from storage.formats.xml.scan import Collector, Fields, Record, Scan
from storage.formats.xml.section_scan import SectionCollector

if TYPE_CHECKING:
    from storage.formats.xml import XmlReader

_BLOCK = 20_000
_SHORT = 500
"""Records of a run that are taken like single ones."""


class Part(NamedTuple):
    """What a range of a document tells of what stands before it: the tags of the elements that are open, and the `_doc` of its records."""

    opened: Sequence[str]
    document: str = ""

    @classmethod
    def of(cls, part: Range | None) -> Part | None:
        """The part that a range is; None for a whole document."""
        return cls(**orjson.loads(part.head)) if part is not None and part.head else None


def read_records(reader: XmlReader, data: Buffer, name: str, part: Range | None) -> Iterator[pa.RecordBatch]:
    """The records of a document or of a range of one."""
    columns, row = reader.plan.columns, part.first_row if part else 1
    for text, count in _blocks(reader, data, name, Part.of(part)):
        yield from typed_batches(columns, text, pa.array(np.arange(row, row + count)), reader.plan.date_formats)
        row += count


def _blocks(reader: XmlReader, data: Buffer, name: str, part: Part | None) -> Iterator[tuple[dict[str, pa.Array], int]]:
    """The text of the columns, block by block, and how many records a block has."""
    names = [column.name for column in reader.plan.columns]
    known = frozenset(names)
    single: list[Fields] = []
    for item in _items(reader, data, name, wanted=known.__contains__, opened=part.opened if part else None):
        if isinstance(item, Run) and item.count >= _SHORT:
            yield from _of_records(single, names)
            single = []
            yield {column: _clean(text) for column, text in item.columns().items()}, item.count
            continue
        single += _plainly(item, reader.plan.array_paths)
        if len(single) >= _BLOCK:
            yield from _of_records(single, names)
            single = []
    yield from _of_records(single, names)


def _of_records(records: Sequence[Fields], names: Sequence[str]) -> Iterator[tuple[dict[str, pa.Array], int]]:
    for at in range(0, len(records), _BLOCK):
        block = records[at : at + _BLOCK]
        yield {name: pa.array([record.get(name) for record in block], pa.string()) for name in names}, len(block)


def _clean(text: Sequence[str]) -> pa.Array:
    """The text of fields, white space around it gone, null where nothing is left."""
    stripped = pc.utf8_trim_whitespace(pa.array(text, pa.string()))
    return pc.replace_with_mask(stripped, pc.equal(stripped, ""), pa.scalar(None, pa.string()))


def record_lines(reader: XmlReader, data: Buffer, name: str) -> Iterator[bytes]:
    """The records of a document as lines of JSON."""
    for item in _items(reader, data, name):
        yield from map(orjson.dumps, _plainly(item, reader.plan.array_paths))


def undeclared_fields(reader: XmlReader, data: Buffer, name: str) -> tuple[Column, ...]:
    """Fields that the schema does not name, in the order in which the document shows them. Raises InputError under reject."""
    known = set(reader.plan.names)
    found: dict[str, None] = {}
    number = 0
    for item in _items(reader, data, name, names_only=True):
        # Each field of a run was met before, in the record that it is like.
        if isinstance(item, Run):
            number += item.count
            continue
        for record in _plainly(item, reader.plan.array_paths):
            number += 1
            if not record.keys() <= known:
                extra = [field for field in record if field not in known]
                if reader.plan.on_unmapped == "reject":
                    text = f"undeclared field '{extra[0]}' in record {number}: the schema does not name it and on_unmapped is reject"
                    raise InputError(name, text)
                found.update(dict.fromkeys(extra))
                known |= found.keys()
    return tuple(Column(field) for field in found)


def _counts_records(reader: XmlReader) -> bool:
    """Whether each element of the record path is one record."""
    return reader.options.record_path is not None and all(array.mode != "explode" for array in reader.plan.array_paths)


def ranges_of(reader: XmlReader, data: Buffer, name: str, target: int) -> list[Range]:
    """Ranges of whole records; one range for a small document, where the root is the record, and where exploded arrays make records of unknown number."""
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


def _scan(reader: XmlReader, data: Buffer, name: str, **how: Any) -> Scan:
    return Scan(data, name, _collector(reader, reader.options.record_path, reader.plan.array_paths), **how)


def _items(reader: XmlReader, data: Buffer, name: str, **how: Any) -> Iterator[list[Record] | Run]:
    return iter(_scan(reader, data, name, **how))


def _collector(reader: XmlReader, path: str | None, arrays: Sequence[ArrayPath]) -> Collector:
    options = reader.options
    return Collector(path, options.attribute_prefix, arrays, strip=options.namespace_handling == "strip")


def _plainly(item: list[Record] | Run, arrays: Sequence[ArrayPath]) -> Iterator[Fields]:
    """Every record as text by field name, arrays exploded or joined."""
    if isinstance(item, Run):
        yield from item.records()
        return
    for fields, found in item:
        yield from _expanded(fields, found, arrays) if found else (fields,)


def sections_of(reader: XmlReader, data: Buffer, name: str) -> dict[str, dict[str, Any]]:
    """The declared sections that the document has, all found in one pass; of several elements at a path the last counts."""
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


def _expanded(fields: Fields, found: dict[str, list[Any]], arrays: Sequence[ArrayPath]) -> list[Fields]:
    made = [fields]
    for array in arrays:
        name = ".".join(array.steps)
        elements = found.get(name)
        if elements is None:
            continue
        if array.mode == "join":
            text = array.separator.join(_plain(element) for element in elements)
            made = [{**each, name: text} for each in made]
        else:
            made = [{**each, **(element if isinstance(element, dict) else {name: element})} for each in made for element in elements]
    return made


def _plain(element: Fields | str | None) -> str:
    return orjson.dumps(element).decode() if isinstance(element, dict) else element or ""
