"""Guards that end a run before anything is committed: emptied sources, a first failing record under fail_fast, too many rejects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.core.failures import RecordCounts, Stopped, StorageFailed
from errata.core.options import RunOptions
from errata.plan.plan import Node, Plan
from errata.rollback.categories import TOLERATED
from errata.state.run_state import NodeDelta, RunState
from errata.state.tally import Tally
from operators.source.file_changes import FileRecord
from storage.state.entry import Entry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_RETRACT_SHARE = 0.5
"""The share of a source's live rows that one run may retract."""
_BELOW = "repair the input, repair or waive what errata dlq lists, or raise the threshold"


def guard(options: RunOptions, node: Node, delta: NodeDelta, before: int) -> None:
    """Stop a run that would take back most of a source's rows, as an emptied or truncated file would. Raises Stopped.

    `before`: the live rows before the run, with suppressed records and without other rejects. A replaced row is not lost.
    """
    share = MAX_RETRACT_SHARE if options.max_retract_share is None else options.max_retract_share
    taken = delta.ops.get("-R", 0) + delta.ops.get("-C", 0)
    replaced = delta.ops.get("+A", 0) + delta.ops.get("+C", 0)
    lost = taken - replaced
    if before and lost > share * before:
        message = f"source '{node.name}' would lose {lost:,} of its {before:,} rows, more than {share:.0%}"
        raise Stopped(message, help="check the input; --max-retract-share 1 lets it through")


def guard_scopes(options: RunOptions, node: Node, delta: NodeDelta, standing: int) -> None:
    """Stop a run that would take back most of the rows of the scopes that it delivers. Raises Stopped.

    `standing`: the live rows of these scopes before the run. A corrected or moved row is not lost, and a new one makes up for none.
    """
    share = MAX_RETRACT_SHARE if options.max_retract_share is None else options.max_retract_share
    lost = delta.ops.get("-R", 0)
    if standing and lost > share * standing:
        message = f"source '{node.name}' would lose {lost:,} of {standing:,} rows in the scopes that are delivered, more than {share:.0%}"
        raise Stopped(message, help="check the input; --max-retract-share 1 lets it through")


def judge(plan: Plan, options: RunOptions, run: RunState, files: Mapping[str, Sequence[FileRecord]], tally: Tally) -> None:
    """Judge the thresholds. `tally` counts the rejected records; `files` belong to the sources. Raises Stopped."""
    read = sum(run.live_rows.get(node.name, 0) for node in plan.of_kind("source"))
    exceeded = _exceeded(plan, options, read, tally)
    if exceeded:
        raise Stopped(exceeded, help=_BELOW, counts=_record_counts(plan, run, files, tally))


def judge_unchanged(plan: Plan, options: RunOptions, head: Entry) -> None:
    """Judge a run that changes nothing: records that were rejected before count as they do in a full run. Raises Stopped, StorageFailed."""
    tally = Tally.noted(head.counters)
    stop_at_standing(plan, tally)
    sources = [head.nodes.get(node.name, {}) for node in plan.of_kind("source")]
    read = sum(counts.get("live", 0) + counts.get("rejected_live", 0) for counts in sources)
    exceeded = _exceeded(plan, options, read, tally)
    if exceeded:
        raise Stopped(exceeded, help=_BELOW)


def stop_at_standing(plan: Plan, tally: Tally) -> None:
    """Under fail_fast end a run where records are rejected that an earlier run let pass under another strategy: a full run would end at them.

    `tally` counts by category. Decisions and amendments are not judged: the records were there before. Raises Stopped, StorageFailed.
    """
    standing = {category: count for category, count in (tally.categories or {}).items() if category not in TOLERATED}
    if plan.model.error_handling.strategy == "fail_fast" and standing:
        kind = StorageFailed if "malformed_record" in standing else Stopped
        counted = ", ".join(f"{count:,} as {category}" for category, count in sorted(standing.items()))
        message = f"{_rejected(sum(standing.values()))} by earlier runs and would end a full run: {counted}"
        raise kind(message, help="errata dlq lists them; repair or waive them, or let error_handling: { strategy: continue } stand")


def _exceeded(plan: Plan, options: RunOptions, read: int, tally: Tally) -> str:
    """The exceeded threshold in words; empty where none is. Waived records count for none."""
    handling = plan.model.error_handling
    share, rejected, failed = handling.type_error_threshold, tally.open, tally.failed
    if options.error_threshold and rejected > options.error_threshold:
        return f"{rejected:,} records were rejected, more than the threshold of {options.error_threshold:,}"
    if share is not None and read and failed / read > share:
        return f"{failed:,} of {read:,} records failed, more than the share {share:g} of type_error_threshold"
    for category, limit in handling.thresholds.items():
        count = (tally.categories or {}).get(category, 0)
        if limit.records is not None and count > limit.records:
            return f"{_rejected(count)} as {category}, more than the {limit.records:,} of error_handling.thresholds"
        if limit.share is not None and read and count / read > limit.share:
            return f"{count:,} of {read:,} records were rejected as {category}, more than the share {limit.share:g} of error_handling.thresholds"
    return ""


def _rejected(count: int) -> str:
    return f"{count:,} record{' was' if count == 1 else 's were'} rejected"


def _record_counts(plan: Plan, run: RunState, files: Mapping[str, Sequence[FileRecord]], tally: Tally) -> RecordCounts:
    """The records that a run read, wrote and rejected before it was stopped."""
    present = [(record.path, record.rows) for node in plan.of_kind("source") for record in files.get(node.name, ()) if record.present]
    return RecordCounts(present, sum(run.summary(node)["live"] for node in plan.of_kind("output")), tally.open, tally.waived)
