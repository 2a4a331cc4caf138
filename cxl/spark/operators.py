"""Operators as columns. Differences between engines are settled here.

Int arithmetic uses the `try_` functions, and a divisor that may be zero is replaced by null. Spark takes NaN for equal to itself
and greater than every number, IEEE 754 does not: comparisons of Floats check for it.
"""

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from cxl.functions import decimal_columns
from cxl.functions.decimal_columns import Number
from cxl.functions.spark_call import NOT_CONSTANT
from cxl.spark.columns import Lowered, any_of, constant, opaque, strict
from cxl.types.types import Kind, Type
from cxl.values import decimals

_INT_MIN = -(2**63)
Build = Callable[[Column, Column], Column]


def arithmetic(op: str, left: Lowered, right: Lowered, type_: Type) -> Lowered:
    """`+ - * / %` of two Ints, two Floats or (for `+`) two Strings."""
    if type_.kind is Kind.STRING:
        return strict(F.concat(left.value, right.value), type_, [left, right])
    if op in ("/", "%"):
        return _division(op, left, right, type_)
    if type_.kind is Kind.INT:
        return strict(_INT_OPERATIONS[op](left.value, right.value), type_, [left, right], fallible=True)
    return strict(_FLOAT_OPERATIONS[op](left.value, right.value), type_, [left, right])


_INT_OPERATIONS: dict[str, Build] = {"+": F.try_add, "-": F.try_subtract, "*": F.try_multiply}
_FLOAT_OPERATIONS: dict[str, Build] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b, "%": lambda a, b: a % b,
}  # fmt: skip


def _division(op: str, left: Lowered, right: Lowered, type_: Type) -> Lowered:
    is_quotient = type_.kind is Kind.INT and op == "/"
    operation: Build = (lambda a, b: F.call_function("div", a, b)) if is_quotient else _FLOAT_OPERATIONS[op]
    safe = right.constant is not NOT_CONSTANT and right.constant not in (0, -1)
    if safe:
        return strict(operation(left.value, right.value), type_, [left, right])
    usable = right.value != F.lit(0)
    if is_quotient:
        usable = usable & ((right.value != F.lit(-1)) | (left.value != F.lit(_INT_MIN)))
    return strict(operation(left.value, F.when(usable, right.value)), type_, [left, right], fallible=True)


def negative(operand: Lowered) -> Lowered:
    """Unary `-`."""
    if operand.type.kind is Kind.FLOAT:
        return strict(-operand.value, operand.type, [operand])
    return strict(F.try_subtract(F.lit(0).cast("bigint"), operand.value), operand.type, [operand], fallible=True)


def inverse(operand: Lowered, type_: Type) -> Lowered:
    """`not`."""
    return strict(~operand.value, type_, [operand])


# Decimals ---------------------------------------------------------------------------------------------------------------
def number_of(part: Lowered) -> Number:
    """Return a Decimal or an Int as a column that `decimal_columns` computes with."""
    return Number.of(F, part.value, part.type, part.constant)


def decimal_arithmetic(op: str, left: Lowered, right: Lowered, type_: Type) -> Lowered | None:
    """`+ - * / %` of Decimals and Ints: null where the engine cannot hold a number, too. None where there is no column."""
    value = decimal_columns.arithmetic(op, number_of(left), number_of(right))
    return None if value is None else strict(value, type_, [left, right], fallible=True)


def negative_decimal(operand: Lowered) -> Lowered | None:
    """Unary `-` of a Decimal."""
    if operand.constant is not NOT_CONSTANT:
        return constant(decimals.negate(operand.constant), operand.type)
    value = decimal_columns.negated(number_of(operand))
    return None if value is None else strict(value, operand.type, [operand], fallible=True)


# Comparisons ------------------------------------------------------------------------------------------------------------
def comparison(op: str, left: Lowered, right: Lowered, type_: Type) -> Lowered:
    """`== != < <= > >=` of two values of one type; null where one of them is."""
    compare = _DECIMAL_COMPARISONS if Kind.DECIMAL in (left.type.kind, right.type.kind) else _COMPARISONS
    return strict(compare[op](left, right), type_, [left, right])


def _less(left: Lowered, right: Lowered, or_equal: bool) -> Column:
    found = left.value <= right.value if or_equal else left.value < right.value
    return _unless_nan(_unless_nan(found, right, left), left, right)  # a NaN with a sign is the least number to Sail, one without the greatest


def _equal(left: Lowered, right: Lowered) -> Column:
    tested, other = (right, left) if left.constant is NOT_CONSTANT and right.constant is not NOT_CONSTANT else (left, right)
    return _unless_nan(left.value == right.value, tested, other)


def _unless_nan(found: Column, tested: Lowered, other: Lowered) -> Column:
    """The comparison, but false where `tested` is NaN (null where `other` is null)."""
    if tested.type.kind is not Kind.FLOAT or tested.constant is not NOT_CONSTANT:
        return found
    number = ~F.isnan(tested.value)
    return found & (number if other.never_null else number | other.value.isNull())


_COMPARISONS: dict[str, Callable[[Lowered, Lowered], Column]] = {
    "==": _equal, "!=": lambda a, b: ~_equal(a, b),
    "<": lambda a, b: _less(a, b, False), "<=": lambda a, b: _less(a, b, True),
    ">": lambda a, b: _less(b, a, False), ">=": lambda a, b: _less(b, a, True),
}  # fmt: skip


def _decimals_less(or_equal: bool) -> Callable[[Lowered, Lowered], Column]:
    def compare(left: Lowered, right: Lowered) -> Column:
        found: Column = decimal_columns.less(number_of(left), number_of(right), or_equal)
        return found

    return compare


def _decimals_equal(left: Lowered, right: Lowered) -> Column:
    found: Column = decimal_columns.equal(number_of(left), number_of(right))
    return found


_DECIMAL_COMPARISONS: dict[str, Callable[[Lowered, Lowered], Column]] = {
    "==": _decimals_equal, "!=": lambda a, b: ~_decimals_equal(a, b), "<": _decimals_less(False), "<=": _decimals_less(True),
    ">": lambda a, b: _decimals_less(False)(b, a), ">=": lambda a, b: _decimals_less(True)(b, a),
}  # fmt: skip


# Choices: what is not needed cannot fail --------------------------------------------------------------------------------
def logical(op: str, left: Lowered, right: Lowered, type_: Type) -> Lowered:
    """`and`, `or`: three-valued. The right side counts only where the left does not decide."""
    undecided = F.coalesce(left.value if op == "and" else ~left.value, F.lit(True))
    failed = any_of(left.failure, right.failure if right.failure is None else undecided & right.failure)
    value = left.value & right.value if op == "and" else left.value | right.value
    if left.never_null and right.never_null:
        return Lowered(value, type_, failed=failed)
    return opaque(value, type_, failed)


def coalesce(left: Lowered, right: Lowered, type_: Type) -> Lowered:
    """`left ?? right`."""
    failed = any_of(left.failure, right.failure if right.failure is None else left.value.isNull() & right.failure)
    value = F.coalesce(left.value, right.value)
    return Lowered(value, type_, failed=failed) if right.never_null else opaque(value, type_, failed)


Branch = tuple[Lowered, Lowered]
"""A condition, and the value where it is true."""


def choice(branches: list[Branch], otherwise: Lowered, type_: Type) -> Lowered:
    """The value of the first branch whose condition is true. A condition fails only where it is reached."""
    if not branches:
        return otherwise
    tests = [(condition.value, result.value) for condition, result in branches]
    value = reduce(lambda chain, case: chain.when(*case), tests[1:], F.when(*tests[0]))
    failed = _choice_failure(branches, otherwise)
    never_null = otherwise.never_null and all(result.never_null for _, result in branches)
    chosen = value.otherwise(otherwise.value)
    return Lowered(chosen, type_, failed=failed) if never_null else opaque(chosen, type_, failed)


def _choice_failure(branches: list[Branch], otherwise: Lowered) -> Column | None:
    """One CASE: the failure of a condition, else of the branch taken."""
    cases: list[tuple[Column, Column | None]] = []
    for condition, result in branches:
        broken = condition.failure
        cases.extend([] if broken is None else [(broken, F.lit(True))])
        cases.append((condition.value, result.failure))
    if otherwise.failure is None and all(failed is None for _, failed in cases):
        return None
    none = F.lit(False)
    tests = [(test, none if failed is None else failed) for test, failed in cases]
    chain = reduce(lambda made, case: made.when(*case), tests[1:], F.when(*tests[0]))
    return chain.otherwise(none if otherwise.failure is None else otherwise.failure)
