"""Programs with aggregate or window calls, split into the row programs before and after the operator's work."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from cxl.check.checker import Checker
from cxl.diagnostics.source import Span
from cxl.typed import tree
from cxl.typed.program import Program, WindowLayer
from cxl.typed.target import Target
from cxl.types.types import Schema

_PER_RECORD = ("source", "record", "meta", "doc")
Use = tree.AggregateUse | tree.WindowUse


def taken_apart(program: Program, target: Target, check: Checker) -> Program:
    """Return the program with `before`, `layers` and `after` where it needs them. Reports what is not allowed outside an aggregate call."""
    if target.mode == "aggregate":
        if not target.open:
            _check_groups(program, target, check)
        return replace(program, before=_before(program, program.calls, _row_part(program)), after=_after_groups(program, target))
    if program.calls:
        return replace(program, before=_before(program, program.calls), after=_after_rows(program))
    if program.windows:
        return replace(program, layers=_layers(program, target), after=_after_rows(program))
    return program


def _uses(program: Program) -> tuple[Use, ...]:
    return (*program.calls, *program.windows)


def _row_part(program: Program) -> tuple[tree.Statement, ...]:
    row_statements = tree.Let | tree.Filter | tree.Trace
    return tuple(statement for statement in program.statements if isinstance(statement, row_statements))


def _layers(program: Program, target: Target) -> tuple[WindowLayer, ...]:
    """The window calls in layers. The calls of a layer read results of earlier layers only."""
    ranks: dict[str, int] = {}
    for use in program.windows:
        ranks[use.column] = max((1 + ranks[name] for name in read_results(use)), default=0)
    layers: list[WindowLayer] = []
    schema = target.window_schema or program.schema
    for rank in range(1 + max(ranks.values())):
        uses = tuple(use for use in program.windows if ranks[use.column] == rank)
        layers.append(WindowLayer(_before(replace(program, schema=schema), uses), uses))
        schema = schema.with_fields({use.column: use.type for use in uses})
    return tuple(layers)


def read_results(use: tree.WindowUse) -> Iterator[str]:
    """The result columns of other window calls that the arguments of a call read."""
    return (node.column for arg in use.args for node in tree.walk(arg) if isinstance(node, tree.Result))


def _before(program: Program, uses: Iterable[Use], statements: tuple[tree.Statement, ...] = ()) -> Program:
    """The row program that emits the calls' arguments."""
    slots = program.slots
    arguments: dict[str, tree.Expr] = {}
    for use in uses:
        for column, arg in zip(use.columns, use.args, strict=True):
            arguments.setdefault(column, arg)
    emits = [tree.Emit(arg.span, column, slots + at, arg) for at, (column, arg) in enumerate(arguments.items())]
    fields = Schema((column, arg.type) for column, arg in arguments.items())
    return _part(program, program.schema, (*statements, *emits), fields, slots + len(emits))


def _after_rows(program: Program) -> Program:
    schema = program.schema.with_fields({use.column: use.type for use in _uses(program)})
    return _part(program, schema, program.statements, program.output, program.slots)


def _after_groups(program: Program, target: Target) -> Program:
    group = {name: program.schema[name] for name in target.group_by if name in program.schema}
    schema = Schema({**group, **{use.column: use.type for use in program.calls}}.items())
    needed = _needed_slots(program)
    statements = (s for s in program.statements if isinstance(s, tree.Emit) or (isinstance(s, tree.Let) and s.slot in needed))
    return _part(program, schema, tuple(statements), program.output, program.slots)


def _part(program: Program, schema: Schema, statements: tuple[tree.Statement, ...], output: Schema, slots: int) -> Program:
    mode = program.mode if program.expression is not None else "row"
    return replace(program, mode=mode, schema=schema, statements=statements, output=output, slots=slots, calls=(), windows=(), layers=())


def _needed_slots(program: Program) -> set[int]:
    """The variables that emits read, through lets and earlier emits."""
    values = {s.slot: s.value for s in program.statements if isinstance(s, tree.Let | tree.Emit)}
    pending = [s.value for s in program.statements if isinstance(s, tree.Emit)]
    needed: set[int] = set()
    while pending:
        for slot in _locals(pending.pop()) - needed:
            needed.add(slot)
            pending.extend([values[slot]] if slot in values else [])
    return needed


def _locals(expression: tree.Expr) -> set[int]:
    return {node.slot for node in tree.walk(expression) if isinstance(node, tree.Local)}


def _check_groups(program: Program, target: Target, check: Checker) -> None:
    for name in target.group_by:
        if name not in program.schema:
            check.error("CXL-A008", f"group_by field '{name}' is not in the input", Span(0, 0))
    needed = _needed_slots(program)
    for statement in program.statements:
        if isinstance(statement, tree.Emit) or (isinstance(statement, tree.Let) and statement.slot in needed):
            _check_outside(tree.walk(statement.value), target, check)


def _check_outside(nodes: Iterable[tree.Expr], target: Target, check: Checker) -> None:
    """Report reads of single records outside of aggregate calls."""
    for node in nodes:
        if isinstance(node, tree.Field) and node.name not in target.group_by:
            message = f"field '{node.name}' must appear in group_by or be used inside an aggregate function"
            check.error("CXL-A005", message, node.span, help=f"for example max({node.name})")
        elif isinstance(node, tree.System) and node.namespace in _PER_RECORD and node.name != "source.count":
            message = f"'${node.name}' belongs to single records and cannot stand outside of an aggregate function"
            check.error("CXL-A007", message, node.span, help=f"for example first(${node.name})")
