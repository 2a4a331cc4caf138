"""The dead letter queue: every live reject of a pipeline with its source record, and the file that lists them (user guide, "DLQ configuration")."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from changelog.labels import parse_label
from changelog.schema import column
from operators.ingest.files import FileRecord
from operators.rows import CK, KeyShape

if TYPE_CHECKING:
    from errata.plan import Node, Plan
    from errata.tables import Tables
    from operators.evaluation import RunValues
    from operators.source import Source
    from storage.engines import Engine


@dataclass(frozen=True, slots=True)
class Reject:
    """One rejected record. `source` and `record` are None where no single source record is behind it."""

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


@dataclass(frozen=True, slots=True)
class SourceState:
    """What is needed to lead keys back to files: a source's number and its present files."""

    number: int
    files: tuple[FileRecord, ...]


class Rejects:
    """Finds the live rejects of a plan's nodes and leads them back to their source records."""

    def __init__(self, plan: Plan, tables: Tables, engine: Engine, values: RunValues, sources: Mapping[str, SourceState]) -> None:
        self.plan = plan
        self.tables = tables
        self.engine = engine
        self.values = values
        self.sources = sources

    def live(self, nodes: Iterable[str]) -> list[Reject]:
        """All live rejects of the nodes named, by source, file and row; those without a source record last."""
        found = [reject for name in nodes for reject in self._of_node(self.plan[name])]
        order = {name: at for at, name in enumerate(self.plan.nodes)}
        return sorted(found, key=lambda one: (one.source is None, order.get(one.source or "", 0), one.file, one.row or 0, order[one.node], one.key))

    def _of_node(self, node: Node) -> Iterator[Reject]:
        frame = self.tables.rejects(self.engine, node, self.values)
        own = list(node.operator.output.data) if node.kind == "source" else []
        table = self.engine.to_arrow(frame.select("_epoch", "_key", "_error", *map(column, own)).orderBy("_key"))
        rows = table.to_pylist()
        leads = [self._lead(node, bytes(row["_key"])) for row in rows]
        records = self._records([lead for lead in leads if lead is not None])
        for row, lead in zip(rows, leads, strict=True):
            error = json.loads(row["_error"])
            fields = error.get("fields") or {}
            source, key = lead or (None, b"")
            if lead is not None and not fields:
                fields = {name: shown(row[name]) for name in own} or records.get(lead, {})
            file, number = self._place(source, key, records.get(lead, {}) if lead else {})
            yield Reject(
                node.name, bytes(row["_key"]), row["_epoch"], error.get("category", ""), error.get("detail", ""),
                error.get("stage") or f"{node.kind}:{node.name}", error.get("route", ""), error.get("trigger", ""), source, file, number,
                {name: value for name, value in fields.items() if name not in ("_file", "_row")},
            )  # fmt: skip

    def _lead(self, node: Node, key: bytes) -> tuple[str, bytes] | None:
        """The source and the key of the source record behind a reject's key."""
        bare = key.removesuffix(b"!")
        if node.kind == "source":
            return node.name, bare
        return source_key(node.operator.reject_shape, bare)

    def _records(self, leads: Sequence[tuple[str, bytes]]) -> dict[tuple[str, bytes], dict[str, str]]:
        """The source records of keys: field to text, `_file` and `_row` of keyed ones among them."""
        import pyarrow as pa
        from pyspark.sql import functions as F

        found: dict[tuple[str, bytes], dict[str, str]] = {}
        for source in dict.fromkeys(name for name, _ in leads):
            keys = sorted({key for name, key in leads if name == source})
            wanted = self.engine.from_arrow(pa.table({"_key": pa.array(keys, pa.binary())}))
            rows = self.tables.live(self.engine, self.plan[source], self.values).where(F.col("_error").isNull())
            for row in self.engine.to_arrow(rows.join(wanted, "_key", "left_semi")).to_pylist():
                key = bytes(row.pop("_key"))
                found[source, key] = {name: shown(value) for name, value in row.items() if not name.startswith("_") or name in ("_file", "_row")}
        return found

    def _place(self, source: str | None, key: bytes, record: Mapping[str, str]) -> tuple[str, int | None]:
        """The file and the row number of a source record."""
        if source is None:
            return "", None
        if record.get("_file"):
            return record["_file"], int(record["_row"])
        operator = cast("Source", self.plan[source].operator)
        if operator.keyed:
            path, _, label = key.removeprefix(b"\xff").rpartition(b"\x00" + key[-7:])
            return path.decode(errors="replace"), parse_label(key, len(key) - 7)[0][0] if label == b"" and len(key) > 7 else None
        return self._unkeyed_place(source, key)

    def _unkeyed_place(self, source: str, key: bytes) -> tuple[str, int | None]:
        label, behind = parse_label(key, 1)
        record = next((one for one in self.sources[source].files if one.label == label), None)
        if record is None:
            return "", None
        numbers, _ = parse_label(key, behind)
        return record.path, numbers[0] if record.dense else self._rank(source, key[:behind], key)

    def _rank(self, source: str, prefix: bytes, key: bytes) -> int:
        """The number of live records of the file up to a key."""
        from pyspark.sql import functions as F

        rows = self.tables.live(self.engine, self.plan[source], self.values).where((F.col("_key") >= F.lit(prefix)) & (F.col("_key") <= F.lit(key + b"!")))
        return int(self.engine.to_arrow(rows.agg(F.count("*").alias("n"))).column("n")[0].as_py())


def source_key(shape: KeyShape, key: bytes) -> tuple[str, bytes] | None:
    """The source and the source record's key inside a key of this shape; None where no single record is behind it."""
    if shape.kind == "source":
        return shape.source, _own(shape, key)
    if shape.kind == "merge":
        return source_key(shape.parts[key[0]], key[1:]) if key and key[0] < len(shape.parts) else None
    return source_key(shape.parts[0], key) if shape.parts else None


def _own(shape: KeyShape, key: bytes) -> bytes:
    """The source record's key at the head of a key, without what other operators put behind it."""
    from changelog.keys import decode_key, encode_key

    if shape.types is not None:
        return encode_key(decode_key(key, shape.types), shape.types)
    _, behind = parse_label(key, 1)
    _, end = parse_label(key, behind)
    return key[:end]


def shown(value: Any) -> str:
    """A value as the DLQ file writes it: the text forms of CSV outputs."""
    from cxl.text import scalar_text

    if value is None:
        return ""
    if isinstance(value, datetime):
        value = value.astimezone(UTC).replace(tzinfo=None)
    return scalar_text(value)


METADATA = (
    "_cxl_dlq_id", "_cxl_dlq_timestamp", "_cxl_dlq_source_file", "_cxl_dlq_source_row", "_cxl_dlq_stage", "_cxl_dlq_route", "_cxl_dlq_trigger",
)  # fmt: skip
REASON = ("_cxl_dlq_error_category", "_cxl_dlq_error_detail")


def dlq_text(plan: Plan, rejects: Sequence[Reject], started: Mapping[int, datetime]) -> str:
    """The DLQ file: a CSV with the documents' columns, then the declared columns of the sources concerned, then `$ck.*`."""
    dlq = plan.model.error_handling.dlq
    columns = source_columns(plan, rejects) if dlq.include_source_row else []
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*METADATA, *(REASON if dlq.include_reason else ()), *columns])
    for one in rejects:
        moment = started.get(one.epoch, datetime.now(UTC))
        head = [entry_id(moment, one), _rfc3339(moment), one.file, "" if one.row is None else one.row, one.stage, one.route, one.trigger]
        reason = [one.category, one.detail] if dlq.include_reason else []
        writer.writerow([*head, *reason, *(one.fields.get(name.removeprefix("$ck."), "") if _has(plan, one, name) else "" for name in columns)])
    return buffer.getvalue()


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
    digest = bytearray(blake2b(reject.node.encode() + b"\x00" + reject.key, digest_size=16).digest())
    digest[:6] = int(moment.timestamp() * 1000).to_bytes(6, "big")
    digest[6] = 0x70 | digest[6] & 0x0F
    digest[8] = 0x80 | digest[8] & 0x3F
    return str(UUID(bytes=bytes(digest)))


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
