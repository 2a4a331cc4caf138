"""Runs one node of a plan: looks up what its operator needs, lets it answer, stores the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from errata.execution.operator_context import NodeContext
from errata.plan.plan import Node
from errata.plan.steps import NodeStep
from errata.state.node_writer import NodeWriter
from errata.state.run_state import NodeDelta, RunState
from operators.core.following import answered
from operators.core.operator import NeedsWiderSums


@dataclass(frozen=True, slots=True)
class NodeRunner:
    """Runs the nodes of a plan other than its sources."""

    writer: NodeWriter

    @property
    def run(self) -> RunState:
        """The run that the nodes belong to."""
        return self.writer.run

    def visit(self, node: Node, stage: NodeStep) -> NodeDelta:
        """Run a node, store its delta and the scalars that other nodes take from it.

        A node with nothing to do by the plan still runs where its inputs bring rows: records may have been rolled back since.
        """
        if stage.action == "skip":
            if not (self._input_changed(node) or self._scalars_changed(node)):
                return self.writer.skip(node)
            stage = replace(stage, action="delta")
        with self.run.engine.sized(self._rows_read(node, stage)):
            delta = self._delta(node, stage)
            if node.name in self.run.plan.feeding:
                self.run.note_scalars(node)
        return delta

    def _delta(self, node: Node, stage: NodeStep) -> NodeDelta:
        refreshed = stage.action == "delta" and (self._scalars_changed(node) or (self.run.reopened and node.as_operator.keeps_periods))
        if not (refreshed or self._has_work(node, stage)):
            return self.writer.keep_nothing(node)
        context = NodeContext(self.run, node, stage, self._bound(node, whole=refreshed or stage.action != "delta"))
        if refreshed:
            return self._answer(node, context, "recompute")
        rebuild = stage.action == "rebuild" or (stage.action == "first" and self.run.epoch > 1)
        if rebuild and not self.run.plan.persisted(node) and not node.operator.may_reject:
            return self.writer.skip(node)  # its consumers are compared
        return self._answer(node, context, "logic" if rebuild else None)

    def _answer(self, node: Node, context: NodeContext, cause: str | None) -> NodeDelta:
        """Store the operator's answer. Where a sum exceeds its limbs, store the answer with wide sums instead.

        Args:
            node: The node.
            context: What its operator may look up.
            cause: Why all of its rows are computed again; None where it answers to deltas.
        """
        versions, operator = self.run.versions_of(node), self.run.operator(node)
        answer = answered(operator, context, lambda: self._reset(versions)) if cause is None else operator.rebuild(context.of_all(), cause)
        few = cause is None and self.run.small_deltas(node)
        delta = self.writer.keep(node, answer, context.bound, few=few, follows=few and context.stage.action == "delta")
        try:
            if delta.rejected and delta.rows is not None:
                operator.require_exact_sums(delta.rows)
        except NeedsWiderSums:
            self._restore(node, delta, versions)
            self.run.wide_sums.add(node.name)
            return self.writer.keep(node, self.run.operator(node).rebuild(context.of_all(), cause or "recompute"), None)
        return delta

    def _restore(self, node: Node, delta: NodeDelta, versions: Mapping[str, int | None]) -> None:
        """Take a stored delta back: the node's tables and its counters."""
        self._reset(versions)
        self.run.live_rows[node.name] -= delta.net + delta.rejected - delta.repaired
        self.run.rejects[node.name] -= delta.rejected - delta.repaired

    def _reset(self, versions: Mapping[str, int | None]) -> None:
        """Bring tables of a node back to their versions."""
        for path, version in versions.items():
            self.run.tables.by_path(path).restore(version)

    def _rows_read(self, node: Node, stage: NodeStep) -> int | None:
        """About how many rows a node reads at least, from its inputs and of its own; None where that is not known."""
        read = [self.run.done[name].bound if stage.action == "delta" else self.run.live_bound(name) for name, _ in node.inputs]
        known = [bound for bound in read if bound is not None]
        return max([*known, self.run.live_rows.get(node.name, 0)], default=0) if len(known) == len(read) else None

    def _has_work(self, node: Node, stage: NodeStep) -> bool:
        """Whether an input brings rows, or the node is computed over live inputs, or always has rows."""
        if self._input_changed(node):
            return True
        if stage.action == "delta":
            return node.operator.follows_clock
        live_inputs = self.run.epoch > 1 and any(self.run.live_bound(name) != 0 for name, _ in node.inputs)
        return node.operator.always_has_rows or stage.action == "rebuild" or live_inputs

    def _input_changed(self, node: Node) -> bool:
        return any(not self.run.done[name].empty for name, _ in node.inputs)

    def _scalars_changed(self, node: Node) -> bool:
        """Whether a scalar that a node takes from elsewhere changed in this run."""
        return self.run.scalar_inputs.changed(node) or self.run.source_counts.changed(node)

    def _bound(self, node: Node, *, whole: bool) -> int | None:
        """An upper bound of the node's op rows, before they are computed; None where there is none.

        Args:
            node: The node.
            whole: Whether all of its rows are computed again.
        """
        inputs = [self.run.live_bound(name) if whole else self.run.done[name].bound for name, _ in node.inputs]
        known = [bound for bound in inputs if bound is not None]
        if len(known) < len(inputs):
            return None
        total = sum(known) + (self.run.live_rows.get(node.name, 0) if whole else 0)
        live = [self.run.live_bound(name) for name, _ in node.inputs]
        return self.run.operator(node).bound(total, sum(self.run.engine.limits.small_rows + 1 if bound is None else bound for bound in live))
