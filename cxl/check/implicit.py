"""Implicit conversions made explicit: Int to Float where they meet, a Decimal to a greater scale, a typed value to a dynamic one."""

from dataclasses import replace

from cxl.typed import tree
from cxl.types.types import BOOL, FLOAT, Kind, Type


def convert(value: tree.Expr, type_: Type) -> tree.Expr:
    """Return the value converted to a joined type. A null literal takes the type."""
    kind = value.type.kind
    if isinstance(value, tree.Literal) and value.value is None:
        return tree.Literal(type_.or_null, value.span, None)
    if (kind is type_.kind and value.type.scale == type_.scale) or kind is Kind.ANY or type_.kind is Kind.NULL:
        return value
    nullable = value.type.nullable or kind is Kind.NULL
    return tree.Promote(replace(type_, nullable=nullable and type_.kind is not Kind.ANY), value.span, value)


def decided(value: tree.Expr) -> tree.Expr:
    """Return a condition as Bool. A dynamic value or null is compared with true."""
    if value.type.kind is Kind.BOOL:
        return value
    return tree.Binary(BOOL.or_null, value.span, "==", value, tree.Literal(BOOL, value.span, True))


def same_number(left: tree.Expr, right: tree.Expr) -> tuple[tree.Expr, tree.Expr]:
    """Return the operands with an Int made Float where the other is Float. A null literal takes the other's type."""
    kinds = {left.type.kind, right.type.kind}
    if kinds == {Kind.INT, Kind.FLOAT}:
        return _to_float(left), _to_float(right)
    if Kind.NULL in kinds:
        return convert(left, right.type), convert(right, left.type)
    return left, right


def _to_float(value: tree.Expr) -> tree.Expr:
    return value if value.type.kind is Kind.FLOAT else convert(value, FLOAT)


def same_patterns(subject: tree.Expr, arms: list[tree.Arm]) -> tuple[tree.Expr, list[tree.Arm]]:
    """Return subject and patterns as Float where both Int and Float occur among them."""
    values = [subject, *(arm.pattern for arm in arms if arm.pattern is not None)]
    kinds = {value.type.kind for value in values} - {Kind.NULL}
    if kinds != {Kind.INT, Kind.FLOAT}:
        return subject, arms
    return _number(subject), [replace(arm, pattern=_number(arm.pattern)) if arm.pattern else arm for arm in arms]


def _number(value: tree.Expr) -> tree.Expr:
    return convert(value, FLOAT) if value.type.kind is Kind.INT else value
