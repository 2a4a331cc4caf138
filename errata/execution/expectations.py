"""Expectations in a run: failing rows are counted, a failing `stop` ends it, warnings are reported, and the clock is looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from changelog.columns import column
from errata.core.events import Event
from errata.core.failures import Stopped
from errata.plan.expectations import PlannedExpectation, expectations_of
from errata.plan.plan import Node, Plan
from errata.rollback.cell_texts import value_in_words
from errata.state.run_state import RunState
from operators.expect.measures import FreshnessMeasured
from operators.expect.rows import CATEGORY
from storage.state.entry import Entry
from storage.values.python_rows import dictionaries

if TYPE_CHECKING:
    import polars as pl

    from cxl.types.types import Type

FAILING, STALE = "failing", "stale_from"
"""Members of the ledger's record of a node: failing rows by expectation; when its newest row turns too old, in microseconds since 1970."""
EXAMPLES, LONGEST = 5, 60
"""Failing rows that a stopped run shows, and characters of a value in them."""
_EPOCH = datetime(1970, 1, 1)
Failing = Mapping[str, int | None]
"""Failing rows by the name of an expectation, `orders.amount_positive`; None where it was not looked at."""


def ledger_facts(run: RunState, plan: Plan, rejects: pl.DataFrame | None) -> dict[str, dict[str, Any]]:
    """The facts for the ledger about each node that checks expectations."""
    found: dict[str, dict[str, Any]] = {}
    for one in expectations_of(plan):
        failing = _rejected(one, rejects) if one.placed.rejects else run.live_rows.get(one.at, 0)
        found.setdefault(one.at, {}).setdefault(FAILING, {})[one.placed.name] = failing
    for node in plan:
        if isinstance(node.operator, FreshnessMeasured):
            found[node.name][STALE] = _stale_from(run, plan, node)
    return found


def _rejected(one: PlannedExpectation, rejects: pl.DataFrame | None) -> int:
    """The dead letters that failed an expectation."""
    if rejects is None:
        return 0
    own = (rejects["category"] == CATEGORY) & (rejects["stage"] == one.node) & (rejects["trigger"] == one.placed.name)
    return int(own.sum())


def _stale_from(run: RunState, plan: Plan, node: Node) -> int | None:
    above = plan[node.inputs[0][0]]
    [newest] = run.tables.live(run.engine, above, run.values).as_table().column("newest").to_pylist() or [None]
    due = cast("FreshnessMeasured", node.operator).stale_from(newest)
    return None if due is None else int((due - _EPOCH).total_seconds() * 1_000_000)


def turned_stale(plan: Plan, head: Entry | None, now: datetime) -> dict[str, str]:
    """The freshness expectations that held at the last epoch and hold no more, each with the reason to look again."""
    found: dict[str, str] = {}
    moment = int((now.astimezone(UTC).replace(tzinfo=None) - _EPOCH).total_seconds() * 1_000_000)
    for node in plan:
        if isinstance(node.operator, FreshnessMeasured) and head is not None and node.name in head.nodes:
            due = head.nodes[node.name].get(STALE)
            if due is not None and due < moment and not head.nodes[node.name].get("live"):
                found[node.name] = f"no row is newer than {node.operator.within_text}"
    return found


def counts(plan: Plan, head: Entry | None) -> dict[str, int | None]:
    """The failing rows of each expectation after an epoch; None of one that was not there."""
    nodes = head.nodes if head else {}
    return {one.label: nodes.get(one.at, {}).get(FAILING, {}).get(one.placed.name) for one in expectations_of(plan)}


def stop_where_failing(plan: Plan, run: RunState, *, reads: bool) -> None:
    """End a run before it commits where an expectation of severity `stop` fails.

    Args:
        plan: The pipeline.
        run: The run, whose rows are all computed.
        reads: Whether input is read. A decision, an amendment or an erasure ends only where more rows fail than before.

    Raises:
        Stopped: An expectation fails; with some failing rows.
    """
    failing = [one for one in expectations_of(plan) if one.placed.severity == "stop" and run.live_rows.get(one.at) and (reads or _fails_more(one, run))]
    if failing:
        _stop(failing, {one.label: run.live_rows[one.at] for one in failing}, [*_examples(run, plan, failing[0])])


def _fails_more(one: PlannedExpectation, run: RunState) -> bool:
    """Whether more rows fail than before the run. The clock, and no amendment, makes rows old."""
    return one.placed.expectation.freshness is None and run.live_rows[one.at] > run.counted_before.get(one.at, 0)


def stop_unchanged(plan: Plan, head: Entry | None) -> None:
    """The same for a run that has nothing to do. Raises Stopped."""
    found = counts(plan, head)
    failing = [one for one in expectations_of(plan) if one.placed.severity == "stop" and found[one.label]]
    if failing:
        _stop(failing, found, [])


def _stop(failing: list[PlannedExpectation], found: Failing, examples: list[str]) -> None:
    first, *others = failing
    further = [f"and {in_words(one, found[one.label])}" for one in others]
    help_text = "repair the input; severity: warn lets such rows through, reject makes them dead letters"
    raise Stopped(in_words(first, found[first.label]), help=help_text, details=[*examples, *further], redacted=in_words(first, found[first.label]))


def in_words(one: PlannedExpectation, failing: int | None) -> str:
    """The failing rows of an expectation."""
    what = one.placed.expectation.description or one.placed.expectation.text
    if one.placed.is_measure:
        return f"expectation '{one.label}' fails: {what}"
    return f"expectation '{one.label}': {failing or 0:,} row{'s fail' if failing != 1 else ' fails'}: {what}"


def _examples(run: RunState, plan: Plan, one: PlannedExpectation) -> Iterator[str]:
    """The first failing rows, in the order of the node."""
    node = plan[one.at]
    types = node.operator.output.data
    frame = run.tables.live(run.engine, node, run.values).as_frame().orderBy("_key").select(*map(column, types)).limit(EXAMPLES)
    for row in dictionaries(run.engine.to_arrow(frame)):
        yield f"failing row: {', '.join(f'{name}={_shown(value, types[name])}' for name, value in row.items())}"


def _shown(value: Any, type_: Type) -> str:
    """A value on one line, cut where it is long."""
    text = value_in_words(value, type_).replace("\n", " ")
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def closing_events(plan: Plan, found: Failing) -> Iterator[Event]:
    """An event for each expectation that fails, and a warning for each that warns."""
    for one in expectations_of(plan):
        if failing := found.get(one.label):
            yield Event("expectation", one.node, facts={"node": one.node, "expectation": one.placed.name, "severity": one.placed.severity, "failing": failing})
            if one.placed.severity == "warn":
                text = in_words(one, failing)
                yield Event("warning", one.node, action=text, redacted=text)
