"""Objects that have a member twice. A parser of JSON takes the last one without an error.

The count of colons finds them: the JSON text of the parsed value has fewer colons than the parsed text. Only such a text is read token by token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from storage.formats.base import ReadPlan

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]', re.DOTALL)
_ESCAPE: Final = re.compile(rb"\\(?:(u003[aA])|.)", re.DOTALL)
Path = tuple[str, ...]


class Element(NamedTuple):
    """One value in a text of values with commas between: where its bytes begin and end, and the paths of the keys that it has twice."""

    start: int
    end: int
    twice: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Unique:
    """Finds the repeated members of records.

    Args:
        read: the members that are read, in which repetitions count; None for all
        steps: the keys that lead from a line to its records
    """

    read: frozenset[str] | None
    steps: Sequence[str] = ()

    @classmethod
    def of(cls, plan: ReadPlan, steps: Sequence[str] = ()) -> Unique:
        """The finder for the members that a plan reads."""
        if plan.on_unmapped != "drop":
            return cls(None, steps)
        names = {column.name for column in plan.declared}
        return cls(frozenset({*names, *(name.split(".")[0] for name in names), *(path.steps[0] for path in plan.array_paths if path.steps)}), steps)

    def in_text(self, text: bytes, value: Any) -> str | None:
        """The path of a repeated member in the text of one record, from which `value` was parsed; None where there is none."""
        return next((".".join(path) for path in elements(text)[0].twice if self._counts(path)), None) if differs(text, value) else None

    def in_lines(self, lines: Sequence[bytes], values: Sequence[Any]) -> dict[int, str]:
        """The path of a repeated member by the index of its line. Lines that are no objects are skipped."""
        whole = [index for index, value in enumerate(values) if isinstance(value, dict)]
        if not differs(b"".join([lines[index] for index in whole]), [values[index] for index in whole]):
            return {}
        found = ((index, self.in_text(lines[index], values[index])) for index in whole)
        return {index: path for index, path in found if path is not None}

    def in_elements(self, text: bytes, values: list[Any]) -> dict[int, tuple[str, bytes]]:
        """The path of a repeated member and the record's text by the index of the record, for records with commas between."""
        if not differs(b"[" + text + b"]", values):
            return {}
        found = ((index, element, next(filter(self._counts, element.twice), None)) for index, element in enumerate(elements(text)))
        return {index: (".".join(path), text[element.start : element.end]) for index, element, path in found if path is not None}

    def _counts(self, path: Path) -> bool:
        below = len(self.steps)
        return self.read is None or len(path) <= below or path[:below] != tuple(self.steps) or path[below] in self.read


def differs(text: bytes, value: Any) -> bool:
    """Whether the text has more members than the value that was parsed from it, or is too deep to be sure."""
    try:
        return _colons(text) != orjson.dumps(value).count(b":")
    except orjson.JSONEncodeError:
        return True


def _colons(text: bytes) -> int:
    """The number of colons in a JSON text: one a member, and the ones inside strings, escaped or not."""
    escaped = sum(found[1] is not None for found in _ESCAPE.finditer(text)) if b"\\u003" in text else 0
    return text.count(b":") + escaped


def elements(text: bytes) -> list[Element]:
    """The values of a text that consists of JSON values with commas between."""
    return list(_elements(text))


def _elements(text: bytes) -> Iterator[Element]:
    keys: list[set[str] | None] = []  # the keys of each open object so far; None for an open array
    path: list[str] = []  # the last key of each open object
    twice: dict[Path, None] = {}
    start, last = 0, b""
    for token in _TOKEN.finditer(text):
        kind = token[0][:1]
        if kind == b":":
            _note(orjson.loads(last), keys, path, twice)
        elif kind == b"{":
            keys.append(set())
            path.append("")
        elif kind == b"[":
            keys.append(None)
        elif kind in b"}]":
            if keys.pop() is not None:
                path.pop()
        elif kind == b"," and not keys:
            yield Element(start, token.start(), tuple(twice))
            start, twice = token.end(), {}
        last = token[0]
    yield Element(start, len(text), tuple(twice))


def _note(key: str, keys: list[set[str] | None], path: list[str], twice: dict[Path, None]) -> None:
    """Record a key of the innermost object."""
    seen = keys[-1]
    assert seen is not None  # a colon is in an object
    path[-1] = key
    if key in seen:
        twice[tuple(path)] = None
    seen.add(key)
