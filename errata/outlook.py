"""`errata plan`: what the next run would do with each node, and with what is not in the pipeline any more (CONTRACT, "Commands")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from errata.correlation_plan import Before, ruled_anew
from errata.fetching import services
from errata.ingest import look_at_sources
from errata.options import RunOptions
from errata.stages import rows_known, with_retries

if TYPE_CHECKING:
    from errata.project import Project
    from storage.ledger import Entry

Row = Mapping[str, Any]


def outlook(project: Project) -> Iterator[Row]:
    """One row a node: node, type, action, rows (that it goes through, None where only the run can tell), reason. Raises StorageFailed.

    No service is asked, so the records of one count as changed.
    """
    plan, head = project.plan, project.before()
    sources = look_at_sources(plan, head.sources if head else {})
    changed = services(plan) | {name: one.reason for name, one in sources.items() if one.reason}
    before, moved, gone = Before.of(head), _moved(project, head), _gone(project, head)
    stages = with_retries(plan, head.plan if head else None, changed | ruled_anew(plan, before), before.held, always=bool(moved or gone))
    rows = rows_known(plan, stages, head.nodes if head else {})
    for stage in stages:
        told = {"node": stage.node, "type": plan[stage.node].kind, "action": stage.action, "rows": rows[stage.node], "reason": stage.reason}
        yield {**told, **moved.get(stage.node, {})} if stage.action == "skip" else told
    if "dlq" in moved:
        yield {"node": "dlq", "type": "dlq", **moved["dlq"]}
    yield from gone


def _moved(project: Project, head: Entry | None) -> dict[str, Row]:
    """What is said of the outputs, and "dlq", that lie elsewhere than the last epoch wrote them."""
    from errata.run import Run
    from errata.targets import Targets

    if head is None:
        return {}
    found = Targets.of(project.plan, Run(project.plan, project.state, RunOptions(), head)).moved(project.plan, head)
    live = {name: int(head.nodes.get(name, {}).get("live", 0)) for name in found} | {"dlq": int(head.counters.get("rejected", 0))}
    return {name: {"action": "move", "rows": live[name], "reason": "it is written elsewhere"} for name in found}


def _gone(project: Project, head: Entry | None) -> list[Row]:
    """The nodes of the last epoch that the pipeline does not have."""
    known = head.plan if head else {}
    return [{"node": name, "type": one["type"], "action": "remove", "rows": 0, "reason": "no longer in the pipeline"} for name, one in known.items() if name not in project.plan.nodes]
