"""The state of checking one program."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cxl.check.implicit import decided
from cxl.check.names import Resolver, Scope, Variable, poison
from cxl.diagnostics.diagnostics import Findings, Label
from cxl.diagnostics.source import Span
from cxl.syntax import ast
from cxl.typed import tree
from cxl.typed.modules import Module
from cxl.typed.notes import Kind, Note
from cxl.typed.target import Target
from cxl.types import rules
from cxl.types.types import Type

MOST_PARTS = 50_000
"""How many names, literals, operators and calls a program may have."""


@dataclass(slots=True)
class Uses:
    """Requirements of a program on its operator, collected during the check.

    Args:
        arguments: The columns of the arguments of aggregate and window calls, by shape.
        broken: Functions with errors in their bodies. Their calls report nothing more.
        emits: Emitted names, each with the place of its first emit.
        emitted_all: The names among them that `emit name.*` emits.
        results: Slots of emitted values. In an aggregate these are values of the group.
        elements: Slots of elements: of closures, comprehensions and emit each. A row has no such values.
        parts: How many parts have been checked. A function's parts count at each call.
    """

    aggregates: list[tree.AggregateUse] = field(default_factory=list)
    windows: list[tree.WindowUse] = field(default_factory=list)
    arguments: dict[str, str] = field(default_factory=dict)
    modules: dict[str, Module] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    emits: dict[str, Span] = field(default_factory=dict)
    emitted_all: set[str] = field(default_factory=set)
    results: set[int] = field(default_factory=set)
    elements: set[int] = field(default_factory=set)
    slots: int = 0
    parts: int = 0


@dataclass(slots=True)
class Checker:
    """The state of checking one program, and the visitors that check its expressions.

    Args:
        visitors: The function that types each class of syntax node.
        place: The place that replaces every span, while a function's body is checked for one of its calls.
        inside: The construct around the current expression (emit, filter, let, aggregate, window, comprehension).
        emitting: The name whose emit is being checked.
        calling: The functions whose bodies are being checked, outermost first.
        notes: Collects what names mean; None: nobody asks.
    """

    target: Target
    findings: Findings
    resolver: Resolver
    visitors: "Visitors"
    scope: Scope = field(default_factory=Scope)
    uses: Uses = field(default_factory=Uses)
    definitions: dict[int, tree.Expr] = field(default_factory=dict)
    functions: dict[str, ast.Fn] = field(default_factory=dict)
    aliases: dict[str, Module | None] = field(default_factory=dict)
    module: Module | None = None
    calling: tuple[str, ...] = ()
    place: Span | None = None
    inside: str = "emit"
    emitting: str | None = None
    notes: list[Note] | None = None

    def expr(self, node: ast.Expr) -> tree.Expr:
        """Return the typed form of an expression."""
        self.uses.parts += 1
        return holding(self.visitors[type(node)](self, node))

    def condition(self, node: ast.Expr, what: str) -> tree.Expr:
        """Return the typed form of a condition: Bool, or whether a value of unknown type is true."""
        value = self.expr(node)
        if rules.is_condition(value.type):
            return decided(value)
        return self.error("CXL-T006", f"{what} must be Bool, got {value.type.base}", node.span, help="use an explicit comparison")

    def at(self, span: Span) -> Span:
        """Return the place to report for a node."""
        return self.place or span

    def new_slot(self) -> int:
        """Return an unused slot number."""
        self.uses.slots += 1
        return self.uses.slots - 1

    def define(self, name: str, type_: Type, value: tree.Expr | None = None) -> Variable:
        """Define a variable, visible from now on."""
        variable = Variable(name, self.new_slot(), type_)
        self.scope.own[name] = variable
        if value is not None:
            self.definitions[variable.slot] = value
        return variable

    def define_element(self, name: str, type_: Type) -> Variable:
        """Define the variable of an element, visible from now on."""
        variable = self.define(name, type_)
        self.uses.elements.add(variable.slot)
        return variable

    def note(self, kind: Kind, span: Span, name: str, type: Type | None = None, **more: Any) -> None:
        """Note what a name means, where somebody asks. Names of bodies that are inlined have no place here."""
        if self.notes is not None and self.place is None:
            self.notes.append(Note(kind, span, name, type, **more))

    def note_field(self, span: Span, value: tree.Expr, qualifier: str | None = None) -> None:
        """Note a field that a name was found to be."""
        if isinstance(value, tree.Field):
            kind: Kind = "field" if self.resolver.target is self.target else "window field"
            self.note(kind, span, value.name, value.type, qualifier=qualifier)

    def error(self, code: str, message: str, span: Span, *, help: str = "", labels: tuple[Label, ...] = ()) -> tree.Literal:
        """Record an error and return the literal that replaces the expression."""
        self.findings.error(code, message, self.at(span), help=help, labels=() if self.place else labels)
        return poison(self.at(span))

    @property
    def is_too_large(self) -> bool:
        """Whether the program has more than MOST_PARTS parts."""
        return self.uses.parts > MOST_PARTS

    def too_large(self, span: Span) -> tree.Literal:
        """Record that the program is too large from here on."""
        message = f"the program has more than {MOST_PARTS:,} parts here, those of the functions that it calls counted at each call"
        return self.error("CXL-T017", message, span, help="divide it between two transforms, or keep the result of a function in a let instead of calling it again")


def holding(value: tree.Expr) -> tree.Expr:
    """Return an expression whose type says that it may hold Decimals, where a part of it does."""
    known = value.type
    if not known.is_dynamic or known.holds_decimals or not any(part.type.may_be_decimal for part in tree.children(value)):
        return value
    return replace(value, type=replace(known, holds_decimals=True))


Visitors = Mapping[type, Callable[[Checker, Any], tree.Expr]]
"""The function that types each class of syntax node."""
