"""The changes that the next run would make to outputs, in rows and figures: the run is computed by its deltas and undone before it commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from changelog.columns import column
from changelog.lazy_imports import F
from changelog.ops import weight
from changelog.rows import is_null
from cxl.types.types import Kind, Type
from errata.core.failures import Stopped, StorageFailed
from errata.core.options import RunOptions
from errata.execution.epoch import Epoch
from errata.execution.inputs import FileInputs
from errata.execution.local_copies import copies_of
from errata.execution.planned_run import PlannedRun
from errata.execution.step_executor import StepExecutor
from errata.inspect.next_run import stopped_unchanged
from errata.inspect.row_keys import figure_columns
from errata.plan.pipeline import LoadedPipeline
from errata.plan.plan import Node, Plan
from errata.plan.steps import DataStep
from errata.state.committed_node import CommittedNode, paired, shown_value
from errata.state.run_state import RunState
from storage.values.python_rows import dictionaries

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from storage.state.entry import Entry

Row = Mapping[str, Any]
_EXACT = Context(prec=80)


@dataclass(frozen=True, slots=True)
class NodeForecast:
    """The changes that a run would make to one node.

    Attributes:
        name: The node.
        action: What the run does with it, as `errata plan` says.
        reason: Why.
        added: Rows that come.
        removed: Rows that go.
        corrected: Rows that change.
        figures: By how much the total of each column of numbers changes, where it does.
        changes: The first changed rows in the order of their keys: op, before, after.
    """

    name: str
    action: str
    reason: str
    added: int = 0
    removed: int = 0
    corrected: int = 0
    figures: Mapping[str, Any] = field(default_factory=dict)
    changes: Sequence[Row] = ()

    @property
    def changed(self) -> int:
        """The number of changed rows."""
        return self.added + self.removed + self.corrected


@dataclass(frozen=True, slots=True)
class Forecast:
    """The changes that a run would make.

    Attributes:
        epoch: The last committed epoch, 0 before the first run.
        nodes: The nodes that were asked for.
        rejected: Records that the run would reject.
        repaired: Rejects that it would repair.
        stopped: Why a guard would stop the run; empty where none would.
    """

    epoch: int
    nodes: Sequence[NodeForecast]
    rejected: int = 0
    repaired: int = 0
    stopped: str = ""


def forecast(pipeline: LoadedPipeline, options: RunOptions, names: Sequence[str] = (), rows: int = 20) -> Forecast:
    """The changes that the next run of a pipeline would make.

    Args:
        pipeline: The pipeline, with the state that it would run on.
        options: The engine and the guards of the run.
        names: The nodes to look at; none: all outputs.
        rows: How many changed rows of each node are shown.

    Raises:
        Failure: The run would fail.
    """
    if pipeline.head() is not None:
        return _computed(pipeline, options, names, rows)
    other = pipeline.with_temporary_state()
    try:
        return _computed(other, options, names, rows)
    finally:
        other.state.forget()


def _computed(pipeline: LoadedPipeline, options: RunOptions, names: Sequence[str], rows: int) -> Forecast:
    wanted = replace(options, dry_run=False, force=True)
    protected = pipeline.protected_files()
    with Epoch.begin(pipeline, wanted, protected) as epoch, closing(FileInputs(epoch)) as inputs:
        planned = PlannedRun.of(epoch, inputs)
        steps = {step.node: step for step in planned.steps.nodes}
        chosen = [epoch.plan[name] for name in names] or list(epoch.plan.of_kind("output"))
        last = epoch.head.epoch if epoch.head else 0
        if not planned.steps.any_work:
            nodes = [NodeForecast(node.name, "skip", steps[node.name].reason) for node in chosen]
            return Forecast(last, nodes, stopped=stopped_unchanged(epoch.plan, options, cast("Entry", epoch.head)))
        found: list[Forecast] = []
        stopped = ""
        with copies_of(epoch.plan, planned.sources) as copies:
            inputs.copies = copies
            executor = StepExecutor(planned)
            executor.watch = lambda run: found.append(_looked_at(epoch.plan, run, chosen, steps, rows))
            try:
                executor.execute(dry=True)
            except (Stopped, StorageFailed) as guard:
                if isinstance(guard, StorageFailed) and not found:  # with all rows there, only a guard speaks
                    raise
                stopped = guard.message
        if not found:
            return Forecast(last, [], stopped=stopped)
        return replace(found[0], epoch=last, stopped=stopped)


def _looked_at(plan: Plan, run: RunState, nodes: Sequence[Node], steps: Mapping[str, DataStep], rows: int) -> Forecast:
    """The forecast while the rows of a run are there."""
    done = run.done.values()
    rejected, repaired = sum(delta.rejected for delta in done), sum(delta.repaired for delta in done)
    return Forecast(0, [_of_node(plan, run, node, steps[node.name], rows) for node in nodes], rejected, repaired)


def _of_node(plan: Plan, run: RunState, node: Node, step: DataStep, rows: int) -> NodeForecast:
    delta = run.net_delta(node)
    if delta is None:
        return NodeForecast(node.name, step.action, step.reason)
    good = (delta.where(is_null("_error")) if "_error" in delta.columns else delta).as_frame()
    ops = {row["_op"]: row["n"] for row in run.engine.to_arrow(good.groupBy("_op").agg(F.count(F.lit(1)).alias("n"))).to_pylist()}
    shape = CommittedNode.of(node.name, plan.summary()[node.name])
    changes = list(islice(_changes(run, good, shape, rows), rows))
    return NodeForecast(node.name, step.action, step.reason, ops.get(0, 0), ops.get(1, 0), ops.get(3, 0), _figures(plan, run, node, good), changes)


def _changes(run: RunState, good: DataFrame, shape: CommittedNode, rows: int) -> Iterator[Row]:
    """The first changes by key: op, before, after."""
    first = good.select("_op", "_key", *map(column, shape.shown)).orderBy("_key", "_op").limit(2 * rows)
    for before, after in paired(dictionaries(run.engine.to_arrow(first)), shape):
        yield {"op": "+A" if before is None else "-R" if after is None else "+C", "before": before, "after": after}


def _figures(plan: Plan, run: RunState, node: Node, good: DataFrame) -> dict[str, Any]:
    """By how much the totals of columns of numbers change. Columns that name rows, and those with times of a history, have no total."""
    numbers = figure_columns(plan, node)
    if not numbers:
        return {}
    comes = weight(F.col("_op")) > 0
    sums = [_total(name, type_, side).alias(f"{sign}{at}") for at, (name, type_) in enumerate(numbers.items()) for sign, side in (("p", comes), ("n", ~comes))]
    [found] = run.engine.to_arrow(good.agg(*sums)).to_pylist()
    values = {name: _difference(found[f"p{at}"] or 0, found[f"n{at}"] or 0, type_) for at, (name, type_) in enumerate(numbers.items())}
    return {name: value for name, value in values.items() if value}


def _total(name: str, type_: Type, side: Column) -> Column:
    """The sum of a column over the rows that come, or that go. Ints are added up as decimals, which do not overflow."""
    value = column(name).cast("decimal(38,0)") if type_.kind is Kind.INT else column(name)
    return F.sum(F.when(side, value))


def _difference(came: Any, went: Any, type_: Type) -> Any:
    """By how much a total changes; None where it does not."""
    if type_.kind is Kind.FLOAT:
        return float(f"{came - went:.12g}")
    total = _EXACT.subtract(Decimal(came), Decimal(went))
    return None if not total else int(total) if type_.kind is Kind.INT else shown_value(total)
