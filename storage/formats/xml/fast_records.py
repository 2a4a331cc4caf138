"""Records that look alike, matched by one regular expression. This is about five times as fast as expat.

A record that expat has read gives the form of the next ones: children and attributes in an order, each of them optional. A run is the longest sequence of
adjacent records of that form. A run is well-formed by itself, so the document is well-formed exactly when the document without its runs is. Expat reads
records that do not match: with references, comments, CDATA, repeated children, or text next to children.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from storage.files.errors import Buffer
from storage.formats import limits

LONGEST = 4 << 20
"""Bytes of the longest run."""
_MOST_FORMS = 100
"""Records of a file from which forms are learned."""
_MOST_FIELDS = 4_000
"""Elements and attributes of all forms of a file together. Each form needs a new expression."""
_SHORTEST = 16
"""Bytes of the shortest record."""
_LARGEST, _DEEPEST = 1 << 16, 32
"""Bytes and levels of the largest record from which a form is learned."""
_SPACE = r"[ \t\n]*+"
_NO_TEXT = r"\r\x00-\x08\x0b\x0c\x0e-\x1f"
_TEXT = rf"[^<&>{_NO_TEXT}]*+"
_TOKEN = re.compile(
    rb"<(?P<close>/)?(?P<tag>[^\s<>/=&\"'!?]+)(?P<attributes>(?:[ \t\n]+[^\s<>/=&\"']+=(?:\"[^\"<>&\t\n\r]*\"|'[^'<>&\t\n\r]*'))*+)[ \t\n]*(?P<empty>/)?>"
    rb"|(?P<text>[^<&>\r]+)"
)
_ATTRIBUTE = re.compile(rb"([^\s<>/=&\"']+)=([\"'])")


_Item = TypeVar("_Item")


class UnlikeError(Exception):
    """An element has no form that other records can share."""


@dataclass(frozen=True, slots=True)
class Form:
    """The form of an element: attributes with their quotes, and children, in order, all optional. An element without children has text."""

    tag: str
    attributes: tuple[tuple[str, str], ...] = ()
    children: tuple[Form, ...] = ()

    @classmethod
    def of(cls, record: bytes) -> Form:
        """The form of a well-formed element. Raises UnlikeError."""
        open_: list[_Opened] = [_Opened("")]
        at = 0
        while at < len(record):
            token = _TOKEN.match(record, at)
            if token is None or len(open_) > _DEEPEST:
                raise UnlikeError
            at = token.end()
            _take(token, open_)
        return open_[0].children[0]

    @property
    def size(self) -> int:
        """The number of elements and attributes."""
        return 1 + len(self.attributes) + sum(child.size for child in self.children)

    def merged(self, other: Form) -> Form:
        """The form that matches the elements of both. Raises UnlikeError where their orders contradict."""
        if self.tag != other.tag or (bool(self.children) != bool(other.children)):
            raise UnlikeError
        return Form(self.tag, _in_one_order(self.attributes, other.attributes), _merged_children(self.children, other.children))


@dataclass(slots=True)
class _Opened:
    """An open element."""

    tag: str
    attributes: tuple[tuple[str, str], ...] = ()
    children: list[Form] = field(default_factory=list)
    text: bool = False

    def closed(self) -> Form:
        tags = [child.tag for child in self.children]
        if len(set(tags)) < len(tags) or (self.text and self.children):
            raise UnlikeError
        return Form(self.tag, self.attributes, tuple(self.children))


def _take(token: re.Match[bytes], open_: list[_Opened]) -> None:
    if token["text"] is not None:
        open_[-1].text |= bool(token["text"].strip())
        return
    if not token["close"]:
        attributes = tuple((name.decode(), quote.decode()) for name, quote in _ATTRIBUTE.findall(token["attributes"]))
        open_.append(_Opened(token["tag"].decode(), attributes))
    if token["close"] or token["empty"]:
        done = open_.pop().closed()
        open_[-1].children.append(done)


def _merged_children(left: Sequence[Form], right: Sequence[Form]) -> tuple[Form, ...]:
    forms = {child.tag: child for child in left}
    for child in right:
        forms[child.tag] = forms[child.tag].merged(child) if child.tag in forms else child
    order = _in_one_order(tuple(child.tag for child in left), tuple(child.tag for child in right))
    return tuple(forms[tag] for tag in order)


def _in_one_order(left: tuple[_Item, ...], right: tuple[_Item, ...]) -> tuple[_Item, ...]:
    """The items of both in an order that agrees with both. Raises UnlikeError where there is none."""
    made, at = list(left), 0
    for item in right:
        if item in left:
            place = made.index(item)
            if place < at:
                raise UnlikeError
            at = place + 1
        else:
            made.insert(at, item)
            at += 1
    return tuple(made)


@dataclass(slots=True)
class _Writing:
    """Writes a form as a regular expression. `names` are the wanted fields that it captures, in the order of the groups."""

    prefix: str
    plain: Callable[[str], str]
    wanted: Callable[[str], bool]
    names: list[str] = field(default_factory=list)
    met: set[str] = field(default_factory=set)

    def record(self, form: Form) -> str:
        """The whole record. Raises UnlikeError where two of its fields have one name."""
        return self._whole(form, "", f"</{re.escape(form.tag)}>", lambda: _TEXT)

    def _element(self, form: Form, before: str) -> str:
        name = before + self.plain(form.tag)
        return self._whole(form, f"{name}.", f"</{re.escape(form.tag)}{_SPACE}>", lambda: self._value(name, _TEXT))

    def _whole(self, form: Form, before: str, end: str, text: Callable[[], str]) -> str:
        start = f"<{re.escape(form.tag)}{self._attributes(form, before)}{_SPACE}"
        if not form.children:
            return f"{start}(?:/>|>{text()}{end})"
        return f"{start}>{self._children(form, before)}{end}"

    def _children(self, form: Form, before: str) -> str:
        inner = "".join(f"(?:{self._element(child, before)}{_SPACE})?+" for child in form.children)
        return f"{_SPACE}(?=<[^/!?]){inner}"

    def _attributes(self, form: Form, before: str) -> str:
        return "".join(f"(?:[ \\t\\n]++{re.escape(name)}={quote}{self._attribute(name, quote, before)}{quote})?+" for name, quote in form.attributes)

    def _attribute(self, name: str, quote: str, before: str) -> str:
        value = rf"[^{quote}<>&\t\n{_NO_TEXT}]*+"
        is_declaration = name == "xmlns" or name.startswith("xmlns:")
        return value if is_declaration else self._value(before + self.prefix + self.plain(name), value)

    def _value(self, name: str, value: str) -> str:
        if name in self.met:
            raise UnlikeError
        self.met.add(name)
        if not self.wanted(name):
            return value
        self.names.append(name)
        return f"({value})"


@dataclass(frozen=True, slots=True)
class Matcher:
    """A compiled form: `run` matches the bytes of a run, `row` cuts their text into fields."""

    form: Form
    run: re.Pattern[bytes]
    row: re.Pattern[str]
    names: tuple[str, ...]

    @classmethod
    def of(cls, form: Form, prefix: str, plain: Callable[[str], str], wanted: Callable[[str], bool]) -> Matcher:
        """Compile a form. Raises UnlikeError."""
        if form.tag in _tags_below(form):
            raise UnlikeError
        plainly = _Writing(prefix, plain, lambda _: False).record(form)
        writing = _Writing(prefix, plain, wanted)
        row = re.compile(writing.record(form))
        return cls(form, re.compile(f"(?:{_SPACE}{plainly})*+".encode()), row, tuple(writing.names))


def _tags_below(form: Form) -> Iterator[str]:
    for child in form.children:
        yield child.tag
        yield from _tags_below(child)


@dataclass(frozen=True, slots=True)
class Run:
    """Adjacent records of one form: their text and its matcher."""

    text: str
    matcher: Matcher

    @property
    def count(self) -> int:
        """The number of records."""
        form = self.matcher.form
        return self.text.count(f"</{form.tag}>") + (0 if form.children else self.text.count("/>"))

    def records(self) -> Iterator[dict[str, str | None]]:
        """Each record's fields, without the ones that it lacks."""
        names = self.matcher.names
        for found in self.matcher.row.finditer(self.text):
            yield {name: text.strip() or None for name, text in zip(names, found.groups(), strict=True) if text is not None}

    def columns(self) -> dict[str, Sequence[str]]:
        """The fields by name, with their white space; an absent field is empty."""
        rows = self.matcher.row.findall(self.text)
        names = self.matcher.names
        return dict(zip(names, zip(*rows, strict=True), strict=True)) if len(names) > 1 else dict.fromkeys(names, rows)


class Runs:
    """Finds the runs of one document. `wanted` selects the fields to read, `longest` limits the bytes of a run."""

    def __init__(self, data: Buffer, prefix: str, plain: Callable[[str], str], wanted: Callable[[str], bool], longest: int | None = None) -> None:
        self.data, self.prefix, self.plain, self.wanted = data, prefix, plain, wanted
        self.longest = min(longest or LONGEST, LONGEST)
        self.matcher: Matcher | None = None
        self.closing = b""
        """The end of the record that was read last; empty before the first one."""
        self.learned = self.fields = 0

    def learn(self, start: int, end: int) -> None:
        """Learn the form of the record at these bytes, which expat has read."""
        record = self.data[start:end]
        self.closing = b"/>" if record.endswith(b"/>") else record[record.rfind(b"<") :]
        if self.learned < _MOST_FORMS and end - start <= _LARGEST and (self.matcher is None or self.matcher.run.fullmatch(record) is None):
            self.learned += 1
            self._add(record)

    def _add(self, record: bytes) -> None:
        try:
            form = Form.of(record)
            known = form if self.matcher is None else self.matcher.form.merged(form)
            self.fields += known.size
            if self.fields > _MOST_FIELDS:
                return
            self.matcher = Matcher.of(known, self.prefix, self.plain, self.wanted)
        except (UnlikeError, UnicodeDecodeError):
            return

    def at(self, start: int) -> tuple[Run, int] | None:
        """The run from byte `start` on, where a record ended, and its end; None where there is none."""
        if self.matcher is None:
            return None
        longest = min(self.longest, limits.CELLS // (len(self.matcher.names) or 1) * _SHORTEST)
        found = self.matcher.run.match(self.data, start, start + longest)
        if found is None or found.end() == start:
            return None
        try:
            text = self.data[start : found.end()].decode()
        except UnicodeDecodeError:
            return None
        if "\ufffe" in text or "\uffff" in text:
            return None
        return Run(text, self.matcher), found.end()
