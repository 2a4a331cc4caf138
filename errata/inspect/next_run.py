"""`errata plan`: what the next run would do with each node, and with what is not in the pipeline any more (CONTRACT, "Commands")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from errata.core.options import EngineOptions, RunOptions
from errata.execution.engine import choose_engine, work_of
from errata.execution.ingest import look_at_sources
from errata.execution.rest_sources import services
from errata.plan.correlation import PriorRollback, ruled_anew
from errata.plan.steps import Stage, rows_known, with_retries

if TYPE_CHECKING:
    from errata.api.pipeline import Pipeline
    from errata.execution.ingest import SourceFiles
    from errata.outputs.targets import Targets
    from errata.plan.plan import Node, Plan
    from storage.state.entry import Entry

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the next run would do: its stages over the sources as they are, and the engine that it would take."""

    plan: Plan
    head: Entry | None
    sources: Mapping[str, SourceFiles]
    stages: Sequence[Stage]
    gone: Sequence[Row]
    outputs: _Outputs | None

    @classmethod
    def of(cls, project: Pipeline) -> Outlook:
        """That of a project. No service is asked, so the records of one count as changed. Raises StorageFailed."""
        plan, head = project.plan, project.before()
        sources = look_at_sources(plan, head.sources if head else {})
        changed = services(plan) | {name: one.reason for name, one in sources.items() if one.reason}
        before, gone, outputs = PriorRollback.of(head), _gone(project, head), _Outputs.of(project, head) if head else None
        always = bool(gone) or (outputs is not None and bool(outputs.moved))
        stages = with_retries(plan, head.plan if head else None, changed | ruled_anew(plan, before), before.held, always=always)
        return cls(plan, head, sources, stages, gone, outputs)

    def rows(self) -> Iterator[Row]:
        """One row a node: node, type, action, rows (that it goes through, None where only the run can tell), reason."""
        rows = rows_known(self.plan, self.stages, self.head.nodes if self.head else {})
        for stage in self.stages:
            told = {"node": stage.node, "type": self.plan[stage.node].kind, "action": stage.action, "rows": rows[stage.node], "reason": stage.reason}
            yield told if self.outputs is None else {**told, **self.outputs.of_stage(self.plan[stage.node], stage)}
        yield from [*(self.outputs.of_dlq() if self.outputs else ()), *self.gone]

    def engine(self, options: EngineOptions) -> tuple[str, str] | None:
        """The engine and why it is this one; None where the run needs none."""
        if all(row["action"] == "skip" for row in self.rows()):
            return None
        chosen = choose_engine(options, self.plan, work_of(self.plan, self.sources, self.stages, self.head.nodes if self.head else {}))
        return chosen.choice.kind, chosen.reason


@dataclass(frozen=True, slots=True)
class _Outputs:
    """The outputs, and "dlq", that lie elsewhere than the last epoch wrote them (`moved`), or not as it left them."""

    head: Entry
    targets: Targets
    moved: set[str]

    @classmethod
    def of(cls, project: Pipeline, head: Entry) -> _Outputs:
        """Those of the next run."""
        from errata.execution.run import Run
        from errata.outputs.targets import Targets
        from errata.plan.own_files import ProtectedFiles

        own = ProtectedFiles(project.plan, project.state, inputs=False)
        targets = Targets.of(project.plan, Run(project.plan, project.state, RunOptions(), head, own=own))
        return cls(head, targets, targets.moved(project.plan, head))

    def of_stage(self, node: Node, stage: Stage) -> Row:
        """What is said of an output besides: it is written although its node has nothing to do, or elsewhere."""
        if node.name in self.moved and stage.action in ("skip", "delta"):
            return self._written("move", "it is written elsewhere", stage)
        if node.is_output and stage.action == "skip" and not self.targets.intact(node, self.head):
            return self._written("restore", "it is not as the last run left it", stage)
        return {}

    def _written(self, action: str, reason: str, stage: Stage) -> Row:
        if stage.action != "skip":
            return {"action": action, "reason": f"{reason}; {stage.reason}"}
        return {"action": action, "rows": int(self.head.nodes.get(stage.node, {}).get("live", 0)), "reason": reason}

    def of_dlq(self) -> Iterator[Row]:
        """The DLQ file, where it is to be written elsewhere."""
        if "dlq" in self.moved:
            yield {"node": "dlq", "type": "dlq", "action": "move", "rows": int(self.head.counters.get("rejected", 0)), "reason": "it is written elsewhere"}


def _gone(project: Pipeline, head: Entry | None) -> list[Row]:
    """The nodes of the last epoch that the pipeline does not have."""
    known = head.plan if head else {}
    return [{"node": name, "type": one["type"], "action": "remove", "rows": 0, "reason": "no longer in the pipeline"} for name, one in known.items() if name not in project.plan.nodes]
