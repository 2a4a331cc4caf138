"""Scalars that a node takes from elsewhere: pipeline variables of state nodes, and `$source.count`.

Their readers are computed again when the value changes, so the ledger keeps the last value of each variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from changelog.columns import column
from changelog.lazy_imports import F
from errata.plan.plan import Node, Plan
from errata.project.variables import read_value
from operators.core.run_values import RunValues, rider
from storage.values.decimals import plain_digits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.engines.base import Engine

Values = Mapping[str, Any]
COUNT = "source.count"


@dataclass(slots=True)
class ScalarInputs:
    """The pipeline variables that state nodes set, by node: before this run, and now."""

    before: dict[str, Values] = field(default_factory=dict)
    now: dict[str, Values] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan, nodes: Mapping[str, Mapping[str, Any]]) -> ScalarInputs:
        """Read the variables from the `nodes` member of the last ledger entry."""
        found: dict[str, Values] = {name: _read(plan, entry["variables"]) for name, entry in nodes.items() if name in plan.feeding and "variables" in entry}
        return cls(found, dict(found))

    def taken(self, node: Node) -> dict[str, Any]:
        """The variables that a node takes from state nodes, by dotted name."""
        return {name: self.now[writer][name] for name, writer in node.feeds.items() if writer in self.now}

    def changed(self, node: Node) -> bool:
        """Whether a variable that a node takes changed in this run."""
        return any(self.before.get(writer, {}).get(name) != self.now.get(writer, {}).get(name) for name, writer in node.feeds.items())

    def note(self, node: Node, live: DataFrame, engine: Engine, values: RunValues) -> None:
        """Store the variables of the last record of a state node that has just run.

        Args:
            node: The state node.
            live: Its live rows, rejects among them.
            engine: The engine that reads them.
            values: System variables of the node; the defaults where it has no row.
        """
        names = {f"pipeline.{name}": rider("pipeline", name) for name in node.spec.config.variables}
        good = live.where(F.col("_error").isNull()) if "_error" in live.columns else live
        last = good.orderBy(F.col("_key").desc()).select(*(column(name) for name in names.values()))
        rows = engine.to_arrow(last, 1).to_pylist()
        self.now[node.name] = {name: _plain(rows[0][hidden]) if rows else values.values.get(name) for name, hidden in names.items()}

    def ledger_entry(self, name: str) -> dict[str, Any]:
        """The variables of a node as the ledger keeps them."""
        if name not in self.now:
            return {}
        return {"variables": {key: _kept(value) for key, value in self.now[name].items()}}


def _kept(value: Any) -> Any:
    """A value as the ledger keeps it: dates and Decimals as text."""
    if isinstance(value, Decimal):
        return plain_digits(value)
    return value.isoformat() if isinstance(value, date) else value


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def _read(plan: Plan, entry: Mapping[str, Any]) -> dict[str, Any]:
    declared = plan.settings.variables
    known = {name: declared[key] for name in entry if (key := ("pipeline", name.partition(".")[2])) in declared}
    return {name: read_value(entry[name], variable.type.base) for name, variable in known.items()}


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """`$source.count`: the records of a source, rejects among them, where a node has seen all of them.

    Programs that see one record at a time find null. Aggregates and nodes over their rows find the total of their source; with several sources
    upstream there is no single total, so they find null too.

    Attributes:
        now: Live rows of each node; the run keeps it up to date.
        before: Live rows of each node before this run.
    """

    plan: Plan
    now: Mapping[str, int]
    before: Mapping[str, int] = field(default_factory=dict)

    def taken(self, node: Node) -> dict[str, int]:
        """The variable by its dotted name, where a node reads it and there is a total."""
        source = self._source(node)
        return {} if source is None else {COUNT: self.now.get(source, 0)}

    def changed(self, node: Node) -> bool:
        """Whether the total that a node reads changed in this run."""
        source = self._source(node)
        return source is not None and self.before.get(source, 0) != self.now.get(source, 0)

    def _source(self, node: Node) -> str | None:
        operator = node.operator
        if COUNT not in operator.reads_source():
            return None
        of_records = any(row.key.sources() for row in operator.inputs)
        sources = self.plan.sources_of(node.name)
        return sources[0] if len(sources) == 1 and (operator.condenses or not of_records) else None
