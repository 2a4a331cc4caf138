"""A document read once, in blocks, by expat: the elements at a path as flat maps from field names to text.

expat calls back for each tag and text; the state is the path of open elements and, inside a record, what has been found of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias
from xml.parsers import expat

from storage.formats.contract import MAX_RECORD_BYTES, ArrayPath, Buffer, InputError

Fields: TypeAlias = dict[str, str | None]
MAX_DEPTH = 1000
_BLOCK = 1 << 18
_TAG = re.compile(rb"""<(?:[^"'>]|"[^"]*"|'[^']*')*""")
_REFERENCE = re.compile(rb"&([^#;&\s][^;&\s]*);")


class Collector:
    """Collects the elements at `path` (`//a`, `/a/b` or `a/b`; none: the root) while expat reads."""

    def __init__(self, path: str | None, prefix: str, arrays: Sequence[ArrayPath], *, strip: bool) -> None:
        self.anywhere = bool(path) and str(path).startswith("//")
        self.steps = [step for step in (path or "").split("/") if step]
        self.prefix, self.strip = prefix, strip
        self.arrays = {".".join(array.steps): array for array in arrays}
        self.stack: list[str] = []
        self.records: list[tuple[Fields, dict[str, list[Fields | str | None]]]] = []
        self.base = 0
        self.ignored = 0
        self.seen: set[str] = set()
        self.fields: Fields = {}
        self.found: dict[str, list[Fields | str | None]] = {}
        self.outer: list[tuple[Fields, set[str], list[str], str]] = []
        self.names: list[str] = []
        self.tags: dict[str, str] = {}
        self.text: list[str] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element opens."""
        name = self.tags.get(tag) or self._remember(tag)
        self.stack.append(name)
        if len(self.stack) > MAX_DEPTH:
            raise TooDeepError
        if self.ignored:
            self.ignored += 1
        elif self.base:
            self._child(name, attributes)
        elif self._matches():
            self.base, self.fields, self.found, self.seen = len(self.stack), {}, {}, set()
            self.names = [""]
            if attributes:
                self._attributes("", attributes)

    def end(self, _tag: str) -> None:
        """An element closes."""
        self.stack.pop()
        if self.ignored:
            self.ignored -= 1
            self.text.clear()
        elif self.base:
            self._close(self.names.pop())

    def characters(self, text: str) -> None:
        """Text inside an element of a record."""
        if self.base and not self.ignored:
            self.text.append(text)

    def _remember(self, tag: str) -> str:
        self.tags[tag] = name = tag.rpartition(":")[2] if self.strip else tag
        return name

    def _matches(self) -> bool:
        if not self.steps:
            return len(self.stack) == 1
        return (self.stack[-len(self.steps) :] if self.anywhere else self.stack) == self.steps

    def _child(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.text.clear()
        parent = self.names[-1]
        name = f"{parent}.{tag}" if parent else tag
        if parent and self.fields.get(parent, "") is None:
            del self.fields[parent]  # it has children, so it is no field
        if name in self.arrays and not self.outer:
            self.outer.append((self.fields, self.seen, self.names, name))
            self.fields, self.seen, self.names = {}, set(), [""]
            self._attributes("", attributes)
        elif name in self.seen:
            self.ignored = 1
        else:
            self.seen.add(name)
            self.names.append(name)
            self.fields.setdefault(name, None)
            if attributes:
                self._attributes(f"{name}.", attributes)

    def _attributes(self, before: str, attributes: Mapping[str, str]) -> None:
        for name, value in attributes.items():
            if name != "xmlns" and not name.startswith("xmlns:"):
                self.fields.setdefault(f"{before}{self.prefix}{self.tags.get(name) or self._remember(name)}", value)

    def _close(self, name: str) -> None:
        """A field, an element of an array, or the record is complete."""
        if name:
            if self.text and name in self.fields:
                self.fields[name] = "".join(self.text).strip() or None
        elif self.outer:
            element = self.fields
            self.fields, self.seen, self.names, array = self.outer.pop()
            scalar = "".join(self.text).strip() or None
            self.found.setdefault(array, []).append(element or scalar)
        else:
            self.records.append((self.fields, self.found))
            self.base = 0
        self.text.clear()


class TooDeepError(Exception):
    """More open elements than MAX_DEPTH."""


class EntityError(Exception):
    """A reference to an entity that is not one of the five of XML itself."""


def scan(data: Buffer, name: str, collector: Collector) -> Iterator[tuple[Fields, dict[str, list[Fields | str | None]]]]:
    """Each record with the elements of its arrays. Raises InputError."""
    parser = expat.ParserCreate()
    parser.StartElementHandler = collector.start
    _guard_attributes(parser, collector, wide=b"\0" in data[:4])
    parser.EndElementHandler = collector.end
    parser.CharacterDataHandler = collector.characters
    parser.SkippedEntityHandler = _refuse_entity
    parser.DefaultHandler = _refuse_reference
    parser.buffer_text = True
    began = 0
    try:
        for at in range(0, max(len(data), 1), _BLOCK):
            parser.Parse(data[at : at + _BLOCK], at + _BLOCK >= len(data))
            began = began if collector.base and not collector.records else at
            if at - began > MAX_RECORD_BYTES:
                raise InputError(name, f"a record is longer than {MAX_RECORD_BYTES >> 20} MB", line=parser.CurrentLineNumber)
            yield from collector.records
            collector.records.clear()
    except expat.ExpatError as wrong:
        raise InputError(
            name, f"not well-formed XML: {expat.ErrorString(wrong.code)}, column {wrong.offset + 1}", line=wrong.lineno
        ) from None
    except TooDeepError:
        raise InputError(name, f"nested deeper than {MAX_DEPTH} levels", line=parser.CurrentLineNumber) from None
    except EntityError as wrong:
        raise InputError(name, f"the entity '{wrong}' is not expanded", line=parser.CurrentLineNumber) from None


def _refuse_entity(entity: str, _is_parameter: bool) -> None:
    raise EntityError(entity)


def _refuse_reference(text: str) -> None:
    """Expat hands a reference to a declared entity to the default handler, which keeps it from being expanded."""
    if text.startswith("&") and text.endswith(";"):
        raise EntityError(text[1:-1])


def _guard_attributes(parser: expat.XMLParserType, collector: Collector, *, wide: bool) -> None:
    """Expat expands declared entities inside attribute values by itself: once one is declared, each tag's own text is looked at.

    Where that text cannot be searched (UTF-16, default values of a document type) the declaration is refused.
    """
    declared: set[str] = set()

    def entity(name: str, is_parameter: bool, value: str | None, *_: object) -> None:
        if value is None or is_parameter:
            return
        if wide:
            raise EntityError(name)
        declared.add(name)
        parser.StartElementHandler = start

    def attributes(_element: str, _name: str, _kind: str, default: str | None, _required: int) -> None:
        if default is not None and declared:
            raise EntityError(next(iter(declared)))

    def start(tag: str, given: Mapping[str, str]) -> None:
        used = declared.intersection(_references(parser.GetInputContext())) if given else None
        if used:
            raise EntityError(min(used))
        collector.start(tag, given)

    parser.EntityDeclHandler = entity
    parser.AttlistDeclHandler = attributes


def _references(text: bytes | None) -> list[str]:
    """Names of the entities that the tag at the beginning of some text refers to."""
    tag = _TAG.match(text or b"")
    return [name.decode(errors="replace") for name in _REFERENCE.findall(tag[0])] if tag else []
