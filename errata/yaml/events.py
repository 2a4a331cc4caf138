"""Parser events as typed values with offsets."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import yaml

Kind = Literal["document", "alias", "scalar", "sequence", "mapping", "end"]

_KINDS: dict[type[yaml.Event], Kind] = {
    yaml.DocumentStartEvent: "document",
    yaml.AliasEvent: "alias",
    yaml.ScalarEvent: "scalar",
    yaml.SequenceStartEvent: "sequence",
    yaml.MappingStartEvent: "mapping",
    yaml.SequenceEndEvent: "end",
    yaml.MappingEndEvent: "end",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One event. Anchor, tag, text and style are "" where its kind has none."""

    kind: Kind
    start: int
    end: int
    anchor: str
    tag: str
    text: str
    style: str


def events(text: str) -> Iterator[Event]:
    """Yield the events of a text. Uses libyaml where it is installed. Raises yaml.MarkedYAMLError for wrong syntax."""
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        kind = _KINDS.get(type(event))
        if kind:
            start, end = (mark.index if mark else 0 for mark in (event.start_mark, event.end_mark))
            words = (getattr(event, name, None) or "" for name in ("anchor", "tag", "value", "style"))
            yield Event(kind, start, end, *words)
