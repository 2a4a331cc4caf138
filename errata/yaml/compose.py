"""Parser events to a tree of values with offsets: tags, aliases, duplicate keys, references, budgets."""

import re
from collections.abc import Iterator, Mapping

import yaml

from errata.diagnostics import Diagnostic, Label
from errata.environment import MASK, BadReference, Reference, Secret, expand
from errata.yaml import nodes
from errata.yaml.nodes import Key, Node, Scalar, Substitution, substituted
from errata.yaml.offsets import offsets
from errata.yaml.scalars import TooLarge, resolve
from errata.yaml.source import SourceText

DEEPEST = 64
"""Levels of nesting that a file may have."""

MOST_NODES = 100_000
"""Values that a file may have, aliases counted as what they stand for."""

_CORE = "tag:yaml.org,2002:"
_TEXT_TAGS = ("!", f"{_CORE}str")
_PROPERTIES = re.compile(r"([&!][^\s]*(\s+|\Z))*")
_OTHER_TAGS = {f"{_CORE}int": int, f"{_CORE}float": (float, int), f"{_CORE}bool": bool, f"{_CORE}null": type(None)}


class Refused(Exception):
    """A file that is not used at all; `diagnostic` says why."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Composer:
    """Builds the tree of one document. What is wrong with single values is noted in `found`."""

    def __init__(self, source: SourceText, masked: str, references: Mapping[int, Reference], env: Mapping[str, str]) -> None:
        self.found: list[Diagnostic] = []
        self.secrets: set[str] = set()
        self._source = source
        self._masked = masked
        self._references = references
        self._env = env
        self._anchors: dict[str, Node | None] = {}
        self._count = 0

    def compose(self, events: Iterator[yaml.Event]) -> Node:
        """The root value. Raises yaml.MarkedYAMLError for wrong syntax and Refused beyond a budget."""
        root: Node = Scalar(0, 0, None, None, "", "")
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                root = self._node(next(events), events, 1)
                next(events)
                self._single(next(events))
                break
        return root

    def _single(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self._note(event, "YAML-007", "a second document begins here; a file holds one")

    def _diagnostic(self, event: yaml.Event, code: str, message: str, help: str = "", labels: tuple[Label, ...] = ()) -> Diagnostic:
        place = self._source.span(event.start_mark.index, event.end_mark.index)
        return Diagnostic.at(place, code, message, help=help, labels=labels, lines=self._source)

    def _note(self, event: yaml.Event, code: str, message: str, help: str = "", labels: tuple[Label, ...] = ()) -> None:
        self.found.append(self._diagnostic(event, code, message, help, labels))

    def _node(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Node:
        if depth > DEEPEST:
            raise Refused(self._diagnostic(event, "YAML-004", f"values are nested deeper than {DEEPEST} levels"))
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        self._spend(event, 1)
        if event.anchor:
            self._anchors[event.anchor] = None
        node = self._fresh(event, events, depth)
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _fresh(self, event: yaml.NodeEvent, events: Iterator[yaml.Event], depth: int) -> Node:
        if isinstance(event, yaml.SequenceStartEvent):
            self._collection_tag(event, "seq")
            return self._sequence(event, events, depth)
        if isinstance(event, yaml.MappingStartEvent):
            self._collection_tag(event, "map")
            return self._mapping(event, events, depth)
        return self._scalar(event)

    def _alias(self, event: yaml.AliasEvent) -> Node:
        target = self._anchors.get(event.anchor)
        if target is None:
            reason = "refers to itself" if event.anchor in self._anchors else "is not defined above"
            raise Refused(self._diagnostic(event, "YAML-006", f"alias *{event.anchor} {reason}"))
        self._spend(event, target.size)
        return target

    def _spend(self, event: yaml.Event, count: int) -> None:
        self._count += count
        if self._count > MOST_NODES:
            raise Refused(self._diagnostic(event, "YAML-004", f"more than {MOST_NODES:,} values, aliases counted as what they stand for"))

    def _sequence(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Node:
        result = nodes.Sequence(event.start_mark.index, event.end_mark.index)
        for inner in events:
            if isinstance(inner, yaml.SequenceEndEvent):
                result.end = inner.end_mark.index
                break
            item = self._node(inner, events, depth + 1)
            result.items.append(item)
            result.size += item.size
        return result

    def _mapping(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Node:
        result = nodes.Mapping(event.start_mark.index, event.end_mark.index)
        for inner in events:
            if isinstance(inner, yaml.MappingEndEvent):
                result.end = inner.end_mark.index
                break
            key = self._key(inner, events, depth)
            value = self._node(next(events), events, depth + 1)
            result.size += value.size
            if key is not None and self._new(inner, key, result):
                result.entries[key.text] = (key, value)
        return result

    def _key(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Key | None:
        """The text of a key, numbers and constants too. Lists and maps cannot be keys."""
        node = self._node(event, events, depth + 1)
        if isinstance(node, Scalar):
            return Key(substituted(node.parsed, node.substitutions), event.start_mark.index, event.end_mark.index)
        self._note(event, "YAML-008", "a list or map cannot be a key")
        return None

    def _new(self, event: yaml.Event, key: Key, result: nodes.Mapping) -> bool:
        if key.text == "<<":
            self._note(event, "YAML-009", "merge keys (<<) are not part of YAML 1.2", "write the entries out")
            return False
        older = result.entries.get(key.text)
        if older:
            label = Label.at(self._source.span(older[0].start, older[0].end), "first here")
            self._note(event, "YAML-002", f"the key '{key.text}' stands twice in one map", "", (label,))
        return older is None

    def _collection_tag(self, event: yaml.CollectionStartEvent, kind: str) -> None:
        if event.tag not in (None, "!", f"{_CORE}{kind}"):
            self._unknown_tag(event)

    def _unknown_tag(self, event: yaml.NodeEvent) -> None:
        shown = str(event.tag).replace(_CORE, "!!")
        self._note(event, "YAML-003", f"unknown tag {shown}", "a pipeline file holds plain values only")

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        start, end = self._content(event), event.end_mark.index
        style = (event.style or "").strip()
        parsed = event.value
        found = self._substitutions(event, parsed, style) if MASK in parsed and self._references else ()
        value = self._value(event, substituted(parsed, found), style)
        if not any(self._secret(one) for one in found):
            return Scalar(start, end, value, value, parsed, style, found)
        return Scalar(start, end, Secret(substituted(parsed, found)), substituted(parsed, found, written=True), parsed, style, found)

    def _content(self, event: yaml.ScalarEvent) -> int:
        """Where the scalar itself begins, behind its anchor and tag."""
        start, end = event.start_mark.index, event.end_mark.index
        match = _PROPERTIES.match(self._masked, start, end) if event.anchor or event.tag else None
        return match.end() if match else int(start)

    def _substitutions(self, event: yaml.ScalarEvent, parsed: str, style: str) -> tuple[Substitution, ...]:
        """What stands for the references in a scalar: each is one run of mask characters that begins at its offset."""
        places = offsets(self._masked, self._content(event), event.end_mark.index, style, parsed)
        found = []
        for index, character in enumerate(parsed):
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
        return value

    @staticmethod
    def _secret(found: Substitution) -> bool:
        return found.written.startswith("${secret:")

    def _value(self, event: yaml.ScalarEvent, text: str, style: str) -> object:
        """The value of a scalar: text when quoted, a block or tagged so, else what YAML 1.2 reads."""
        if event.tag in _TEXT_TAGS or (style and event.tag is None):
            return text
        value = self._resolved(event, text)
        if event.tag is not None and not isinstance(value, _OTHER_TAGS.get(event.tag, ())):
            self._unknown_tag(event)
        return value

    def _resolved(self, event: yaml.ScalarEvent, text: str) -> object:
        try:
            return resolve(text)
        except TooLarge:
            self._note(event, "YAML-010", "the number does not fit 64 bits", "quote it where it is meant as text")
            return text
