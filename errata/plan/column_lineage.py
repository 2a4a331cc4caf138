"""Which source columns stand behind each column of each node: from CXL where it computes one, by name where it passes one on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from cxl import Program
from cxl.typed.lineage import origins
from errata.plan.plan import Node, Plan

Columns: TypeAlias = frozenset[tuple[str, str]]
"""Source and column."""
Lineage: TypeAlias = Mapping[str, Columns]
"""By column of a node."""


def column_lineage(plan: Plan) -> dict[str, Lineage]:
    """The lineage of every node, in the plan's order."""
    found: dict[str, Lineage] = {}
    for node in plan:
        found[node.name] = _of(node, found)
    return found


def _of(node: Node, found: Mapping[str, Lineage]) -> Lineage:
    names = list(node.operator.output.data)
    if node.is_source:
        return {name: frozenset({(node.name, name)}) for name in names}
    above = {entry or name: found[name] for entry, (name, _) in zip(_entries(node), node.inputs, strict=True)}
    if node.is_output:
        projection: Any = getattr(node.operator, "projection")  # noqa: B009 - outputs alone have one
        return {name: _behind(source, above) for name, source, _ in projection.written}
    program = program_of(node.operator)
    computed = origins(program) if program else {}
    return {name: _all(computed[name], above) if name in computed else _behind(name, above) for name in names}


def _entries(node: Node) -> tuple[str, ...]:
    return node.entries or ("",) * len(node.inputs)


def program_of(operator: Any) -> Program | None:
    """Return the program that computes an operator's columns; None for one that computes none."""
    logic = getattr(operator, "logic", operator)
    found: Program | None = getattr(logic, "program", None) or getattr(logic, "body", None)
    return found


def _all(names: frozenset[str], above: Mapping[str, Lineage]) -> Columns:
    return frozenset().union(*(_behind(name, above) for name in names))


def _behind(name: str, above: Mapping[str, Lineage]) -> Columns:
    """The source columns behind a column of the inputs; `qualifier.name` belongs to one of them."""
    qualifier, _, own = name.partition(".")
    if own and qualifier in above:
        return above[qualifier].get(own, frozenset())
    return frozenset().union(*(lineage.get(name, frozenset()) for lineage in above.values()))
