"""The rows of `errata plan`: what a run does with each node, and with nodes that are no longer in the pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from errata.plan.plan import Plan
from errata.plan.steps import DataStep, OutputStep, Steps, known_rows
from storage.state.entry import Entry

Row = Mapping[str, Any]


def planned_rows(plan: Plan, head: Entry | None, steps: Steps) -> Iterator[Row]:
    """One row a node: node, type, action, rows (that it goes through, None where only the run can say), reason."""
    rows = known_rows(plan, steps.nodes, head.nodes if head else {})
    outputs = {step.node: step for step in steps.outputs}
    for step in steps.nodes:
        row = {"node": step.node, "type": plan[step.node].kind, "action": step.action, "rows": rows[step.node], "reason": step.reason}
        yield row if step.node not in outputs else {**row, **_output_row(head, step, outputs[step.node])}
    if head is not None and "dlq" in outputs and outputs["dlq"].action == "move":
        yield {"node": "dlq", "type": "dlq", "action": "move", "rows": int(head.counters.get("rejected", 0)), "reason": outputs["dlq"].reason}
    for name, kind in steps.removed.items():
        yield {"node": name, "type": kind, "action": "remove", "rows": 0, "reason": "no longer in the pipeline"}


def _output_row(head: Entry | None, step: DataStep, output: OutputStep) -> Row:
    """The members that differ in the row of an output that is written although its rows may not change."""
    if output.action == "move" and step.action != "skip":
        return {"action": "move", "reason": f"{output.reason}; {step.reason}"}
    if output.action in ("move", "restore") and step.action == "skip":
        nodes = head.nodes if head else {}
        return {"action": output.action, "rows": int(nodes.get(step.node, {}).get("live", 0)), "reason": output.reason}
    return {}
