"""One spelling of a program: blanks, line breaks, comments and needless parentheses gone (for fingerprints and `fmt`)."""

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from cxl.syntax import ast
from cxl.syntax.ast import TRACE_LEVELS
from cxl.syntax.parse import Parsed

_COALESCE, _POSTFIX, _UNARY = 1, 8, 7
_LEVELS = {
    "or": 2, "and": 3, "==": 4, "!=": 4, "<": 4, ">": 4, "<=": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6,
}  # fmt: skip
_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_NO_MESSAGE = ("-", *(f"{level}(" for level in TRACE_LEVELS))
_WORD = re.compile(r"(?!_\Z)[A-Za-z_][A-Za-z0-9_]*")
_AFTER_BACKSLASH = "\\\"'ntr\n\t\r"


def canonical_text(parsed: Parsed) -> str:
    """The statements (or the expression) of a text, one a line."""
    if parsed.expression is not None:
        return expression_text(parsed.expression)
    return "\n".join(statement_text(statement) for statement in parsed.statements)


def expression_text(node: ast.Expr | ast.Closure, level: int = 0) -> str:
    """An expression on one line; in parentheses where its operators bind less tight than `level` asks for."""
    text, own = _WRITERS[type(node)](node)
    return f"({text})" if own < level else text


def string_text(value: str) -> str:
    """A string literal that reads back as the value; a backslash before an ordinary character stands alone, as in patterns."""
    shown = (_character(one, value[index + 1 : index + 2]) for index, one in enumerate(value))
    return f'"{"".join(shown)}"'


def _character(character: str, following: str) -> str:
    if character == "\\" and following and following not in _AFTER_BACKSLASH:
        return character
    return _ESCAPED.get(character, character)


def _literal(node: ast.Literal) -> tuple[str, int]:
    if node.kind == "string":
        return string_text(node.value), 9
    if node.kind == "date":
        return f"#{node.value.isoformat()}#", 9
    if node.kind == "decimal":
        return f"{node.value:f}d", 9
    return _number_text(node.value) if node.kind == "float" else json.dumps(node.value), 9


def _number_text(value: float) -> str:
    """Without exponent: CXL has none."""
    text = format(Decimal(repr(value)), "f")
    return text if "." in text else f"{text}.0"


def _unary(node: ast.Unary) -> tuple[str, int]:
    operand = expression_text(node.operand, _UNARY)
    return f"{node.op}{' ' if node.op == 'not' or operand.startswith('-') else ''}{operand}", _UNARY


def _binary(node: ast.Binary) -> tuple[str, int]:
    return _joined(chain_parts(node)), _LEVELS[node.op]


def _coalesce(node: ast.Coalesce) -> tuple[str, int]:
    return _joined(chain_parts(node)), _COALESCE


def _joined(parts: list[tuple[str, str]]) -> str:
    return parts[0][1] + "".join(f" {op} {text}" for op, text in parts[1:])


def chain_parts(node: ast.Binary | ast.Coalesce) -> list[tuple[str, str]]:
    """The operands of a chain of one level, each with the operator before it (the first has none)."""
    return _coalesce_parts(node) if isinstance(node, ast.Coalesce) else _binary_parts(node)


def _coalesce_parts(node: ast.Coalesce) -> list[tuple[str, str]]:
    operands: list[ast.Expr] = [node.left]
    last = node.right
    while isinstance(last, ast.Coalesce):
        operands.append(last.left)
        last = last.right
    texts = [expression_text(one, _COALESCE + 1) for one in operands] + [expression_text(last, _COALESCE)]
    return [("??" if index else "", text) for index, text in enumerate(texts)]


def _binary_parts(node: ast.Binary) -> list[tuple[str, str]]:
    level = _LEVELS[node.op]
    chain = [node]
    while isinstance(chain[-1].left, ast.Binary) and _LEVELS[chain[-1].left.op] == level:
        chain.append(chain[-1].left)
    first = ("", expression_text(chain[-1].left, level))
    return [first, *((link.op, expression_text(link.right, level + 1)) for link in reversed(chain))]


def _if(node: ast.If) -> tuple[str, int]:
    """Level 0: an if reaches as far right as it can, so it stands in parentheses wherever something could follow."""
    text = f"if {expression_text(node.condition)} then {then_text(node)}"
    return (f"{text} else {expression_text(node.otherwise)}" if node.otherwise is not None else text), 0


def then_text(node: ast.If) -> str:
    """The branch of an if; in parentheses where the else would go to an if inside it."""
    text = expression_text(node.then)
    return f"({text})" if node.otherwise is not None and open_if(node.then) else text


def open_if(node: ast.Expr | ast.Closure) -> bool:
    """Whether the expression ends with an if that an `else` behind it would join."""
    while isinstance(node, ast.If) and node.otherwise is not None:
        node = node.otherwise
    return isinstance(node, ast.If)


def _match(node: ast.Match) -> tuple[str, int]:
    subject = f"{subject_text(node.subject)} " if node.subject is not None else ""
    arms = ", ".join(f"{expression_text(arm.pattern)} => {expression_text(arm.result)}" for arm in node.arms)
    return f"match {subject}{{ {arms} }}", 9


def subject_text(node: ast.Expr) -> str:
    """The text of an expression before a block; in parentheses where its first brace would open the block."""
    text = expression_text(node)
    return f"({text})" if text.startswith("{") else text


def _array(node: ast.Array) -> tuple[str, int]:
    return f"[{_arguments(node.elements)}]", 9


def _comprehension(node: ast.Comprehension) -> tuple[str, int]:
    condition = "" if node.condition is None else f" if {expression_text(node.condition)}"
    return f"[{expression_text(node.element)} for {node.name} in {expression_text(node.source)}{condition}]", 9


def _map(node: ast.Map) -> tuple[str, int]:
    return f"{{{', '.join(map(entry_text, node.entries))}}}", 9


def entry_text(node: ast.Entry) -> str:
    """An entry of a map; a key that is a word has no quotes."""
    if node.computed or not isinstance(node.key, ast.Literal):
        key = f"[{expression_text(node.key)}]"
    else:
        key = node.key.value if _WORD.fullmatch(node.key.value) else string_text(node.key.value)
    return f"{key}: {expression_text(node.value)}"


def _arguments(args: tuple[ast.Expr | ast.Closure, ...]) -> str:
    return ", ".join(expression_text(arg) for arg in args)


def _receiver(node: ast.Expr) -> str:
    return expression_text(node, _POSTFIX)


def _free(node: ast.FreeCall) -> tuple[str, int]:
    return f"{node.name}({'*' if node.star else _arguments(node.args)})", 9


def _module_member(node: ast.ModuleMember) -> tuple[str, int]:
    arguments = "" if node.args is None else f"({_arguments(node.args)})"
    return f"{node.alias}::{node.name}{arguments}", 9


_WRITERS: dict[type, Callable[[Any], tuple[str, int]]] = {
    ast.Literal: _literal, ast.Unary: _unary, ast.Binary: _binary, ast.Coalesce: _coalesce, ast.If: _if, ast.Match: _match,
    ast.Array: _array, ast.Comprehension: _comprehension, ast.Map: _map, ast.FreeCall: _free, ast.ModuleMember: _module_member,
    ast.Name: lambda node: (node.name, 9),
    ast.Now: lambda node: ("now", 9),
    ast.Wildcard: lambda node: ("_", 9),
    ast.SystemRoot: lambda node: (f"${node.namespace}", 9),
    ast.Closure: lambda node: (f"it => {expression_text(node.body)}", 9),
    ast.MethodCall: lambda node: (f"{_receiver(node.receiver)}.{node.name}({_arguments(node.args)})", _POSTFIX),
    ast.Member: lambda node: (f"{_receiver(node.receiver)}.{node.name}", _POSTFIX),
    ast.Index: lambda node: (f"{_receiver(node.receiver)}[{expression_text(node.index)}]", _POSTFIX),
}  # fmt: skip

# Statements -------------------------------------------------------------------------------------------------------------


def statement_text(node: ast.Statement) -> str:
    """A statement on one line."""
    return _STATEMENTS[type(node)](node)


def statement_head(node: ast.Statement) -> tuple[str, ast.Expr | None]:
    """The words before a statement's last expression, and that expression."""
    if isinstance(node, ast.Let | ast.Emit | ast.EmitMeta | ast.Fn):
        return f"{_definition_head(node)} = ", node.body if isinstance(node, ast.Fn) else node.value
    if isinstance(node, ast.Filter):
        return "filter ", node.condition
    if isinstance(node, ast.Trace):
        level = f"{node.level} " if node.level else ""
        guard = f"if {expression_text(node.guard)} then " if node.guard is not None else ""
        return f"trace {level}{guard}", node.message
    return statement_text(node), None


def _definition_head(node: ast.Let | ast.Emit | ast.EmitMeta | ast.Fn) -> str:
    if isinstance(node, ast.Fn):
        return f"fn {node.name}({', '.join(node.params)})"
    word = {ast.Let: "let", ast.Emit: "emit", ast.EmitMeta: "emit meta"}[type(node)]
    return f"{word} {node.name}"


def _with_expression(node: ast.Statement) -> str:
    head, value = statement_head(node)
    text = expression_text(value) if value is not None else ""
    return head + (f"({text})" if needs_parentheses(node) else text)


def needs_parentheses(node: ast.Statement) -> bool:
    """Whether the message of a trace would be read as a guard, as a level, or as the end of an operator."""
    if not isinstance(node, ast.Trace):
        return False
    text = expression_text(node.message)
    return isinstance(node.message, ast.If) or text.startswith(_NO_MESSAGE) or (node.level is not None and text.startswith("["))


def each_head(node: ast.EmitEach) -> str:
    """`emit each binding in source outer {`."""
    outer = " outer" if node.outer else ""
    return f"emit each {node.binding} in {subject_text(node.source)}{outer} {{"


def _each(node: ast.EmitEach) -> str:
    body = " ".join(statement_text(one) for one in node.body)
    return f"{each_head(node)} {body} }}" if body else f"{each_head(node)} }}"


def _use(node: ast.Use) -> str:
    return f"use {'.'.join(node.path)}{f' as {node.alias}' if node.alias else ''}"


_STATEMENTS: dict[type, Callable[[Any], str]] = {
    ast.EmitEach: _each, ast.Use: _use, ast.Distinct: lambda node: f"distinct by {node.by}" if node.by else "distinct",
    ast.EmitAll: lambda node: f"emit {node.name}.*",
    **dict.fromkeys((ast.Let, ast.Emit, ast.EmitMeta, ast.Fn, ast.Filter, ast.Trace), _with_expression),
}  # fmt: skip
