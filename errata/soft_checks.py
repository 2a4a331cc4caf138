"""Validations of severity `warn`: the records stay, the message is told with the number of records (user guide, "Transform Nodes", Validations)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from errata.plan import Node
    from errata.propagate import Flow
    from operators.row_logic import Check


def soft_checks(node: Node) -> list[Check]:
    """The checks of a transform that only warn."""
    logic = getattr(node.operator, "logic", None)
    return [one for one in getattr(logic, "checks", ()) if one[0].severity == "warn"]


def warnings(flow: Flow, node: Node) -> Iterator[str]:
    """What the soft checks of a node say of the rows that a run brought, with the number of their records."""
    from pyspark.sql import functions as F

    from changelog.ops import is_positive
    from cxl import spark
    from operators.evaluation import prepare
    from operators.origins import without_index

    checks, delta = soft_checks(node), flow.done[node.name]
    if not checks or delta.frame is None:
        return
    rows = delta.frame.where(is_positive(F.col("_op")) & F.col("_error").isNull())
    reads = frozenset().union(*(program.reads_system for _, program in checks))
    ready, context = prepare(rows, reads, node.operator.output, flow.values_of(node))
    by_record = node.operator.output.key != node.operator.inputs[0].key  # where a record may have several rows
    counts = []
    for index, (_, program) in enumerate(checks):
        assert program.expression is not None  # a predicate
        value, _ = spark.column(program.expression, context)
        fails = ~F.coalesce(value, F.lit(False))
        count = F.count_distinct(F.when(fails, without_index(F.col("_key")))) if by_record else F.count(F.when(fails, 1))
        counts.append(count.alias(f"c{index}"))
    found = flow.engine.to_arrow(ready.agg(*counts)).to_pylist()[0]
    for index, (item, _) in enumerate(checks):
        if found[f"c{index}"]:
            yield f"node '{node.name}': {item.message or item.label} ({found[f'c{index}']:,} records)"
