"""`cxl fmt`: a program in one style, its comments and the blank lines between its groups kept.

A statement stands on its own line; one that is too long is broken at `else`, at the arms of match, at the parts of an array
or a map, or at its loosest operators. Parsing the result gives the same tree.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from cxl.diagnostics.diagnostics import CxlErrors, Findings
from cxl.diagnostics.source import TextOrigin
from cxl.syntax import ast
from cxl.syntax.canonical import (
    chain_parts,
    each_head,
    entry_text,
    expression_text,
    needs_parentheses,
    statement_head,
    statement_text,
    subject_text,
    then_text,
)
from cxl.syntax.parse import Comment, comments, parse_program

WIDTH = 100
"""Longer lines are broken where they can be."""
_INDENT = "  "


def format_text(text: str, file: str = "") -> str:
    """The program in canonical format, ending with a line break (empty for an empty program). Raises `CxlErrors`."""
    parsed = parse_program(text)
    if parsed.errors:
        findings = Findings()
        findings.add(parsed.errors)
        raise CxlErrors(findings.located(text, TextOrigin(text, file)))
    writer = _Writer(text, list(comments(text)))
    writer.block(parsed.statements, "")
    writer.comments_before(len(text) + 1, "")
    lines = writer.lines
    return "\n".join(lines) + "\n" if lines else ""


@dataclass(slots=True)
class _Writer:
    """The lines written so far, and the comments that are still to be put somewhere."""

    text: str
    comments: list[Comment]
    lines: list[str] = field(default_factory=list)
    end: int = 0

    def block(self, statements: tuple[ast.Statement, ...], indent: str) -> None:
        """Statements, with the comments before, in and behind each."""
        for statement in statements:
            self.comments_before(statement.span.start, indent)
            self._blank_line(statement.span.start)
            if isinstance(statement, ast.EmitEach):
                self._each(statement, indent)
            else:
                self._plain(statement, indent)

    def _plain(self, statement: ast.Statement, indent: str) -> None:
        inner = self._take(statement.span.end)
        for comment in inner:
            self.lines.append(indent + comment.text)
        self.lines.extend(indent + line for line in statement_lines(statement, WIDTH - len(indent)))
        self.end = statement.span.end
        self._trailing()

    def _each(self, statement: ast.EmitEach, indent: str) -> None:
        for comment in self._take(statement.open_at):
            self.lines.append(indent + comment.text)
        self.lines.append(indent + each_head(statement))
        self.end = statement.open_at + 1
        self._trailing()
        self.block(statement.body, indent + _INDENT)
        self.comments_before(statement.span.end, indent + _INDENT)
        self.lines.append(indent + "}")
        self.end = statement.span.end
        self._trailing()

    # Comments and blank lines -------------------------------------------------------------------------------------------

    def _take(self, before: int) -> list[Comment]:
        taken = []
        while self.comments and self.comments[0].start < before:
            taken.append(self.comments.pop(0))
        return taken

    def comments_before(self, place: int, indent: str) -> None:
        """The comments up to a place, each on its own line."""
        for comment in self._take(place):
            self._blank_line(comment.start)
            self.lines.append(indent + comment.text)
            self.end = comment.start + len(comment.text)

    def _trailing(self) -> None:
        """A comment on the line where a statement ends stays there."""
        if self.comments and not self.comments[0].own_line and self._same_line(self.comments[0].start):
            comment = self.comments.pop(0)
            self.lines[-1] += f"  {comment.text}"
            self.end = comment.start + len(comment.text)

    def _same_line(self, place: int) -> bool:
        return not self.text[self.end : place].strip(" \t\ufeff")

    def _blank_line(self, place: int) -> None:
        """One blank line where there were some, and none at the start of the program or of a block."""
        between = self.text[self.end : place].replace("\r\n", "\n").replace("\r", "\n")
        if self.lines and between.count("\n") > 1 and not self.lines[-1].endswith("{"):
            self.lines.append("")


# Statements on several lines --------------------------------------------------------------------------------------------


def statement_lines(statement: ast.Statement, width: int = WIDTH) -> list[str]:
    """A statement on one line, or broken where it is longer than `width`."""
    text = statement_text(statement)
    head, value = statement_head(statement)
    if (len(text) <= width and not _has_arms(value)) or value is None:
        return [text]
    lines = [] if needs_parentheses(statement) else _broken(value)
    if not lines:
        return [text]
    deeper = "" if isinstance(value, ast.Match | ast.Array | ast.Map) else _INDENT
    return [head + lines[0], *(deeper + line for line in lines[1:])]


def _has_arms(value: ast.Expr | None) -> bool:
    """A match with more than one arm is always broken: it is a table."""
    return isinstance(value, ast.Match) and len(value.arms) > 1


def _broken(value: ast.Expr) -> list[str]:
    """Return the lines of an expression at the end of a statement. The caller indents all lines but the first."""
    if isinstance(value, ast.Match):
        return _match_lines(value)
    if isinstance(value, ast.If):
        return _if_lines(value)
    if isinstance(value, ast.Binary | ast.Coalesce):
        return _operator_lines(value)
    if isinstance(value, ast.Array) and value.elements:
        return ["[", *_listed(map(expression_text, value.elements)), "]"]
    if isinstance(value, ast.Map) and value.entries:
        return ["{", *_listed(map(entry_text, value.entries)), "}"]
    return []


def _listed(parts: Iterable[str]) -> list[str]:
    """One part a line, with a comma behind all but the last."""
    *before, last = parts
    return [*(f"{_INDENT}{part}," for part in before), _INDENT + last]


def _match_lines(value: ast.Match) -> list[str]:
    subject = f"{subject_text(value.subject)} " if value.subject is not None else ""
    arms = (f"{expression_text(arm.pattern)} => {expression_text(arm.result)}" for arm in value.arms)
    return [f"match {subject}{{", *(_listed(arms) if value.arms else []), "}"]


def _if_lines(value: ast.If) -> list[str]:
    lines, prefix = [], ""
    node: ast.Expr | None = value
    while isinstance(node, ast.If):
        lines.append(f"{prefix}if {expression_text(node.condition)} then {then_text(node)}")
        node, prefix = node.otherwise, "else "
    return lines if node is None else [*lines, f"else {expression_text(node)}"]


def _operator_lines(value: ast.Binary | ast.Coalesce) -> list[str]:
    """One operand of the loosest operator a line, the operator before it."""
    parts = chain_parts(value)
    return [parts[0][1], *(f"{op} {text}" for op, text in parts[1:])]
