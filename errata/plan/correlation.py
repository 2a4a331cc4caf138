"""Correlation in a plan: which sources have a key, which nodes wait for which to be settled, whether there is anything to settle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from errata.plan.plan import Node, Plan
from operators.core.row_type import CK
from storage.state.entry import Entry

TRIGGERS = "rollback/triggers"
"""Path of the table of failed aggregate rows, and the ledger's name for its counts."""
LAST = 1 << 30
"""The rank of outputs: they are written when everything else is settled."""


def key_fields(node: Node) -> tuple[str, ...]:
    """The fields of a source's correlation key, none where it has none."""
    return tuple(node.operator.output.riding(CK))


def concerns(plan: Plan, head: Entry | None) -> bool:
    """Whether a run has to be settled: a source has a correlation key, or records are still suppressed from the time when one had."""
    if any(key_fields(node) for node in plan.of_kind("source")):
        return True
    return head is not None and bool(PriorRollback.of(head).suppressed or head.nodes.get(TRIGGERS, {}).get("rejected_live"))


@dataclass(frozen=True, slots=True)
class PriorRollback:
    """The records that the last epoch left rolled back.

    Attributes:
        suppressed: Number of suppressed records by source; sources without any are left out.
        largest: An upper bound of the records of a correlation group; None where there is none.
        rules: The settings by which records were rolled back.
    """

    suppressed: Mapping[str, int] = field(default_factory=dict)
    largest: int | None = None
    rules: str | None = None

    @classmethod
    def of(cls, head: Entry | None) -> PriorRollback:
        """Read a ledger entry."""
        suppressed = {name: int(entry["suppressed"]) for name, entry in (head.sources if head else {}).items() if entry.get("suppressed")}
        counts = head.nodes.get(TRIGGERS, {}) if head else {}
        return cls(suppressed, counts.get("largest"), counts.get("rules"))


def rules(plan: Plan) -> str:
    """The settings of the pipeline and of its nodes that decide which records a failure rolls back, as text."""
    handling = plan.model.error_handling
    own = {node.name: policy for node in plan if (policy := getattr(node.spec.config, "correlation_fanout_policy", None))}
    return json.dumps([handling.max_group_buffer, handling.retraction_scope, handling.correlation_fanout_policy, own])


def rules_changed(plan: Plan, before: PriorRollback) -> dict[str, str]:
    """The sources with a correlation key, each with the reason to read it, where the rules of rollback changed since the last epoch."""
    if before.rules in (None, rules(plan)):
        return {}
    return {node.name: "the rules of rollback changed" for node in plan.of_kind("source") if key_fields(node)}


def ranks(plan: Plan) -> dict[str, int]:
    """The rank of each node: even for nodes that map row by row, odd for those whose rows depend on several records."""
    found: dict[str, int] = {}
    behind: dict[str, int] = {}
    for node in plan:
        above = max((behind[name] for name in (*(name for name, _ in node.inputs), *node.feeds.values())), default=0)
        alone = node.operator.explain_class in ("linear", "source")
        found[node.name] = LAST if node.is_output else above if alone else above + 1
        behind[node.name] = above if alone else above + 2
    return found


def takers(nodes: Mapping[str, Node]) -> frozenset[str]:
    """The relaxed aggregates, and the nodes that map row by row on the way to them."""
    found: set[str] = set()
    for node in reversed(list(nodes.values())):
        leads = any(name in found for name, one in nodes.items() if any(above == node.name for above, _ in one.inputs))
        if _is_relaxed(node) or (leads and not node.is_output and node.operator.explain_class == "linear"):
            found.add(node.name)
    return frozenset(found)


def splitting(nodes: Mapping[str, Node], taking: frozenset[str]) -> list[Node]:
    """The sources with a correlation key whose rows come both to relaxed aggregates and, not through one, to outputs."""
    direct: set[str] = set()
    counting: set[str] = set()
    for node in reversed(list(nodes.values())):
        below = [one for one in nodes.values() if any(above == node.name for above, _ in one.inputs)]
        if node.is_output or any(one.name in direct and not _is_relaxed(one) for one in below):
            direct.add(node.name)
        if any(one.name in taking for one in below):
            counting.add(node.name)
    return [node for node in nodes.values() if node.is_source and key_fields(node) and node.name in direct & counting]


def keeps_mates(nodes: Mapping[str, Node], source: Node) -> bool:
    """Whether the mates of a source's failing record are not touched at all: its rows come to outputs through relaxed aggregates alone."""
    work = [source.name]
    while work:
        name = work.pop()
        for node in nodes.values():
            if any(above == name for above, _ in node.inputs) and not _is_relaxed(node):
                if node.is_output:
                    return False
                work.append(node.name)
    return True


def _is_relaxed(node: Node) -> bool:
    return bool(getattr(node.operator, "relaxed", False))
