"""The elements at a path as flat maps from field names to text, collected while expat reads a document.

expat calls back for each tag and text. The state is the path of the open elements and, inside a record, its fields so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from storage.files.errors import InputError
from storage.formats import limits

Fields: TypeAlias = dict[str, str | None]
Found: TypeAlias = dict[str, list[Fields | str | None]]
"""The elements of arrays by their names."""
Record: TypeAlias = "tuple[Fields, Found, Repeated | None]"


class BeyondError(Exception):
    """A limit is exceeded. `error` makes the input error from the file's name and the line."""

    def __init__(self, error: Callable[..., InputError]) -> None:
        super().__init__()
        self.error = error


class _Name:
    """A field's name, and the names of its children by their tags. `stamp` is the number of the record in which it occurred last."""

    __slots__ = ("array", "attributes", "children", "inside", "name", "stamp")

    def __init__(self, name: str, *, array: bool = False, inside: bool = False) -> None:
        self.name, self.array, self.inside = name, array, inside
        self.children: dict[str, _Name] = {}
        self.attributes: dict[str, str] = {}
        """The fields of its attributes. The name of a namespace declaration is empty."""
        self.stamp = 0

    @property
    def prefix(self) -> str:
        """The prefix of the names of children and attributes."""
        return f"{self.name}." if self.name and not self.array else ""


class Repeated(NamedTuple):
    """The fields of a record that repeat and are no arrays, and the bytes of the record."""

    names: frozenset[str]
    start: int
    end: int


class Done(NamedTuple):
    """Where a record began and ended, in expat's count. It ends at the beginning of its end tag, or after its only tag where that is an empty one."""

    begun: int
    ended: int
    childless: bool


class Collector:
    """Collects the elements at a path.

    Args:
        path: `//a`, `/a/b` or `a/b`; None for the root
        prefix: the prefix of the names of attributes
        arrays: the fields whose elements may repeat
        strip: whether names lose their namespace prefix
        own: the field that holds the text of a record without children; None where it is not read
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
        """The bytes of a record in the document."""
        self.begun = -1
        self.done: Done | None = None
        """The record that was completed last. The scan sets it to None when it has seen it."""
        self.root = _Name("")
        self.known: dict[tuple[bool, str], _Name] = {}
        self.names = self.letters = 0
        """The number of fields so far, and the length of their names together."""
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
        """Handle the start of an element."""
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
        """Handle the end of an element."""
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
        """Close an element of an array, an element with children, or the record."""
        if node.array:
            self._element_ends(node)
            return
        self.node = self.open.pop()
        if self.node is None:
            self._leave()
            if self.own is not None and self.leaf:
                self.fields[self.own] = _content(self.text)
            self.done = Done(self.begun, self.place(), self.leaf)
            self.records.append((self.fields, self.found, self._repeated(self.done) if self.repeated else None))
        elif self.fields.get(node.name, "") is None:
            del self.fields[node.name]  # an element with children is no field

    def _repeated(self, done: Done) -> Repeated:
        names, self.repeated = frozenset(self.repeated), set()
        return Repeated(names, *self.bytes_of(done))

    def characters(self, text: str) -> None:
        """Handle text."""
        if self.node is not None and not self.ignored:
            self.text.append(text)

    def literal(self, text: str) -> None:
        """Handle the text of a CDATA section."""
        self.characters(_Literal(text))

    def taken(self) -> list[Record]:
        """The complete records, each of them once."""
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
        """A tag as in fields and paths."""
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
        """The name of a new field. Raises BeyondError."""
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
        """Open an element of an array, which has fields of its own."""
        self.outer = (self.fields, self.stamp)
        self._begin()
        self.fields = {}
        assert self.node is not None  # set by the caller
        self._attributes(self.node, attributes)

    def _element_ends(self, node: _Name) -> None:
        element: Fields | str | None = self.fields or _content(self.text)
        self.fields, self.stamp = self.outer
        self.found.setdefault(node.name, []).append(element)
        self.node = self.open.pop()


class _Literal(str):
    """Text of a CDATA section, whose white space is kept."""

    __slots__ = ()


def _content(pieces: Sequence[str]) -> str | None:
    """The text of an element without surrounding white space, except in CDATA sections; None where it is empty."""
    literal = [at for at, piece in enumerate(pieces) if isinstance(piece, _Literal)]
    if not literal:
        return "".join(pieces).strip() or None
    first, last = literal[0], literal[-1] + 1
    return "".join(pieces[:first]).lstrip() + "".join(pieces[first:last]) + "".join(pieces[last:]).rstrip() or None
