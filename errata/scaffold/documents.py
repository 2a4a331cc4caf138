"""Where the records of JSON and XML documents are, found in their first bytes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from xml.parsers import expat

from errata.core.failures import StorageFailed

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:]', re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_DEEPEST = 12


@dataclass(frozen=True, slots=True)
class Found:
    """Where records are.

    Args:
        record_path: The option of the source; None for the top of the document.
        explode, join: Arrays in the records that are made records, or texts.
        arrays: Other elements that repeat, which are columns of type array.
        inside: The first steps of the names that fields of an exploded array have.
        own: The column with the text of records that are elements of text alone.
        doubts: What was unsure.
    """

    record_path: str | None = None
    explode: Sequence[str] = ()
    join: Sequence[str] = ()
    arrays: Sequence[str] = ()
    own: str | None = None
    doubts: Sequence[str] = ()
    inside: Sequence[str] = ()

    @property
    def kind(self) -> str:
        """The name of the records: the last step of their path."""
        return re.split(r"[./]", self.record_path or "")[-1]


MOST_KINDS = 6
"""How many kinds of records of a file become sources."""


def json_records(text: str, name: str) -> list[Found]:
    """Return where the records of a JSON document are, one place for each kind.

    Args:
        text: The beginning of the document.
        name: What messages call the file.

    Raises:
        StorageFailed: The text is neither an object nor an array.
    """
    begun = text.lstrip("\ufeff \t\r\n")
    if begun[:1] == "[":
        return [Found()]
    if begun[:1] != "{":
        raise StorageFailed(f"{name}: not JSON: it begins with {begun[:20]!r}", help="JSON begins with an object or an array; name a file of another format with its usual ending")
    outline, ended = _arrays(begun)
    counts = outline.counts
    if ended or not counts:
        return [Found()]
    paths = sorted(counts, key=lambda path: -counts[path])[:MOST_KINDS]
    doubts = [*_of_several([".".join(one) for one in counts]), *_outside(_members_outside(outline), "json_pointer")]
    return [Found(".".join(path), doubts=() if place else doubts) for place, path in enumerate(paths)]


def _members_outside(outline: _Keys) -> Iterator[str]:
    """The members of objects that are outside of the records."""
    for path in outline.seen:
        if not any(path == other[: len(path)] for other in (*outline.counts, *(one for one in outline.seen if one != path))):
            yield ".".join(path)


def _outside(names: Iterable[str], key: str) -> Iterator[str]:
    """The doubt about fields outside of the records, where there are some; `key` names them in an envelope."""
    found = list(names)
    if found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        yield f"fields around the records, such as {', '.join(found[:3])}{more}, are not read; an envelope with {'an' if key.startswith('x') else 'a'} {key} reads them"


def _of_several(paths: Sequence[str]) -> list[str]:
    """The doubt about several kinds of records."""
    if len(paths) < 2:
        return []
    left = f"; {', '.join(paths[MOST_KINDS:])} are left out" if len(paths) > MOST_KINDS else ""
    return [f"the file has {len(paths)} kinds of records ({', '.join(paths[:MOST_KINDS])}): each is a source of its own{left}"]


def _arrays(text: str) -> tuple[_Keys, bool]:
    """The arrays of the first object, and whether the object ended and another one follows."""
    outline = _Keys()
    for found in _TOKEN.finditer(text):
        outline.take(found.group())
        if not outline.opened:
            return outline, text[found.end() :].lstrip()[:1] == "{"
    return outline, False


@dataclass(slots=True)
class _Keys:
    """The keys that lead to arrays, as the signs of a JSON text come.

    Args:
        counts: How many objects each array has. Arrays in arrays are passed over.
        opened: The open brackets and braces.
        keys: The keys that lead to the present place, up to the first array.
        last: The last text.
        seen: The keys of all fields outside of arrays.
    """

    counts: Counter[tuple[str, ...]] = field(default_factory=Counter)
    opened: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    last: str = ""
    seen: dict[tuple[str, ...], None] = field(default_factory=dict)

    def take(self, sign: str) -> None:
        """Take the next text, bracket, brace or colon."""
        if sign in "{[":
            if sign == "{" and self.opened[-1:] == ["["] and "[" not in self.opened[:-1]:
                self.counts[tuple(self.keys)] += 1
            self.opened.append(sign)
        elif sign in "}]":
            self._close()
        elif sign != ":":
            self.last = sign[1:-1]
        elif "[" not in self.opened:
            self.keys[len(self.opened) - 1 :] = [self.last]
            self.seen[tuple(self.keys)] = None

    def _close(self) -> None:
        self.opened[-1:] = []
        if self.opened[-1:] == ["{"] and "[" not in self.opened and self.keys:
            self.keys.pop()


@dataclass(slots=True)
class _Element:
    """One kind of element of an XML document, by its path.

    Args:
        count: How many there are.
        most: The most of them in one parent.
        inside: How many the present parent has.
        attributes: The names of their attributes.
        text: Whether one has a text.
        children: The kinds of elements inside.
    """

    path: tuple[str, ...]
    count: int = 0
    most: int = 0
    inside: int = 0
    attributes: dict[str, None] = field(default_factory=dict)
    text: bool = False
    children: dict[str, _Element] = field(default_factory=dict)

    @property
    def composed(self) -> bool:
        """Whether it has attributes or elements inside."""
        return bool(self.attributes or self.children)

    def below(self) -> Iterator[_Element]:
        """The kinds of elements inside, at any depth."""
        for child in self.children.values():
            yield child
            yield from child.below()


class _Outline:
    """The kinds of elements of a document as a parser meets them."""

    def __init__(self) -> None:
        self.top = _Element(())
        self._open = [self.top]

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Take the beginning of an element."""
        parent, plain = self._open[-1], name.rpartition(":")[2]
        if len(self._open) > _DEEPEST:
            self._open.append(parent)
            return
        found = parent.children.setdefault(plain, _Element((*parent.path, plain)))
        found.count += 1
        found.inside += 1
        found.most = max(found.most, found.inside)
        found.attributes |= {one: None for one in attributes if not one.startswith("xmlns")}
        for child in found.children.values():
            child.inside = 0
        self._open.append(found)

    def end(self, name: str) -> None:
        """Take the end of an element."""
        self._open.pop()

    def characters(self, text: str) -> None:
        """Take a text between tags."""
        if not text.isspace():
            self._open[-1].text = True


def xml_records(data: bytes, name: str, *, whole: bool) -> list[Found]:
    """Return where the records of an XML document are, one place for each kind.

    Args:
        data: The bytes, or the first of them.
        name: What messages call the file.
        whole: Whether these are all bytes.

    Raises:
        StorageFailed: The bytes are no well-formed XML.
    """
    outline = _Outline()
    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = outline.start, outline.end
    parser.CharacterDataHandler = outline.characters
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(data, whole)
    except (expat.ExpatError, ValueError) as wrong:
        raise StorageFailed(f"{name}: not well-formed XML: {wrong}", help="have the file written again by its program") from None
    return _chosen(outline)


def _refuse(*_words: object) -> None:
    raise ValueError("it declares entities")


def _chosen(outline: _Outline) -> list[Found]:
    root = next(iter(outline.top.children.values()), None)
    if root is None:
        return [Found()]
    repeated = [one for one in root.below() if one.most > 1]
    composed = [one for one in repeated if one.composed]
    records = [one for one in composed if not any(_is_below(one, other) for other in composed)]
    records = records or [one for one in root.below() if one.composed and len(one.path) == 2][:1] or repeated[:1]
    doubts = [*_of_several([_steps(one) for one in records]), *_outside(_fields_outside(root, records), "xml_path")] if records else []
    return [_with_arrays(one, [] if place else doubts) for place, one in enumerate(records[:MOST_KINDS])] or [Found()]


def _fields_outside(element: _Element, records: Sequence[_Element]) -> Iterator[str]:
    """The texts and attributes of elements that are no records and not inside of one, as paths."""
    if any(element is one for one in records):
        return
    yield from (f"{_steps(element)}/@{name}" for name in element.attributes)
    if element.text:
        yield _steps(element)
    for child in element.children.values():
        yield from _fields_outside(child, records)


def _is_below(element: _Element, other: _Element) -> bool:
    return len(element.path) > len(other.path) and element.path[: len(other.path)] == other.path


def _steps(element: _Element) -> str:
    return "/" + "/".join(element.path)


def _with_arrays(record: _Element, given: Sequence[str]) -> Found:
    """The arrays in a record: one of elements with parts is exploded, arrays of plain texts are joined."""
    inside = [one for one in record.below() if one.most > 1]
    plain = [".".join(one.path[len(record.path) :]) for one in inside if not one.composed]
    composed = [one for one in inside if one.composed]
    above = [one for one in composed if not any(_is_below(one, other) for other in composed)]
    best = max(above, key=lambda one: one.count, default=None)
    explode = [".".join(best.path[len(record.path) :])] if best is not None else []
    join = [path for path in plain if not any(path.startswith(f"{one}.") for one in explode)]
    arrays = [".".join(one.path[len(record.path) :]) for one in above if one is not best]
    doubts = list(given)
    if best is not None:
        doubts.append(f"{_steps(record)} has several elements '{best.path[-1]}': each of these is a record (array_paths)")
    return Found(_steps(record), explode, join, arrays, None if record.children else record.path[-1], doubts, [] if best is None else [*best.attributes, *best.children, best.path[-1]])
