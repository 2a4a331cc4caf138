"""The cost of retraction: the block of `explain` before a run, the counters of the metrics file after it.

Both concern aggregates that leave out a correlation key, and the nodes downstream of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from changelog.lazy_imports import F
from changelog.ops import is_negative
from errata.plan.plan import Node, Plan
from errata.rollback.outcome import Settled
from errata.state.run_state import RunState
from operators.aggregate.operator import Aggregate

COUNTERS = (
    "groups_recomputed", "partitions_recomputed", "subdag_replay_rows", "output_rows_retracted_total", "degrade_fallback_count",
    "synthetic_ck_columns_emitted_total", "synthetic_ck_fanout_lookups_total", "synthetic_ck_fanout_rows_expanded_total",
)  # fmt: skip
"""The names of the counters, below `correlation.retract`."""

PER_ROW = "~8 bytes/row"
PER_OUTPUT_ROW = "~16 bytes/row"


def relaxed_aggregates(plan: Plan) -> list[Node]:
    """The aggregates whose `group_by` leaves out a correlation key that is visible upstream."""
    return [node for node in plan.of_kind("aggregate") if isinstance(node.operator, Aggregate) and node.operator.relaxed]


def windows_behind(plan: Plan) -> Iterator[tuple[Node, set[str]]]:
    """The windows whose rows come through relaxed aggregates, each with the correlation keys that these leave out."""
    omitted = {node.name: set(node.operator.omitted) for node in relaxed_aggregates(plan) if isinstance(node.operator, Aggregate)}
    for node in plan.of_kind("transform"):
        found = [omitted[above.name] for above in plan.upstream(node.name) if above.name in omitted]
        if node.spec.config.analytic_window is not None and found:
            yield node, set().union(*found)


def buffered_windows(plan: Plan) -> list[Node]:
    """The windows that are partitioned by a correlation key which an upstream aggregate leaves out."""
    return [node for node, omitted in windows_behind(plan) if omitted & set(node.spec.config.analytic_window.fields)]


def retraction_block(plan: Plan) -> Iterator[str]:
    """The lines of the block; none where every aggregate covers its correlation keys."""
    aggregates, windows = relaxed_aggregates(plan), buffered_windows(plan)
    if not aggregates:
        return
    policy = plan.model.error_handling.correlation_fanout_policy
    yield "=== Retraction ==="
    yield ""
    yield f"retraction enabled — {len(aggregates)} relaxed aggregates, {len(windows)} buffer-mode windows, fanout policy: {policy}."
    for node in aggregates:
        yield from _aggregate(node)
    for node in windows:
        yield from _window(node)
    yield ""


def _aggregate(node: Node) -> Iterator[str]:
    operator = node.operator
    assert isinstance(operator, Aggregate)  # `relaxed_aggregates` looked
    path = "Reversible" if operator.reversible else "BufferRequired"
    how = "exact accumulators take contributions back" if operator.accumulators is not None else "the rows of the touched groups are read again"
    yield ""
    yield f"aggregate {node.name}"
    yield f"  accumulator path: {path} ({how})"
    yield f"  lineage: {PER_ROW if operator.reversible else 'n/a'}; here the key of a row names its group, so nothing is held in memory"
    yield f"  synthetic column: ${operator.synthetic.removeprefix('_').replace(':', '.')} ({PER_OUTPUT_ROW} of output)"
    yield "  group cardinality: unknown at plan time"
    yield "  worst case: every group that a rolled-back record touches is computed again; nothing degrades to whole groups in the DLQ"


def _window(node: Node) -> Iterator[str]:
    window = node.spec.config.analytic_window
    source = window.source or (node.inputs[0][0] if node.inputs else "")
    slots = len(node.operator.inputs[0].data)
    yield ""
    yield f"window {node.name}"
    yield f"  source: {source}, partition_by: {', '.join(window.fields) or '(all rows)'}"
    yield f"  buffer: {slots} values/row, read from the changelog of the input when a partition changes"
    yield "  worst case: the largest partition is evaluated again"


def retract_counters(plan: Plan, run: RunState, settled: Settled) -> dict[str, int]:
    """Counters of the rows that a run took back behind relaxed aggregates, by the documents' names; none where there is no such aggregate.

    A row that is taken back or corrected counts as recomputed, and so does a row that failed and was rolled back within the run.
    """
    relaxed = relaxed_aggregates(plan)
    if not relaxed:
        return {}
    names = {node.name for node in relaxed}
    behind = [node.name for node in plan if any(above.name in names for above in plan.upstream(node.name))]
    found = (
        sum(_taken_back(run, name) for name in names) + settled.lookups,
        sum(_partitions(run, node.name) for node, _ in windows_behind(plan)),
        sum(run.done[name].ops.get(op, 0) for name in behind for op in ("+A", "+C")),
        sum(_taken_back(run, node.name) for node in plan.of_kind("output")),
        0, len(relaxed), settled.lookups, settled.expanded,
    )  # fmt: skip
    return dict(zip(COUNTERS, found, strict=True))


def _taken_back(run: RunState, name: str) -> int:
    ops = run.done[name].ops
    return ops.get("-R", 0) + ops.get("-C", 0)


def _partitions(run: RunState, window: str) -> int:
    """The number of partitions of a window from which a run retracted rows."""
    delta = run.done[window]
    if delta.rows is None or not _taken_back(run, window):
        return 0
    return int(delta.rows.as_frame().where(is_negative(F.col("_op"))).select("_lookup").distinct().count())
