"""A run as data: `errata run` executes the list of steps that `errata plan` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from errata.plan.correlation import PriorRollback, concerns, rules_changed
from errata.plan.edits import changed_beside, edited
from errata.plan.plan import Node, Plan, columns_of
from errata.plan.restored_nodes import NONE
from storage.state.entry import Entry

Action = Literal["skip", "first", "delta", "rebuild"]
"""The step of a run at a node. `first`: it has no rows yet; `delta`: it follows its inputs; `rebuild`: its logic changed."""
OutputAction = Literal["write", "move", "restore", "follow"]
"""The step of a run at an output's files. `follow`: they are written where its rows change."""


@dataclass(frozen=True, slots=True)
class IngestStep:
    """Read what is new of a source."""

    node: str
    action: Action
    reason: str


@dataclass(frozen=True, slots=True)
class NodeStep:
    """Run a node that is no source."""

    node: str
    action: Action
    reason: str


DataStep = IngestStep | NodeStep


@dataclass(frozen=True, slots=True)
class SettleStep:
    """Run these steps in rounds, until no further record is rolled back."""

    steps: Sequence[DataStep]


@dataclass(frozen=True, slots=True)
class GuardStep:
    """Compare the rejected records with the thresholds."""


@dataclass(frozen=True, slots=True)
class OutputStep:
    """Stage the files of an output, or of the dead letter queue (node `dlq`)."""

    node: str
    action: OutputAction
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CommitStep:
    """Append the ledger's entry: from here on the epoch exists."""


@dataclass(frozen=True, slots=True)
class PublishStep:
    """Rename the staged files over their targets."""


Step = IngestStep | NodeStep | SettleStep | GuardStep | OutputStep | CommitStep | PublishStep


@dataclass(frozen=True, slots=True)
class OutputChanges:
    """The outputs, and `dlq`, that moved since the last epoch, and the outputs whose files changed or are gone."""

    moved: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()

    def with_(self, other: OutputChanges) -> OutputChanges:
        """Both together."""
        return OutputChanges(self.moved | other.moved, self.lost | other.lost)


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a run in their order.

    Attributes:
        nodes: One step a node, in the plan's order.
        outputs: One step an output, then that of the dead letter queue.
        settle: Whether records may be rolled back, so that the nodes run in rounds.
        removed: Nodes of the last epoch that the pipeline does not have, with their types.
    """

    nodes: Sequence[DataStep]
    outputs: Sequence[OutputStep] = ()
    settle: bool = False
    removed: Mapping[str, str] = field(default_factory=dict)

    @property
    def rearranged(self) -> bool:
        """Whether nodes are gone or outputs moved. The ledger learns of it although no row changed."""
        return bool(self.removed) or any(step.action == "move" for step in self.outputs)

    @property
    def any_work(self) -> bool:
        """Whether there is anything to do but to restore files."""
        return self.rearranged or self.computes

    @property
    def computes(self) -> bool:
        """Whether rows, or rejects, may change."""
        return bool(self.removed) or any(step.action != "skip" for step in self.nodes)

    @property
    def recomputed(self) -> frozenset[str]:
        """The nodes whose rows are all computed, and the outputs that moved."""
        moved = {step.node for step in self.outputs if step.action == "move"}
        return frozenset(moved | {step.node for step in self.nodes if step.action in ("first", "rebuild")})

    def computing(self) -> Sequence[Step]:
        """The steps that compute rows."""
        return [SettleStep(self.nodes)] if self.settle else self.nodes

    def committing(self) -> Sequence[Step]:
        """The steps that stage outputs and commit."""
        return [*self.outputs, CommitStep()]

    def __iter__(self) -> Iterator[Step]:
        """All steps of a run that commits."""
        return iter([*self.computing(), GuardStep(), *self.committing(), PublishStep()])


def plan_steps(plan: Plan, head: Entry | None, changed: Mapping[str, str], outputs: OutputChanges | None = None, *, retry: bool = False) -> Steps:
    """The steps of the next run.

    Args:
        plan: The pipeline.
        head: The ledger's entry that the run continues; None where everything is computed.
        changed: The sources that have something new, and the nodes whose rows change with the clock, each with the reason.
        outputs: What became of the files of outputs; None where no outputs are written.
        retry: Whether suppressed records are tried again although nothing else changed.
    """
    before, known = PriorRollback.of(head), head.plan if head else {}
    removed = {name: str(entry["type"]) for name, entry in known.items() if name not in plan.nodes}
    reasons = dict(changed) | rules_changed(plan, before)
    nodes = _node_steps(plan, head, reasons)
    again = retry or bool(removed) or bool(outputs and outputs.moved)
    if before.suppressed and (again or any(step.action != "skip" for step in nodes)):
        nodes = _node_steps(plan, head, {name: f"{count} suppressed records are tried again" for name, count in before.suppressed.items()} | reasons)
    return Steps(nodes, () if outputs is None else list(_output_steps(plan, nodes, outputs)), concerns(plan, head), removed)


def _node_steps(plan: Plan, head: Entry | None, changed: Mapping[str, str]) -> list[DataStep]:
    steps: dict[str, DataStep] = {}
    for node in plan:
        action, reason = _decision(plan, node, head.plan if head else None, changed, steps)
        steps[node.name] = IngestStep(node.name, action, reason) if node.is_source else NodeStep(node.name, action, reason)
    return list(steps.values())


def _output_steps(plan: Plan, nodes: Sequence[DataStep], changes: OutputChanges) -> Iterator[OutputStep]:
    actions = {step.node: step.action for step in nodes}
    for node in plan.of_kind("output"):
        if actions[node.name] in ("first", "rebuild"):
            yield OutputStep(node.name, "write")
        elif node.name in changes.moved:
            yield OutputStep(node.name, "move", "it is written elsewhere")
        elif node.name in changes.lost:
            yield OutputStep(node.name, "restore", "it is not as the last run left it")
        else:
            yield OutputStep(node.name, "follow")
    yield OutputStep("dlq", "move", "it is written elsewhere") if "dlq" in changes.moved else OutputStep("dlq", "follow")


def known_rows(plan: Plan, steps: Sequence[DataStep], nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, int | None]:
    """The rows that each node goes through, None where only the run can say.

    Args:
        plan: The pipeline.
        steps: One step a node.
        nodes: The counts of each node in the last ledger entry.
    """
    actions = {step.node: step.action for step in steps}
    return {step.node: 0 if step.action == "skip" else _rows_above(plan, plan[step.node], actions, nodes) for step in steps}


def _rows_above(plan: Plan, node: Node, actions: Mapping[str, Action], nodes: Mapping[str, Mapping[str, Any]]) -> int | None:
    """The rows of all inputs where these do not change and are counted; ports of routes and nodes without a table are not counted."""
    counted = all(port is None and name in nodes and actions[name] == "skip" and plan.persisted(plan[name]) for name, port in node.inputs)
    return sum(int(nodes[name]["live"]) for name, _ in node.inputs) if node.inputs and counted else None


def _decision(
    plan: Plan, node: Node, head: Mapping[str, Any] | None, changed: Mapping[str, str], above: Mapping[str, DataStep]
) -> tuple[Action, str]:
    """The step of a run at a node, and the reason."""
    if head is None:
        return "first", "first run"
    if node.name not in head:
        return "first", "new node"
    reason = _own_change(plan, node, head) or _inputs_lost(plan, node, head, above)
    return ("rebuild", reason) if reason else _following(node, changed, above)


def _own_change(plan: Plan, node: Node, head: Mapping[str, Any]) -> str:
    """Why a node itself is to be computed anew; empty where it is as it was."""
    if head[node.name]["fingerprint"] == NONE:
        return "it is back, and missed what its inputs became"
    if head[node.name]["fingerprint"] != node.fingerprint():
        return _edit(plan, node, head)
    if list(map(list, head[node.name]["columns"])) != columns_of(node):
        return "its columns have other types"
    return "its changelog is kept from now on" if plan.persisted(node) and _was_derived(head, node.name) else ""


def _edit(plan: Plan, node: Node, head: Mapping[str, Any]) -> str:
    """The edit of a node whose logic changed."""
    before = head[node.name]
    if list(map(list, before["inputs"])) != list(map(list, node.inputs)):
        return "it reads other nodes"
    others = [name for name, _ in node.inputs if name in head and head[name]["columns"] != columns_of(plan[name])]
    own = [edited(node.spec, before["written"])] if "written" in before else []
    changes = "; ".join(filter(None, [*own, *changed_beside(node.beside(), before.get("beside", {}))]))
    return changes or (f"the columns of {', '.join(dict.fromkeys(others))} changed" if others else "its logic changed")


def _inputs_lost(plan: Plan, node: Node, head: Mapping[str, Any], above: Mapping[str, DataStep]) -> str:
    """Why what its inputs give cannot be followed; empty where it can."""
    derived = [name for name, _ in node.inputs if above[name].action in ("first", "rebuild") and (not plan.persisted(plan[name]) or _was_derived(head, name))]
    if derived:  # what such a node gave before is not kept, so its consumers are compared
        return f"the logic of {', '.join(dict.fromkeys(derived))} changed"
    poorer = _poorer(plan, node, head)
    return f"the rows of {', '.join(poorer)} have lost what rode along with them" if poorer else ""


def _was_derived(head: Mapping[str, Any], name: str) -> bool:
    """Whether the node kept no rows of its own (`persist: boundaries`), so that its table does not hold what its consumers were given."""
    return not head.get(name, {}).get("persisted", True)


def _poorer(plan: Plan, node: Node, head: Mapping[str, Any]) -> list[str]:
    """The inputs of a merge whose rows lost metadata columns that the merge's own rows still have.

    Their retractions do not hold what the merge's rows hold, so it cannot make its own of them.
    """
    if len(node.inputs) < 2 or node.operator.explain_class != "linear":
        return []
    kept = node.operator.output.hidden_columns()
    before = {name: {str(column) for column, _ in head[name]["hidden"]} for name, _ in node.inputs if name in head}
    return [name for name, had in before.items() if any(column in kept for column in had - set(plan[name].operator.output.hidden_columns()))]


def _following(node: Node, changed: Mapping[str, str], above: Mapping[str, DataStep]) -> tuple[Action, str]:
    """The action for a node whose logic did not change: it follows its inputs."""
    reason = changed.get(node.name)
    if reason:
        return "delta", reason
    if node.is_source:
        return "skip", "input unchanged"
    moving = [name for name, _ in node.inputs if above[name].action != "skip"]
    if moving:
        return ("delta", f"input changed: {', '.join(dict.fromkeys(moving))}")
    variables = [name for name, writer in node.feeds.items() if above[writer].action != "skip"]
    if variables:
        return ("delta", f"computed anew: {', '.join(f'${name}' for name in variables)}")
    return ("skip", "nothing changed upstream")
