"""Syntax tree from the parser's reductions: one method for each rule of `grammar.lark`.

Every method gets what the rule read, tokens included, because places are made from tokens.
"""

import re
import threading
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from cxl.diagnostics.source import Span
from cxl.syntax import ast

if TYPE_CHECKING:
    from lark import Token

Parts: TypeAlias = "list[Any]"

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}


def span_of(token: "Token") -> Span:
    """The place of a token."""
    return Span(token.start_pos or 0, token.end_pos or 0)


def calendar_day(text: str) -> date | None:
    """The date of `#2024-01-31#`; None where the calendar has no such day."""
    try:
        return date(*map(int, text[1:-1].split("-")))
    except ValueError:
        return None


class TreeBuilder(threading.local):
    """Builds nodes for one parse a thread. `end` is the end of the last token that the parser has read."""

    end = 0

    def _since(self, start: Span) -> Span:
        """From `start` to the last token; a node's own span leaves out parentheses around it."""
        return Span(start.start, self.end)

    # Statements ---------------------------------------------------------------------------------------------------------

    def program(self, parts: Parts) -> tuple[ast.Statement, ...]:
        """The statements of a program."""
        return tuple(parts)

    block = program

    def let(self, parts: Parts) -> ast.Let:
        """`let name = value`."""
        start, name, _, value = parts
        return ast.Let(self._since(span_of(start)), str(name), span_of(name), value)

    def emit(self, parts: Parts) -> ast.Emit:
        """`emit name = value`."""
        start, name, _, value = parts
        return ast.Emit(self._since(span_of(start)), str(name), span_of(name), value)

    def emit_all(self, parts: Parts) -> ast.EmitAll:
        """`emit name.*`."""
        start, name, *_ = parts
        return ast.EmitAll(self._since(span_of(start)), str(name), span_of(name))

    def emit_meta(self, parts: Parts) -> ast.EmitMeta:
        """`emit meta name = value`, `emit $meta.name = value`."""
        start, *_, name, _, value = parts
        return ast.EmitMeta(self._since(span_of(start)), str(name), span_of(name), value)

    def emit_each(self, parts: Parts) -> ast.EmitEach:
        """`emit each binding in source outer { body }`."""
        start, _, binding, _, source, *outer, brace, body, _ = parts
        return ast.EmitEach(self._since(span_of(start)), str(binding), source, bool(outer), brace.start_pos, body)

    def filter(self, parts: Parts) -> ast.Filter:
        """`filter condition`."""
        start, condition = parts
        return ast.Filter(self._since(span_of(start)), condition)

    def distinct(self, parts: Parts) -> ast.Distinct:
        """`distinct`, `distinct by name`."""
        start, name = span_of(parts[0]), parts[-1]
        if len(parts) == 1:
            return ast.Distinct(start, None, start)
        return ast.Distinct(start.to(span_of(name)), str(name), span_of(name))

    def trace(self, parts: Parts) -> ast.Trace:
        """`trace level message`; an `if` without `else` guards the message, unless it is in parentheses."""
        start, *level, message = parts
        span, word = self._since(span_of(start)), str(level[0]) if level else None
        if isinstance(message, ast.If) and message.otherwise is None and message.span.end == span.end:
            return ast.Trace(span, word, message.condition, message.then)
        return ast.Trace(span, word, None, message)

    def use(self, parts: Parts) -> ast.Use:
        """`use path as alias`."""
        start, *names = parts
        alias = str(names[-1]) if len(names) > 1 and names[-2].type == "AS" else None
        path = tuple(str(name) for name in (names[:-2] if alias else names) if name != ".")
        return ast.Use(self._since(span_of(start)), path, alias)

    def fn(self, parts: Parts) -> ast.Fn:
        """`fn name(params) = body`."""
        start, name, _, *params, _, _, body = parts
        return ast.Fn(self._since(span_of(start)), str(name), span_of(name), tuple(str(one) for one in params if one != ","), body)

    # Operators ----------------------------------------------------------------------------------------------------------

    def coalesce(self, parts: Parts) -> ast.Coalesce:
        """`left ?? right`."""
        left, operator, right = parts
        return ast.Coalesce(left.span.to(right.span), span_of(operator), left, right)

    def binary(self, parts: Parts) -> ast.Binary:
        """`left op right`."""
        left, operator, right = parts
        return ast.Binary(left.span.to(right.span), str(operator), span_of(operator), left, right)

    def unary(self, parts: Parts) -> ast.Unary:
        """`-x`, `not x`."""
        operator, operand = parts
        return ast.Unary(span_of(operator).to(operand.span), str(operator), operand)

    # Behind an operand --------------------------------------------------------------------------------------------------

    def member(self, parts: Parts) -> ast.Member:
        """`receiver.name`."""
        receiver, _, name = parts
        return ast.Member(receiver.span.to(span_of(name)), receiver, str(name), span_of(name))

    def method_call(self, parts: Parts) -> ast.MethodCall:
        """`receiver.name(args)`."""
        receiver, _, name, args = parts
        return ast.MethodCall(self._since(receiver.span), receiver, str(name), span_of(name), args)

    def index(self, parts: Parts) -> ast.Index:
        """`receiver[index]`."""
        receiver, _, index, _ = parts
        return ast.Index(self._since(receiver.span), receiver, index)

    def arguments(self, parts: Parts) -> tuple[ast.Expr, ...]:
        """The arguments of a call."""
        return tuple(one for one in parts if isinstance(one, ast.Node))  # type: ignore[misc]  # the grammar lets nothing else in

    method_arguments = arguments

    def closure(self, parts: Parts) -> ast.Closure:
        """`it => body`."""
        start, _, body = parts
        return ast.Closure(span_of(start).to(body.span), body)

    # Operands -----------------------------------------------------------------------------------------------------------

    def int(self, parts: Parts) -> ast.Literal:
        """A whole number."""
        return ast.Literal(span_of(parts[0]), "int", int(parts[0]))

    def float(self, parts: Parts) -> ast.Literal:
        """A number with a point."""
        return ast.Literal(span_of(parts[0]), "float", float(parts[0]))

    def decimal(self, parts: Parts) -> ast.Literal:
        """A Decimal: digits and the letter d. The value keeps zeros at its end."""
        return ast.Literal(span_of(parts[0]), "decimal", Decimal(parts[0][:-1]))

    def string(self, parts: Parts) -> ast.Literal:
        """A text; a backslash before an ordinary character stays."""
        return ast.Literal(span_of(parts[0]), "string", string_value(parts[0]))

    def date(self, parts: Parts) -> ast.Literal:
        """A date."""
        return ast.Literal(span_of(parts[0]), "date", calendar_day(parts[0]))

    def true(self, parts: Parts) -> ast.Literal:
        """`true`."""
        return ast.Literal(span_of(parts[0]), "bool", True)

    def false(self, parts: Parts) -> ast.Literal:
        """`false`."""
        return ast.Literal(span_of(parts[0]), "bool", False)

    def null(self, parts: Parts) -> ast.Literal:
        """`null`."""
        return ast.Literal(span_of(parts[0]), "null", None)

    def now(self, parts: Parts) -> ast.Now:
        """`now`."""
        return ast.Now(span_of(parts[0]))

    def name(self, parts: Parts) -> ast.Name:
        """A name, or `it`."""
        return ast.Name(span_of(parts[0]), str(parts[0]))

    def wildcard(self, parts: Parts) -> ast.Wildcard:
        """`_`."""
        return ast.Wildcard(span_of(parts[0]))

    def system(self, parts: Parts) -> ast.SystemRoot:
        """`$namespace`."""
        dollar, name = parts
        return ast.SystemRoot(span_of(dollar).to(span_of(name)), str(name))

    def group(self, parts: Parts) -> ast.Expr:
        """`(value)`: only the tree shows that there were parentheses."""
        value: ast.Expr = parts[1]
        return value

    def call(self, parts: Parts) -> ast.FreeCall:
        """`name(args)`; its place is the name."""
        name, args = parts
        return ast.FreeCall(span_of(name), str(name), span_of(name), args, False)

    def call_all(self, parts: Parts) -> ast.FreeCall:
        """`name(*)`."""
        name = parts[0]
        return ast.FreeCall(self._since(span_of(name)), str(name), span_of(name), (), True)

    def module_constant(self, parts: Parts) -> ast.ModuleMember:
        """`alias::name`."""
        return self._module_member(parts, None)

    def module_call(self, parts: Parts) -> ast.ModuleMember:
        """`alias::name(args)`."""
        return self._module_member(parts, parts[3])

    def _module_member(self, parts: Parts, args: tuple[ast.Expr, ...] | None) -> ast.ModuleMember:
        alias, _, name = parts[:3]
        return ast.ModuleMember(self._since(span_of(alias)), str(alias), span_of(alias), str(name), span_of(name), args)

    def array(self, parts: Parts) -> ast.Array:
        """`[a, b]`."""
        return ast.Array(self._since(span_of(parts[0])), tuple(one for one in parts if isinstance(one, ast.Node)))  # type: ignore[misc]  # the grammar lets nothing else in

    def comprehension(self, parts: Parts) -> ast.Comprehension:
        """`[element for name in source if condition]`."""
        start, element, _, name, _, source, *condition, _ = parts
        return ast.Comprehension(self._since(span_of(start)), element, str(name), source, condition[1] if condition else None)

    def map(self, parts: Parts) -> ast.Map:
        """`{key: value}`."""
        return ast.Map(self._since(span_of(parts[0])), tuple(one for one in parts if isinstance(one, ast.Entry)))

    def entry(self, parts: Parts) -> ast.Entry:
        """`key: value`: a word, or a string."""
        key, _, value = parts
        text = string_value(key) if key.type == "STRING" else str(key)
        return ast.Entry(span_of(key).to(value.span), ast.Literal(span_of(key), "string", text), False, value)

    def computed_entry(self, parts: Parts) -> ast.Entry:
        """`[key]: value`."""
        start, key, _, _, value = parts
        return ast.Entry(span_of(start).to(value.span), key, True, value)

    def if_(self, parts: Parts) -> ast.If:
        """`if condition then value else alternative`."""
        start, condition, _, then, *otherwise = parts
        return ast.If(self._since(span_of(start)), condition, then, otherwise[1] if otherwise else None)

    def match_(self, parts: Parts) -> ast.Match:
        """`match subject { arms }`."""
        start, *inner = parts
        subject = None if getattr(inner[0], "type", "") == "LBRACE" else inner[0]
        return ast.Match(self._since(span_of(start)), subject, tuple(one for one in inner if isinstance(one, ast.Arm)))

    def arm(self, parts: Parts) -> ast.Arm:
        """`pattern => result`."""
        pattern, _, result, *_ = parts
        return ast.Arm(pattern.span.to(result.span), pattern, result)


def string_value(literal: str) -> str:
    """The text that a string literal stands for."""
    body = literal[1:-1]
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[0]), body) if "\\" in body else str(body)
