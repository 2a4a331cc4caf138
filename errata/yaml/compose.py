"""From parser events to a tree of values with offsets: tags, aliases, duplicate keys, references, limits."""

import re
from collections.abc import Iterator
from collections.abc import Mapping as MappingType

from errata.core.diagnostics import Diagnostic, Label
from errata.core.env_references import MASK, BadReference, Reference, Secret, expand, note_secret
from errata.yaml.events import Event
from errata.yaml.nodes import Key, Mapping, Node, Scalar, Sequence, Substitution, substituted
from errata.yaml.offsets import offsets
from errata.yaml.scalars import TooLarge, resolve
from errata.yaml.source import SourceText

DEEPEST = 64
"""How deep a file may nest."""

MOST_NODES = 100_000
"""How many values a file may have, with aliases expanded."""

_PROPERTIES = re.compile(r"([&!][^\s]*(\s+|\Z))*")
_CORE = "tag:yaml.org,2002:"
_TEXT_TAGS = ("!", f"{_CORE}str")
_OTHER_TAGS: dict[str, tuple[type, ...]] = {
    f"{_CORE}int": (int,),
    f"{_CORE}float": (float, int),
    f"{_CORE}bool": (bool,),
    f"{_CORE}null": (type(None),),
}


class Refused(Exception):
    """A file that is not used at all."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Composer:
    """Builds the tree of one document. Errors of single values go to `found`."""

    def __init__(self, source: SourceText, masked: str, references: MappingType[int, Reference], env: MappingType[str, str]) -> None:
        self.found: list[Diagnostic] = []
        self.secrets: set[str] = set()
        self._source = source
        self._masked = masked
        self._references = references
        self._env = env
        self._anchors: dict[str, Node | None] = {}
        self._count = 0

    def compose(self, events: Iterator[Event]) -> Node:
        """Return the root. Raises yaml.MarkedYAMLError for wrong syntax, Refused beyond a limit."""
        if next(events, None) is None:
            return Scalar(0, 0, None, None, "", "")
        root = self._node(next(events), events, 1)
        second = next(events, None)
        if second:
            self._note(second, "YAML-007", "a second document begins here; a file holds one")
        return root

    def _diagnostic(self, event: Event, code: str, message: str, help: str = "", labels: tuple[Label, ...] = ()) -> Diagnostic:
        place = self._source.span(event.start, event.end)
        return Diagnostic.at(place, code, message, help=help, labels=labels, lines=self._source)

    def _note(self, event: Event, code: str, message: str, help: str = "", labels: tuple[Label, ...] = ()) -> None:
        self.found.append(self._diagnostic(event, code, message, help, labels))

    def _node(self, event: Event, events: Iterator[Event], depth: int) -> Node:
        if depth > DEEPEST:
            raise Refused(self._diagnostic(event, "YAML-004", f"values are nested deeper than {DEEPEST} levels"))
        if event.kind == "alias":
            return self._alias(event)
        self._spend(event, 1)
        if not event.anchor:
            return self._fresh(event, events, depth)
        self._anchors[event.anchor] = None
        node = self._anchors[event.anchor] = self._fresh(event, events, depth)
        return node

    def _fresh(self, event: Event, events: Iterator[Event], depth: int) -> Node:
        if event.kind == "scalar":
            return self._scalar(event)
        if event.tag not in ("", "!", f"{_CORE}{'seq' if event.kind == 'sequence' else 'map'}"):
            self._unknown_tag(event)
        return self._sequence(event, events, depth) if event.kind == "sequence" else self._mapping(event, events, depth)

    def _alias(self, event: Event) -> Node:
        target = self._anchors.get(event.anchor)
        if target is None:
            reason = "refers to itself" if event.anchor in self._anchors else "is not defined above"
            raise Refused(self._diagnostic(event, "YAML-006", f"alias *{event.anchor} {reason}"))
        self._spend(event, target.size)
        return target

    def _spend(self, event: Event, count: int) -> None:
        self._count += count
        if self._count > MOST_NODES:
            raise Refused(self._diagnostic(event, "YAML-004", f"more than {MOST_NODES:,} values, aliases counted as what they stand for"))

    def _sequence(self, event: Event, events: Iterator[Event], depth: int) -> Node:
        result = Sequence(event.start, event.end)
        for inner in events:
            if inner.kind == "end":
                result.end = inner.end
                break
            item = self._node(inner, events, depth + 1)
            result.items.append(item)
            result.size += item.size
        return result

    def _mapping(self, event: Event, events: Iterator[Event], depth: int) -> Node:
        result = Mapping(event.start, event.end)
        for inner in events:
            if inner.kind == "end":
                result.end = inner.end
                break
            key = self._key(inner, events, depth)
            value = self._node(next(events), events, depth + 1)
            result.size += value.size
            if key is not None and self._new(inner, key, result):
                result.entries[key.text] = (key, value)
        return result

    def _key(self, event: Event, events: Iterator[Event], depth: int) -> Key | None:
        """A key as text, also of numbers and constants. Lists and maps cannot be keys."""
        node = self._node(event, events, depth + 1)
        if isinstance(node, Scalar):
            return Key(substituted(node.parsed, node.substitutions), event.start, event.end)
        self._note(event, "YAML-008", "a list or map cannot be a key")
        return None

    def _new(self, event: Event, key: Key, result: Mapping) -> bool:
        if key.text == "<<":
            self._note(event, "YAML-009", "merge keys (<<) are not part of YAML 1.2", "write the entries out")
            return False
        older = result.entries.get(key.text)
        if older:
            label = Label.at(self._source.span(older[0].start, older[0].end), "first here")
            self._note(event, "YAML-002", f"the key '{key.text}' stands twice in one map", "", (label,))
        return older is None

    def _unknown_tag(self, event: Event) -> None:
        shown = event.tag.replace(_CORE, "!!")
        self._note(event, "YAML-003", f"unknown tag {shown}", "a pipeline file holds plain values only")

    def _scalar(self, event: Event) -> Scalar:
        start, parsed = self._content(event), event.text
        found = self._substitutions(event, start) if MASK in parsed and self._references else ()
        text = substituted(parsed, found)
        if any(one.written.startswith("${secret:") for one in found):
            return Scalar(start, event.end, Secret(text), substituted(parsed, found, written=True), parsed, event.style, found)
        value = self._value(event, text)
        return Scalar(start, event.end, value, value, parsed, event.style, found)

    def _content(self, event: Event) -> int:
        """The start of the scalar itself, after its anchor and tag."""
        match = _PROPERTIES.match(self._masked, event.start, event.end) if event.anchor or event.tag else None
        return match.end() if match else event.start

    def _substitutions(self, event: Event, start: int) -> tuple[Substitution, ...]:
        """The references in a scalar. Each is one run of mask characters that begins at its offset."""
        places = offsets(self._masked, start, event.end, event.style, event.text)
        found = []
        for index, character in enumerate(event.text):
            reference = self._references.get(places[index]) if character == MASK else None
            if reference:
                written = self._source.text[reference.start : reference.end]
                found.append(Substitution(index, len(written), self._expanded(reference), written))
        return tuple(found)

    def _expanded(self, reference: Reference) -> str:
        try:
            value = expand(reference, self._env)
        except BadReference as bad:
            place = self._source.span(reference.start, reference.end)
            self.found.append(Diagnostic.at(place, bad.code, bad.message, help=bad.help, lines=self._source))
            return self._source.text[reference.start : reference.end]
        if reference.secret and value:
            self.secrets.add(value)
            note_secret(value)
        return value

    def _value(self, event: Event, text: str) -> object:
        """The value of a scalar: text where it is quoted, a block or tagged as text, else by the rules of YAML 1.2."""
        if event.tag in _TEXT_TAGS or (event.style and not event.tag):
            return text
        value = self._resolved(event, text)
        if event.tag and not isinstance(value, _OTHER_TAGS.get(event.tag, ())):
            self._unknown_tag(event)
        return value

    def _resolved(self, event: Event, text: str) -> object:
        try:
            return resolve(text)
        except TooLarge:
            self._note(event, "YAML-011", "the number does not fit 64 bits", "quote it where it is meant as text")
            return text
