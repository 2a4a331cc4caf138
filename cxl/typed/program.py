"""Compiled programs."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from cxl.diagnostics.diagnostics import Diagnostic
from cxl.diagnostics.source import Origin, Position, Span
from cxl.syntax.canonical import canonical_text
from cxl.syntax.parse import Parsed
from cxl.typed import tree
from cxl.typed.modules import Module
from cxl.typed.outputs import record_shapes
from cxl.typed.target import PIPELINE, Mode
from cxl.types.types import Schema

_VARYING = frozenset({"now", "source.batch", "source.count", "source.ingestion_timestamp", *(f"pipeline.{name}" for name in PIPELINE if name != "name")})
"""System variables that differ in every run. Declared variables are not among them: a node that reads one runs again when it changes."""


@dataclass(frozen=True, slots=True)
class WindowLayer:
    """Window calls that do not read each other, and the row program that emits their arguments."""

    before: "Program"
    uses: tuple[tree.WindowUse, ...]


@dataclass(frozen=True)
class Program:
    """A program without errors.

    Args:
        statements: In order; empty for a bare expression.
        expression: The expression of the modes predicate, expression and set.
        output: The emitted fields, in the order of first emit.
        meta: The fields of emit meta.
        calls, windows: The aggregate and window calls. The operator computes `__agg_<i>` and `__win_<i>` for them.
        before: For aggregates: the row program over the input that filters, and emits the arguments of the calls, each once, as `__arg_<i>`.
        layers: For windows: such a program for each layer of calls. It also reads the results of the layers before it.
        after: The row program over the results, and the group fields (aggregates) or the whole row (windows).
    """

    text: str
    mode: Mode
    schema: Schema
    origin: Origin
    syntax: Parsed
    statements: tuple[tree.Statement, ...] = ()
    expression: tree.Expr | None = None
    output: Schema = field(default_factory=Schema)
    meta: Schema = field(default_factory=Schema)
    calls: tuple[tree.AggregateUse, ...] = ()
    windows: tuple[tree.WindowUse, ...] = ()
    before: "Program | None" = None
    layers: tuple["WindowLayer", ...] = ()
    after: "Program | None" = None
    slots: int = 0
    modules: tuple[Module, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()

    def expressions(self) -> Iterator[tree.Expr]:
        """Yield the expressions of all statements, the arguments of calls, and the bare expression."""
        for statement in tree.walk_statements(self.statements):
            yield from tree.expressions(statement)
        uses: tuple[tree.AggregateUse | tree.WindowUse, ...] = (*self.calls, *self.windows)
        for use in uses:
            yield from use.args
        if self.expression is not None:
            yield self.expression

    def nodes(self) -> Iterator[tree.Expr]:
        """Every node of every expression."""
        for expression in self.expressions():
            yield from tree.walk(expression)

    @cached_property
    def filters(self) -> tuple[tree.Filter, ...]:
        """The filters, in order."""
        return tuple(statement for statement in self.statements if isinstance(statement, tree.Filter))

    @cached_property
    def distinct(self) -> tuple[tree.Distinct, ...]:
        """The distinct statements, in order."""
        return tuple(statement for statement in self.statements if isinstance(statement, tree.Distinct))

    @cached_property
    def fans_out(self) -> bool:
        """Whether it has an emit each block, so that a record may become any number of records."""
        return any(isinstance(statement, tree.EmitEach) for statement in self.statements)

    @cached_property
    def is_uneven(self) -> bool:
        """Whether its emit each blocks make records with different fields."""
        return len(set(record_shapes(self.statements))) > 1

    @cached_property
    def reads(self) -> frozenset[str]:
        """The input columns that it reads; `qualifier.name` for qualified ones."""
        fields = (node for node in self.nodes() if isinstance(node, tree.Field))
        rows = {use.read_field for use in self.windows if use.read_field is not None}
        return frozenset(one.name if one.qualifier is None else f"{one.qualifier}.{one.name}" for one in fields) | rows

    @cached_property
    def reads_system(self) -> frozenset[str]:
        """The system variables that it reads: `now`, `source.row`, `vars.rate`, ..."""
        return frozenset(node.name for node in self.nodes() if isinstance(node, tree.System))

    @cached_property
    def deterministic(self) -> bool:
        """Whether the same record gives the same output in every run."""
        builtins = (entry for node in self.nodes() if isinstance(node, tree.Call) for entry in node.overloads)
        return not self.reads_system & _VARYING and all(one.deterministic for one in builtins)

    def normal_text(self) -> str:
        """Return the program in one spelling, for fingerprints. Comments and layout do not count; used modules do."""
        used = (f"# {module.name}\n{module.normal_text()}" for module in sorted(self.modules, key=lambda one: one.name))
        return "\n".join((canonical_text(self.syntax), *used))

    def locate(self, span: Span) -> Position:
        """Return file, line and column of a place in the program."""
        return self.origin.locate(span.start)


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One part of a predicate whose parts are joined by `and`.

    Args:
        inputs: The qualifiers that it reads.
        op, left, right: Operator and sides of a comparison.
        left_inputs, right_inputs: The qualifiers that each side reads.
    """

    expression: tree.Expr
    inputs: frozenset[str]
    op: str | None = None
    left: tree.Expr | None = None
    right: tree.Expr | None = None
    left_inputs: frozenset[str] = frozenset()
    right_inputs: frozenset[str] = frozenset()


def conjuncts(program: Program) -> tuple[Conjunct, ...]:
    """Return the parts of a predicate at its top level, in order. Raises ValueError for a program without an expression."""
    if program.expression is None:
        raise ValueError("conjuncts of a program that is no predicate")
    return tuple(_conjunct(part) for part in _split(program.expression))


def _split(expression: tree.Expr) -> Iterator[tree.Expr]:
    stack = [expression]
    while stack:
        part = stack.pop()
        if isinstance(part, tree.Binary) and part.op == "and":
            stack.extend((part.right, part.left))
        else:
            yield part


def _conjunct(part: tree.Expr) -> Conjunct:
    if not isinstance(part, tree.Binary) or part.op not in tree.COMPARISON:
        return Conjunct(part, _inputs(part))
    return Conjunct(part, _inputs(part), part.op, part.left, part.right, _inputs(part.left), _inputs(part.right))


def _inputs(expression: tree.Expr) -> frozenset[str]:
    fields = (node for node in tree.walk(expression) if isinstance(node, tree.Field))
    return frozenset(node.qualifier for node in fields if node.qualifier is not None)
