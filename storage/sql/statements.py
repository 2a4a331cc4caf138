"""One statement that reads: the check that a pipeline's query is one, by reading past comments, texts and quoted names."""

from __future__ import annotations

import re
from typing import Final

READS: Final = ("SELECT", "WITH", "VALUES", "TABLE")
"""How a statement that reads begins."""
_SKIPPED = re.compile(
    r"""
    --[^\n]*                                      # a comment to the end of the line
    | '(?:[^']|'')*'                              # a text
    | "(?:[^"]|"")*"                              # a quoted name
    | `(?:[^`]|``)*`                              # the same in MySQL
    | \[[^\]]*\]                                  # the same in SQL Server, and an array index
    | \$(?P<tag>[A-Za-z_]\w*|)\$.*?\$(?P=tag)\$   # a dollar quote
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"[eE]'(?:[^'\\]|''|\\.)*'", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*")


def one_statement(text: str) -> str:
    """Return a query without its semicolon and what follows. Raises ValueError where it does not read, or where a second statement follows."""
    first, end = _first_word(text), _end(text)
    if first.upper() not in READS:
        begins = f"it begins with {first.upper()}" if first else "it is empty"
        raise ValueError(f"a query is one statement that begins with {', '.join(READS[:-1])} or {READS[-1]}; {begins}")
    if end is None:
        return text
    if _rest(text, end + 1):
        raise ValueError("a query is one statement; another one follows its semicolon")
    return text[:end]


def _first_word(text: str) -> str:
    at = 0
    while at < len(text):
        skipped = _comment_end(text, at)
        if skipped is not None:
            at = skipped
        elif text[at].isspace() or text[at] == "(":
            at += 1
        else:
            found = _WORD.match(text, at)
            return found[0] if found else text[at]
    return ""


def _rest(text: str, at: int) -> bool:
    """Whether anything but blanks, comments and semicolons follows."""
    while at < len(text):
        skipped = _comment_end(text, at)
        if skipped is None and not text[at].isspace() and text[at] != ";":
            return True
        at = at + 1 if skipped is None else skipped
    return False


def _comment_end(text: str, at: int) -> int | None:
    """Where a comment that begins at a place ends; None where none begins there."""
    if text.startswith("--", at):
        end = text.find("\n", at)
        return len(text) if end < 0 else end + 1
    return _block_end(text, at) if text.startswith("/*", at) else None


def _block_end(text: str, at: int) -> int:
    """Where a block comment ends, others inside it included."""
    depth, at = 1, at + 2
    while depth and at < len(text):
        if text.startswith("/*", at) or text.startswith("*/", at):
            depth += 1 if text[at] == "/" else -1
            at += 1
        at += 1
    return at


def _end(text: str) -> int | None:
    """Where the first semicolon stands that is in no comment, text or name."""
    at = 0
    while at < len(text):
        if text.startswith("/*", at):
            at = _block_end(text, at)
            continue
        found = _ESCAPED.match(text, at) if not at or not (text[at - 1].isalnum() or text[at - 1] == "_") else None
        found = found or _SKIPPED.match(text, at)
        if found is not None:
            at = found.end()
        elif text[at] == ";":
            return at
        else:
            at += 1
    return None
