"""The plan before a run, from the nodes that a run walks: text, JSON and Graphviz DOT."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from cxl.types.types import type_name
from errata.core.diagnostics import did_you_mean
from errata.core.failures import Usage
from errata.execution.resource_limits import storage_lines, storage_summary
from errata.plan.plan import Node, Plan
from errata.rollback.cost import retraction_block
from operators.output.operator import Output
from operators.source.node import SourceNode

COSTS = {
    "source": "the files that changed",
    "linear": "the changed rows",
    "accumulator": "the changed rows and the groups that they touch",
    "affected-key": "all rows of the touched keys",
}
"""The cost of a change at a node of each class (docs/how-it-works/architecture.md, "Operators")."""


def explain(plan: Plan, format: str) -> str:
    """A plan as `text`, `json` or `dot`. Reads no data and starts no engine."""
    return {"text": _text, "json": _json, "dot": _dot}[format](plan)


def _text(plan: Plan) -> str:
    lines = list(_title(f"Execution Plan: {plan.settings.name}"))
    for index, node in enumerate(plan):
        lines += _node_lines(plan, index, node)
    return "\n".join([*lines, *retraction_block(plan), *_settings(plan)]) + "\n"


def explain_field(plan: Plan, node: str, parameter: str) -> str:
    """The value of a composition's parameter and every layer that gave one. Raises Usage for an unknown one."""
    known = {f"{name}.{one}" for name, given in plan.parameters.items() for one in given}
    found = plan.parameters.get(node, {}).get(parameter)
    if found is None:
        wanted = f"{node}.{parameter}"
        help_text = did_you_mean(wanted, known) or f"parameters of compositions: {', '.join(sorted(known)) or 'none'}"
        raise Usage(f"'{wanted}' is no parameter of a composition in this pipeline", help=help_text)
    return "\n".join(found.explained(node)) + "\n"


def _title(text: str) -> Iterator[str]:
    yield text
    yield "=" * len(text)
    yield ""


def _node_lines(plan: Plan, index: int, node: Node) -> Iterator[str]:
    operator = node.operator
    yield f"Node {index}: {node.name} ({node.kind}, {operator.explain_class})"
    for name, port in node.inputs:
        yield f"  <- {name}{f'.{port}' if port else ''}"
    for target, port in _edges(plan, node):
        yield f"  -> {f'[{port}] ' if port else ''}{target}"
    for line in operator.describe():
        yield f"  {line}"
    yield f"  kept: {'changelog/' + node.name if plan.persisted(node) else 'derived from its input when somebody looks'}"
    yield f"  a change costs: {_cost(node)}"
    yield f"  columns: {', '.join(f'{name} {type_name(type_)}' for name, type_ in operator.output.data.items()) or 'none'}"
    yield ""


def _cost(node: Node) -> str:
    """The cost of a change at a node."""
    shape = node.operator.explain_class
    if shape == "source" and cast("SourceNode", node.operator).config.asks:
        return "the answer of the database; with a cursor, the rows at or behind it"
    if node.is_output and cast("Output", node.operator).in_database:
        return "the changed rows"
    if shape == "source" and cast("SourceNode", node.operator).versioned:
        return "the rows that the table's change data feed names, or the whole table"
    if node.is_output and (output := cast("Output", node.operator)).versioned and output.config.options.get("mode") != "changelog":
        return "the changed rows, and the files of the table that hold rows which go"
    return COSTS.get(shape, shape)


def _edges(plan: Plan, node: Node) -> Iterator[tuple[str, str | None]]:
    """Consumers of a node with the port that each reads; a port that nobody reads has an empty consumer."""
    read: set[str | None] = set()
    for consumer in plan.consumers[node.name]:
        for name, port in consumer.inputs:
            if name == node.name:
                read.add(port)
                yield consumer.name, port
    for port in node.operator.ports():
        if port not in read:
            yield "(nobody)", port


def _settings(plan: Plan) -> Iterator[str]:
    """Settings that are only hints, with their effect."""
    pipeline = plan.model.pipeline
    yield from _title("Settings")
    memory = f"memory limit {pipeline.memory.limit}" if pipeline.memory.limit else "memory limit not set"
    yield f"{memory}: a hint for the engine's memory, which is 1G at least; the engine spills by itself"
    yield f"backpressure {pipeline.memory.backpressure}: accepted, without effect on results"
    yield f"threads {pipeline.concurrency.threads or 'not set'}: bounds the engine's cores"
    yield f"errors: {plan.model.error_handling.strategy}"
    yield f"changelogs kept: {plan.model.changelog.persist}"
    yield ""
    yield from _title("Storage")
    yield from storage_lines(plan)


def node_object(plan: Plan, node: Node) -> dict[str, Any]:
    """A node as the JSON form shows it."""
    operator = node.operator
    return {
        "type": node.kind, "name": node.name, "class": operator.explain_class,
        "depends_on": [f"{plan[name].kind}.{name}" for name, _ in node.inputs],
        "inputs": [{"node": name, "port": port} for name, port in node.inputs],
        "ports": list(operator.ports()),
        "columns": {name: type_name(type_) for name, type_ in operator.output.data.items()},
        "persisted": plan.persisted(node), "deterministic": operator.deterministic,
        "cost_of_a_change": _cost(node),
        "details": list(operator.describe()), "fingerprint": node.fingerprint(),
    }  # fmt: skip


def _json(plan: Plan) -> str:
    answer = {
        "schema_version": "1", "pipeline": plan.settings.name,
        "nodes": [node_object(plan, node) for node in plan],
        "error_handling": plan.model.error_handling.model_dump(mode="json"),
        "changelog": plan.model.changelog.model_dump(mode="json"),
        "storage_summary": storage_summary(plan),
    }  # fmt: skip
    return json.dumps(answer, indent=2, ensure_ascii=False) + "\n"


def _dot(plan: Plan) -> str:
    lines = ["digraph {"]
    lines += [f"    {_quoted(node.name)} [label={_quoted(f'[{node.kind}] {node.name}')}]" for node in plan]
    for node in plan:
        for name, port in node.inputs:
            lines.append(f"    {_quoted(name)} -> {_quoted(node.name)} [label={_quoted(port or 'data')}]")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
