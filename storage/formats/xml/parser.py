"""A document read once, in blocks: by expat, and by `fast_records` where many records look alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from xml.parsers import expat

from storage.files.errors import Buffer, InputError
from storage.formats import limits
from storage.formats.encodings import expat_reads, text_encoding
from storage.formats.xml.collector import BeyondError, Collector, Done, Record
from storage.formats.xml.fast_records import Run, Runs

_BLOCK, _FIRST = 1 << 18, 1 << 12
_TAG = re.compile(rb"""\0?<(?:[^"'>]|"[^"]*+"|'[^']*+')*+""")
_BAD_TOKEN = expat.errors.codes[expat.errors.XML_ERROR_INVALID_TOKEN]
_ENCODING = "; text that is not UTF-8 needs an XML declaration that names its encoding"
_DECLARED = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml\s[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_REFERENCE = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos);)([^#;&\s][^;&\s]*);")


class EncodingError(Exception):
    """The XML declaration names an encoding that is not read."""


class EntityError(Exception):
    """A reference to an entity other than the five of XML itself."""


class Scan:
    """The records of a document in order, in lists or in runs (iterate). Raises InputError.

    While a list or run is handled, `at` is the byte after what was read, and `between` is true if a record ends just there.

    Args:
        data: the document, or a part of it
        name: how messages call the file
        collector: collects the records
        names_only: whether only the names of fields are needed; all text is null
        wanted: whether a field is read out of runs
        opened: for a part of a document, the tags of the elements that are open at its beginning; None for a whole document
        longest: the bytes of the longest run
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
        # Without this handler expat would pass references to characters to the default one.
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
        """Handle a document type. expat does not report entity references in attributes that an external one may declare, so each tag's text is searched."""
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
        """Let expat read all of the text: its bytes are not UTF-8 or need the document type."""
        self._runs = None

    def __iter__(self) -> Iterator[list[Record] | Run]:
        try:
            yield from self._items()
            left_open = reversed(self.collector.tags) if self._is_part else ()
            self._parser.Parse("".join(f"</{tag}>" for tag in left_open).encode(), True)
        except expat.ExpatError as wrong:
            raise self._broken(wrong) from None
        except EncodingError as wrong:
            message = f"the XML declaration names the encoding '{str(wrong)[:80]}': XML is read in UTF-8, UTF-16 and encodings of one byte a character, such as windows-1252"
            raise InputError(self.name, message, line=1) from None
        except BeyondError as beyond:
            raise beyond.error(self.name, line=self._line()) from None
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
        """Give expat the next piece: up to a possible end of a record, else a block."""
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
        """The bytes of an unfinished tag or comment. expat reads it from its beginning with each piece, so pieces grow with it. Raises InputError."""
        begun = max(self._parser.CurrentByteIndex, 0)
        length = self.at - self.skipped - begun if self.at else 0
        if length > limits.MARKUP_BYTES:
            raise limits.markup_too_long(self.name, line=self._line())
        return length

    def _check_names(self) -> None:
        """Raise InputError for too many names or a too long one. expat keeps all names in memory, also of elements that are not read."""
        known = self._parser.intern
        self._interned = len(known)
        if self._interned > limits.NAMES:
            raise limits.too_many_names(self.name, line=self._line())
        if wrong := next((name for name in known if name and len(name) > limits.NAME_BYTES), None):
            raise limits.name_too_long(self.name, wrong, line=self._line())

    def _end(self, done: Done) -> int:
        """The byte after a record."""
        end = done.ended + self.skipped
        is_empty_tag = done.childless and self.data[end - 2 : end] == b"/>"
        return end if is_empty_tag else self.data.find(b">", end) + 1

    def _following(self) -> Iterator[Run]:
        """The runs that follow a record."""
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
        message = f"not well-formed XML: {expat.ErrorString(wrong.code)}, column {column + 1}{way_out}"
        return InputError(self.name, message, line=wrong.lineno + self.lines)


def _written_encoding(data: Buffer) -> str | None:
    """The encoding for expat: UTF-8 where the XML declaration has a name of it that expat does not know (`utf8`), else None."""
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
    """Refuse a reference to a declared entity, which expat passes to the default handler instead of expanding it."""
    if text.startswith("&") and text.endswith(";"):
        raise EntityError(text[1:-1][:40])


def _refuse_entity_declaration(entity: str, _is_parameter: bool, *_: object) -> None:
    raise BeyondError(partial(limits.declares, what=f"the entity '{entity[:40]}'"))


def _refuse_attribute_declaration(element: str, attribute: str, *_: object) -> None:
    raise BeyondError(partial(limits.declares, what=f"the attribute '{attribute[:40]}' of '{element[:40]}'"))
