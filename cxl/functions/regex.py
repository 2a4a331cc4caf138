"""Regex methods. RE2 decides what a pattern is and what it matches.

Java's and Rust's regular expressions differ, so only what RE2, Java and Rust read alike becomes a Spark column. `portable`
rewrites a pattern with explicit classes and anchors. Word boundaries, nested repetition, rare escapes and groups go to the interpreter.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cxl.functions.registry import Builtin, Param, register
from cxl.functions.spark_call import NOT_CONSTANT, Site
from cxl.types.types import BOOL, INT, STRING

_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": "\\x{9}\\x{A}\\x{C}\\x{D}\\x{20}"}
_CONTROLS = {"t": 9, "n": 10, "r": 13, "f": 12, "v": 11}
_SECTION = "Regex operations"


class NotPortable(Exception):
    """A pattern that engines may read differently."""


@lru_cache(maxsize=512)
def compiled(pattern: str) -> Any:
    """Return the RE2 pattern. Raises `re2.error` for an invalid one."""
    import re2

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


@dataclass(frozen=True, slots=True)
class Portable:
    """A pattern in the dialect that all engines share.

    Args:
        certain: The groups that take part in every match.
    """

    text: str
    certain: frozenset[int]
    nonempty: frozenset[int]


@lru_cache(maxsize=512)
def portable(pattern: str) -> Portable | None:
    """Return the pattern rewritten for Spark, None where engines differ on it."""
    try:
        return _Rewriter(pattern).run()
    except NotPortable:
        return None


@dataclass(slots=True)
class _Group:
    """A group under construction. `blank`: whether the alternative so far can match the empty text."""

    number: int | None = None
    alternatives: bool = False
    branches: bool = False
    repeats: bool = False
    blank: bool = True
    empty: bool = False
    groups: tuple[int, ...] = ()


class _Rewriter:
    """One pass over a pattern. `atom` is what a following quantifier would repeat."""

    def __init__(self, pattern: str) -> None:
        self.rest = pattern
        self.out: list[str] = []
        self.stack = [_Group()]
        self.count = 0
        self.atom: _Group | None = None
        self.blank_before = True
        self.certain: set[int] = set()
        self.nonempty: set[int] = set()

    def run(self) -> Portable:
        if self.rest.startswith("(?i)"):
            self.rest = self.rest[4:]
            if not self.rest.isascii():
                raise NotPortable
            self.out.append("(?iu)")
        while self.rest:
            char, self.rest = self.rest[0], self.rest[1:]
            _STEPS.get(char, _Rewriter.plain)(self, char)
        if len(self.stack) != 1:
            raise NotPortable
        self._finish(self.stack[0])
        return Portable("".join(self.out), frozenset(self.certain), frozenset(self.nonempty))

    def plain(self, char: str) -> None:
        self._add(_literal(char))

    def _add(self, text: str) -> None:
        self.out.append(text)
        self._join(_Group())

    def dot(self, _: str) -> None:
        self._add("[^\\x{A}]")

    def anchor(self, char: str) -> None:
        self.out.append("\\A" if char == "^" else "\\z")
        self.atom = None

    def escape(self, _: str) -> None:
        char, self.rest = self.rest[:1], self.rest[1:]
        if char.lower() in _CLASSES:
            self._add(f"[{'^' if char.isupper() else ''}{_CLASSES[char.lower()]}]")
        else:
            self._add(_literal(_escaped(char)))

    def set(self, _: str) -> None:
        end = self._set_end()
        body, self.rest = self.rest[:end], self.rest[end + 1 :]
        negated = body.startswith("^")
        self._add(f"[{'^' if negated else ''}{''.join(_set_items(body[negated:]))}]")

    def _set_end(self) -> int:
        start = 2 if self.rest.startswith("^") else 1
        index = start
        while index < len(self.rest) and self.rest[index] != "]":
            index += 2 if self.rest[index] == "\\" else 1
        if index >= len(self.rest) or self.rest[start - 1] == "]":
            raise NotPortable
        return index

    def open(self, _: str) -> None:
        if self.rest.startswith("?:"):
            self.rest = self.rest[2:]
            self.stack.append(_Group())
            self.out.append("(?:")
        elif self.rest.startswith("?"):
            raise NotPortable
        else:
            self.count += 1
            self.certain.add(self.count)
            self.stack.append(_Group(self.count, groups=(self.count,)))
            self.out.append("(")
        self.atom = None

    def close(self, _: str) -> None:
        if len(self.stack) == 1:
            raise NotPortable
        group = self.stack.pop()
        self._finish(group)
        if group.number is not None and not group.empty:
            self.nonempty.add(group.number)
        self.out.append(")")
        self._join(group)

    def _finish(self, group: _Group) -> None:
        group.empty |= group.blank
        if group.alternatives:
            self.certain.difference_update(one for one in group.groups if one != group.number)

    def _join(self, group: _Group) -> None:
        parent = self.stack[-1]
        self.blank_before = parent.blank
        parent.groups += group.groups
        parent.repeats |= group.repeats
        parent.branches |= group.branches
        parent.blank &= group.empty
        self.atom = group

    def alternative(self, _: str) -> None:
        group = self.stack[-1]
        group.empty |= group.blank
        group.alternatives = group.branches = group.blank = True
        self.out.append("|")
        self.atom = None

    def repeat(self, char: str) -> None:
        atom = self.atom
        if atom is None or atom.empty or (char != "?" and (atom.repeats or atom.branches)):
            raise NotPortable
        self.out.append(char if char != "{" else self._bounds())
        if self.rest[:1] == "?":
            self.out.append("?")
            self.rest = self.rest[1:]
        if self.rest[:1] in ("*", "+", "?", "{"):
            raise NotPortable
        self.stack[-1].repeats |= char != "?"
        if char in "*?{":
            self.certain.difference_update(atom.groups)
            self.stack[-1].blank = self.blank_before
        self.atom = None

    def _bounds(self) -> str:
        body, brace, self.rest = self.rest.partition("}")
        low, _, high = body.partition(",")
        if not brace or not low.isascii() or not low.isdigit() or (high and not high.isdigit()):
            raise NotPortable
        return f"{{{body}}}"

    def refuse(self, _: str) -> None:
        raise NotPortable


_STEPS: dict[str, Any] = {
    ".": _Rewriter.dot, "^": _Rewriter.anchor, "$": _Rewriter.anchor, "\\": _Rewriter.escape, "[": _Rewriter.set, "(": _Rewriter.open,
    ")": _Rewriter.close, "|": _Rewriter.alternative, "*": _Rewriter.repeat, "+": _Rewriter.repeat, "?": _Rewriter.repeat, "{": _Rewriter.repeat,
    "}": _Rewriter.refuse, "]": _Rewriter.refuse,
}  # fmt: skip


def _literal(char: str) -> str:
    return char if char.isalnum() and char.isascii() else f"\\x{{{ord(char):X}}}"


def _escaped(char: str) -> str:
    if char in _CONTROLS:
        return chr(_CONTROLS[char])
    if not char or char.isalnum() or not char.isascii():
        raise NotPortable
    return char


def _set_items(body: str) -> Iterator[str]:
    index = 0
    while index < len(body):
        char, index = body[index], index + 1
        if char == "[":
            raise NotPortable
        if char == "\\":
            char, index = body[index : index + 1], index + 1
            if char in _CLASSES:
                yield _CLASSES[char]
                continue
            char = _escaped(char)
        elif char == "-" and 1 < index < len(body):
            yield "-"
            continue
        yield _literal(char)


def literal_pattern(text: str) -> str:
    """Return a pattern in the shared dialect that matches just this text."""
    return "".join(map(_literal, text))


# The methods ------------------------------------------------------------------------------------------------------------
def _pattern(site: Site) -> Portable | None:
    constant = site.constants[0]
    return portable(constant) if isinstance(constant, str) else None


def _matches(site: Site) -> Any:
    pattern = _pattern(site)
    return None if pattern is None else site.receiver.rlike(_whole(pattern.text))


def _whole(text: str) -> str:
    flag = "(?iu)" if text.startswith("(?iu)") else ""
    return f"{flag}\\A(?:{text.removeprefix('(?iu)')})\\z"


def _find(site: Site) -> Any:
    pattern = _pattern(site)
    return None if pattern is None else site.receiver.rlike(pattern.text)


def _capture(value: str, pattern: str, group: int = 0) -> str | None:
    found = compiled(pattern).search(value)
    if found is None or not 0 <= group <= compiled(pattern).groups:
        return None
    text: str | None = found.group(group)
    return text


def _capture_column(site: Site) -> Any:
    pattern, group = _pattern(site), site.constant(1, 0)
    if pattern is None or group is NOT_CONSTANT:
        return None
    if not 0 <= group <= compiled(site.constants[0]).groups:
        return site.f.lit(None).cast("string")
    text = site.f.regexp_extract(site.receiver, pattern.text, group)
    if group in pattern.nonempty:
        return site.f.when(text != "", text)
    return site.f.when(site.receiver.rlike(pattern.text), text) if group == 0 or group in pattern.certain else None


def _entry(name: str, doc: str, example: tuple[str, str], python: Any, spark: Any, **more: Any) -> None:
    params = (Param("pattern", STRING, regex=True), *more.pop("params", ()))
    settings = {"receiver": STRING, "returns": BOOL, "category": "String", "section": _SECTION, **more}
    register(Builtin(name=name, doc=doc, examples=(example,), python=python, spark=spark, params=params, **settings))


_entry("matches", "Whether the whole text matches the pattern.", ('"abc123".matches("[a-z]+\\d+")', "true"),
       lambda s, pattern: compiled(pattern).fullmatch(s) is not None, _matches)  # fmt: skip
_entry("find", "Whether some part of the text matches the pattern.", ('"hello world 42".find("[0-9]+")', "true"),
       lambda s, pattern: compiled(pattern).search(s) is not None, _find)  # fmt: skip
_entry("capture", "A group of the first match (0 is the whole match); null when nothing matches or the group takes no part.",
       ('"order-12345".capture("order-([0-9]+)", 1)', "12345"), _capture, _capture_column,
       params=(Param("group", INT, optional=True),), returns=STRING)  # fmt: skip
