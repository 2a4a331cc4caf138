"""The nodes that check expectations, put into the plan behind the nodes whose rows they check.

Rows pass a node `<node>.accepted` first, where some expectations reject: everything downstream reads its rows. Each other expectation has a node
`<node>.<expectation>` beside the way, with the rows that fail it. At an output and a route, which pass their input's rows on, both come before the node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from errata.project.compositions.expand import Expansion, ExpectedRows
from operators.core.settings import InputRef, NodeSpec
from operators.expect.config import ACCEPTED, ExpectNode, Placed, Role

if TYPE_CHECKING:
    from errata.plan.plan import Node, Plan

AHEAD = ("output", "route")
"""Node types whose expectations look at the rows that come in."""
GATES = ("accepted", "accepted_unique")
"""Roles of nodes that pass rows on."""
Port = tuple[str, str | None]
"""A node and its port."""


@dataclass(slots=True)
class _Wiring:
    """Where references lead once the nodes are there.

    Attributes:
        gates: The gates behind the rows of a reference, from the first to the last, each with the prefix of the names that go on reading what is before it.
        failing: The node with the failing rows, by node and expectation.
    """

    gates: dict[Port, list[tuple[str, str]]] = field(default_factory=dict)
    failing: dict[Port, str] = field(default_factory=dict)

    def of(self, ref: InputRef, reader: str) -> InputRef:
        """The reference as a node reads it."""
        port = (ref.node, ref.port)
        passed = [gate for gate, prefix in self.gates.get(port, ()) if not (prefix and reader.startswith(prefix))]
        found = self.failing.get(port) or (passed[-1] if passed else None)
        return ref if found is None else InputRef(found, None, ref.qualifier)


def with_expectations(specs: Sequence[NodeSpec], expansion: Expansion) -> list[NodeSpec]:
    """The nodes of a pipeline with the nodes of their expectations, each behind what it reads."""
    wiring = _Wiring()
    made: dict[str, list[NodeSpec]] = {}
    composed: dict[str, list[ExpectedRows]] = {}
    for one in expansion.expected:
        composed.setdefault(one.rows.node, []).append(one)
    for spec in specs:
        for one in [*_own(spec, expansion), *composed.get(spec.name, ())]:
            nodes = list(_nodes(one, wiring, gated=spec.kind not in AHEAD or bool(one.prefix)))
            made.setdefault(spec.name, []).extend(nodes)
            expansion.bodies.update({node.name: one.body for node in nodes if one.body is not None})
    return list(_wired(specs, made, wiring))


def _own(spec: NodeSpec, expansion: Expansion) -> list[ExpectedRows]:
    """The expectations of a node itself."""
    rows = spec.inputs[0] if spec.kind in AHEAD else InputRef(spec.name)
    place = (*spec.path, "expect")
    return [ExpectedRows(spec.name, rows, spec.expect, place, spec.document, body=expansion.bodies.get(spec.name))] if spec.expect else []


def _wired(specs: Sequence[NodeSpec], made: Mapping[str, Sequence[NodeSpec]], wiring: _Wiring) -> Iterator[NodeSpec]:
    """All nodes with the references that they have now."""
    for spec in specs:
        inputs = tuple(wiring.of(ref, spec.name) for ref in spec.inputs)
        nodes = made.get(spec.name, ())
        if spec.kind not in AHEAD or not nodes:
            yield replace(spec, inputs=inputs)
            yield from nodes
            continue
        yield from (replace(node, inputs=inputs) if node.inputs == spec.inputs else node for node in nodes)
        gates = [node.name for node in nodes if node.config.role in GATES]
        yield replace(spec, inputs=(InputRef(gates[-1]),) if gates else inputs)


def _nodes(one: ExpectedRows, wiring: _Wiring, *, gated: bool) -> Iterator[NodeSpec]:
    """The nodes for the expectations of one node: gates, then those beside the way.

    Args:
        one: The expectations.
        wiring: Learns where the rows are.
        gated: Whether consumers of the rows read the last gate.
    """
    rows = wiring.of(one.rows, "") if gated else one.rows
    for name, role, rejecting in _gates(one):
        yield NodeSpec(name, "expect", ExpectNode(role, one.name, rejecting, beside=False), (rows,), one.path, one.document)
        rows = InputRef(name)
        if gated:
            wiring.gates.setdefault((one.rows.node, one.rows.port), []).append((name, one.prefix))
    for placed in one.placed:
        if not placed.rejects:
            yield from _beside(one, placed, rows)
            wiring.failing[one.name, placed.name] = f"{one.name}.{placed.name}"


def _gates(one: ExpectedRows) -> Iterator[tuple[str, Role, tuple[Placed, ...]]]:
    """The nodes that reject rows, by name: single rows first, then doubles. The last one has the same name in every plan."""
    alone = tuple(placed for placed in one.placed if placed.rejects and placed.expectation.unique is None)
    doubles = [placed for placed in one.placed if placed.rejects and placed.expectation.unique is not None]
    steps: list[tuple[str, Role, tuple[Placed, ...]]] = [("rows", "accepted", alone)] if alone else []
    steps += [(placed.name, "accepted_unique", (placed,)) for placed in doubles]
    last = f"{one.name}.{ACCEPTED}"
    for at, (name, role, placed) in enumerate(steps):
        yield (last if at == len(steps) - 1 else f"{last}.{name}"), role, placed


def _beside(one: ExpectedRows, placed: Placed, rows: InputRef) -> Iterator[NodeSpec]:
    """The nodes that have the failing rows of one expectation."""
    name, path = f"{one.name}.{placed.name}", (*one.path, placed.position)

    def node(name: str, role: Role, above: InputRef) -> NodeSpec:
        return NodeSpec(name, "expect", ExpectNode(role, one.name, (placed,)), (above,), path, one.document)

    if placed.expectation.kind in ("row_count", "freshness"):
        yield node(f"{name}.measure", "measure", rows)
        yield node(name, "measured", InputRef(f"{name}.measure"))
    else:
        yield node(name, "failing" if placed.expectation.unique is None else "failing_unique", rows)


@dataclass(frozen=True, slots=True)
class PlannedExpectation:
    """An expectation of the plan.

    Attributes:
        node: The node that has it.
        at: The node of the plan that has its failing rows, or their rejects.
    """

    node: str
    placed: Placed
    at: str

    @property
    def label(self) -> str:
        """The name by which commands know it: `orders.amount_positive`."""
        return f"{self.node}.{self.placed.name}"


def expectations_of(plan: Plan) -> list[PlannedExpectation]:
    """All expectations of a plan, in the order of their nodes and of the file."""
    found = [PlannedExpectation(config.of, placed, node.name) for node in plan for config in _checking(node) for placed in config.placed]
    order = {name: at for at, name in enumerate(dict.fromkeys(one.node for one in found))}
    return sorted(found, key=lambda one: (order[one.node], one.placed.position))


def _checking(node: Node) -> Iterator[ExpectNode]:
    """The expectations that a node checks."""
    config = node.spec.config
    if isinstance(config, ExpectNode) and config.role != "measure":
        yield config


def written_input(plan: Plan, node: Node) -> str:
    """The node that the first input of a node is written to read: not the gates of expectations that lie between."""
    name = node.inputs[0][0]
    while isinstance(config := plan[name].spec.config, ExpectNode) and config.role in GATES:
        name = config.of
    return name


def delivering(plan: Plan, node: Node) -> frozenset[str]:
    """The nodes whose rows come to a node as they are: what its first input reads, also through merges and the gates of expectations."""
    found: set[str] = set()
    waiting = [node.inputs[0][0]]
    while waiting:
        above = plan[waiting.pop()]
        found.add(above.name)
        config = above.spec.config
        if above.kind == "merge" or (isinstance(config, ExpectNode) and config.role in GATES):
            waiting += [name for name, _ in above.inputs]
    return frozenset(found)
