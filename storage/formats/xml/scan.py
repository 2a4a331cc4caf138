"""A document read once, in blocks, by expat: the elements at a path as flat maps from field names to text.

expat calls back for each tag and text; the state is the path of open elements and, inside a record, what has been found of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias
from xml.parsers import expat

from storage.formats import limits
from storage.formats.base import Buffer, InputError
from storage.formats.encodings import expat_reads, text_encoding
from storage.formats.xml.fast_records import Run, Runs

Fields: TypeAlias = dict[str, str | None]
Found: TypeAlias = dict[str, list[Fields | str | None]]
"""The elements of arrays by their names."""
Record: TypeAlias = "tuple[Fields, Found, Repeated | None]"
_BLOCK, _FIRST = 1 << 18, 1 << 12
_TAG = re.compile(rb"""\0?<(?:[^"'>]|"[^"]*+"|'[^']*+')*+""")
_BAD_TOKEN = expat.errors.codes[expat.errors.XML_ERROR_INVALID_TOKEN]
_ENCODING = "; text that is not UTF-8 needs an XML declaration that names its encoding"
_DECLARED = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml\s[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_REFERENCE = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos);)([^#;&\s][^;&\s]*);")


class _Name:
    """A field's name, and the names of its children by their tags; `stamp` says in which record it was met last."""

    __slots__ = ("array", "attributes", "children", "inside", "name", "stamp")

    def __init__(self, name: str, *, array: bool = False, inside: bool = False) -> None:
        self.name, self.array, self.inside = name, array, inside
        self.children: dict[str, _Name] = {}
        self.attributes: dict[str, str] = {}
        """The fields of its attributes; an empty name is that of a declaration of a namespace."""
        self.stamp = 0

    @property
    def prefix(self) -> str:
        """What stands before the names of children and attributes."""
        return f"{self.name}." if self.name and not self.array else ""


class Repeated(NamedTuple):
    """The fields of a record whose elements came more than once and are no arrays, and the bytes at which the record stands."""

    names: frozenset[str]
    start: int
    end: int


class Done(NamedTuple):
    """Where expat says that a record began and ended: at the beginning of its end tag, or behind its only tag where that is an empty one."""

    begun: int
    ended: int
    childless: bool


class Collector:
    """Collects the elements at `path` (`//a`, `/a/b` or `a/b`; none: the root) while expat reads.

    `own`: the field that the text of a record without children is, where it is read at all.
    """

    def __init__(self, path: str | None, prefix: str, arrays: Iterable[str], *, strip: bool, own: str | None = None) -> None:
        self.anywhere = bool(path) and str(path).startswith("//")
        self.steps = [step for step in (path or "").split("/") if step]
        self.prefix, self.strip, self.own = prefix, strip, own
        self.arrays = frozenset(arrays)
        self.path: list[str] = []
        self.tags: list[str] = []
        self.records: list[Record] = []
        self.place: Callable[[], int] = lambda: -1
        self.bytes_of: Callable[[Done], tuple[int, int]] = lambda done: (done.begun, done.ended)
        """Where a record stands in the document."""
        self.begun = -1
        self.done: Done | None = None
        """The record that was completed last; None once somebody has looked."""
        self.root = _Name("")
        self.known: dict[tuple[bool, str], _Name] = {}
        self.names = self.letters = 0
        """How many fields have been met, and how long their names are together."""
        self.node: _Name | None = None
        self.open: list[_Name | None] = []
        self.outer: tuple[Fields, int] = ({}, 0)
        self.depth = self.ignored = self.stamp = self.last = 0
        self.fields: Fields = {}
        self.found: Found = {}
        self.repeated: set[str] = set()
        self.leaf = False
        self.text: list[str] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element opens."""
        self.depth = depth = self.depth + 1
        if depth > limits.DEPTH:
            raise BeyondError(limits.too_deep)
        node = self.node
        if node is None:
            self._outside(tag, attributes)
            return
        if self.ignored:
            self.ignored += 1
            return
        child = node.children.get(tag) or self._remember(node, tag)
        if child.stamp == self.stamp and not child.array:
            self.repeated.add(child.name)
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
            self._leave()
            return
        if self.ignored:
            self.ignored -= 1
        elif self.leaf and not node.array and node.name:
            self.fields[node.name] = _content(self.text) if self.text else None
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
            self._leave()
            if self.own is not None and self.leaf:
                self.fields[self.own] = _content(self.text)
            self.done = Done(self.begun, self.place(), self.leaf)
            self.records.append((self.fields, self.found, self._told_repeated(self.done) if self.repeated else None))
        elif self.fields.get(node.name, "") is None:
            del self.fields[node.name]  # it has children, so it is no field

    def _told_repeated(self, done: Done) -> Repeated:
        names, self.repeated = frozenset(self.repeated), set()
        return Repeated(names, *self.bytes_of(done))

    def characters(self, text: str) -> None:
        """Text inside an element of a record."""
        if self.node is not None and not self.ignored:
            self.text.append(text)

    def literal(self, text: str) -> None:
        """Text of a CDATA section."""
        self.characters(_Literal(text))

    def taken(self) -> list[Record]:
        """The records that are complete, which are handed out once."""
        records, self.records = self.records, []
        return records

    def _leave(self) -> None:
        self.path.pop()
        self.tags.pop()

    def _outside(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.path.append(self.plain(tag))
        self.tags.append(tag)
        if self._matches():
            self._begin()
            self.begun, self.leaf = self.place(), True
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

    def plain(self, tag: str) -> str:
        """A name as fields and paths have it."""
        return tag.rpartition(":")[2] if self.strip else tag

    def _remember(self, node: _Name, tag: str) -> _Name:
        name = node.prefix + self.plain(tag)
        inside = node.inside or node.array
        child = self.known.get((inside, name))
        if child is None:
            child = self.known[inside, self._noted(name)] = _Name(name, array=name in self.arrays and not inside, inside=inside)
        node.children[tag] = child
        return child

    def _noted(self, name: str) -> str:
        """The name of a field that was not met before. Raises BeyondError."""
        self.names, self.letters = self.names + 1, self.letters + len(name)
        if len(name) > limits.NAME_BYTES:
            raise BeyondError(partial(limits.name_too_long, name=name))
        if self.names > limits.NAMES or self.letters > limits.NAMES_BYTES:
            raise BeyondError(limits.too_many_names)
        return name

    def _attributes(self, node: _Name, attributes: Mapping[str, str]) -> None:
        if len(attributes) > limits.ATTRIBUTES:
            raise BeyondError(partial(limits.too_many_attributes, count=len(attributes)))
        fields, known = self.fields, node.attributes
        for name, value in attributes.items():
            field = known.get(name)
            if field is None:
                declares = name == "xmlns" or name.startswith("xmlns:")
                field = known[name] = "" if declares else self._noted(f"{node.prefix}{self.prefix}{self.plain(name)}")
            if field:
                fields.setdefault(field, value)

    def _element(self, attributes: Mapping[str, str]) -> None:
        """An element of an array opens: it has fields of its own."""
        self.outer = (self.fields, self.stamp)
        self._begin()
        self.fields = {}
        assert self.node is not None  # the caller set it
        self._attributes(self.node, attributes)

    def _element_ends(self, node: _Name) -> None:
        element: Fields | str | None = self.fields or _content(self.text)
        self.fields, self.stamp = self.outer
        self.found.setdefault(node.name, []).append(element)
        self.node = self.open.pop()


class _Literal(str):
    """Text whose white space belongs to it."""

    __slots__ = ()


def _content(pieces: Sequence[str]) -> str | None:
    """The text of an element, stripped of surrounding white space but for that of CDATA sections; None where it is empty."""
    literal = [at for at, piece in enumerate(pieces) if isinstance(piece, _Literal)]
    if not literal:
        return "".join(pieces).strip() or None
    first, last = literal[0], literal[-1] + 1
    return "".join(pieces[:first]).lstrip() + "".join(pieces[first:last]) + "".join(pieces[last:]).rstrip() or None


class BeyondError(Exception):
    """Something is beyond a limit. `told` makes the error from the file's name and the line."""

    def __init__(self, told: Callable[..., InputError]) -> None:
        super().__init__()
        self.told = told


class EncodingError(Exception):
    """An encoding that the XML declaration names and that is not read."""


class EntityError(Exception):
    """A reference to an entity that is not one of the five of XML itself."""


class Scan:
    """A document read once: blocks of records, or of their runs, in its order. Raises InputError.

    `names_only`: all text is null. `opened`: the text is a part of a document, in which the elements of these tags are open; those that are open at its end
    are closed. `longest`: bytes of a run. After each block `at` is the byte behind what was read, and `between` whether that is the place behind a record.
    """

    def __init__(
        self, data: Buffer, name: str, collector: Collector, *, names_only: bool = False, wanted: Callable[[str], bool] = lambda _: True,
        opened: Sequence[str] | None = None, longest: int | None = None,
    ) -> None:  # fmt: skip
        self.data, self.name, self.collector = data, name, collector
        self.at = self.skipped = self.lines = 0
        self.between = False
        alike = bool(collector.steps) and not collector.arrays and collector.own is None
        self._runs = Runs(data, collector.prefix, collector.plain, (lambda _: False) if names_only else wanted, longest) if alike else None
        self._parser = self._made(names_only=names_only)
        self._interned = 0
        self._is_part = opened is not None
        if opened:
            start = "".join(f"<{tag}>" for tag in opened).encode()
            self._parser.Parse(start, False)
            self.skipped = -len(start)

    def _made(self, *, names_only: bool) -> expat.XMLParserType:
        parser, collector = expat.ParserCreate(_written_encoding(self.data)), self.collector
        wide = b"\0" in self.data[:4]
        parser.StartElementHandler = collector.start
        parser.EntityDeclHandler = _refuse_entity_declaration
        parser.AttlistDeclHandler = _refuse_attribute_declaration
        parser.EndElementHandler = collector.end
        # Without a handler expat would hand references to characters to the default one.
        parser.CharacterDataHandler = len if names_only else collector.characters
        if not names_only:
            parser.StartCdataSectionHandler = lambda: setattr(parser, "CharacterDataHandler", collector.literal)
            parser.EndCdataSectionHandler = lambda: setattr(parser, "CharacterDataHandler", collector.characters)
        parser.SkippedEntityHandler = _refuse_entity
        parser.DefaultHandler = _refuse_reference
        parser.XmlDeclHandler = lambda _version, encoding, _standalone: self._declared(encoding)
        parser.StartDoctypeDeclHandler = lambda *_: self._typed()
        parser.buffer_text = True
        collector.place = lambda: parser.CurrentByteIndex
        collector.bytes_of = lambda done: (done.begun + self.skipped, self._end(done))
        if wide:
            self._without_runs()
        return parser

    def _declared(self, encoding: str | None) -> None:
        if encoding is None or text_encoding(encoding) == "utf-8":
            return
        if not expat_reads(encoding):
            raise EncodingError(encoding)
        self._without_runs()

    def _typed(self) -> None:
        """A document type begins. Of a reference in an attribute to what an external one may declare expat tells nothing: each tag's own text is looked at."""
        self._without_runs()
        self._parser.StartElementHandler = self._start

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if attributes:
            found = _TAG.match(self.data, self._parser.CurrentByteIndex + self.skipped)
            text = found[0].replace(b"\0", b"") if found else b""
            if used := _REFERENCE.search(text):
                raise EntityError(used[1][:40].decode(errors="replace"))
        self.collector.start(tag, attributes)

    def _without_runs(self) -> None:
        """The text is not what it looks like: expat reads all of it."""
        self._runs = None

    def __iter__(self) -> Iterator[list[Record] | Run]:
        try:
            yield from self._items()
            left_open = reversed(self.collector.tags) if self._is_part else ()
            self._parser.Parse("".join(f"</{tag}>" for tag in left_open).encode(), True)
        except expat.ExpatError as wrong:
            raise self._broken(wrong) from None
        except EncodingError as wrong:
            told = f"the XML declaration names the encoding '{str(wrong)[:80]}': XML is read in UTF-8, UTF-16 and encodings of one byte a character, such as windows-1252"
            raise InputError(self.name, told, line=1) from None
        except BeyondError as beyond:
            raise beyond.told(self.name, line=self._line()) from None
        except EntityError as wrong:
            raise InputError(self.name, f"the entity '{wrong}' is not expanded", line=self._line()) from None

    def _items(self) -> Iterator[list[Record] | Run]:
        began = 0
        while self.at < len(self.data):
            start = self.at
            self._next()
            began = began if self.collector.node is not None and not self.collector.records else start
            if self.at - began > limits.RECORD_BYTES:
                raise limits.record_too_long(self.name, line=self._line())
            if self.collector.records:
                yield self.collector.taken()
            yield from self._following()

    def _next(self) -> None:
        """Hand the next piece to expat: up to the end of what may be a record, else a block."""
        data, start, runs = self.data, self.at, self._runs
        unfinished = self._unfinished()
        growing = min(unfinished, limits.MARKUP_BYTES - unfinished)
        end = min(start + max(_FIRST if runs and not runs.closing else _BLOCK, growing), len(data))
        found = data.find(runs.closing, start + unfinished, end) if runs and runs.closing else -1
        self.at = found + len(runs.closing) if runs and found >= 0 else end
        self._parser.Parse(data[start : self.at], False)
        if len(self._parser.intern) != self._interned:
            self._check_names()
        self.between = False
        done, self.collector.done = self.collector.done, None
        if done is not None and self._runs is not None:
            end = self._end(done)
            self.between = end == self.at
            self._runs.learn(done.begun + self.skipped, end)

    def _unfinished(self) -> int:
        """Bytes of a tag or comment that has begun. Expat reads it again from its beginning with each piece, so pieces grow with it. Raises InputError."""
        begun = max(self._parser.CurrentByteIndex, 0)
        length = self.at - self.skipped - begun if self.at else 0
        if length > limits.MARKUP_BYTES:
            raise limits.markup_too_long(self.name, line=self._line())
        return length

    def _check_names(self) -> None:
        """Raise InputError for too many names, or a too long one: the parser keeps all names, also of elements that are not read."""
        known = self._parser.intern
        self._interned = len(known)
        if self._interned > limits.NAMES:
            raise limits.too_many_names(self.name, line=self._line())
        if wrong := next((name for name in known if name and len(name) > limits.NAME_BYTES), None):
            raise limits.name_too_long(self.name, wrong, line=self._line())

    def _end(self, done: Done) -> int:
        """The byte behind a record."""
        told = done.ended + self.skipped
        is_empty_tag = done.childless and self.data[told - 2 : told] == b"/>"
        return told if is_empty_tag else self.data.find(b">", told) + 1

    def _following(self) -> Iterator[Run]:
        """The runs that stand behind a record."""
        while self.between and self._runs and (found := self._runs.at(self.at)):
            run, end = found
            self.lines += run.text.count("\n")
            self.skipped += end - self.at
            self.at = end
            yield run

    def _line(self) -> int:
        return self._parser.CurrentLineNumber + self.lines

    def _broken(self, wrong: expat.ExpatError) -> InputError:
        place = self._parser.ErrorByteIndex + self.skipped
        column = place - self.data.rfind(b"\n", 0, place) - 1 if self.skipped else wrong.offset
        way_out = _ENCODING if wrong.code == _BAD_TOKEN and not _begins_in_utf8(self.data[place : place + 4]) else ""
        told = f"not well-formed XML: {expat.ErrorString(wrong.code)}, column {column + 1}{way_out}"
        return InputError(self.name, told, line=wrong.lineno + self.lines)


def _written_encoding(data: Buffer) -> str | None:
    """The encoding to give to expat: UTF-8 where the XML declaration names it in a way that expat does not know (`utf8`), else None."""
    found = _DECLARED.match(data[:_FIRST])
    return "utf-8" if found and text_encoding(found[1].decode()) == "utf-8" else None


def _begins_in_utf8(text: bytes) -> bool:
    """Whether some bytes begin with a character."""
    try:
        text.decode()
    except UnicodeDecodeError as wrong:
        return wrong.start > 0
    return True


def _refuse_entity(entity: str, _is_parameter: bool) -> None:
    raise EntityError(entity[:40])


def _refuse_reference(text: str) -> None:
    """Expat hands a reference to a declared entity to the default handler, which keeps it from being expanded."""
    if text.startswith("&") and text.endswith(";"):
        raise EntityError(text[1:-1][:40])


def _refuse_entity_declaration(entity: str, _is_parameter: bool, *_: object) -> None:
    raise BeyondError(partial(limits.declares, what=f"the entity '{entity[:40]}'"))


def _refuse_attribute_declaration(element: str, attribute: str, *_: object) -> None:
    raise BeyondError(partial(limits.declares, what=f"the attribute '{attribute[:40]}' of '{element[:40]}'"))
