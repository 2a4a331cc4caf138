"""The interpreter: a program run on one record after another, in Python.

Only the interpreter makes the category and the message of a failure. Spark columns report that a record failed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cxl.runtime.context import Context
from cxl.runtime.evaluate import Evaluate, Frame, build, settled
from cxl.syntax.nesting_limit import ensure_room
from cxl.typed import tree
from cxl.typed.program import Program
from cxl.types.types import Kind
from cxl.values.dynamic import canonical
from cxl.values.failure import CxlFailure
from cxl.values.operators import is_nan
from cxl.values.text import display

Record = Mapping[str, Any]
NAN_CATEGORY = "nan_in_output_field"
EXPANSION_CATEGORY = "expansion_limit_exceeded"


def nan_message(name: str) -> str:
    """Return the message for an emitted field that is NaN, or for the argument of an aggregate or window call."""
    return "the argument of a call is NaN" if name.startswith(tree.ARGUMENT) else f"the value of '{name}' is NaN"


@dataclass(slots=True)
class Output:
    """One emitted record: its fields in the order of first emit, and its metadata."""

    fields: dict[str, Any] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)

    def copy(self) -> "Output":
        """Return a new record with the fields emitted so far."""
        return Output(dict(self.fields), dict(self.meta))


@dataclass(slots=True)
class _Run:
    """One record in progress: the frame, and the records that emit each made."""

    frame: Frame
    leaves: list[Output] = field(default_factory=list)


Step = Callable[[_Run, Output], bool]
"""A statement. It changes the output, and returns False where the record is dropped."""


class Runner:
    """A program ready to run. It remembers the keys of `distinct`, so one runner serves one stream of records."""

    def __init__(self, program: Program) -> None:
        ensure_room()
        self.program = program
        self._definitions = {s.slot: s.value for s in tree.walk_statements(program.statements) if isinstance(s, tree.Let | tree.Emit)}
        self._steps = self._block(program.statements, inside_each=False)
        self._shared = {name: settled(type_) for name, type_ in program.output.items() if type_.kind in (Kind.FLOAT, Kind.DECIMAL)}
        self._expression = build(program.expression) if program.expression is not None else None

    def run(self, record: Record, context: Context) -> list[dict[str, Any]]:
        """Return the fields of the records that a record becomes; none where it is dropped. Raises `CxlFailure`."""
        outputs = self.outputs(record, context)
        if not self.program.fans_out:
            return [output.fields for output in outputs]
        return [{name: output.fields[name] for name in self.program.output if name in output.fields} for output in outputs]

    def outputs(self, record: Record, context: Context) -> list[Output]:
        """Return the records that a record becomes, with their metadata. Raises `CxlFailure`."""
        run = _Run(Frame(record, self.program.slots, context))
        output = Output()
        if not all(step(run, output) for step in self._steps):
            return []
        return [self._brought_together(leaf) for leaf in run.leaves] if self.program.fans_out else [output]

    def _brought_together(self, leaf: Output) -> Output:
        """The record with numbers in the types of its fields: another block may emit the field as a Float or with a greater scale."""
        for name, settle in self._shared.items():
            if name in leaf.fields:
                leaf.fields[name] = settle(leaf.fields[name])
        return leaf

    def evaluate(self, record: Record, context: Context) -> Any:
        """Return the value of a bare expression. Raises `CxlFailure`, and ValueError for a program of statements."""
        if self._expression is None:
            raise ValueError("a program of statements has no value")
        return self._expression(Frame(record, self.program.slots, context))

    # Statements ---------------------------------------------------------------------------------------------------------

    def _block(self, statements: tuple[tree.Statement, ...], *, inside_each: bool) -> list[Step]:
        return [self._step(statement, inside_each) for statement in statements]

    def _step(self, statement: tree.Statement, inside_each: bool) -> Step:
        if inside_each and isinstance(statement, tree.Filter | tree.Distinct):
            return _not_inside_each(statement)
        return _STEPS[type(statement)](self, statement)

    def let(self, statement: tree.Let) -> Step:
        """`let name = value`."""
        slot, value = statement.slot, build(statement.value)

        def step(run: _Run, output: Output) -> bool:
            run.frame.locals[slot] = value(run.frame)
            return True

        return step

    def emit(self, statement: tree.Emit) -> Step:
        """`emit name = value`."""
        name, slot, value = statement.name, statement.slot, build(statement.value)
        check = self._nan_check(statement)

        def step(run: _Run, output: Output) -> bool:
            try:
                output.fields[name] = run.frame.locals[slot] = check(value(run.frame))
            except CxlFailure as failure:
                failure.field = failure.field or name
                raise
            return True

        return step

    def _nan_check(self, statement: tree.Emit) -> Callable[[Any], Any]:
        """A NaN that CXL computed is a failure. A NaN of the input is emitted."""
        source = statement.value
        while isinstance(source, tree.Local) and source.slot in self._definitions:
            source = self._definitions[source.slot]
        if isinstance(source, tree.Field):
            return lambda value: value
        name, span = statement.name, statement.value.span

        def check(value: Any) -> Any:
            if is_nan(value):
                raise CxlFailure(nan_message(name), category=NAN_CATEGORY, span=span)
            return value

        return check

    def emit_meta(self, statement: tree.EmitMeta) -> Step:
        """`emit meta name = value`."""
        name, slot, value = statement.name, statement.slot, build(statement.value)

        def step(run: _Run, output: Output) -> bool:
            output.meta[name] = run.frame.locals[slot] = value(run.frame)
            return True

        return step

    def filter(self, statement: tree.Filter) -> Step:
        """`filter condition`."""
        condition = build(statement.condition)
        return lambda run, output: condition(run.frame) is True

    def distinct(self, statement: tree.Distinct) -> Step:
        """`distinct`, with the keys seen so far."""
        keys = [(build(value), _dynamic_key if value.type.is_dynamic else _key) for _, value in statement.keys]
        seen: set[tuple[Any, ...]] = set()

        def step(run: _Run, output: Output) -> bool:
            key = tuple(comparable(value(run.frame)) for value, comparable in keys)
            new = key not in seen
            seen.add(key)
            return new

        return step

    def trace(self, statement: tree.Trace) -> Step:
        """`trace`: messages go to the context."""
        guard = build(statement.guard) if statement.guard is not None else None
        message, level = build(statement.message), statement.level

        def step(run: _Run, output: Output) -> bool:
            if guard is None or guard(run.frame) is True:
                text = message(run.frame)
                if run.frame.context.trace is not None:
                    run.frame.context.trace(level, display(text))
            return True

        return step

    def emit_each(self, statement: tree.EmitEach) -> Step:
        """`emit each`: the body once for each element, on a copy of the record emitted so far."""
        source, slot = build(statement.source), statement.slot
        body = self._block(statement.body, inside_each=True)
        is_leaf = not any(isinstance(inner, tree.EmitEach) for inner in statement.body)

        def step(run: _Run, output: Output) -> bool:
            for element in _elements(source, run.frame, statement):
                run.frame.locals[slot] = element
                child = output.copy()
                for inner in body:
                    inner(run, child)
                if is_leaf:
                    _add_leaf(run, child, statement)
            return True

        return step


def _elements(source: Evaluate, frame: Frame, statement: tree.EmitEach) -> list[Any]:
    value = source(frame)
    if value is None or value == []:
        return [None] if statement.outer else []
    if not isinstance(value, list):
        raise CxlFailure(f"emit each needs an array, got {display(value)[:60]}", span=statement.source.span)
    return value


def _add_leaf(run: _Run, leaf: Output, statement: tree.EmitEach) -> None:
    limit = run.frame.context.max_expansion
    if len(run.leaves) >= limit:
        message = f"emit each exceeded the expansion limit (max_expansion {limit})"
        raise CxlFailure(message, category=EXPANSION_CATEGORY, span=statement.span)
    run.leaves.append(leaf)


def _not_inside_each(statement: tree.Filter | tree.Distinct) -> Step:
    word = "filter" if isinstance(statement, tree.Filter) else "distinct"

    def step(run: _Run, output: Output) -> bool:
        raise CxlFailure(f"'{word}' is not allowed inside emit each", span=statement.span)

    return step


def _key(value: Any) -> Any:
    """A value of a known type in a distinct key: -0.0 is 0.0, and NaN equals itself."""
    return ("NaN",) if is_nan(value) else value


def _dynamic_key(value: Any) -> str | None:
    """A dynamic value in a distinct key: its text, so that 1, 1.0 and "1" differ."""
    return canonical(value)


_STEPS: dict[type, Callable[[Runner, Any], Step]] = {
    tree.Let: Runner.let, tree.Emit: Runner.emit, tree.EmitMeta: Runner.emit_meta, tree.Filter: Runner.filter,
    tree.Distinct: Runner.distinct, tree.Trace: Runner.trace, tree.EmitEach: Runner.emit_each,
}  # fmt: skip


def run(program: Program, record: Record, context: Context) -> list[dict[str, Any]]:
    """Return the fields of the records that one record becomes. Raises `CxlFailure`."""
    return Runner(program).run(record, context)


def evaluate(program: Program, record: Record, context: Context) -> Any:
    """Return the value of a program that is a bare expression. Raises `CxlFailure`."""
    return Runner(program).evaluate(record, context)
