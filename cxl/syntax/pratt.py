"""Expressions: tokens to syntax tree by operator precedence (user guide, "Operator precedence").

expr    = unary { infix unary }          ?? (right) < or < and < comparison < + - < * / % < prefix - not < postfix
unary   = ("-" | "not") unary | postfix
postfix = primary { "." NAME [ "(" args ")" ] | "[" expr "]" }
primary = literal | NAME | NAME "(" args | "*" ")" | NAME "::" NAME [ "(" args ")" ] | "$" NAME | "now" | "it"
        | "(" expr ")" | "if" expr "then" expr [ "else" expr ] | "match" [ expr ] "{" { pattern "=>" expr [","] } "}"
args    = [ (expr | "it" "=>" expr) { "," ... } ]
"""

from collections.abc import Callable

from cxl.diagnostics.source import Span
from cxl.syntax import ast
from cxl.syntax.cursor import Cursor
from cxl.syntax.lex import KEYWORDS, Token

_COALESCE = 1
_LEVELS = {
    "??": _COALESCE, "or": 2, "and": 3, "==": 4, "!=": 4, "<": 4, ">": 4, "<=": 4, ">=": 4,
    "+": 5, "-": 5, "*": 6, "/": 6, "%": 6,
}  # fmt: skip
_UNARY_LEVEL = 7
_CLOSURE_HELP = "closures are only valid as arguments of filter, map, find, any and flat_map"


def expression(cursor: Cursor, level: int = _COALESCE) -> ast.Expr:
    """The longest expression whose operators bind at least as tight as `level`."""
    left = _operand(cursor)
    while (bound := _LEVELS.get(cursor.kind, 0)) >= level:
        operator = cursor.take()
        if bound == _COALESCE:
            cursor.descend()
            right = expression(cursor, bound)
            cursor.depth -= 1
            left = ast.Coalesce(left.span.to(right.span), left, right)
        else:
            right = expression(cursor, bound + 1)
            left = ast.Binary(left.span.to(right.span), operator.kind, operator.span, left, right)
    return left


def _operand(cursor: Cursor) -> ast.Expr:
    if cursor.kind not in ("-", "not"):
        return _postfix(cursor)
    operator = cursor.take()
    cursor.descend()
    operand = expression(cursor, _UNARY_LEVEL)
    cursor.depth -= 1
    return ast.Unary(operator.span.to(operand.span), operator.kind, operand)


def _postfix(cursor: Cursor) -> ast.Expr:
    cursor.descend()
    base = cursor.depth
    value = _primary(cursor)
    while cursor.kind in (".", "["):
        cursor.descend()
        value = _dotted(cursor, value) if cursor.kind == "." else _indexed(cursor, value)
    cursor.depth = base - 1
    return value


def _dotted(cursor: Cursor, receiver: ast.Expr) -> ast.Expr:
    cursor.take()
    name = cursor.take() if cursor.kind in KEYWORDS else cursor.expect_name("a method or member name")
    if cursor.kind != "(":
        return ast.Member(receiver.span.to(name.span), receiver, name.text, name.span)
    args = _arguments(cursor, closures=True)
    return ast.MethodCall(cursor.since(receiver.span), receiver, name.text, name.span, args)


def _indexed(cursor: Cursor, receiver: ast.Expr) -> ast.Expr:
    cursor.take()
    index = expression(cursor)
    cursor.expect("]")
    return ast.Index(cursor.since(receiver.span), receiver, index)


def _arguments(cursor: Cursor, *, closures: bool = False) -> tuple[ast.Expr | ast.Closure, ...]:
    cursor.expect("(")
    args: list[ast.Expr | ast.Closure] = []
    while cursor.kind != ")":
        args.append(_argument(cursor, closures))
        if cursor.kind != ")":
            _comma(cursor)
    cursor.take()
    return tuple(args)


def _comma(cursor: Cursor) -> None:
    if cursor.kind == "=>":
        raise cursor.failure("CXL-P012", "a closure cannot stand here", _CLOSURE_HELP)
    if cursor.kind != ",":
        raise cursor.failure("CXL-P001", f"expected ',' or ')', found {cursor.next.shown}")
    cursor.take()


def _argument(cursor: Cursor, closures: bool) -> ast.Expr | ast.Closure:
    arrow = cursor.ahead().kind == "=>"
    if arrow and cursor.kind == "name":
        raise cursor.failure("CXL-P012", f"the parameter of a closure is always 'it', found {cursor.next.shown}", "write it => ...")
    if not (arrow and closures and cursor.kind == "it"):
        return expression(cursor)
    start = cursor.take().span
    cursor.take()
    body = expression(cursor)
    return ast.Closure(start.to(body.span), body)


# What an expression starts with -----------------------------------------------------------------------------------------


_FOREIGN_PAIRS = {("<", ">"): "unequal is written !=", ("-", ">"): "the arrow is written =>", ("==", "="): "equality is written =="}


def _primary(cursor: Cursor) -> ast.Expr:
    parse = _PRIMARY.get(cursor.kind)
    if parse is None:
        raise cursor.failure("CXL-P010", f"expected expression, found {cursor.next.shown}", _expression_help(cursor))
    return parse(cursor)


def _expression_help(cursor: Cursor) -> str:
    token = cursor.next
    foreign = _FOREIGN_PAIRS.get((cursor.tokens[cursor.at - 1].kind, token.kind)) if cursor.at else None
    if foreign:
        return foreign
    if token.kind == ".":
        return "a number has digits before its point: 0.5"
    if token.kind in ("[", "{"):
        return "there are no array or map literals; use split or set"
    return "here can stand a field, a literal, '(', '-', not, if, match, now or '$'"


def _literal(cursor: Cursor) -> ast.Expr:
    token = cursor.take()
    return ast.Literal(token.span, token.kind, token.value)


def _constant(value: bool | None, kind: str) -> Callable[[Cursor], ast.Expr]:
    def parse(cursor: Cursor) -> ast.Expr:
        return ast.Literal(cursor.take().span, kind, value)

    return parse


def _name(cursor: Cursor) -> ast.Expr:
    if cursor.next.text == "_":
        raise cursor.failure("CXL-P010", "'_' is only a pattern of match", "name the value that you mean")
    token = cursor.take()
    if cursor.kind == "::":
        return _module_member(cursor, token)
    if cursor.kind != "(":
        return ast.Name(token.span, token.text)
    if cursor.ahead().kind == "*" and cursor.ahead(2).kind == ")":
        cursor.at += 3
        return ast.FreeCall(cursor.since(token.span), token.text, token.span, (), True)
    return ast.FreeCall(cursor.since(token.span), token.text, token.span, _plain_arguments(cursor), False)


def _plain_arguments(cursor: Cursor) -> tuple[ast.Expr, ...]:
    return tuple(arg for arg in _arguments(cursor) if not isinstance(arg, ast.Closure))


def _module_member(cursor: Cursor, alias: Token) -> ast.Expr:
    cursor.take()
    name = cursor.expect_name("a function or constant of the module")
    args = _plain_arguments(cursor) if cursor.kind == "(" else None
    return ast.ModuleMember(cursor.since(alias.span), alias.text, alias.span, name.text, name.span, args)


def _it(cursor: Cursor) -> ast.Expr:
    return ast.Name(cursor.take().span, "it")


def _now(cursor: Cursor) -> ast.Expr:
    span = cursor.take().span
    if cursor.kind == "(":
        raise cursor.failure("CXL-P001", "'now' takes no parentheses", "write now")
    return ast.Now(span)


def _system(cursor: Cursor) -> ast.Expr:
    dollar = cursor.take()
    name = cursor.expect_name("a namespace behind '$'")
    return ast.SystemRoot(dollar.span.to(name.span), name.text)


def _parenthesised(cursor: Cursor) -> ast.Expr:
    cursor.take()
    value = expression(cursor)
    if cursor.kind == "=>":
        raise cursor.failure("CXL-P012", "a closure cannot stand here", _CLOSURE_HELP)
    cursor.expect(")")
    return value


def _if(cursor: Cursor) -> ast.Expr:
    start = cursor.take().span
    condition = expression(cursor)
    cursor.expect("then", "if condition then value else alternative")
    then = expression(cursor)
    otherwise = expression(cursor) if cursor.accept("else") else None
    return ast.If(cursor.since(start), condition, then, otherwise)


def _match(cursor: Cursor) -> ast.Expr:
    start = cursor.take().span
    subject = None if cursor.kind == "{" else expression(cursor)
    cursor.expect("{", "match subject { pattern => result, _ => default }")
    arms: list[ast.Arm] = []
    while cursor.kind != "}":
        arms.append(_arm(cursor))
    cursor.take()
    return ast.Match(cursor.since(start), subject, tuple(arms))


def _arm(cursor: Cursor) -> ast.Arm:
    pattern = _pattern(cursor)
    cursor.expect("=>", "pattern => result")
    result = expression(cursor)
    cursor.accept(",")
    return ast.Arm(pattern.span.to(result.span), pattern, result)


def _pattern(cursor: Cursor) -> ast.Expr:
    if cursor.is_word("_") and cursor.ahead().kind == "=>":
        return ast.Wildcard(cursor.take().span)
    return expression(cursor)


_PRIMARY: dict[str, Callable[[Cursor], ast.Expr]] = {
    "int": _literal, "float": _literal, "string": _literal, "date": _literal, "name": _name, "it": _it, "now": _now, "$": _system,
    "(": _parenthesised, "if": _if, "match": _match,
    "true": _constant(True, "bool"), "false": _constant(False, "bool"), "null": _constant(None, "null"),
}  # fmt: skip


def end_of_expression(cursor: Cursor, start: Span) -> None:
    """Fail with the right words where an expression that fills a statement is followed by what cannot go on."""
    if cursor.kind == "=>":
        place = cursor.next
        raise cursor.failure("CXL-P012", f"{place.shown} is out of place: a closure is no value", _CLOSURE_HELP)
