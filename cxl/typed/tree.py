"""The typed tree: what `cxl.check.expressions` makes of a program and both backends read.

Names are resolved: an input column is a `Field`, anything defined by the program a `Local` with a slot number that is its
own (a second `let x` has another slot). Implicit conversions are explicit: `Promote` turns Int to Float, and stands wherever
an Int meets a Float whose types are known. Every node has the static type of its value and its span. Nodes are compared by
identity; `cxl.typed.rewrite.shape` says what an expression computes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from typing import Literal as OneOf

from cxl.diagnostics.source import Span
from cxl.functions.registry import Builtin
from cxl.types.types import Type

ArithmeticOp = OneOf["+", "-", "*", "/", "%"]
ComparisonOp = OneOf["==", "!=", "<", "<=", ">", ">="]
BinaryOp = ArithmeticOp | ComparisonOp | OneOf["and", "or"]
ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})
COMPARISON = frozenset({"==", "!=", "<", "<=", ">", ">="})


@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """Base of all expressions: the static type, the place."""

    type: Type
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Expr):
    """A constant; `value` as in the interpreter: None bool int float str date datetime (never a list or dict)."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Field(Expr):
    """An input column. `qualifier` is the input's name in a combine (`orders.amount`), else None."""

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
    """A value that the operator computes and puts into a column: `__agg_<i>`, `__win_<i>`."""

    column: str


@dataclass(frozen=True, slots=True, eq=False)
class Promote(Expr):
    """Int to Float of a value whose type is Int (or null)."""

    operand: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Expr):
    """`-` or `not`."""

    op: OneOf["-", "not"]
    operand: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Expr):
    """An operator; operands of arithmetic and comparisons have one type where both are known. Left spines may be long: use `spine`."""

    op: BinaryOp
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Coalesce(Expr):
    """`left ?? right`; right is evaluated where left is null."""

    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True, eq=False)
class If(Expr):
    """`otherwise` is a null literal where it was not written."""

    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Arm:
    """An arm of match; the pattern is None for `_`."""

    pattern: Expr | None
    result: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Match(Expr):
    """The arms after `_` are gone; the last arm is `_`. Without a subject the patterns are conditions."""

    subject: Expr | None
    arms: tuple[Arm, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Closure(Expr):
    """`it => body`; the element is in `slot`. The type is the body's."""

    slot: int
    body: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Call(Expr):
    """A method. `overloads` has one entry where the receiver's type decides, several for a dynamic receiver: its value decides."""

    name: str
    overloads: tuple[Builtin, ...]
    receiver: Expr
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Index(Expr):
    """`receiver[index]`: element of an array, entry of a map."""

    receiver: Expr
    index: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Member(Expr):
    """`receiver.name`: entry of a map; null where it is no map or has no such entry."""

    receiver: Expr
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Bind(Expr):
    """`value` evaluated once into `slot`, then `body`: an argument of a module's function."""

    slot: int
    value: Expr
    body: Expr


# What an operator computes for a program --------------------------------------------------------------------------------
ARGUMENT = "__arg_"
"""Begins the names of columns that hold the arguments of calls of aggregates and windows."""


@dataclass(frozen=True, slots=True, eq=False)
class AggregateUse:
    """A distinct aggregate call. The argument's values are in `columns` (none for `count(*)`), the result goes to `column`."""

    column: str
    columns: tuple[str, ...]
    function: Builtin
    args: tuple[Expr, ...]
    star: bool
    type: Type
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class WindowUse:
    """A distinct `$window` call; `member` is the column read from the row of `first last lag lead`: an input field, or the last of `columns` where the program defined the name."""

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
    """`emit name = value`; later statements read it as `Local(slot)`."""

    span: Span
    name: str
    slot: int
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class EmitMeta:
    """`emit meta name = value`, also written `emit $meta.name = value`. Later statements read it as `Local(slot)`."""

    span: Span
    name: str
    slot: int
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """`filter condition`: the record goes on where it is true."""

    span: Span
    condition: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    """`distinct` compares `keys`: the value named, or the fields emitted so far, where none was those of the record (name and value each). `by` is None when bare."""

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
    """`emit each binding in source { body }`; the element is in `slot`."""

    span: Span
    binding: str
    slot: int
    source: Expr
    outer: bool
    body: tuple["Statement", ...]


Statement = Let | Emit | EmitMeta | Filter | Distinct | Trace | EmitEach


def spine(expr: Binary) -> tuple[Expr, list[Binary]]:
    """The leftmost operand of a chain such as `a + b - c`, and its operations from the inside out (a chain has no depth)."""
    chain: list[Binary] = [expr]
    while isinstance(chain[-1].left, Binary):
        chain.append(chain[-1].left)
    return chain[-1].left, chain[::-1]


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions, in order of evaluation."""
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
    Bind: lambda e: (e.value, e.body),
}


def walk(expr: Expr) -> Iterator[Expr]:
    """Every node of an expression, parents first; needs no recursion."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def expressions(statement: Statement) -> tuple[Expr, ...]:
    """The expressions that stand directly in a statement (those of an emit each body are not)."""
    if isinstance(statement, Filter):
        return (statement.condition,)
    if isinstance(statement, Distinct):
        return tuple(value for _, value in statement.keys)
    if isinstance(statement, Trace):
        return (statement.message,) if statement.guard is None else (statement.guard, statement.message)
    return (statement.source,) if isinstance(statement, EmitEach) else (statement.value,)


def walk_statements(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement, those inside emit each blocks too."""
    for statement in statements:
        yield statement
        if isinstance(statement, EmitEach):
            yield from walk_statements(statement.body)
