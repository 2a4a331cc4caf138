"""Pipeline variables that state nodes hand on: the last value of each, kept in the ledger, so that their readers know when to be evaluated again.

(User guide, "Init phase"; SPEC-DECISIONS, Incremental runs 25.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from changelog.lazy_imports import F
from errata.project.variables import read_value
from operators.core.run_values import rider

if TYPE_CHECKING:
    from errata.execution.node_runner import NodeRunner
    from errata.plan.plan import Node, Plan

Values = Mapping[str, Any]


@dataclass(slots=True)
class ScalarInputs:
    """The variables of each state node that others take them from, by the node's name: before this run, and now."""

    before: dict[str, Values] = field(default_factory=dict)
    now: dict[str, Values] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan, nodes: Mapping[str, Mapping[str, Any]]) -> ScalarInputs:
        """What the last epoch's ledger entry says (`nodes`)."""
        found: dict[str, Values] = {name: _read(plan, kept["variables"]) for name, kept in nodes.items() if name in plan.feeding and "variables" in kept}
        return cls(found, dict(found))

    def taken(self, node: Node) -> dict[str, Any]:
        """The variables that a node takes from state nodes, by dotted name."""
        return {name: self.now[writer][name] for name, writer in node.feeds.items() if writer in self.now}

    def changed(self, node: Node) -> bool:
        """Whether a variable that a node takes is another than before this run."""
        return any(self.before.get(writer, {}).get(name) != self.now.get(writer, {}).get(name) for name, writer in node.feeds.items())

    def note(self, flow: NodeRunner, node: Node) -> None:
        """Look up what a state node that has just been run hands on: the variables of its last record."""
        from changelog.columns import column

        names = {f"pipeline.{name}": rider("pipeline", name) for name in node.spec.config.variables}
        values = flow.values_of(node)
        live = flow.tables.live(flow.engine, node, values)
        good = live.where(F.col("_error").isNull()) if "_error" in live.columns else live
        last = good.orderBy(F.col("_key").desc()).select(*(column(name) for name in names.values()))
        rows = flow.engine.to_arrow(last, 1).to_pylist()
        self.now[node.name] = {name: _plain(rows[0][held]) if rows else values.values.get(name) for name, held in names.items()}

    def kept(self, name: str) -> dict[str, Any]:
        """What the ledger keeps of a node."""
        if name not in self.now:
            return {}
        return {"variables": {key: value.isoformat() if isinstance(value, date) else value for key, value in self.now[name].items()}}


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def _read(plan: Plan, kept: Mapping[str, Any]) -> dict[str, Any]:
    declared = plan.settings.variables
    known = {name: declared[key] for name in kept if (key := ("pipeline", name.partition(".")[2])) in declared}
    return {name: read_value(kept[name], variable.type.base) for name, variable in known.items()}
