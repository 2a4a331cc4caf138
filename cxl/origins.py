"""Which input columns each emitted column is computed from, for lineage: values and what chooses between them count, filters do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cxl import typed

if TYPE_CHECKING:
    from cxl.program import Program


def origins(program: Program) -> Mapping[str, frozenset[str]]:
    """Emitted column to the input columns that it reads, directly or through let; `qualifier.name` for qualified ones."""
    uses: tuple[typed.AggregateUse | typed.WindowUse, ...] = (*program.calls, *program.windows)
    results: dict[str, frozenset[str]] = {}
    for use in uses:  # a window call may read calls ahead of it
        results[use.column] = _fields(use.args, {}, results) | _member(use)
    slots: dict[int, frozenset[str]] = {}
    found: dict[str, frozenset[str]] = {}
    for statement in typed.walk_statements(program.statements):
        if isinstance(statement, typed.EmitEach):
            slots[statement.slot] = _fields((statement.source,), slots, results)
        elif isinstance(statement, typed.Let | typed.Emit):
            slots[statement.slot] = _fields((statement.value,), slots, results)
            if isinstance(statement, typed.Emit):
                found[statement.name] = slots[statement.slot]
    return found


def _member(use: typed.AggregateUse | typed.WindowUse) -> frozenset[str]:
    return frozenset({use.read_field}) if isinstance(use, typed.WindowUse) and use.read_field is not None else frozenset()


def _fields(
    expressions: tuple[typed.Expr, ...], slots: Mapping[int, frozenset[str]], results: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    found: set[str] = set()
    for node in (node for expression in expressions for node in typed.walk(expression)):
        if isinstance(node, typed.Field):
            found.add(node.name if node.qualifier is None else f"{node.qualifier}.{node.name}")
        elif isinstance(node, typed.Local):
            found |= slots.get(node.slot, frozenset())
        elif isinstance(node, typed.Result):
            found |= results.get(node.column, frozenset())
    return frozenset(found)
