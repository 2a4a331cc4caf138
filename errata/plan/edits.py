"""Where the text of a node differs from the last epoch, for the reasons of `errata plan`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from operators.core.settings import NodeSpec

DIGITS = 6
"""Hex digits that a line is kept as."""
EXPRESSIONS = ("cxl", "where")


def written(spec: NodeSpec) -> dict[str, str]:
    """The ledger's record of a node's text: by key of its configuration the digests of its lines, without empty lines and comments."""
    return {key: "".join(digest for _, digest in lines) for key, lines in _keys(spec)}


def beside(things: Mapping[str, Any]) -> dict[str, str]:
    """The ledger's record of what else a node's logic depends on: digests by the name that users know."""
    return {name: _digest(repr(thing)) for name, thing in things.items()}


def changed_beside(now: Mapping[str, str], before: Mapping[str, str]) -> list[str]:
    """Which of them are others than before."""
    return [f"{name} changed" for name, digest in now.items() if before.get(name, digest) != digest]


def edited(spec: NodeSpec, before: Mapping[str, str]) -> str:
    """Which keys differ from what `written` gave, each with the first line that does, and which are gone; empty where none does."""
    found = [(line, key) for key, lines in _keys(spec) if (line := _first_other(lines, before.get(key, ""))) is not None]
    beyond = f" of {PurePath(spec.document.file).name}" if "/" in spec.name else ""
    gone = [f"{_named(key)} removed" for key in before.keys() - dict(_keys(spec)).keys()]
    return "; ".join([*(f"{_named(key)} changed at line {line}{beyond}" for line, key in sorted(found)), *sorted(gone)])


def _named(key: str) -> str:
    return "expression" if key in EXPRESSIONS else f"'{key}'"


def _first_other(lines: list[tuple[int, str]], before: str) -> int | None:
    """The first line that is another or new; where lines are only gone, the last one ahead of them. None where all are as they were."""
    kept = [before[at : at + DIGITS] for at in range(0, len(before), DIGITS)]
    if kept == [digest for _, digest in lines]:
        return None
    at = next((at for at, (_, digest) in enumerate(lines) if kept[at : at + 1] != [digest]), len(lines) - 1)
    return lines[at][0]


def _keys(spec: NodeSpec) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Each key of the configuration with its lines: number in the file and digest."""
    place = spec.path if spec.kind == "expect" else (*spec.path, "config")
    node: Any = spec.document.node_at(place) if spec.document is not None else None
    listed = {f"expect {at}": (None, item) for at, item in enumerate(getattr(node, "items", ()))} if spec.kind == "expect" and not hasattr(node, "entries") else {}
    for key, (_, value) in getattr(node, "entries", listed).items():
        lines = list(_lines(spec.document.source, value.start, value.end))
        if lines:
            yield key, lines


def _lines(source: Any, start: int, end: int) -> Iterator[tuple[int, str]]:
    for number in range(source.locate(start).line, source.locate(end).line + 1):
        begins, ends = source.line_bounds(number)
        text = source.text[max(begins, start) : min(ends, end)].strip()
        if text and not text.startswith("#"):
            yield number, _digest(text)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=DIGITS // 2).hexdigest()
