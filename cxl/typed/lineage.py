"""Column lineage: the input columns that each emitted column is computed from.

A column counts where its value, or a choice between values, reads it. Filters do not count.
"""

from collections.abc import Mapping

from cxl.typed import tree
from cxl.typed.program import Program


def origins(program: Program) -> Mapping[str, frozenset[str]]:
    """Return, for each emitted column, the input columns that it reads, also through let; `qualifier.name` for qualified ones."""
    uses: tuple[tree.AggregateUse | tree.WindowUse, ...] = (*program.calls, *program.windows)
    results: dict[str, frozenset[str]] = {}
    for use in uses:  # a window call may read earlier calls
        results[use.column] = _fields(use.args, {}, results) | _member(use)
    slots: dict[int, frozenset[str]] = {}
    found: dict[str, frozenset[str]] = {}
    for statement in tree.walk_statements(program.statements):
        if isinstance(statement, tree.EmitEach):
            slots[statement.slot] = _fields((statement.source,), slots, results)
        elif isinstance(statement, tree.Let | tree.Emit):
            slots[statement.slot] = _fields((statement.value,), slots, results)
            if isinstance(statement, tree.Emit):
                found[statement.name] = slots[statement.slot]
    return found


def copies(program: Program) -> Mapping[str, str]:
    """Return, for each emitted column that is a plain copy of an input column, that column; `qualifier.name` for a qualified one."""
    emitted = {one.name: one.value for one in tree.walk_statements(program.statements) if isinstance(one, tree.Emit)}
    fields = {name: value for name, value in emitted.items() if isinstance(value, tree.Field)}
    return {name: value.name if value.qualifier is None else f"{value.qualifier}.{value.name}" for name, value in fields.items()}


def _member(use: tree.AggregateUse | tree.WindowUse) -> frozenset[str]:
    return frozenset({use.read_field}) if isinstance(use, tree.WindowUse) and use.read_field is not None else frozenset()


def _fields(
    expressions: tuple[tree.Expr, ...], slots: Mapping[int, frozenset[str]], results: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    found: set[str] = set()
    for node in (node for expression in expressions for node in tree.walk(expression)):
        if isinstance(node, tree.Field):
            found.add(node.name if node.qualifier is None else f"{node.qualifier}.{node.name}")
        elif isinstance(node, tree.Local):
            found |= slots.get(node.slot, frozenset())
        elif isinstance(node, tree.Result):
            found |= results.get(node.column, frozenset())
    return frozenset(found)
