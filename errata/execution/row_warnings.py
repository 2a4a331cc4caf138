"""What is told of the rows that a run brought: soft validations that records fail, arrays of `match: collect` that are cut.

(User guide, "Transform Nodes", Validations: "log a warning and continue"; "match: collect": "a per-group entry limit of 10,000".)
"""

from __future__ import annotations

from collections.abc import Iterator

from changelog.columns import column
from changelog.lazy_imports import F
from changelog.ops import is_positive
from changelog.rows import Rows
from cxl import spark
from errata.plan.plan import Node
from errata.state.run_state import RunState
from operators.combine.matching import COLLECT_LIMIT
from operators.core.evaluate import prepare
from operators.core.provenance import without_index
from operators.transform.row_logic import Check


def soft_checks(node: Node) -> list[Check]:
    """The checks of a transform that only warn."""
    logic = getattr(node.operator, "logic", None)
    return [one for one in getattr(logic, "checks", ()) if one[0].severity == "warn"]


def warnings(run: RunState, node: Node) -> Iterator[str]:
    """What is told of the rows that a run brought to a node, with the number of their records."""
    rows = run.brought(node)
    if rows is not None:
        yield from (text for told in (_failed_checks, _cut_arrays) for text in told(run, node, rows))


def _failed_checks(run: RunState, node: Node, delta: Rows) -> Iterator[str]:
    """What the soft checks of a node say."""
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
    """What is said of a combine's arrays that are as long as may be: there may have been more matches."""
    builds = getattr(node.operator, "collected", ())
    if not builds:
        return
    rows = delta.as_frame().where(is_positive(F.col("_op")) & F.col("_error").isNull())
    # a text of so many entries has two characters for each at least; most are passed over by their length
    full = {name: (F.length(column(name)) > 2 * COLLECT_LIMIT) & (F.json_array_length(column(name)) >= COLLECT_LIMIT) for name in builds}
    found = run.engine.to_arrow(rows.agg(*(F.count(F.when(is_full, 1)).alias(name) for name, is_full in full.items()))).to_pylist()[0]
    for name, count in found.items():
        if count:
            yield f"node '{node.name}': {count:,} records have {COLLECT_LIMIT:,} rows of '{name}', as many as match: collect keeps; any more were left out"
