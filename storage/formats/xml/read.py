"""XML elements to typed batches, and the sections of a document."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa

from storage.formats.batches import typed_batches
from storage.formats.contract import ArrayPath, Buffer
from storage.formats.envelope import typed_section
from storage.formats.xml.scan import Collector, Fields, scan

if TYPE_CHECKING:
    from storage.formats.xml import XmlReader

_BLOCK = 20_000


def read_records(reader: XmlReader, data: Buffer, name: str) -> Iterator[pa.RecordBatch]:
    """The records of a file, numbered from 1."""
    columns, row = reader.plan.columns, 1
    records = elements_of(reader, data, name)
    while block := list(islice(records, _BLOCK)):
        text = {column.name: pa.array([record.get(column.name) for record in block], pa.string()) for column in columns}
        yield from typed_batches(columns, text, pa.array(np.arange(row, row + len(block))), reader.plan.date_formats)
        row += len(block)


def record_lines(reader: XmlReader, data: Buffer, name: str) -> Iterator[bytes]:
    """The records of a document as lines of JSON."""
    return (orjson.dumps(fields) for fields in elements_of(reader, data, name))


def elements_of(reader: XmlReader, data: Buffer, name: str, *, names_only: bool = False) -> Iterator[Fields]:
    """Every record as text by field name, arrays exploded or joined; `names_only`: all text is null."""
    options, arrays = reader.options, reader.plan.array_paths
    collector = Collector(options.record_path, options.attribute_prefix, arrays, strip=options.namespace_handling == "strip")
    for fields, found in scan(data, name, collector, names_only=names_only):
        if found:
            yield from _expanded(fields, found, arrays)
        else:
            yield fields


def sections_of(reader: XmlReader, data: Buffer, name: str) -> dict[str, dict[str, Any]]:
    """The declared sections that the document has; of several elements at a path the last counts."""
    options, found = reader.options, {}
    for section in reader.plan.sections:
        path = "/" + section.where.strip("/")
        collector = Collector(path, options.attribute_prefix, (), strip=options.namespace_handling == "strip")
        for fields, _ in scan(data, name, collector):
            found[section.name] = typed_section(section, fields, name)
    return found


def _expanded(fields: Fields, found: dict[str, list[Any]], arrays: tuple[ArrayPath, ...]) -> list[Fields]:
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
