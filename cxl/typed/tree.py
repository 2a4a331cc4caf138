"""The typed tree: made by `cxl.check`, read by both backends.

Names are resolved. An input column is a `Field`. Anything the program defines is a `Local` with a slot number of its own: a
second `let x` has another slot. Implicit conversions are explicit: `Promote` turns Int to Float wherever an Int meets a Float
of a known type. Every node has the static type of its value, and its span. Nodes are compared by identity;
`cxl.typed.rewrite.shape` compares what they compute.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from typing import Literal as OneOf

from cxl.diagnostics.source import Span
from cxl.functions.registry import Builtin
from cxl.functions.spark_call import NOT_CONSTANT
from cxl.types.types import Type

ArithmeticOp = OneOf["+", "-", "*", "/", "%"]
ComparisonOp = OneOf["==", "!=", "<", "<=", ">", ">="]
BinaryOp = ArithmeticOp | ComparisonOp | OneOf["and", "or"]
ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})
COMPARISON = frozenset({"==", "!=", "<", "<=", ">", ">="})


@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """Base of all expressions."""

    type: Type
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Expr):
    """A constant: None, bool, int, float, str, date or datetime."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Field(Expr):
    """An input column. `qualifier` is the name of the input in a combine (`orders.amount`), else None."""

    name: str
    qualifier: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Local(Expr):
    """A value that the program defined: let, emit, closure parameter, emit each binding, function parameter."""

    slot: int
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class System(Expr):
    """`$namespace.path` or `now` (namespace "now", empty path)."""

    namespace: str
    path: tuple[str, ...]

    @property
    def name(self) -> str:
        """The dotted name: `source.row`, `doc.header.id`, `now`."""
        return ".".join((self.namespace, *self.path))


@dataclass(frozen=True, slots=True, eq=False)
class Result(Expr):
    """A column that the operator computes: `__agg_<i>`, `__win_<i>`."""

    column: str


@dataclass(frozen=True, slots=True, eq=False)
class Promote(Expr):
    """Int to Float."""

    operand: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Expr):
    """`-` or `not`."""

    op: OneOf["-", "not"]
    operand: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Expr):
    """An operator. Operands of arithmetic and comparisons have one type where both are known. Chains on the left may be long: use `spine`."""

    op: BinaryOp
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Coalesce(Expr):
    """`left ?? right`. Right is evaluated where left is null."""

    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True, eq=False)
class If(Expr):
    """`if`. `otherwise` is a null literal where it was not written."""

    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Arm:
    """An arm of match. The pattern of `_` is None."""

    pattern: Expr | None
    result: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Match(Expr):
    """`match`. The last arm is `_`. Without a subject the patterns are conditions."""

    subject: Expr | None
    arms: tuple[Arm, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Closure(Expr):
    """`it => body`. The element is in `slot`; the type is the body's."""

    slot: int
    body: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Call(Expr):
    """A method. `overloads` has one builtin where the static type decides, several where the value of a dynamic receiver decides."""

    name: str
    overloads: tuple[Builtin, ...]
    receiver: Expr
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Index(Expr):
    """`receiver[index]`: an element of an array, an entry of a map."""

    receiver: Expr
    index: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Member(Expr):
    """`receiver.name`: an entry of a map; null for any other receiver."""

    receiver: Expr
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Array(Expr):
    """`[a, b]`."""

    elements: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Comprehension(Expr):
    """`[element for name in source if condition]`. The element of the source is in `slot`."""

    slot: int
    source: Expr
    condition: Expr | None
    element: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """An entry of a map."""

    key: Expr
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Map(Expr):
    """`{key: value}`. Keys that are written out are literals, each of another text."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Bind(Expr):
    """`value` evaluated once into `slot`, then `body`: an argument of a function."""

    slot: int
    value: Expr
    body: Expr


# What an operator computes for a program --------------------------------------------------------------------------------
ARGUMENT = "__arg_"
"""The first part of the names of columns with arguments of aggregate and window calls."""


@dataclass(frozen=True, slots=True, eq=False)
class AggregateUse:
    """A distinct aggregate call.

    Args:
        column: The column of the result.
        columns: The columns of the arguments; none for `count(*)`.
    """

    column: str
    columns: tuple[str, ...]
    function: Builtin
    args: tuple[Expr, ...]
    star: bool
    type: Type
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class WindowUse:
    """A distinct `$window` call.

    Args:
        column: The column of the result.
        columns: The columns of the arguments.
        member: The column that `first`, `last`, `lag` or `lead` reads from its row: an input field, or the last of `columns` where the program defines the name.
    """

    column: str
    columns: tuple[str, ...]
    function: Builtin
    args: tuple[Expr, ...]
    member: str | None
    type: Type
    span: Span

    @property
    def read_field(self) -> str | None:
        """The input field that it reads from a row."""
        return None if self.member in self.columns else self.member


# Statements -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Let:
    """`let name = value`."""

    span: Span
    name: str
    slot: int
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Emit:
    """`emit name = value`. Later statements read it as `Local(slot)`."""

    span: Span
    name: str
    slot: int
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class EmitMeta:
    """`emit meta name = value` or `emit $meta.name = value`. Later statements read it as `Local(slot)`."""

    span: Span
    name: str
    slot: int
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """`filter condition`: the record passes where it is true."""

    span: Span
    condition: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    """`distinct`.

    Args:
        by: The name; None for a bare `distinct`.
        keys: Name and value of what is compared: the named value, or the fields emitted so far, or, before any emit, the fields of the record.
    """

    span: Span
    by: str | None
    keys: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """`trace level if guard then message`."""

    span: Span
    level: str
    guard: Expr | None
    message: Expr


@dataclass(frozen=True, slots=True, eq=False)
class EmitEach:
    """`emit each binding in source { body }`. The element is in `slot`."""

    span: Span
    binding: str
    slot: int
    source: Expr
    outer: bool
    body: tuple["Statement", ...]


Statement = Let | Emit | EmitMeta | Filter | Distinct | Trace | EmitEach


def spine(expr: Binary) -> tuple[Expr, list[Binary]]:
    """Return the leftmost operand of a chain such as `a + b - c`, and its operations from the inside out."""
    chain: list[Binary] = [expr]
    while isinstance(chain[-1].left, Binary):
        chain.append(chain[-1].left)
    return chain[-1].left, chain[::-1]


def constant(expr: Expr) -> Any:
    """Return the value of a literal, also of one behind a minus sign; NOT_CONSTANT for any other expression."""
    if isinstance(expr, Unary) and expr.op == "-" and isinstance(expr.operand, Literal) and type(expr.operand.value) is int:
        return -expr.operand.value
    return expr.value if isinstance(expr, Literal) else NOT_CONSTANT


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the direct sub-expressions, in the order of evaluation."""
    return _CHILDREN[type(expr)](expr) if type(expr) in _CHILDREN else ()


def _match_children(expr: Any) -> tuple[Expr, ...]:
    arms = tuple(part for arm in expr.arms for part in (arm.pattern, arm.result) if part is not None)
    return arms if expr.subject is None else (expr.subject, *arms)


_CHILDREN: dict[type, Any] = {
    Promote: lambda e: (e.operand,),
    Unary: lambda e: (e.operand,),
    Binary: lambda e: (e.left, e.right),
    Coalesce: lambda e: (e.left, e.right),
    If: lambda e: (e.condition, e.then, e.otherwise),
    Match: _match_children,
    Closure: lambda e: (e.body,),
    Call: lambda e: (e.receiver, *e.args),
    Index: lambda e: (e.receiver, e.index),
    Member: lambda e: (e.receiver,),
    Array: lambda e: e.elements,
    Comprehension: lambda e: (e.source, e.element) if e.condition is None else (e.source, e.condition, e.element),
    Map: lambda e: tuple(part for entry in e.entries for part in (entry.key, entry.value)),
    Bind: lambda e: (e.value, e.body),
}


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield every node of an expression, parents first, without recursion."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def expressions(statement: Statement) -> tuple[Expr, ...]:
    """Return the direct expressions of a statement, without the body of emit each."""
    if isinstance(statement, Filter):
        return (statement.condition,)
    if isinstance(statement, Distinct):
        return tuple(value for _, value in statement.keys)
    if isinstance(statement, Trace):
        return (statement.message,) if statement.guard is None else (statement.guard, statement.message)
    return (statement.source,) if isinstance(statement, EmitEach) else (statement.value,)


def walk_statements(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    """Yield every statement, also inside emit each blocks."""
    for statement in statements:
        yield statement
        if isinstance(statement, EmitEach):
            yield from walk_statements(statement.body)
