"""Log lines about rows: log directives and traces of transforms, soft checks that fail, arrays of `match: collect` that are cut."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from changelog.columns import column
from changelog.keys.encoding import bare
from changelog.lazy_imports import F
from changelog.ops import is_positive
from changelog.rows import Rows
from cxl import spark
from cxl.spark import FAILED, INDEX, PASS
from cxl.syntax.ast import TRACE_LEVELS
from cxl.typed.traces import SHOWN, TEXT, traces
from errata.core.events import Event
from errata.core.failures import Stopped
from errata.plan.plan import Node, Plan
from errata.rollback.cell_texts import value_in_words
from errata.state.node_tables import qualify_input, visible_rows
from errata.state.run_state import RunState
from operators.combine.matching import COLLECT_LIMIT
from operators.core.evaluate import prepare
from operators.core.provenance import without_index
from operators.transform.row_logic import Check, Directive, RowLogic
from storage.values.python_rows import dictionaries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cxl.types.types import Type

LINES = 20
"""The most records that one directive or trace logs in a run; the others are only counted."""


@contextmanager
def logging(run: RunState, plan: Plan, listener: Callable[[Event], None], lowest: str) -> Iterator[None]:
    """Tell, when all nodes have run, what they log; where a record ended the run, what those log that came so far, the one that it failed at among them.

    `lowest`: the level below which traces are not looked for.
    """
    stopped = None
    try:
        yield
    except Stopped as failure:
        stopped = failure
    at = list(run.done)[-1:] if stopped else []
    for node in (node for node in plan if node.name in run.done):
        for level, text in _logged(run, node, _MOMENTS[:-1] if node.name in at else _MOMENTS):
            listener(Event("log", action=text, level=level))
        for level, text in _traced(run, node, lowest):
            listener(Event("log", action=text, level=level))
    if stopped:
        raise stopped


def _logged(run: RunState, node: Node, moments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Level and text of each line of a node; nothing of one that had nothing to do."""
    directives: tuple[Directive, ...] = getattr(getattr(node.operator, "logic", None), "directives", ())
    if not directives or run.done[node.name].empty:
        return
    timed = sorted((one for one in directives if one[0].when in moments), key=lambda one: moments.index(one[0].when))
    for directive in timed:
        item = directive[0]
        for text in _lines(run, node, directive):
            yield item.level, f"node '{node.name}': {item.message}{text}"


def _traced(run: RunState, node: Node, lowest: str) -> Iterator[tuple[str, str]]:
    """Level and text of each line that the program of a transform traces of the records that the run brings; none of a program of windows."""
    logic: RowLogic | None = getattr(node.operator, "logic", None)
    if logic is None or logic.program.windows or run.done[node.name].empty:
        return
    wanted = [(level, made) for level, made in traces(logic.program) if TRACE_LEVELS.index(level) >= TRACE_LEVELS.index(lowest)]
    name, port = node.inputs[0]
    delta = run.net_delta(run.plan[name]) if wanted else None
    if delta is None:
        return
    records = qualify_input(visible_rows(delta, run.plan[name], port, node), node, 0).as_frame().where(is_positive(F.col("_op")))
    for level, made in wanted:
        ready, context = prepare(records, made.reads_system, node.operator.inputs[0], run.values_of(node), logic.config.max_expansion)
        applied = spark.apply(ready, made, context)
        shown = applied.frame.where(F.col(PASS) & ~F.col(FAILED) & F.coalesce(applied.values[SHOWN], F.lit(False)))
        order = ["_key", *([INDEX] if applied.fans_out else [])]
        texts = shown.select(*order, applied.values[TEXT].alias(TEXT))
        count = run.engine.to_arrow(texts.groupBy().count()).to_pylist()[0]["count"]
        for row in run.engine.to_arrow(texts.orderBy(*order).limit(LINES)).to_pylist() if count else ():
            yield level, f"node '{node.name}': {row[TEXT] or ''}"
        if count > LINES:
            yield level, f"node '{node.name}': (and {count - LINES:,} more)"


_MOMENTS = ("before_transform", "per_record", "on_error", "after_transform")


def _lines(run: RunState, node: Node, directive: Directive) -> Iterator[str]:
    """The end of each line: fields and, of a reject, the reason."""
    item = directive[0]
    if item.when not in ("per_record", "on_error"):
        yield ""
        return
    if item.when == "on_error" and not run.done[node.name].rejected:
        return  # a node that keeps no rows may have no table either
    rows, step = _chosen(run, node, directive), item.every or 1
    names = item.fields if item.when == "per_record" else ["_error"]
    count = run.engine.to_arrow(rows.groupBy().count()).to_pylist()[0]["count"] // step
    first = dictionaries(run.engine.to_arrow(rows.orderBy("_key").select("_key", *map(column, names)).limit(LINES * step)))
    shown = sorted(first, key=lambda one: bytes(one["_key"]))[step - 1 :: step]
    types = node.operator.output.data if item.when == "per_record" else {**node.operator.output.data, **node.operator.inputs[0].data}
    for row in shown if item.when == "per_record" else _with_fields(run, node, shown, item.fields):
        yield _shown(row, {name: types[name] for name in item.fields})
    if count > LINES:
        yield f" (and {count - LINES:,} more)"


def _chosen(run: RunState, node: Node, directive: Directive) -> DataFrame:
    """The records that a directive logs."""
    item, program = directive
    found = run.epoch_rows(node) if run.plan.persisted(node) or item.when == "on_error" else run.net_delta(node)
    assert found is not None  # the node brought something
    wanted = F.col("_error").isNotNull() if item.when == "on_error" else F.col("_error").isNull()
    rows = found.as_frame().where(is_positive(F.col("_op")) & wanted)
    if program is None or item.when == "on_error":
        return rows
    assert program.expression is not None  # a predicate
    ready, context = prepare(rows, program.reads_system, node.operator.output, run.values_of(node))
    value, _ = spark.column(program.expression, context)
    return ready.where(F.coalesce(value, F.lit(False)))


def _with_fields(run: RunState, node: Node, rejects: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Rejects with the fields of the records that failed, as the node read them; one that the program was yet to make is null."""
    above = run.plan.nodes[node.inputs[0][0]]
    given = [name for name in names if name in node.operator.inputs[0].data]
    records: dict[bytes, Mapping[str, Any]] = {}
    if given and rejects:
        keys = [F.lit(bare(bytes(one["_key"]))) for one in rejects]
        rows = run.tables.live(run.engine, above, run.values).as_frame().where(F.col("_key").isin(*keys))
        records = {bytes(one["_key"]): one for one in dictionaries(run.engine.to_arrow(rows.select("_key", *map(column, given))))}
    return [{**dict.fromkeys(names), **records.get(bare(bytes(one["_key"])), {}), **one} for one in rejects]


def _shown(row: Mapping[str, Any], types: Mapping[str, Type]) -> str:
    fields = f" ({', '.join(f'{name}={value_in_words(row[name], type_)}' for name, type_ in types.items())})" if types else ""
    return f"{fields}: {json.loads(row['_error'])['detail']}" if "_error" in row else fields


def soft_checks(node: Node) -> list[Check]:
    """The checks of a transform that only warn."""
    logic = getattr(node.operator, "logic", None)
    return [one for one in getattr(logic, "checks", ()) if one[0].severity == "warn"]


def warnings(run: RunState, node: Node) -> Iterator[str]:
    """Warnings about the rows of a node's delta, with the number of records, and what its operator remarked."""
    yield from run.remarks.get(node.name, ())
    rows = run.net_delta(node)
    if rows is not None:
        yield from (text for check in (_failed_checks, _cut_arrays) for text in check(run, node, rows))


def _failed_checks(run: RunState, node: Node, delta: Rows) -> Iterator[str]:
    """Warnings of soft checks that records fail."""
    checks = soft_checks(node)
    if not checks:
        return
    rows = delta.as_frame().where(is_positive(F.col("_op")) & F.col("_error").isNull())
    reads = frozenset().union(*(program.reads_system for _, program in checks))
    ready, context = prepare(rows, reads, node.operator.output, run.values_of(node))
    by_record = node.operator.output.key != node.operator.inputs[0].key  # where a record may have several rows
    counts = []
    for index, (_, program) in enumerate(checks):
        assert program.expression is not None  # a predicate
        value, _ = spark.column(program.expression, context)
        fails = ~F.coalesce(value, F.lit(False))
        count = F.count_distinct(F.when(fails, without_index(F.col("_key")))) if by_record else F.count(F.when(fails, 1))
        counts.append(count.alias(f"c{index}"))
    found = run.engine.to_arrow(ready.agg(*counts)).to_pylist()[0]
    for index, (item, _) in enumerate(checks):
        if found[f"c{index}"]:
            yield f"node '{node.name}': {item.message or item.label} ({found[f'c{index}']:,} records)"


def _cut_arrays(run: RunState, node: Node, delta: Rows) -> Iterator[str]:
    """Warnings about arrays of `match: collect` that have the longest length: there may have been more matches."""
    builds = getattr(node.operator, "collected", ())
    if not builds:
        return
    rows = delta.as_frame().where(is_positive(F.col("_op")) & F.col("_error").isNull())
    # n entries take at least 2 n characters of text, so the length alone rules most texts out
    full = {name: (F.length(column(name)) > 2 * COLLECT_LIMIT) & (F.json_array_length(column(name)) >= COLLECT_LIMIT) for name in builds}
    found = run.engine.to_arrow(rows.agg(*(F.count(F.when(is_full, 1)).alias(name) for name, is_full in full.items()))).to_pylist()[0]
    for name, count in found.items():
        if count:
            yield f"node '{node.name}': {count:,} records have {COLLECT_LIMIT:,} rows of '{name}', as many as match: collect keeps; any more were left out"
