"""Closed periods of outputs: rows that were published and may not change unless somebody reopens them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from changelog.columns import column
from changelog.frames import of_keys
from changelog.lazy_imports import F
from changelog.ops import SYMBOLS, Op, is_positive
from cxl import Program, spark
from errata.core.failures import Stopped
from errata.core.options import RunOptions
from errata.plan.plan import Node, Plan, columns_of
from errata.rendering.rows import json_text
from errata.state.node_tables import accepted
from errata.state.run_state import RunState
from operators.core.evaluate import prepare
from operators.output.booking import KIND, PREFIX
from operators.output.operator import Output
from storage.values.python_rows import dictionaries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.state.entry import Entry

MOST_SHOWN: Final = 20
"""How many changed rows a message shows."""
HELP: Final = "--reopen of errata run, correct, revert and dlq retry lets them through"


@dataclass(frozen=True, slots=True)
class LateChanges:
    """By output how many rows of closed periods a run changes.

    Attributes:
        reopened: Rows that change, since their periods were reopened.
        booked: Booked rows that come, go or change.
    """

    reopened: Mapping[str, int] = field(default_factory=dict)
    booked: Mapping[str, int] = field(default_factory=dict)

    def counters(self) -> dict[str, Any]:
        """The same for the ledger."""
        return ({"reopened": dict(self.reopened)} if self.reopened else {}) | ({"booked": dict(self.booked)} if self.booked else {})


def reopened_nodes(plan: Plan, options: RunOptions) -> dict[str, str]:
    """The outputs with booked rows that a run publishes again, each with the reason."""
    nodes = [node.name for node in plan.of_kind("output") if node.as_operator.keeps_periods] if options.reopen else []
    return dict.fromkeys(nodes, "closed periods are reopened")


Leaving = Callable[[Node], "DataFrame | None"]
"""Gives the live rows of an output that leave by an erasure although its input takes none back; None for none."""


def guard_closed(plan: Plan, options: RunOptions, run: RunState, prior: Entry | None, *, leaving: Leaving | None = None) -> LateChanges:
    """Stop a run that would change rows of closed periods.

    Args:
        plan: The pipeline.
        options: The options of the run.
        run: The run, which has computed its rows.
        prior: The last committed epoch, also one that a full refresh replaces; None before the first run.
        leaving: Of an erasure, after which no row may say what it erases.

    Returns:
        How many rows of closed periods change, since they were reopened, and how many are booked.

    Raises:
        Stopped: Rows of a closed period would change, and nobody reopened it.
    """
    reopened: dict[str, int] = {}
    booked: dict[str, int] = {}
    for node in plan.of_kind("output"):
        output = cast("Output", node.operator)
        if output.closed is None or prior is None or node.name not in prior.plan:
            continue  # nothing was published
        if not options.reopen:
            _require_allowed(run, node, output, full_refresh=options.full_refresh, leaving=leaving)
        if options.full_refresh:
            continue
        if options.reopen or not output.keeps_periods:
            reopened[node.name] = _reopened(options, run, node, output)
        if not options.reopen:
            _require_columns(node, prior, output)
            booked[node.name] = _booked(run, node, output) if output.keeps_periods else 0
    return LateChanges(*({name: count for name, count in found.items() if count} for found in (reopened, booked)))


def _require_allowed(run: RunState, node: Node, output: Output, *, full_refresh: bool, leaving: Leaving | None) -> None:
    """Raise Stopped for runs that cannot leave closed periods as they were published."""
    if full_refresh:
        raise Stopped(f"output '{node.name}' has closed periods, which a full refresh would publish again", help="--reopen lets it")
    if leaving is not None and output.keeps_periods and (_books(run, node) or _takes_published(run, node, output, leaving)):
        message = f"output '{node.name}' keeps what it published of closed periods, and an erasure leaves nothing of a record"
        raise Stopped(message, help="--reopen publishes closed periods again; with --keep-totals totals of them may stay", redacted=message)


def _books(run: RunState, node: Node) -> bool:
    """Whether a run books rows of an output."""
    delta = run.net_delta(node)
    return delta is not None and bool(accepted(delta).as_frame().where(column(KIND).isNotNull() & is_positive(F.col("_op"))).limit(1).count())


def _takes_published(run: RunState, node: Node, output: Output, leaving: Leaving) -> bool:
    """Whether an erasure takes rows of closed periods out of an output."""
    rows = leaving(node)
    assert output.closed is not None  # the caller looked
    return rows is not None and bool(_of_closed(run, node, output.closed, rows.where(column(KIND).isNull())).limit(1).count())


def _reopened(options: RunOptions, run: RunState, node: Node, output: Output) -> int:
    """How many rows of closed periods change. Raises Stopped where nobody reopened them."""
    assert output.closed is not None  # the caller looked
    rows = _changed(run, node, output.closed)
    count = 0 if rows is None else int(rows.select("_key").distinct().count())
    if rows is None or not count:
        return 0
    if not options.reopen:
        message = f"output '{node.name}': {in_rows(count)} of closed periods would change"
        raise Stopped(f"{message} (closed: {_when(output)})", help=HELP, details=list(_shown(run, node, rows)), redacted=message)
    return count


def _require_columns(node: Node, prior: Entry, output: Output) -> None:
    """Raise Stopped where an output has other columns than its closed periods were published with."""
    added = {*output.added, *(name for name, _ in prior.plan[node.name]["columns"] if name.startswith(PREFIX))}
    before, now = ([(name, type_) for name, type_ in columns if name not in added] for columns in (prior.plan[node.name]["columns"], columns_of(node)))
    if now != before:
        message = f"output '{node.name}' has other columns than its closed periods were published with"
        raise Stopped(message, help="--reopen publishes them again", redacted=message)


def _booked(run: RunState, node: Node, output: Output) -> int:
    """How many booked rows come, go or change. Raises Stopped where they would lie in a closed period."""
    delta = run.net_delta(node)
    if delta is None:
        return 0
    assert output.closed is not None  # the caller looked
    rows = accepted(delta).as_frame().where(column(KIND).isNotNull())
    fallen = _of_closed(run, node, output.closed, rows.where(is_positive(F.col("_op"))))
    if fallen.limit(1).count():
        message = f"output '{node.name}': 'into' of closed names a closed period"
        raise Stopped(f"{message} (closed: {_when(output)})", help="name the period that is open now", details=list(_shown(run, node, fallen)), redacted=message)
    return int(rows.select("_key").distinct().count())


def _when(output: Output) -> str:
    """The predicate in its own words."""
    return "" if output.config.closed is None else output.config.closed.when


def in_rows(count: int) -> str:
    """A number of rows in words."""
    return f"{count:,} {'row' if count == 1 else 'rows'}"


def _changed(run: RunState, node: Node, closed: Program) -> DataFrame | None:
    """The op rows of this run of the keys that have an image in a closed period; None where the output does not change.

    Where nobody can say whether a row is in one, it counts as closed.
    """
    delta = run.net_delta(node)
    if delta is None:
        return None
    rows = accepted(delta).as_frame()
    return of_keys(rows, _of_closed(run, node, closed, rows).select("_key").distinct(), "_key")


def _of_closed(run: RunState, node: Node, closed: Program, rows: DataFrame) -> DataFrame:
    """The rows of closed periods among op rows of an output."""
    assert closed.expression is not None  # a predicate
    ready, context = prepare(rows, closed.reads_system, node.operator.output, run.values_of(node))
    value, failed = spark.column(closed.expression, context)
    meets = F.coalesce(value, F.lit(False))
    return ready.where(meets if failed is None else meets | failed)


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
