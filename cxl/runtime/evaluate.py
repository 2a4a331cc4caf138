"""Typed expressions as Python functions of a frame. Only what is needed is evaluated.

An expression becomes closures once. A failure has the place of the innermost operation that raised it.
"""

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from cxl.functions.registry import Builtin, Param, accepts
from cxl.runtime.context import Context
from cxl.typed import tree
from cxl.types.types import ANY, ARRAY, BOOL, DATE, DATE_TIME, FLOAT, INT, MAP, STRING, Kind, Type, decimal_of
from cxl.values import decimals
from cxl.values.failure import CxlFailure
from cxl.values.nested import Meter
from cxl.values.operators import BINARY, UNARY, boxed, equal
from cxl.values.text import display, type_of

_VALUE_TYPES: dict[type, Type] = {
    bool: BOOL, int: INT, float: FLOAT, Decimal: decimal_of(0), str: STRING, date: DATE, datetime: DATE_TIME, list: ARRAY, dict: MAP,
}  # fmt: skip


class Frame:
    """One record that is evaluated: its fields, the program's variables, the context."""

    __slots__ = ("_now", "context", "locals", "record")

    def __init__(self, record: Mapping[str, Any], slots: int, context: Context) -> None:
        self.record = record
        self.locals: list[Any] = [None] * slots
        self.context = context
        self._now: datetime | None = None

    @property
    def now(self) -> datetime:
        """The time of the record. The clock is read once."""
        if self._now is None:
            self._now = self.context.now()
        return self._now


Evaluate = Callable[[Frame], Any]
Make = Callable[[Frame, Meter], Any]


def build(expr: tree.Expr) -> Evaluate:
    """Return the function that evaluates an expression."""
    return _BUILDERS[type(expr)](expr)


def _literal(expr: tree.Literal) -> Evaluate:
    value = expr.value
    return lambda frame: value


def _field(expr: tree.Field) -> Evaluate:
    name = expr.name if expr.qualifier is None else f"{expr.qualifier}.{expr.name}"
    return lambda frame: frame.record.get(name)


def _local(expr: tree.Local) -> Evaluate:
    slot = expr.slot
    return lambda frame: frame.locals[slot]


def _system(expr: tree.System) -> Evaluate:
    if expr.namespace == "now":
        return lambda frame: frame.now
    name = expr.name
    return lambda frame: frame.context.values.get(name)


def _result(expr: tree.Result) -> Evaluate:
    column = expr.column
    return lambda frame: frame.record.get(column)


def _promote(expr: tree.Promote) -> Evaluate:
    operand = build(expr.operand)
    if expr.type.kind is Kind.DECIMAL:
        return _rescaled(operand, expr)
    if expr.type.kind is not Kind.FLOAT:
        return lambda frame: boxed(operand(frame))

    def run(frame: Frame) -> Any:
        value = operand(frame)
        return None if value is None else float(value)

    return run


def _rescaled(operand: Evaluate, expr: tree.Promote) -> Evaluate:
    """A Decimal or an Int at a scale that is not less than its own."""
    scale, span = expr.type.scale, expr.span

    def run(frame: Frame) -> Any:
        value = operand(frame)
        try:
            return None if value is None else decimals.rounded(value, scale)
        except CxlFailure as failure:
            failure.span = failure.span or span
            raise

    return run


# Operators --------------------------------------------------------------------------------------------------------------


def _unary(expr: tree.Unary) -> Evaluate:
    operand, apply, span = build(expr.operand), UNARY[expr.op], expr.span

    def run(frame: Frame) -> Any:
        value = operand(frame)
        try:
            return apply(value)
        except CxlFailure as failure:
            failure.span = failure.span or span
            raise

    return run


def _binary(expr: tree.Binary) -> Evaluate:
    """A chain is one loop. `and` and `or` decide which operands they evaluate."""
    first, chain = tree.spine(expr)
    value = build(first)
    if len(chain) == 1:
        return _link(value, chain[0])
    steps = [(_STEPS.get(link.op) or _applied(link), build(link.right)) for link in chain]

    def run(frame: Frame) -> Any:
        total = value(frame)
        for step, right in steps:
            total = step(frame, total, right)
        return total

    return run


def _link(left: Evaluate, link: tree.Binary) -> Evaluate:
    step, right = _STEPS.get(link.op) or _applied(link), build(link.right)
    return lambda frame: step(frame, left(frame), right)


Step = Callable[[Frame, Any, Evaluate], Any]


def _applied(link: tree.Binary) -> Step:
    apply, span = BINARY[link.op], link.span

    def step(frame: Frame, left: Any, right: Evaluate) -> Any:
        other = right(frame)
        if left is None or other is None:
            return None
        try:
            return apply(left, other)
        except CxlFailure as failure:
            failure.span = failure.span or span
            raise

    return step


def _and(frame: Frame, left: Any, right: Evaluate) -> Any:
    if left is False:
        return False
    other = right(frame)
    if other is False:
        return False
    return True if left is True and other is True else None


def _or(frame: Frame, left: Any, right: Evaluate) -> Any:
    if left is True:
        return True
    other = right(frame)
    if other is True:
        return True
    return False if left is False and other is False else None


_STEPS: dict[str, Step] = {"and": _and, "or": _or}


def _coalesce(expr: tree.Coalesce) -> Evaluate:
    left, right = build(expr.left), build(expr.right)

    def run(frame: Frame) -> Any:
        value = left(frame)
        return right(frame) if value is None else value

    return run


def _if(expr: tree.If) -> Evaluate:
    condition, then, otherwise = build(expr.condition), build(expr.then), build(expr.otherwise)
    return lambda frame: then(frame) if condition(frame) is True else otherwise(frame)


def _match(expr: tree.Match) -> Evaluate:
    arms = [(_fires(arm.pattern, expr.subject is not None), build(arm.result)) for arm in expr.arms]
    subject = build(expr.subject) if expr.subject is not None else _literal(tree.Literal(ANY, expr.span, None))

    def run(frame: Frame) -> Any:
        value = subject(frame)
        return next(result(frame) for fires, result in arms if fires(frame, value))

    return run


def _fires(pattern: tree.Expr | None, with_subject: bool) -> Callable[[Frame, Any], bool]:
    """Whether an arm matches a subject. A `null` pattern matches a null subject."""
    if pattern is None:
        return lambda frame, subject: True
    if isinstance(pattern, tree.Literal) and pattern.value is None:
        return lambda frame, subject: with_subject and subject is None
    value = build(pattern)
    if with_subject:
        return lambda frame, subject: equal(subject, value(frame)) is True
    return lambda frame, subject: value(frame) is True


# Paths ------------------------------------------------------------------------------------------------------------------


def _index(expr: tree.Index) -> Evaluate:
    receiver, index = build(expr.receiver), build(expr.index)

    def run(frame: Frame) -> Any:
        value = receiver(frame)
        return None if value is None else _element(value, index(frame))

    return run


def _element(value: Any, index: Any) -> Any:
    if isinstance(value, list):
        return value[index] if type(index) is int and 0 <= index < len(value) else None
    return value.get(index) if isinstance(value, dict) and isinstance(index, str) else None


def _member(expr: tree.Member) -> Evaluate:
    receiver, name = build(expr.receiver), expr.name

    def run(frame: Frame) -> Any:
        value = receiver(frame)
        return value.get(name) if isinstance(value, dict) else None

    return run


def _bind(expr: tree.Bind) -> Evaluate:
    slot, value, body = expr.slot, build(expr.value), build(expr.body)

    def run(frame: Frame) -> Any:
        frame.locals[slot] = value(frame)
        return body(frame)

    return run


# Arrays and maps --------------------------------------------------------------------------------------------------------


def _made(expr: tree.Array | tree.Comprehension | tree.Map) -> Evaluate:
    """A new value, held to the limits of values while it is made. A literal directly inside is measured with it."""
    make, span = _maker(expr, 1), expr.span

    def run(frame: Frame) -> Any:
        meter = Meter()
        try:
            value = make(frame, meter)
            meter.whole(value)
        except CxlFailure as failure:
            failure.span = failure.span or span
            raise
        return value

    return run


def _maker(expr: tree.Expr, level: int) -> Make:
    """A part of an array or a map, inside `level` - 1 others. What it makes or takes over is counted by the meter."""
    if isinstance(expr, tree.Array):
        return _array(expr, level)
    if isinstance(expr, tree.Comprehension):
        return _comprehension(expr, level)
    return _map(expr, level) if isinstance(expr, tree.Map) else _part(build(expr), level - 1)


def _part(evaluate: Evaluate, level: int) -> Make:
    def make(frame: Frame, meter: Meter) -> Any:
        value = evaluate(frame)
        meter.part(value, level)
        return value

    return make


def _array(expr: tree.Array, level: int) -> Make:
    elements = [_maker(one, level + 1) for one in expr.elements]

    def make(frame: Frame, meter: Meter) -> Any:
        meter.around(level)
        return [element(frame, meter) for element in elements]

    return make


def _comprehension(expr: tree.Comprehension, level: int) -> Make:
    slot, source, element = expr.slot, build(expr.source), _maker(expr.element, level + 1)
    condition = None if expr.condition is None else build(expr.condition)
    span = expr.source.span

    def make(frame: Frame, meter: Meter) -> Any:
        value = source(frame)
        meter.around(level)
        if value is None:
            return None
        if not isinstance(value, list):
            raise CxlFailure(f"a comprehension needs an array, got {display(value)[:60]}", span=span)
        saved = frame.locals[slot]
        made = []
        for one in value:
            frame.locals[slot] = one
            if condition is None or condition(frame) is True:
                made.append(element(frame, meter))
        frame.locals[slot] = saved
        return made

    return make


def _map(expr: tree.Map, level: int) -> Make:
    entries = [(build(entry.key), _maker(entry.value, level + 1), entry.key.span) for entry in expr.entries]

    def make(frame: Frame, meter: Meter) -> Any:
        meter.around(level)
        made: dict[str, Any] = {}
        for key, value, span in entries:
            name = key(frame)
            if not isinstance(name, str):
                raise CxlFailure(f"a key of a map must be a String, got {type_of(name)}", span=span)
            if name in made:
                raise CxlFailure(f"duplicate key '{name[:60]}' in a map", span=span)
            meter.key(name)
            made[name] = value(frame, meter)
        return made

    return make


# Calls ------------------------------------------------------------------------------------------------------------------


def _closure(expr: tree.Closure) -> Evaluate:
    """Return the Python function that a builtin calls with each element."""
    slot, body = expr.slot, build(expr.body)

    def make(frame: Frame) -> Callable[[Any], Any]:
        def call(element: Any) -> Any:
            saved = frame.locals[slot]
            frame.locals[slot] = element
            result = body(frame)
            frame.locals[slot] = saved
            return result

        return call

    return make


def _call(expr: tree.Call) -> Evaluate:
    receiver, args, span = build(expr.receiver), [build(arg) for arg in expr.args], expr.span
    choose, constants = _chooser(expr), tuple(map(tree.constant, expr.args))
    settle = settled(expr.type)

    def run(frame: Frame) -> Any:
        value = receiver(frame)
        values = [arg(frame) for arg in args]
        entry = choose(value, values)
        if entry is None or entry.python is None:
            return None
        try:
            result = entry.python(value, *values)
            if entry.scale is not None and type(result) is Decimal:
                result = decimals.rounded(result, entry.scale(decimals.scale_of(value), constants))
            return settle(result)
        except CxlFailure as failure:
            failure.span = failure.span or span
            raise

    return run


def settled(type_: Type) -> Callable[[Any], Any]:
    """Return a function that brings an Int or a Decimal to a type: a Float, a Decimal of a scale that is not less."""
    if type_.kind is Kind.DECIMAL:
        return lambda result: None if result is None else decimals.rounded(result, type_.scale)
    if type_.kind is Kind.FLOAT:
        return lambda result: float(result) if type(result) is int else result
    return lambda result: result


def _chooser(expr: tree.Call) -> Callable[[Any, list[Any]], Builtin | None]:
    """Return the builtin for the receiver and the arguments; None where one of them makes the result null."""
    plain = len(expr.overloads) == 1 and not any(_is_open(part.type) for part in (expr.receiver, *expr.args))
    if plain:
        return _plain_chooser(expr.overloads[0])
    overloads = expr.overloads

    def choose(value: Any, values: list[Any]) -> Builtin | None:
        entry = next((one for one in overloads if _receives(one, value)), None)
        return entry if entry is not None and _takes(entry, values) else None

    return choose


def _is_open(type_: Type) -> bool:
    return type_.is_dynamic or type_.kind is Kind.NULL


def _plain_chooser(entry: Builtin) -> Callable[[Any, list[Any]], Builtin | None]:
    def choose(value: Any, values: list[Any]) -> Builtin | None:
        if value is None and not entry.takes_null:
            return None
        return None if not entry.null_arguments and None in values else entry

    return choose


def _receives(entry: Builtin, value: Any) -> bool:
    if value is None:
        return entry.takes_null
    return accepts(entry.receiver or ANY, _VALUE_TYPES[type(value)])


def _takes(entry: Builtin, values: list[Any]) -> bool:
    return all(_fits(entry.param(index), entry, value) for index, value in enumerate(values))


def _fits(param: Param, entry: Builtin, value: Any) -> bool:
    if value is None:
        return entry.null_arguments
    return callable(value) or param.shown or param.takes(_VALUE_TYPES[type(value)])


_BUILDERS: dict[type, Callable[[Any], Evaluate]] = {
    tree.Literal: _literal, tree.Field: _field, tree.Local: _local, tree.System: _system, tree.Result: _result,
    tree.Promote: _promote, tree.Unary: _unary, tree.Binary: _binary, tree.Coalesce: _coalesce, tree.If: _if,
    tree.Array: _made, tree.Comprehension: _made, tree.Map: _made, tree.Match: _match, tree.Index: _index, tree.Member: _member, tree.Bind: _bind, tree.Closure: _closure, tree.Call: _call,
}  # fmt: skip
