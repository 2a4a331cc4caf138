"""`$source.count`: the records of a source, known where all of them were read (user guide, "$source.count semantics").

Programs that look at one record of a source at a time find null; an aggregate, which has seen them all, and what looks at rows of aggregates find the
total, rejects counted in. With several sources above there is no single total: null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from errata.plan.plan import Node, Plan

NAME = "source.count"


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """The rows of each source before this run (`before`), and as they stand now (`now`, which the run keeps up to date)."""

    plan: Plan
    now: Mapping[str, int]
    before: Mapping[str, int] = field(default_factory=dict)

    def taken(self, node: Node) -> dict[str, int]:
        """The variable by its dotted name, where a node reads it and there is a total."""
        source = self._source(node)
        return {} if source is None else {NAME: self.now.get(source, 0)}

    def changed(self, node: Node) -> bool:
        """Whether the total that a node reads is another than before this run."""
        source = self._source(node)
        return source is not None and self.before.get(source, 0) != self.now.get(source, 0)

    def _source(self, node: Node) -> str | None:
        operator = node.operator
        if NAME not in operator.reads_source():
            return None
        of_records = any(row.key.sources() for row in operator.inputs)
        above = self.plan.sources_of(node.name)
        return above[0] if len(above) == 1 and (operator.condenses or not of_records) else None
