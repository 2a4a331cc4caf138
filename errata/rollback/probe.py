"""The failures ahead of every barrier: the deltas of the sources are sent through the nodes that map row by row, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from changelog.columns import column
from changelog.lazy_imports import F, pa
from changelog.ops import is_positive
from changelog.rows import Rows
from errata.plan.correlation import ranks
from errata.plan.plan import Node, Plan
from errata.plan.steps import DataStep
from errata.state.node_tables import qualify_input, visible_rows
from errata.state.run_state import RunState
from operators.core.operator import Linear
from operators.core.row_type import CK

Frames = dict[str, Rows | None]
"""The rows that this run brings to each node that was looked at; None where there are none."""


def would_fail(run: RunState, plan: Plan, stages: Sequence[DataStep]) -> Iterator[tuple[Node, pa.Table]]:
    """Nodes that follow their inputs' deltas and what fails there: `_key`, `_error` and the columns of correlation keys. Others are left to their own turn."""
    order = ranks(plan)
    frames: Frames = {node.name: run.done[node.name].rows for node in plan.of_kind("source")}
    for stage in stages:
        node = plan[stage.node]
        if order[node.name] != 0 or node.is_source or not _follows(run, node, stage, frames):
            continue
        rows = frames[node.name] = _rows(run, plan, node, frames)
        if rows is not None and node.operator.may_reject:
            failing = rows.as_frame().where(F.col("_error").isNotNull() & is_positive(F.col("_op")))
            riders = [column(name) for name in node.operator.output.riders if name.startswith(CK)]
            yield node, run.engine.to_arrow(failing.select("_key", "_error", *riders))


def _follows(run: RunState, node: Node, stage: DataStep, frames: Mapping[str, Rows | None]) -> bool:
    """Whether the node's delta is made of its inputs' deltas alone."""
    plain = stage.action == "delta" or (stage.action == "first" and run.epoch == 1)
    return plain and not node.feeds and isinstance(node.operator, Linear) and all(name in frames for name, _ in node.inputs)


def _rows(run: RunState, plan: Plan, node: Node, frames: Mapping[str, Rows | None]) -> Rows | None:
    parts: list[Rows] = []
    for index, (name, port) in enumerate(node.inputs):
        above = frames[name]
        if above is not None:
            rows = qualify_input(visible_rows(above, plan[name], port, node), node, index)
            parts.append(cast("Linear", node.operator).images(rows, index, run.values_of(node)))
    return parts[0].union(*parts[1:]) if parts else None
