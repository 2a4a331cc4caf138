"""The syntax tree: a program as it was written, with places. Two trees are equal when they differ in places alone.

`$window.sum(x)`, `$doc.header.id` and `orders.amount` are chains of `Member` and `MethodCall` here; what they mean is found
when names are resolved. Comparison and text are written once, in the base: generated for each node they cost start-up time.
"""

from dataclasses import dataclass
from typing import Any

from cxl.diagnostics.source import Span

TRACE_LEVELS = ("trace", "debug", "info", "warn", "error")
_PLACES = frozenset({"span", "op_span", "name_span", "alias_span", "by_span", "open_at"})


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
    """Base: equal nodes have equal parts; places do not count."""

    span: Span

    def _parts(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__match_args__ if name not in _PLACES)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and type(self) is type(other) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((type(self), self._parts()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._parts()!r}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Name(Node):
    """A bare name: a field, a let, an emitted name, `it`."""

    name: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Literal(Node):
    """A constant. The kind keeps 1 and true and 1.0 apart."""

    kind: str
    value: Any


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Now(Node):
    """`now`."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Wildcard(Node):
    """`_`, the pattern."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SystemRoot(Node):
    """`$pipeline` and its like, before the first point."""

    namespace: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Unary(Node):
    """`-x`, `not x`."""

    op: str
    operand: "Expr"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Binary(Node):
    """An operator of levels 3 to 7. Left spines can be long."""

    op: str
    op_span: Span
    left: "Expr"
    right: "Expr"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Coalesce(Node):
    """`left ?? right`."""

    op_span: Span
    left: "Expr"
    right: "Expr"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class If(Node):
    """`if condition then value else alternative`; the alternative is None where it is left out."""

    condition: "Expr"
    then: "Expr"
    otherwise: "Expr | None"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Arm(Node):
    """`pattern => result`."""

    pattern: "Expr"
    result: "Expr"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Match(Node):
    """`match subject { ... }`; without a subject the patterns are conditions."""

    subject: "Expr | None"
    arms: tuple[Arm, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Closure(Node):
    """`it => body`, an argument of a method."""

    body: "Expr"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MethodCall(Node):
    """`receiver.name(args)`."""

    receiver: "Expr"
    name: str
    name_span: Span
    args: tuple["Expr | Closure", ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Member(Node):
    """`receiver.name`."""

    receiver: "Expr"
    name: str
    name_span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Index(Node):
    """`receiver[index]`."""

    receiver: "Expr"
    index: "Expr"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Array(Node):
    """`[a, b]`."""

    elements: tuple["Expr", ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comprehension(Node):
    """`[element for name in source if condition]`; the condition is None where it is left out."""

    element: "Expr"
    name: str
    source: "Expr"
    condition: "Expr | None"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Entry(Node):
    """`key: value`, or `[key]: value` with a computed key. A key that is written out is a string literal."""

    key: "Expr"
    computed: bool
    value: "Expr"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Map(Node):
    """`{key: value}`."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FreeCall(Node):
    """`sum(x)`, `count(*)`, a function of the same module."""

    name: str
    name_span: Span
    args: tuple["Expr", ...]
    star: bool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModuleMember(Node):
    """`alias::constant` (args None) or `alias::function(args)`."""

    alias: str
    alias_span: Span
    name: str
    name_span: Span
    args: tuple["Expr", ...] | None


Expr = (
    Name | Literal | Now | Wildcard | SystemRoot | Unary | Binary | Coalesce | If | Match | MethodCall | Member | Index | Array | Comprehension
    | Map | FreeCall | ModuleMember
)  # fmt: skip

# Statements -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Let(Node):
    """`let name = value`."""

    name: str
    name_span: Span
    value: Expr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Emit(Node):
    """`emit name = value`."""

    name: str
    name_span: Span
    value: Expr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EmitAll(Node):
    """`emit name.*`: all declared fields of an input of a combine."""

    name: str
    name_span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EmitMeta(Node):
    """`emit meta name = value`."""

    name: str
    name_span: Span
    value: Expr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Filter(Node):
    """`filter condition`."""

    condition: Expr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Distinct(Node):
    """`distinct`, `distinct by name`."""

    by: str | None
    by_span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trace(Node):
    """`trace level if guard then message`; level None is `trace`."""

    level: str | None
    guard: Expr | None
    message: Expr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EmitEach(Node):
    """`emit each binding in source outer { body }`; `open_at` is the place of the brace."""

    binding: str
    source: Expr
    outer: bool
    open_at: int
    body: tuple["Statement", ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Use(Node):
    """`use path as alias`; alias None is the last segment."""

    path: tuple[str, ...]
    alias: str | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Fn(Node):
    """`fn name(params) = body`."""

    name: str
    name_span: Span
    params: tuple[str, ...]
    body: Expr


Statement = Let | Emit | EmitAll | EmitMeta | Filter | Distinct | Trace | EmitEach | Use | Fn
