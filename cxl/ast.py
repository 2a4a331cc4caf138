"""The syntax tree: a program as it was written, with places. Two trees are equal when they differ in places alone.

`$window.sum(x)`, `$doc.header.id` and `orders.amount` are chains of `Member` and `MethodCall` here; what they mean is found
when names are resolved.
"""

from dataclasses import dataclass, field
from typing import Any

from cxl.source import Span


@dataclass(frozen=True, slots=True)
class Node:
    """Base: the place does not count in comparisons."""

    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A bare name: a field, a let, an emitted name, `it`."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A constant. The kind keeps 1 and true and 1.0 apart."""

    kind: str
    value: Any


@dataclass(frozen=True, slots=True)
class Now(Node):
    """`now`."""


@dataclass(frozen=True, slots=True)
class Wildcard(Node):
    """`_`, the pattern."""


@dataclass(frozen=True, slots=True)
class SystemRoot(Node):
    """`$pipeline` and its like, before the first point."""

    namespace: str


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`-x`, `not x`."""

    op: str
    operand: "Expr"


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """An operator of levels 3 to 7. Left spines can be long."""

    op: str
    op_span: Span = field(compare=False, repr=False)
    left: "Expr"
    right: "Expr"


@dataclass(frozen=True, slots=True)
class Coalesce(Node):
    """`left ?? right`."""

    left: "Expr"
    right: "Expr"


@dataclass(frozen=True, slots=True)
class If(Node):
    """`if condition then value else alternative`; the alternative is None where it is left out."""

    condition: "Expr"
    then: "Expr"
    otherwise: "Expr | None"


@dataclass(frozen=True, slots=True)
class Arm(Node):
    """`pattern => result`."""

    pattern: "Expr"
    result: "Expr"


@dataclass(frozen=True, slots=True)
class Match(Node):
    """`match subject { ... }`; without a subject the patterns are conditions."""

    subject: "Expr | None"
    arms: tuple[Arm, ...]


@dataclass(frozen=True, slots=True)
class Closure(Node):
    """`it => body`, an argument of a method."""

    body: "Expr"


@dataclass(frozen=True, slots=True)
class MethodCall(Node):
    """`receiver.name(args)`."""

    receiver: "Expr"
    name: str
    name_span: Span = field(compare=False, repr=False)
    args: tuple["Expr | Closure", ...]


@dataclass(frozen=True, slots=True)
class Member(Node):
    """`receiver.name`."""

    receiver: "Expr"
    name: str
    name_span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Index(Node):
    """`receiver[index]`."""

    receiver: "Expr"
    index: "Expr"


@dataclass(frozen=True, slots=True)
class FreeCall(Node):
    """`sum(x)`, `count(*)`, a function of the same module."""

    name: str
    name_span: Span = field(compare=False, repr=False)
    args: tuple["Expr", ...]
    star: bool


@dataclass(frozen=True, slots=True)
class ModuleMember(Node):
    """`alias::constant` (args None) or `alias::function(args)`."""

    alias: str
    alias_span: Span = field(compare=False, repr=False)
    name: str
    name_span: Span = field(compare=False, repr=False)
    args: tuple["Expr", ...] | None


Expr = (
    Name | Literal | Now | Wildcard | SystemRoot | Unary | Binary | Coalesce | If | Match | MethodCall | Member | Index | FreeCall
    | ModuleMember
)  # fmt: skip

# Statements -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Let(Node):
    """`let name = value`."""

    name: str
    name_span: Span = field(compare=False, repr=False)
    value: Expr


@dataclass(frozen=True, slots=True)
class Emit(Node):
    """`emit name = value`."""

    name: str
    name_span: Span = field(compare=False, repr=False)
    value: Expr


@dataclass(frozen=True, slots=True)
class EmitMeta(Node):
    """`emit meta name = value`."""

    name: str
    name_span: Span = field(compare=False, repr=False)
    value: Expr


@dataclass(frozen=True, slots=True)
class Filter(Node):
    """`filter condition`."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class Distinct(Node):
    """`distinct`, `distinct by name`."""

    by: str | None
    by_span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Trace(Node):
    """`trace level if guard then message`; level None is `trace`."""

    level: str | None
    guard: Expr | None
    message: Expr


@dataclass(frozen=True, slots=True)
class EmitEach(Node):
    """`emit each binding in source outer { body }`; `open_at` is the place of the brace."""

    binding: str
    source: Expr
    outer: bool
    open_at: int = field(compare=False, repr=False)
    body: tuple["Statement", ...]


@dataclass(frozen=True, slots=True)
class Use(Node):
    """`use path as alias`; alias None is the last segment."""

    path: tuple[str, ...]
    alias: str | None


@dataclass(frozen=True, slots=True)
class Fn(Node):
    """`fn name(params) = body`."""

    name: str
    name_span: Span = field(compare=False, repr=False)
    params: tuple[str, ...]
    body: Expr


Statement = Let | Emit | EmitMeta | Filter | Distinct | Trace | EmitEach | Use | Fn
