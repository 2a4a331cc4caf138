"""What a plan says of correlation: which sources have a key, which nodes wait for which to be settled, whether there is anything to settle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from errata.correlation_triggers import TRIGGERS
from operators.rows import CK

if TYPE_CHECKING:
    from errata.plan import Node, Plan
    from storage.ledger import Entry

LAST = 1 << 30
"""The rank of outputs: they are written when everything else is settled."""


def key_fields(node: Node) -> tuple[str, ...]:
    """The fields of a source's correlation key, none where it has none."""
    return tuple(node.operator.output.riding(CK))


def concerns(plan: Plan, head: Entry | None) -> bool:
    """Whether a run has to be settled: a source has a correlation key, or records are still suppressed from the time when one had."""
    if any(key_fields(node) for node in plan.of_kind("source")):
        return True
    return head is not None and bool(held_before(head) or head.nodes.get(TRIGGERS, {}).get("rejected_live"))


def held_before(head: Entry | None) -> Mapping[str, int]:
    """How many records of each source an epoch left suppressed; sources without any are left out."""
    return {name: int(entry["suppressed"]) for name, entry in (head.sources if head else {}).items() if entry.get("suppressed")}


def ranks(plan: Plan) -> dict[str, int]:
    """The rank of each node: even for nodes that map row by row, odd for those whose rows depend on several records."""
    found: dict[str, int] = {}
    behind: dict[str, int] = {}
    for node in plan:
        above = max((behind[name] for name in (*(name for name, _ in node.inputs), *node.feeds.values())), default=0)
        alone = node.operator.explain_class in ("linear", "source")
        found[node.name] = LAST if node.kind == "output" else above if alone else above + 1
        behind[node.name] = above if alone else above + 2
    return found
