"""The dead letter queue: every live reject of a pipeline with its source record, and the file that lists them (user guide, "DLQ configuration")."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from errata.correlation_groups import groups_in
from errata.correlation_plan import key_fields
from errata.record_places import Lead, Place, Places, bare, branch_of, lead_of
from errata.uuids import uuid7
from operators.rows import CK

if TYPE_CHECKING:
    import pyarrow as pa

    from cxl.types import Type
    from errata.correlation_triggers import Trigger
    from errata.plan import Node, Plan
    from errata.tables import Tables
    from operators.evaluation import RunValues
    from storage.engines import Engine


SAID = ("node", "category", "detail", "stage", "route", "trigger", "by", "raw")
"""What an error tells of a rejected row."""


@dataclass(frozen=True, slots=True)
class Reject:
    """One rejected record. `source` and `row` are None where no single source record is behind it.

    `row` counts in the file, `number` across the files of the source; `record` is the key of the source record. `by`: what rolled it
    back, where something did. `raw`: the text of a record that could not be read. `group`: its correlation group, None of a record that is one by itself.
    """

    node: str
    key: bytes
    epoch: int
    category: str
    detail: str
    stage: str
    route: str
    trigger: str
    source: str | None = None
    file: str = ""
    row: int | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    number: int | None = None
    record: bytes = b""
    by: str = ""
    raw: str = ""
    group: bytes | None = None


class Rejects:
    """Finds the live rejects of a plan's nodes and leads them back to their source records."""

    def __init__(self, plan: Plan, tables: Tables, engine: Engine, values: RunValues, places: Places) -> None:
        self.plan = plan
        self.tables = tables
        self.engine = engine
        self.values = values
        self.places = places
        self._told: dict[int, tuple[Mapping[str, Any], list[str]]] = {}  # of each error, which the members of a group share

    def live(self, nodes: Iterable[str]) -> list[Reject]:
        """All live rejects of the nodes named, by source, file and row; those without a source record last."""
        found = [reject for name in nodes for reject in self._of_node(self.plan[name])]
        order = {name: at for at, name in enumerate(self.plan.nodes)}
        return sorted(found, key=lambda one: (one.source is None, order.get(one.source or "", 0), one.number or 0, order.get(one.node, 0), one.key))

    def triggers(self, rows: Iterable[Trigger]) -> list[Reject]:
        """Entries of rows of aggregates that failed and whose records were rolled back."""
        return [self._entry(self.plan[one.node], (one.key, one.epoch, one.error), {}) for one in rows if one.node in self.plan.nodes]

    def behind(self, node: Node, key: bytes, error: Mapping[str, Any]) -> Place | None:
        """The place of the source record behind a row that a node other than a source rejected; None where no single one is."""
        lead = lead_of_reject(node, key, error)
        return None if lead is None or lead.grouped else self._records([lead]).get(lead, ({}, None))[1]

    def _of_node(self, node: Node) -> Iterator[Reject]:
        rows = self.tables.rejects_arrow(self.engine, node, self.places.at)
        return self._of_source(node, rows) if node.kind == "source" else self._of_operator(node, rows.select(["_epoch", "_key", "_error"]).to_pylist())

    def _of_source(self, node: Node, rows: pa.Table) -> Iterator[Reject]:
        """Records that were rejected as they left the source, and those that are rolled back: the record is in the row."""
        marked, epochs = rows.column("_key").to_pylist(), rows.column("_epoch").to_pylist()
        keys = [bare(key) for key in marked]
        at = zip(keys, *(rows.column(name).to_pylist() for name in ("_file", "_row")), strict=True) if "_file" in rows.column_names else ()
        places = self.places.of(node.name, keys, {key: (file, row) for key, file, row in at if file})
        names = list(node.operator.output.data)
        records = zip(*(texts(rows.column(name), type_) for name, type_ in node.operator.output.data.items()), strict=True) if names else ((),) * len(keys)
        groups = groups_in(rows, node.operator.output, key_fields(node))
        for *row, key, error, record, group in zip(marked, epochs, keys, errors(rows.column("_error")), records, groups, strict=True):
            own = error.get("fields")
            fields = {name: text for name, text in own.items() if text is not None} if own else dict(zip(names, record, strict=True))
            yield self._entry(node, (*row, error), fields, Lead(node.name, key), places.get(key), group=group)

    def _of_operator(self, node: Node, rows: Sequence[Mapping[str, Any]]) -> Iterator[Reject]:
        leads = [lead_of_reject(node, row["_key"], json.loads(row["_error"])) for row in rows]
        records = self._records([lead for lead in leads if lead is not None and not lead.grouped])
        for row, lead in zip(rows, leads, strict=True):
            error = json.loads(row["_error"])
            if lead is None or lead.grouped:
                yield self._entry(node, (row["_key"], row["_epoch"], error), {})
            else:
                fields, place = records.get(lead, ({}, None))
                yield self._entry(node, (row["_key"], row["_epoch"], error), fields, lead, place)

    def _entry(
        self, node: Node, row: tuple[bytes, int, Mapping[str, Any]], fields: Mapping[str, str],
        lead: Lead | None = None, place: Place | None = None, *, group: bytes | None = None,
    ) -> Reject:  # fmt: skip
        """The entry of a rejected row: its key, epoch and error."""
        key, epoch, error = row
        found = self._told.get(id(error))
        if found is None or found[0] is not error:
            found = self._told[id(error)] = (error, [str(error.get(name) or "") for name in SAID])
        named, category, detail, stage, route, trigger, by, raw = found[1]
        return Reject(
            named or node.name, key, epoch, category, detail, stage or f"{node.kind}:{node.name}", route or branch_of(self.plan, node, bare(key)), trigger,
            lead.node if lead else None, place.file if place else "", place.row if place else None, fields,
            place.number if place else None, lead.key if lead else b"", by, raw, group,
        )  # fmt: skip

    def _records(self, leads: Sequence[Lead]) -> dict[Lead, tuple[dict[str, str], Place | None]]:
        """The source records of leads: field to text, and the place."""
        from pyspark.sql import functions as F

        found: dict[Lead, tuple[dict[str, str], Place | None]] = {}
        for source in dict.fromkeys(lead.node for lead in leads):
            keys = {lead.key for lead in leads if lead.node == source}
            live = self.tables.live(self.engine, self.plan[source], self.values, self.places.at).where(F.col("_error").isNull())
            rows = self.engine.to_arrow(live.join(F.broadcast(self.engine.keys_frame(keys)), "_key", "left_semi")).to_pylist()
            placed = {row["_key"]: (row["_file"], row["_row"]) for row in rows if row.get("_file")}
            places = self.places.of(source, keys, placed)
            for row in rows:
                fields = {name: shown(plain(row[name], type_)) for name, type_ in self.plan[source].operator.output.data.items()}
                found[Lead(source, row["_key"])] = (fields, places.get(row["_key"]))
        return found


def lead_of_reject(node: Node, key: bytes, error: Mapping[str, Any]) -> Lead | None:
    """What a node's reject leads back to. An aggregate rejects records, and groups that cannot be finalized."""
    plain = bare(key)
    if node.kind == "source":
        return Lead(node.name, plain)
    if is_group_reject(error):
        return lead_of(node.operator.output.key, plain)
    return lead_of(node.operator.reject_shape, plain)


def is_group_reject(error: Mapping[str, Any]) -> bool:
    """Whether a whole group was rejected, not one of its records."""
    return error.get("category") == "aggregate_finalize"


def errors(column: pa.ChunkedArray) -> Iterator[Mapping[str, Any]]:
    """What is said of rejected rows; the members of a group share one text, which is read once."""
    read: dict[str, Mapping[str, Any]] = {}
    for text in column.to_pylist():
        if text not in read:
            read[text] = json.loads(text)
        yield read[text]


def texts(column: pa.ChunkedArray, type_: Type) -> list[str]:
    """The values of a column as the DLQ file writes them."""
    import pyarrow.types as kinds

    values = column.to_pylist()
    if kinds.is_string(column.type) and not type_.is_dynamic:
        return [value or "" for value in values]
    return ["" if value is None else str(value) for value in values] if kinds.is_integer(column.type) else [shown(plain(value, type_)) for value in values]


def plain(value: Any, type_: Type) -> Any:
    """The scalar in JSON text of a dynamic type; every other value, maps and arrays as JSON among them, as it is."""
    if value is None or not type_.is_dynamic:
        return value
    found = json.loads(value)
    return value if isinstance(found, (dict, list)) else found


def shown(value: Any) -> str:
    """A value as the DLQ file writes it: the text forms of CSV outputs."""
    from cxl.text import scalar_text

    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, datetime):
        value = value.astimezone(UTC).replace(tzinfo=None)
    return scalar_text(value)


LOGGED = 10
"""So many records are told one by one where the pipeline names no file for them."""


def in_words(rejects: Sequence[Reject]) -> Iterator[str]:
    """What a run tells of rejected records that go to no file: each with its place, its node and why; of many the first ones."""
    for one in rejects[:LOGGED]:
        place = f"{one.file}: record {one.row}: " if one.row is not None else ""
        yield f"{place}{one.category} at {one.stage}: {one.detail}"
    if len(rejects) > LOGGED:
        yield f"{len(rejects) - LOGGED:,} further records were rejected; `errata dlq` lists them all"


METADATA = (
    "_cxl_dlq_id", "_cxl_dlq_timestamp", "_cxl_dlq_source_file", "_cxl_dlq_source_row", "_cxl_dlq_stage", "_cxl_dlq_route", "_cxl_dlq_trigger",
)  # fmt: skip
REASON = ("_cxl_dlq_error_category", "_cxl_dlq_error_detail")
RAW = "_cxl_dlq_raw"
"""Where some record could not be read: its text."""


def dlq_text(plan: Plan, rejects: Sequence[Reject], started: Mapping[int, datetime]) -> str:
    """The DLQ file, a CSV; `started`: when the runs of epochs began."""
    sheet = _Sheet(plan, rejects, started)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(sheet.header())
    writer.writerows(map(sheet.row, rejects))
    return buffer.getvalue()


class _Sheet:
    """The DLQ file's rows: the documents' columns, the text of unreadable records, the declared columns of the sources concerned, then `$ck.*`."""

    def __init__(self, plan: Plan, rejects: Sequence[Reject], started: Mapping[int, datetime]) -> None:
        dlq, now = plan.model.error_handling.dlq, datetime.now(UTC)
        self._plan = plan
        self._reasoned = dlq.include_reason
        self._raw = dlq.include_source_row and any(one.raw for one in rejects)
        self._columns = source_columns(plan, rejects) if dlq.include_source_row else []
        self._fields: dict[str | None, list[str]] = {}
        self._moments = {epoch: (moment, _rfc3339(moment)) for epoch, moment in started.items()}
        self._now = (now, _rfc3339(now))

    def header(self) -> list[str]:
        """The names of the columns."""
        return [*METADATA, *(REASON if self._reasoned else ()), *([RAW] if self._raw else ()), *self._columns]

    def row(self, one: Reject) -> list[str | int]:
        """The cells of an entry."""
        moment, text = self._moments.get(one.epoch, self._now)
        reason = [one.category, one.detail] if self._reasoned else []
        raw = [one.raw] if self._raw else []
        head = [entry_id(moment, one), text, one.file, "" if one.row is None else one.row, one.stage, one.route, one.trigger]
        return [*head, *reason, *raw, *(one.fields.get(name, "") for name in self._fields_of(one))]

    def _fields_of(self, one: Reject) -> list[str]:
        """The record's fields by column, the same for all records of a source; empty where it has none."""
        if one.source not in self._fields:
            self._fields[one.source] = [name.removeprefix("$ck.") if _has(self._plan, one, name) else "" for name in self._columns]
        return self._fields[one.source]


def _has(plan: Plan, reject: Reject, name: str) -> bool:
    if not name.startswith("$ck."):
        return True
    return reject.source is not None and CK + name.removeprefix("$ck.") in plan[reject.source].operator.output.riders


def source_columns(plan: Plan, rejects: Sequence[Reject]) -> list[str]:
    """The declared columns of the sources that rejects lead to (all sources above where none does), then their correlation keys."""
    names = dict.fromkeys(one.source for one in rejects if one.source is not None)
    for one in rejects:
        if one.source is None:
            names |= dict.fromkeys(plan.sources_of(one.node))
    ordered = [node for node in plan.of_kind("source") if node.name in names]
    columns = dict.fromkeys(name for node in ordered for name in node.operator.output.data)
    keys = dict.fromkeys(f"$ck.{name}" for node in ordered for name in node.operator.output.riding(CK))
    return [*columns, *keys]


def entry_id(moment: datetime, reject: Reject) -> str:
    """A UUID v7 of the time of the rejection that is the same whenever it is asked for."""
    return uuid7(moment, blake2b(reject.node.encode() + b"\x00" + reject.key, digest_size=16).digest()[6:])


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
