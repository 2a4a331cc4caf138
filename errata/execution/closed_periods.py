"""Closed periods of outputs: rows that were published and may not change unless somebody reopens them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from changelog.columns import column
from changelog.frames import of_keys
from changelog.lazy_imports import F
from changelog.ops import SYMBOLS, Op
from cxl import Program, spark
from errata.core.failures import Stopped
from errata.core.options import RunOptions
from errata.plan.plan import Node, Plan
from errata.rendering.rows import json_text
from errata.state.node_tables import accepted
from errata.state.run_state import RunState
from operators.core.evaluate import prepare
from operators.output.operator import Output
from storage.values.python_rows import dictionaries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.state.entry import Entry

MOST_SHOWN: Final = 20
"""How many changed rows a message shows."""
HELP: Final = "--reopen of errata run, correct and revert lets them through"


def guard_closed(plan: Plan, options: RunOptions, run: RunState, prior: Entry | None) -> dict[str, int]:
    """Stop a run that would change rows of closed periods.

    Args:
        plan: The pipeline.
        options: The options of the run.
        run: The run, which has computed its rows.
        prior: The last committed epoch, also one that a full refresh replaces; None before the first run.

    Returns:
        By output how many rows of closed periods change, since they were reopened.

    Raises:
        Stopped: Rows of a closed period would change, and nobody reopened it.
    """
    found: dict[str, int] = {}
    for node in plan.of_kind("output"):
        closed = cast("Output", node.operator).closed
        if closed is None or prior is None or node.name not in prior.plan:
            continue  # nothing was published
        if options.full_refresh and not options.reopen:
            raise Stopped(f"output '{node.name}' has closed periods, which a full refresh would publish again", help="--reopen lets it")
        rows = None if options.full_refresh else _changed(run, node, closed)
        count = 0 if rows is None else int(rows.select("_key").distinct().count())
        if rows is None or not count:
            continue
        if not options.reopen:
            told = f"output '{node.name}': {count:,} {'row' if count == 1 else 'rows'} of closed periods would change"
            raise Stopped(f"{told} (closed: {cast('Output', node.operator).config.closed})", help=HELP, details=list(_shown(run, node, rows)), told=told)
        found[node.name] = count
    return found


def _changed(run: RunState, node: Node, closed: Program) -> DataFrame | None:
    """The op rows of this run of the keys that have an image in a closed period; None where the output does not change.

    Where nobody can say whether a row is in one, it counts as closed.
    """
    delta = run.net_delta(node)
    if delta is None:
        return None
    assert closed.expression is not None  # a predicate
    ready, context = prepare(accepted(delta.as_frame()), closed.reads_system, node.operator.output, run.values_of(node))
    value, failed = spark.column(closed.expression, context)
    meets = F.coalesce(value, F.lit(False))
    closed_keys = ready.where(meets if failed is None else meets | failed).select("_key").distinct()
    return of_keys(ready, closed_keys, "_key")


def _shown(run: RunState, node: Node, rows: DataFrame) -> Iterator[str]:
    """The first changed rows, a line each."""
    names = list(node.operator.output.data)
    first = rows.orderBy("_key", "_op").limit(MOST_SHOWN + 1).select("_op", *map(column, names))
    found = dictionaries(run.engine.to_arrow(first))
    for row in found[:MOST_SHOWN]:
        data: Mapping[str, Any] = {name: row[name] for name in names}
        yield f"{SYMBOLS[Op(row['_op'])]} {json_text(data)}"
    if len(found) > MOST_SHOWN:
        yield "..."
