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
Found: TypeAlias = dict[str, list[Fields | str | None]]
"""The elements of arrays by their names."""
MAX_DEPTH = 1000
_BLOCK = 1 << 18
_TAG = re.compile(rb"""<(?:[^"'>]|"[^"]*"|'[^']*')*""")
_REFERENCE = re.compile(rb"&([^#;&\s][^;&\s]*);")


class _Name:
    """A field's name, and the names of its children by their tags; `stamp` says in which record it was met last."""

    __slots__ = ("array", "children", "inside", "name", "stamp")

    def __init__(self, name: str, *, array: bool = False, inside: bool = False) -> None:
        self.name, self.array, self.inside = name, array, inside
        self.children: dict[str, _Name] = {}
        self.stamp = 0

    @property
    def prefix(self) -> str:
        """What stands before the names of children and attributes."""
        return f"{self.name}." if self.name and not self.array else ""


class Collector:
    """Collects the elements at `path` (`//a`, `/a/b` or `a/b`; none: the root) while expat reads."""

    def __init__(self, path: str | None, prefix: str, arrays: Sequence[ArrayPath], *, strip: bool) -> None:
        self.anywhere = bool(path) and str(path).startswith("//")
        self.steps = [step for step in (path or "").split("/") if step]
        self.prefix, self.strip = prefix, strip
        self.arrays = frozenset(".".join(array.steps) for array in arrays)
        self.path: list[str] = []
        self.records: list[tuple[Fields, Found]] = []
        self.root = _Name("")
        self.known: dict[tuple[bool, str], _Name] = {}
        self.attributes: dict[str, str] = {}
        self.node: _Name | None = None
        self.open: list[_Name | None] = []
        self.outer: tuple[Fields, int] = ({}, 0)
        self.depth = self.ignored = self.stamp = self.last = 0
        self.fields: Fields = {}
        self.found: Found = {}
        self.leaf = False
        self.text: list[str] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element opens."""
        self.depth = depth = self.depth + 1
        if depth > MAX_DEPTH:
            raise TooDeepError
        node = self.node
        if node is None:
            self._outside(tag, attributes)
            return
        if self.ignored:
            self.ignored += 1
            return
        child = node.children.get(tag) or self._remember(node, tag)
        if child.stamp == self.stamp and not child.array:
            self.ignored = 1
            return
        self.open.append(node)
        self.node, self.leaf = child, True
        if self.text:
            self.text = []
        if child.array:
            self._element(attributes)
            return
        child.stamp = self.stamp
        if attributes:
            self.fields.setdefault(child.name, None)
            self._attributes(child, attributes)

    def end(self, _tag: str) -> None:
        """An element closes."""
        self.depth -= 1
        node = self.node
        if node is None:
            self.path.pop()
            return
        if self.ignored:
            self.ignored -= 1
        elif self.leaf and not node.array and node.name:
            text = self.text
            self.fields[node.name] = ((text[0] if len(text) == 1 else "".join(text)).strip() or None) if text else None
            self.node = self.open.pop()
        else:
            self._ends(node)
        self.leaf = False
        if self.text:
            self.text = []

    def _ends(self, node: _Name) -> None:
        """An element of an array, one with children, or the record is complete."""
        if node.array:
            self._element_ends(node)
            return
        self.node = self.open.pop()
        if self.node is None:
            self.path.pop()
            self.records.append((self.fields, self.found))
        elif self.fields.get(node.name, "") is None:
            del self.fields[node.name]  # it has children, so it is no field

    def characters(self, text: str) -> None:
        """Text inside an element of a record."""
        if self.node is not None and not self.ignored:
            self.text.append(text)

    def _outside(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.path.append(self._plain(tag))
        if self._matches():
            self._begin()
            self.node, self.fields, self.found = self.root, {}, {}
            self.open = [None]
            self._attributes(self.root, attributes)

    def _begin(self) -> None:
        self.last += 1
        self.stamp = self.last

    def _matches(self) -> bool:
        if not self.steps:
            return len(self.path) == 1
        return (self.path[-len(self.steps) :] if self.anywhere else self.path) == self.steps

    def _plain(self, tag: str) -> str:
        return tag.rpartition(":")[2] if self.strip else tag

    def _remember(self, node: _Name, tag: str) -> _Name:
        name = node.prefix + self._plain(tag)
        inside = node.inside or node.array
        node.children[tag] = child = self.known.setdefault((inside, name), _Name(name, array=name in self.arrays and not inside, inside=inside))
        return child

    def _attributes(self, node: _Name, attributes: Mapping[str, str]) -> None:
        for name, value in attributes.items():
            if name != "xmlns" and not name.startswith("xmlns:"):
                self.fields.setdefault(f"{node.prefix}{self.prefix}{self._plain(name)}", value)

    def _element(self, attributes: Mapping[str, str]) -> None:
        """An element of an array opens: it has fields of its own."""
        self.outer = (self.fields, self.stamp)
        self._begin()
        self.fields = {}
        assert self.node is not None  # the caller set it
        self._attributes(self.node, attributes)

    def _element_ends(self, node: _Name) -> None:
        element: Fields | str | None = self.fields or "".join(self.text).strip() or None
        self.fields, self.stamp = self.outer
        self.found.setdefault(node.name, []).append(element)
        self.node = self.open.pop()


class TooDeepError(Exception):
    """More open elements than MAX_DEPTH."""


class EntityError(Exception):
    """A reference to an entity that is not one of the five of XML itself."""


def scan(data: Buffer, name: str, collector: Collector, *, names_only: bool = False) -> Iterator[tuple[Fields, Found]]:
    """Each record with the elements of its arrays; `names_only`: all text is null. Raises InputError."""
    parser = expat.ParserCreate()
    parser.StartElementHandler = collector.start
    _guard_attributes(parser, collector, wide=b"\0" in data[:4])
    parser.EndElementHandler = collector.end
    # Without a handler expat would hand references to characters to the default one.
    parser.CharacterDataHandler = len if names_only else collector.characters
    parser.SkippedEntityHandler = _refuse_entity
    parser.DefaultHandler = _refuse_reference
    parser.buffer_text = True
    began = 0
    try:
        for at in range(0, max(len(data), 1), _BLOCK):
            parser.Parse(data[at : at + _BLOCK], at + _BLOCK >= len(data))
            began = began if collector.node is not None and not collector.records else at
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
