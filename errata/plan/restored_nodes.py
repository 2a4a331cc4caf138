"""Nodes that a pipeline had once, had not in the last epoch, and has again.

Their tables are still there. So the last ledger entry is completed from the last entry that had them. A source then follows the changes of
its files since; every other node is computed anew and compared with its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from errata.plan.plan import Plan
from storage.state.entry import Entry

NONE = ""
"""The fingerprint of a node that missed what its inputs became."""


def with_returned(head: Entry | None, plan: Plan, history: Callable[[], Sequence[Entry]]) -> Entry | None:
    """The last entry, completed from earlier ones for restored nodes. Of removed sources it has the numbers, which stay taken."""
    if head is None:
        return None
    back = [node for node in plan if node.name not in head.plan and f"changelog/{node.name}" in head.tables]
    new = any(node.name not in head.sources for node in plan.of_kind("source"))
    entries = history() if back or new else [head]
    plans, nodes = dict(head.plan), dict(head.nodes)
    for node in back:
        last = next(entry for entry in reversed(entries) if node.name in entry.plan)
        plans[node.name] = last.plan[node.name] if node.is_source else {**last.plan[node.name], "fingerprint": NONE}
        nodes[node.name] = last.nodes[node.name]
    return replace(head, plan=plans, nodes=nodes, sources=_sources(plan, entries))


def _sources(plan: Plan, entries: Sequence[Entry]) -> dict[str, Any]:
    """The last record of each source in the entries."""
    own = {node.name for node in plan.of_kind("source")}
    last = {name: one for entry in entries for name, one in entry.sources.items()}
    return {name: one if name in own else {"number": one["number"]} for name, one in last.items()}
