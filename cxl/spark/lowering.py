"""Typed expressions as columns. A subtree without a column (dynamic values, closures) goes to the interpreter as a whole."""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import functions as F

from cxl.functions.registry import Builtin
from cxl.functions.spark_call import NOT_CONSTANT, Fallible, Outcome, Partly, Site, Unsure
from cxl.spark.columns import NUMBERS, Lowered, any_of, balanced, constant, opaque, spark_type, strict
from cxl.spark.fallback import interpreted
from cxl.spark.inputs import Inputs
from cxl.spark.operators import (
    arithmetic,
    choice,
    coalesce,
    comparison,
    decimal_arithmetic,
    inverse,
    logical,
    negative,
    negative_decimal,
    number_of,
)
from cxl.typed import tree
from cxl.typed.rewrite import Membership, membership, weight, without_text
from cxl.types.types import BOOL, FLOAT, Kind, Type
from cxl.values import decimals

_TALLEST = 28
"""How deep a column may nest. A plan is a message of at most a hundred levels, and each level of a column takes two or three."""
MOST_COPIED = 500
"""How many nodes an expression may have with everything it reads copied into it. Beyond that, what it reads gets columns of its own."""
_COSTS: dict[type, int] = {tree.Call: 6, tree.Match: 5, tree.If: 2}
_LINK_COSTS = {"/": 4, "%": 4, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4}

_DECIMAL_COST = 6


class _TooTall(Exception):
    """A column that nests too deep, where no column can be added below it."""


_NULL_TESTS = ("is_null", "debug")
"""Methods that do not look into a dynamic value."""


@dataclass
class Lowering(Inputs):
    """Turns expressions into columns over one frame.

    Args:
        height: How deep the columns made so far nest.
        unsure: Whether a part of the expression may be null only because the engine's Decimals do not hold its value.
        weights: The sizes of values that functions bind (`cxl.typed.rewrite.weight`).
    """

    height: int = 0
    unsure: bool = False
    weights: dict[int, int] = field(default_factory=dict)

    def lower(self, expr: tree.Expr) -> Lowered:
        """Return the expression as a column."""
        self.height, self.unsure = 0, False
        try:
            lowered = self.child(expr)
        except _TooTall:
            return interpreted(self, expr)
        return self.decided(expr, lowered) if self.unsure else lowered

    def decided(self, expr: tree.Expr, lowered: Lowered) -> Lowered:
        """Return the column where nothing in it failed, elsewhere the interpreter's value and failures."""
        suspect = lowered.failure
        if suspect is None:
            return lowered
        value = lowered.value
        if self.hoist:
            stored = self.add(F.struct(value.alias("v"), suspect.alias("f")))
            value, suspect = stored.getField("v"), stored.getField("f")
        rest = interpreted(self, expr, suspect)
        if rest.constant is not NOT_CONSTANT:
            return rest
        return opaque(F.when(suspect, rest.value).otherwise(value), expr.type, rest.failed)

    def native(self, expr: tree.Expr) -> Lowered | None:
        """Return the expression as a column of the engine's own functions, None where there is none."""
        if _is_dynamic(expr.type) and not isinstance(expr, _PASSED_ON):
            return None
        return _NODES[type(expr)](self, expr) if type(expr) in _NODES else None

    def child(self, expr: tree.Expr) -> Lowered:
        """Return a part of an expression, and update `height`."""
        before, self.height = self.height, 0
        native = self.native(expr)
        if native is None:
            self.height = 2
            lowered = interpreted(self, expr)
        else:
            lowered = self.grown(native, _COSTS.get(type(expr), 1))
        self.height = max(before, self.height)
        return lowered

    def grown(self, lowered: Lowered, cost: int) -> Lowered:
        """Return the value, in a column of its own where it nests too deep. Raises _TooTall."""
        self.height += cost
        return lowered if self.height <= _TALLEST else self.apart(lowered)

    def apart(self, lowered: Lowered, *, shared: bool = False) -> Lowered:
        """Return the value in a column of its own. `shared`: no engine copies it to its readers. Raises _TooTall."""
        if not self.hoist:
            raise _TooTall
        self.height = 1
        failure = lowered.failure
        stored = self.add(F.explode(F.array(lowered.value)) if shared else lowered.value)
        leaves = {} if lowered.never_null else {next(NUMBERS): stored}
        return Lowered(stored, lowered.type, leaves, failed=None if failure is None else self.add(failure))

    def literal(self, node: tree.Literal) -> Lowered:
        """A constant."""
        return constant(node.value, node.type)

    def promote(self, node: tree.Promote) -> Lowered | None:
        """Int to Float, Int or Decimal to a greater scale."""
        operand = self.child(node.operand)
        if node.type.kind is Kind.DECIMAL:
            return self.rescaled(node, operand)
        if node.type.kind is not Kind.FLOAT:
            return None
        if operand.constant is not NOT_CONSTANT:
            return constant(float(operand.constant), FLOAT)
        return strict(operand.value.cast("double"), node.type, [operand])

    def rescaled(self, node: tree.Promote, operand: Lowered) -> Lowered:
        """A Decimal or an Int at a greater scale."""
        number = number_of(operand)
        fits = number.always_fits(node.type.scale)
        if operand.constant is not NOT_CONSTANT and fits:
            return constant(decimals.rounded(operand.constant, node.type.scale), node.type)
        return strict(number.at_scale(node.type.scale), node.type, [operand], fallible=not fits)

    def unary(self, node: tree.Unary) -> Lowered | None:
        """`-` or `not`."""
        if node.operand.type.kind not in (Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.BOOL):
            return None
        operand = self.child(node.operand)
        if node.type.kind is Kind.DECIMAL:
            return self.doubted(negative_decimal(operand))
        return negative(operand) if node.op == "-" else inverse(operand, node.type)

    def binary(self, node: tree.Binary) -> Lowered | None:
        """A chain of operations, from the inside out."""
        first, chain = tree.spine(node)
        if any(not _has_column(part.type) for link in chain for part in (link.left, link.right)):
            return None
        value = self.child(first)
        for link in chain:
            made = self.operation(link, value, self.child(link.right))
            if made is None:
                return None
            value = self.grown(made, _DECIMAL_COST if _has_decimal(link) else _LINK_COSTS.get(link.op, 1))
        return value

    def operation(self, link: tree.Binary, left: Lowered, right: Lowered) -> Lowered | None:
        """One operation of a chain; None where engines have no column for it."""
        if link.type.kind is Kind.DECIMAL:
            return self.doubted(decimal_arithmetic(link.op, left, right, link.type))
        if link.op in tree.ARITHMETIC:
            return arithmetic(link.op, left, right, link.type)
        operate = comparison if link.op in tree.COMPARISON else logical
        return operate(link.op, left, right, link.type)

    def doubted(self, lowered: Lowered | None) -> Lowered | None:
        """Remember that the interpreter decides about nulls."""
        self.unsure = self.unsure or lowered is not None
        return lowered

    def coalesce(self, node: tree.Coalesce) -> Lowered | None:
        """`left ?? right`."""
        if not (_has_column(node.left.type) and _has_column(node.right.type)):
            return None
        return coalesce(self.child(node.left), self.child(node.right), node.type)

    def conditional(self, node: tree.If) -> Lowered | None:
        """A chain of `else if` is one CASE."""
        links = [node]
        while isinstance(links[-1].otherwise, tree.If):
            links.append(links[-1].otherwise)
        if not all(_has_column(link.condition.type) and _has_column(link.then.type) for link in links):
            return None
        branches = [(self.child(link.condition), self.child(link.then)) for link in links]
        return choice(branches, self.child(links[-1].otherwise), node.type)

    def match(self, node: tree.Match) -> Lowered | None:
        """A CASE over the arms."""
        if not all(_has_column(part.type) for part in tree.children(node) if not _is_null(part)):
            return None
        if not all(_has_column(arm.result.type) for arm in node.arms):
            return None
        subject = self.child(node.subject) if node.subject is not None else None
        branches = [(self._fires(subject, arm.pattern), self.child(arm.result)) for arm in node.arms if arm.pattern is not None]
        chosen = choice(branches, self.child(node.arms[-1].result), node.type)
        if subject is None or subject.failure is None:
            return chosen
        return opaque(chosen.value, chosen.type, any_of(subject.failure, chosen.failure))

    def _fires(self, subject: Lowered | None, pattern: tree.Expr) -> Lowered:
        """Whether an arm is taken. The subject's own failure is counted once, elsewhere."""
        if _is_null(pattern):
            return Lowered(F.lit(False) if subject is None else subject.value.isNull(), BOOL)
        tested = self.child(pattern)
        if subject is None:
            return tested
        whole = Lowered(subject.value, subject.type, {("subject", id(subject)): subject.value}, constant=subject.constant)
        return comparison("==", whole, tested, pattern.type)

    def bind(self, node: tree.Bind) -> Lowered | None:
        """An argument of a module's function."""
        if not _has_column(node.value.type):
            return None
        value = self.child(node.value)
        if weight(node, self.weights) > MOST_COPIED:
            value = self.apart(value, shared=True)
            self.weights[node.slot] = 1
        self.locals[node.slot] = value
        body = self.child(node.body)
        return replace(body, failed=any_of(value.failure, body.failed))

    def call(self, node: tree.Call) -> Lowered | None:
        """A builtin that has a column."""
        node = without_text(node)
        if (found := membership(node)) is not None:
            return self.member(node, found)
        entry = node.overloads[0]
        if len(node.overloads) > 1 or entry.spark is None or not _callable(node, entry):
            return None
        receiver, args = self.child(node.receiver), [self.child(arg) for arg in node.args]
        types = tuple(arg.type for arg in node.args)
        constants = tuple(arg.constant for arg in args)
        site = Site(F, receiver.value, tuple(arg.value for arg in args), node.receiver.type, types, constants)
        answer = entry.spark(site)
        if isinstance(answer, Partly):
            return self.partly(node, answer, [receiver, *args])
        if isinstance(answer, Unsure):
            value = answer.value.try_cast(spark_type(node.type))  # a constant that is no literal says nothing about the scale
            return self.doubted(strict(value, node.type, [receiver, *args], fallible=True))
        return _answer(answer, node.type, [receiver, *args])

    def member(self, node: tree.Call, found: Membership) -> Lowered | None:
        """Whether the comparison holds for one of the constants. It holds for none where the value is null."""
        value = self.child(found.value)
        constants = [constant(one, found.value.type) for one in found.constants]
        if found.comparison.op == "==":
            among = value.value.isin(*(one.value for one in constants))
        else:
            sides = [(value, one) if found.comparison.left is found.value else (one, value) for one in constants]
            among = balanced([comparison(found.comparison.op, *pair, BOOL).value for pair in sides], operator.or_)
        return _answer(F.coalesce(among, F.lit(False)), node.type, [value])

    def partly(self, node: tree.Call, answer: Partly, parts: list[Lowered]) -> Lowered:
        """The column where it is sure, elsewhere the interpreter's value and failures."""
        rest = interpreted(self, node, ~answer.sure)
        if rest.constant is not NOT_CONSTANT:
            return rest
        return opaque(F.when(answer.sure, answer.value).otherwise(rest.value), node.type, any_of(*(part.failure for part in parts), rest.failed))


def _has_decimal(link: tree.Binary) -> bool:
    return Kind.DECIMAL in (link.left.type.kind, link.right.type.kind)


def _answer(answer: Any, type_: Type, parts: list[Lowered]) -> Lowered | None:
    """The column of a builtin's answer."""
    if answer is None:
        return None
    if isinstance(answer, Fallible):
        return strict(answer.value, type_, parts, fallible=True)
    failed = any_of(*(part.failure for part in parts))
    if isinstance(answer, Outcome):
        return opaque(answer.value, type_, any_of(failed, answer.failed))
    return opaque(answer, type_, failed)


def _callable(node: tree.Call, entry: Builtin) -> bool:
    if entry.name in _NULL_TESTS:
        return True
    return _has_column(node.receiver.type) and all(_has_column(arg.type) and not isinstance(arg, tree.Closure) for arg in node.args)


def _is_dynamic(type_: Type) -> bool:
    return type_.is_dynamic


def _has_column(type_: Type) -> bool:
    """Whether engines can compute with columns of the type."""
    return not type_.is_dynamic and type_.kind is not Kind.NULL


def _is_null(expr: tree.Expr) -> bool:
    return isinstance(expr, tree.Literal) and expr.value is None


_PASSED_ON = (tree.Field, tree.Local, tree.System, tree.Result)
_NODES: dict[type, Callable[[Lowering, Any], Lowered | None]] = {
    tree.Literal: Lowering.literal, tree.Field: Lowering.field, tree.Local: Lowering.local, tree.System: Lowering.system,
    tree.Result: Lowering.result, tree.Promote: Lowering.promote, tree.Unary: Lowering.unary, tree.Binary: Lowering.binary,
    tree.Coalesce: Lowering.coalesce, tree.If: Lowering.conditional, tree.Match: Lowering.match, tree.Bind: Lowering.bind,
    tree.Call: Lowering.call,
}  # fmt: skip
