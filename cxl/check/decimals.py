"""Errors of Decimals: with a Float, of too many digits, without a scale."""

from collections.abc import Sequence
from typing import Any

from cxl.check.checker import Checker
from cxl.diagnostics.diagnostics import Label
from cxl.diagnostics.source import Span
from cxl.functions.registry import Builtin
from cxl.functions.spark_call import NOT_CONSTANT
from cxl.syntax import ast
from cxl.syntax.canonical import expression_text
from cxl.typed import tree
from cxl.types import rules
from cxl.types.types import MOST_DIGITS, Kind, Type

Typed = tuple[ast.Expr | ast.Closure, tree.Expr]
"""An expression as it was written, and typed."""


def refuse_floats(check: Checker, what: str, parts: Sequence[Typed], span: Span | None = None) -> bool:
    """Report CXL-T012 where a Decimal and a Float are among the parts. Returns whether it did.

    Args:
        span: The place of the error. None: the part that is the first not to go with those before it.
    """
    if not rules.mixes(typed.type for _, typed in parts):
        return False
    node, typed = next(part for index, part in enumerate(parts) if rules.mixes(one.type for _, one in parts[: index + 1]))
    other = Kind.FLOAT if typed.type.kind is Kind.DECIMAL else Kind.DECIMAL
    first, met = next(part for part in parts if part[1].type.kind is other)
    shown = f"{met.type.base} and {typed.type.base}"
    labels = (Label(first.span, str(met.type.base)), Label(node.span, str(typed.type.base)))
    help = _way_out([one for one, value in parts if value.type.kind is Kind.FLOAT])
    check.error("CXL-T012", f"{what} of {shown}: a Decimal never becomes a Float by itself", span or node.span, help=help, labels=labels if span else labels[:1])
    return True


def _way_out(floats: Sequence[ast.Expr | ast.Closure]) -> str:
    for node in floats:
        number = node.operand if isinstance(node, ast.Unary) else node
        if isinstance(number, ast.Literal) and number.kind == "float":
            return f"write {expression_text(node).ljust(node.span.length, '0')}d"  # with the zeros that were written
    return "convert one: .to_decimal(scale) of the Float, with the digits behind the point that you need, or .to_float() of the Decimal"


def refuse_product(check: Checker, node: ast.Binary, left: Type, right: Type) -> bool:
    """Report CXL-T016 where a product has more than 38 digits behind the point. Returns whether it did."""
    if node.op != "*" or Kind.DECIMAL not in (left.kind, right.kind) or left.scale + right.scale <= MOST_DIGITS:
        return False
    message = f"the product has {left.scale + right.scale} digits behind the point, more than {MOST_DIGITS}"
    labels = (Label(node.left.span, str(left.base)), Label(node.right.span, str(right.base)))
    check.error("CXL-T016", message, node.op_span, help="round a factor first: .round_to(n)", labels=labels)
    return True


def refuse_scale(check: Checker, entry: Builtin, receiver: Type, node: ast.MethodCall, args: Sequence[tree.Expr]) -> bool:
    """Report CXL-T013 where a conversion has no scale from 0 to 38. Returns whether it did."""
    if not entry.needs_scale:
        return False
    if not args:
        if receiver.kind in (Kind.INT, Kind.DECIMAL):
            return False
        help = f"say how many digits stand behind the point: {entry.name}(2)"
        check.error("CXL-T013", f"{_with_article(receiver)} has no scale of its own", node.name_span, help=help)
        return True
    if is_scale(tree.constant(args[0])):
        return False
    help = f"the scale is known before any record is read, such as {entry.name}(2)"
    check.error("CXL-T013", f"the scale of '{entry.name}' must be a literal from 0 to {MOST_DIGITS}", node.args[0].span, help=help)
    return True


def is_scale(value: Any) -> bool:
    """Whether it is an Int from 0 to 38."""
    return value is not NOT_CONSTANT and type(value) is int and 0 <= value <= MOST_DIGITS


def _with_article(type_: Type) -> str:
    shown = type_.kind.value
    return f"{'an' if shown[0] in 'AEIOU' else 'a'} {shown}"
