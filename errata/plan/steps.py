"""A run as a list of small stages, one a node: `run`, `plan` and `explain` read the same list (docs/architecture.md, "A run")."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from errata.plan.edits import changed_beside, edited
from errata.plan.plan import Node, Plan, columns_of
from errata.plan.restored_nodes import NONE

Action = Literal["skip", "first", "delta", "rebuild"]


@dataclass(frozen=True, slots=True)
class Stage:
    """What a run does with one node and why. `first`: everything is new; `delta`: follow the inputs; `rebuild`: the logic changed."""

    node: str
    action: Action
    reason: str


def make_stages(plan: Plan, head: Mapping[str, Any] | None, changed: Mapping[str, str]) -> Sequence[Stage]:
    """The stages of the next run, in the plan's order.

    `head` is what the last epoch's ledger entry says of the nodes (name to its summary), None before the first run.
    `changed` has a reason for each source whose input changed.
    """
    stages: dict[str, Stage] = {}
    for node in plan:
        stages[node.name] = _stage(plan, node, head, changed, stages)
    return list(stages.values())


def with_retries(
    plan: Plan, head: Mapping[str, Any] | None, changed: Mapping[str, str], held: Mapping[str, int], *, always: bool = False
) -> Sequence[Stage]:
    """The stages of the next run with suppressed records tried again, where there is anything else to do (or `always`). `held`: how many of each source."""
    stages = make_stages(plan, head, changed)
    if not held or (all(stage.action == "skip" for stage in stages) and not always):
        return stages
    return make_stages(plan, head, {name: f"{count} suppressed records are tried again" for name, count in held.items()} | dict(changed))


def rows_known(plan: Plan, stages: Sequence[Stage], nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, int | None]:
    """How many rows each node will go through, None where only the run can tell. `nodes`: what the last epoch's ledger entry counted of each."""
    actions = {stage.node: stage.action for stage in stages}
    return {stage.node: 0 if stage.action == "skip" else _rows_above(plan, plan[stage.node], actions, nodes) for stage in stages}


def _rows_above(plan: Plan, node: Node, actions: Mapping[str, Action], nodes: Mapping[str, Mapping[str, Any]]) -> int | None:
    """The rows of all inputs, where these stay as they stand and are counted: of a port of a route or of a node without a table they are not."""
    counted = all(port is None and name in nodes and actions[name] == "skip" and plan.persisted(plan[name]) for name, port in node.inputs)
    return sum(int(nodes[name]["live"]) for name, _ in node.inputs) if node.inputs and counted else None


def _stage(plan: Plan, node: Node, head: Mapping[str, Any] | None, changed: Mapping[str, str], above: Mapping[str, Stage]) -> Stage:
    if head is None:
        return Stage(node.name, "first", "first run")
    if node.name not in head:
        return Stage(node.name, "first", "new node")
    reason = _of_its_own(plan, node, head) or _of_its_inputs(plan, node, head, above)
    return Stage(node.name, "rebuild", reason) if reason else _following(node, changed, above)


def _of_its_own(plan: Plan, node: Node, head: Mapping[str, Any]) -> str:
    """Why a node itself is to be computed anew; empty where it is as it was."""
    if head[node.name]["fingerprint"] == NONE:
        return "it is back, and missed what its inputs became"
    if head[node.name]["fingerprint"] != node.fingerprint():
        return _edit(plan, node, head)
    if list(map(list, head[node.name]["columns"])) != columns_of(node):
        return "its columns have other types"
    return "its changelog is kept from now on" if plan.persisted(node) and _was_derived(head, node.name) else ""


def _edit(plan: Plan, node: Node, head: Mapping[str, Any]) -> str:
    """What became another in a node whose logic did."""
    before = head[node.name]
    if list(map(list, before["inputs"])) != list(map(list, node.inputs)):
        return "it reads other nodes"
    others = [name for name, _ in node.inputs if name in head and head[name]["columns"] != columns_of(plan[name])]
    own = [edited(node.spec, before["written"])] if "written" in before else []
    told = "; ".join(filter(None, [*own, *changed_beside(node.beside(), before.get("beside", {}))]))
    return told or (f"the columns of {', '.join(dict.fromkeys(others))} changed" if others else "its logic changed")


def _of_its_inputs(plan: Plan, node: Node, head: Mapping[str, Any], above: Mapping[str, Stage]) -> str:
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
    """The inputs of a merge whose rows carry less than before beside their data, while those of the merge carry it still.

    Their retractions do not hold what the merge's rows hold, so it cannot make its own of them.
    """
    if len(node.inputs) < 2 or node.operator.explain_class != "linear":
        return []
    kept = node.operator.output.hidden_columns()
    before = {name: {str(column) for column, _ in head[name]["hidden"]} for name, _ in node.inputs if name in head}
    return [name for name, had in before.items() if any(column in kept for column in had - set(plan[name].operator.output.hidden_columns()))]


def _following(node: Node, changed: Mapping[str, str], above: Mapping[str, Stage]) -> Stage:
    """The stage of a node whose logic is as it was: it follows what it reads."""
    if node.is_source:
        reason = changed.get(node.name)
        return Stage(node.name, "delta", reason) if reason else Stage(node.name, "skip", "input unchanged")
    moving = [name for name, _ in node.inputs if above[name].action != "skip"]
    if moving:
        return Stage(node.name, "delta", f"input changed: {', '.join(dict.fromkeys(moving))}")
    variables = [name for name, writer in node.feeds.items() if above[writer].action != "skip"]
    if variables:
        return Stage(node.name, "delta", f"computed anew: {', '.join(f'${name}' for name in variables)}")
    return Stage(node.name, "skip", "nothing changed upstream")
