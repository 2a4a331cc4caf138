"""The part of a YAML text around a place, read although the text is not whole: what is being written there, and where it belongs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from errata.yaml import parse_yaml
from errata.yaml.nodes import Mapping, Node, Path, Scalar, Sequence

MARK = "zzplacezz"
"""The word at the place in the texts that are tried."""
LONGEST = 100_000
"""How many characters a node or a section may have in which something is completed."""
_TOP = re.compile(r"[A-Za-z_][A-Za-z0-9_]*[ \t]*:")
_ITEM = re.compile(r"( *)-(?= |$)")
_NAME = re.compile(r"[ \t]+name:[ \t]*[\"']?([A-Za-z0-9_.-]+)|[ \t]*-[ \t]+(?:\{.*\b)?name:[ \t]*[\"']?([A-Za-z0-9_.-]+)")
_KIND = re.compile(r"[ \t]*(?:-[ \t]+)?(?:\{[ \t]*)?type:[ \t]*[\"']?([a-z]+)")


@dataclass(frozen=True, slots=True)
class Fragment:
    """The text that is being written at a place.

    Args:
        value: The plain value of the part that was read: the top level with the node, or the section, around the place.
        path: The way to what is being written. A node has the position 0.
        on_key: Whether it is a key.
        before: What of the key or the text stands before the place.
        after: What of it stands behind.
        alone: Whether it is a value on a line of its own, so that it may become a map.
    """

    value: Any
    path: Path
    on_key: bool
    before: str
    after: str
    alone: bool

    @property
    def node(self) -> dict[str, Any]:
        """The node around the place; empty where there is none."""
        nodes = self.value.get("nodes") if isinstance(self.value, dict) and self.path[:1] == ("nodes",) else None
        found = nodes[0] if isinstance(nodes, list) and nodes else None
        return found if isinstance(found, dict) else {}


def fragment_at(text: str, offset: int) -> Fragment | None:
    """Return what is being written at an offset; None where it is not known."""
    part, at = _around(text, offset)
    if len(part) > LONGEST:
        return None
    for tried in dict.fromkeys(_tries(part, at)):
        document = parse_yaml(tried, env={})
        found = _marked(document.root, ())
        if found is not None:
            return _fragment(document.value, found, tried)
    return None


def _around(text: str, offset: int) -> tuple[str, int]:
    """The node or the section around an offset as a text of its own, and the offset in it."""
    lines = text[:offset].split("\n")
    rest = text[offset:].split("\n")
    whole = [*lines[:-1], lines[-1] + rest[0], *rest[1:]]
    current = len(lines) - 1
    top = next((index for index in range(current, -1, -1) if _TOP.match(whole[index])), None)
    if top is None:
        return text, offset
    end = next((index for index in range(current + 1, len(whole)) if _TOP.match(whole[index])), len(whole))
    if top == current or not whole[top].startswith("nodes"):
        return _part(whole, top, end, current, len(lines[-1]))
    items = [index for index in range(top + 1, end) if (found := _ITEM.match(whole[index])) and len(found[1]) == _indent(whole, top, end)]
    start = next((index for index in reversed(items) if index <= current), None)
    if start is None:
        return _part(whole, top, end, current, len(lines[-1]))
    stop = next((index for index in items if index > current), end)
    part, at = _part(whole, start, stop, current, len(lines[-1]))
    return f"nodes:\n{part}", at + len("nodes:\n")


def _indent(lines: list[str], top: int, end: int) -> int:
    """The indentation of the items of a list."""
    return next((len(found[1]) for line in lines[top + 1 : end] if (found := _ITEM.match(line))), 0)


def _part(lines: list[str], start: int, end: int, current: int, column: int) -> tuple[str, int]:
    before = sum(len(line) + 1 for line in lines[start:current])
    return "\n".join(lines[start:end]) + "\n", before + column


def _tries(text: str, at: int) -> Iterator[str]:
    """The text with the mark at the place, in the ways in which it may be YAML."""
    head, tail = text[:at], text[at:]
    line_end = tail.find("\n") if "\n" in tail else len(tail)
    rest = tail[line_end:]
    line_start = head.rfind("\n") + 1
    word = re.search(r"[^\s,{}\[\]:]*\Z", head[line_start:])
    typed = word[0] if word else ""
    bare = head[: len(head) - len(typed)]
    closing = _closing(head[line_start:])
    for behind in (tail, f"{closing}{tail}", rest, f"{closing}{rest}", f"{closing}\n"):
        yield f"{head}{MARK}{behind}"
        yield f"{head}{MARK}:{behind}"
        yield f"{bare}{typed}{MARK}: null{behind}"
    yield f"{head[:line_start]}{' ' * (at - line_start - len(typed))}{typed}{MARK}:{rest}"


def _closing(line: str) -> str:
    """The brackets that close the open ones of a line."""
    open_: list[str] = []
    quote = ""
    for one in line:
        if quote:
            quote = "" if one == quote else quote
        elif one in "\"'":
            quote = one
        elif one in "[{":
            open_.append("]" if one == "[" else "}")
        elif one in "]}" and open_:
            open_.pop()
    return quote + "".join(reversed(open_))


def _marked(node: Node, path: Path) -> tuple[Path, bool, str, int] | None:
    """The way to the mark, whether it is in a key, the text with it, and the offset of the text."""
    if isinstance(node, Scalar):
        return (path, False, node.parsed, node.start) if MARK in node.parsed else None
    if isinstance(node, Sequence):
        return next((found for index, item in enumerate(node.items) if (found := _marked(item, (*path, index)))), None)
    for name, (key, inner) in node.entries.items():
        if MARK in key.text:
            return (*path, name), True, key.text, key.start
        found = _marked(inner, (*path, name))
        if found:
            return found
    return None


def _fragment(value: Any, found: tuple[Path, bool, str, int], tried: str) -> Fragment:
    path, on_key, text, start = found
    before, _, after = text.partition(MARK)
    line = tried[tried.rfind("\n", 0, start) + 1 : start]
    alone = not on_key and not line.replace("-", " ").strip()
    return Fragment(value, path, on_key, before, after, alone)


def node_names(text: str) -> dict[str, str]:
    """Return the names of the nodes of a text with their types, read line by line, so that no other line has to be right."""
    lines = text.split("\n")
    top = next((index for index, line in enumerate(lines) if line.startswith("nodes")), None)
    if top is None:
        return {}
    indent = _indent(lines, top, len(lines))
    found: dict[str, str] = {}
    kind = name = ""
    for line in lines[top + 1 :]:
        item = _ITEM.match(line)
        if item and len(item[1]) == indent:
            found |= {name: kind} if name else {}
            kind = name = ""
        elif not item and len(line) - len(line.lstrip(" ")) > indent + 2:
            continue
        kind = matched[1] if (matched := _KIND.match(line)) and not kind else kind
        name = (matched[1] or matched[2]) if (matched := _NAME.match(line)) and not name else name
    return found | ({name: kind} if name else {})


def key_names(value: Mapping | object) -> frozenset[str]:
    """Return the keys of a plain map, without the mark."""
    return frozenset(str(key) for key in value if MARK not in str(key)) if isinstance(value, dict) else frozenset()
