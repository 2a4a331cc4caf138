"""`errata dlq`: what stands rejected or rolled back, by record and by correlation group, and another try (CONTRACT, "Commands")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from errata.correlation_blame import CORRELATED
from errata.correlation_plan import key_fields
from errata.correlation_triggers import TRIGGERS, standing
from errata.diagnostics import did_you_mean
from errata.failures import Usage
from errata.record_places import Places, SourceState
from errata.rejects import Reject, Rejects, source_columns
from errata.tables import Tables
from operators.ingest.files import FileRecord

if TYPE_CHECKING:
    from errata.options import RunOptions, RunResult
    from errata.plan import Plan
    from errata.project import Project
    from errata.reading import Reading
    from storage.engines import Engine
    from storage.ledger import Entry
    from storage.locations import State

Row = Mapping[str, Any]


def rejects_of(reading: Reading) -> list[Reject]:
    """Everything that stands rejected after the last epoch."""
    if reading.head is None or reading.plan is None:
        return []
    return rejects_at(reading.head, reading.plan, reading.state, reading.engine)


def rejects_at(entry: Entry, plan: Plan, state: State, engine: Engine) -> list[Reject]:
    """Everything that stood rejected after an epoch, whatever its tables have got since."""
    from operators.evaluation import RunValues

    tables = Tables(state.root, plan)
    states = {name: SourceState(int(one["number"]), FileRecord.all_of(one)) for name, one in entry.sources.items() if name in plan.nodes}
    values = RunValues.none()
    places = Places(plan, tables, engine, values, states, entry.epoch)
    nodes = [name for name, counts in entry.nodes.items() if name in plan.nodes and counts.get("rejected_live")]
    found = Rejects(plan, tables, engine, values, places)
    rows = standing(tables.triggers, entry.epoch) if entry.nodes.get(TRIGGERS, {}).get("rejected_live") else []
    return [*found.live(nodes), *found.triggers(rows)]


def entries(reading: Reading) -> Iterator[Row]:
    """One row an entry of the DLQ: where the record came from, what is said of it, its source fields."""
    rejects = rejects_of(reading)
    columns = [name for name in source_columns(reading.plan, rejects) if not name.startswith("$ck.")] if reading.plan else []
    raw = any(one.raw for one in rejects)
    for one in rejects:
        told: dict[str, Any] = {
            "source": one.source or "", "file": one.file, "row": one.row, "category": one.category, "detail": one.detail, "stage": one.stage,
            "route": one.route, "trigger": one.trigger, "epoch": one.epoch,
        }  # fmt: skip
        told |= {"raw": one.raw} if raw else {}
        yield told | {name: one.fields.get(name, "") for name in columns if name not in told}


def groups(reading: Reading) -> Iterator[Row]:
    """One row a suppressed group: its key, its source, the record or row that failed first and why, and how many records are suppressed."""
    for source, group, members in _by_group(reading.plan, rejects_of(reading)):
        by = members[0].by
        trigger = next((one for one in members if one.category != CORRELATED), None)
        first = trigger or members[0]
        yield {
            "group": group, "source": source, "records": len(members), "triggers": sum(one.category != CORRELATED for one in members),
            "collateral": sum(one.category == CORRELATED for one in members), "trigger": _trigger(trigger, by), "category": first.category,
            "stage": first.stage, "detail": first.detail,
        }  # fmt: skip


def _trigger(record: Reject | None, by: str) -> str:
    """The place of the record that failed, or the node whose row did."""
    return by.partition(":")[0] if record is None else f"{record.file}:{record.row}"


def _by_group(plan: Plan | None, rejects: Iterable[Reject]) -> Iterator[tuple[str, str, list[Reject]]]:
    """The source, the group as people write it and the suppressed records of each group."""
    found: dict[tuple[str, bytes | None, str], list[Reject]] = {}
    for one in rejects:
        if one.by and one.source is not None and plan is not None:
            found.setdefault((one.source, one.group, group_text(plan, one)), []).append(one)
    return ((source, text, members) for (source, _, text), members in found.items())


def group_text(plan: Plan, reject: Reject) -> str:
    """The group of a suppressed record as people write it: the values of its key, an empty text as `""`; of a record without one its row."""
    if reject.group is None:
        return f"{reject.file}:{reject.row}"
    return ",".join(reject.fields.get(name, "") or '""' for name in key_fields(plan[reject.source or ""]))


def retry(project: Project, group: str, options: RunOptions) -> RunResult:
    """A run that lets every suppressed record take part again, that of `group` among them."""
    from errata.reading import Reading
    from errata.run import Run
    from errata.running import exclusive

    reading = Reading(project.plan.settings.name, project.state, project.plan)
    known = [name for _, name, _ in _by_group(project.plan, rejects_of(reading))]
    if group not in known:
        listed = ", ".join(known[:10]) or "none"
        raise Usage(f"no group '{group}' is suppressed", help=did_you_mean(group, known) or f"suppressed groups: {listed}")
    with exclusive(project, options, Run, retry=True) as one:
        return one.execute()
