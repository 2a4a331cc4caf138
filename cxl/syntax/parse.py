"""From text to syntax tree. The grammar is `grammar.lark`; lark is imported when the first text is parsed."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from cxl.diagnostics.diagnostics import Diagnostic
from cxl.syntax import ast
from cxl.syntax.nesting_limit import ensure_room


class Comment(NamedTuple):
    """A comment and where it begins; `own_line` where only blanks come before it on its line."""

    text: str
    start: int
    own_line: bool


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed text: its statements or its expression, and its errors."""

    statements: tuple[ast.Statement, ...]
    expression: ast.Expr | None
    errors: tuple[Diagnostic, ...]


def parse_program(text: str) -> Parsed:
    """The statements of a program or a module, and every independent error. A statement with an error is left out."""
    return _remembered(text) if len(text) <= _REMEMBERED else _parse(text)


_REMEMBERED = 4096
"""How long a text may be whose tree is kept for the next one who asks."""


@lru_cache(maxsize=1024)
def _remembered(text: str) -> Parsed:
    return _parse(text)


def _parse(text: str) -> Parsed:
    statements, errors = _read(text, "program")
    return Parsed(statements, None, errors)


def parse_expression(text: str) -> Parsed:
    """One expression and nothing else, or its first error."""
    expression, errors = _read(text, "expression")
    return Parsed((), expression, errors)


def _read(text: str, start: str) -> tuple[Any, tuple[Diagnostic, ...]]:
    from cxl.syntax.reader import read

    ensure_room()
    return read(text, start)


def comments(text: str) -> tuple[Comment, ...]:
    """The comments of a text, in order."""
    from cxl.syntax.tables import parser

    found = (token for token in parser().lex(text, dont_ignore=True) if token.type == "COMMENT")
    return tuple(Comment(token.rstrip(), token.start_pos or 0, _begins_line(text, token.start_pos or 0)) for token in found)


def _begins_line(text: str, at: int) -> bool:
    return not text[max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1 : at].strip(" \t\ufeff")
