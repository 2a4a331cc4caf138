"""The JSON Schema of the events that `--events jsonl` writes."""

from __future__ import annotations

from typing import Any

from errata.rendering.event_stream import OPS, SCHEMA

Json = dict[str, Any]

_TEXT: Json = {"type": "string"}
_MAYBE_TEXT: Json = {"type": ["string", "null"]}
_COUNT: Json = {"type": "integer", "minimum": 0}
_MAYBE_COUNT: Json = {"type": ["integer", "null"], "minimum": 0}
_FLAG: Json = {"type": "boolean"}
_SECONDS: Json = {"type": "number", "minimum": 0}
_OPS: Json = {"type": "object", "properties": dict.fromkeys(OPS, _COUNT), "required": list(OPS)}
_PLANNED: Json = {"node": _TEXT, "type": _TEXT, "action": _TEXT, "reason": _TEXT, "rows": _MAYBE_COUNT}


def _object(members: Json) -> Json:
    return {"type": "object", "properties": members, "required": list(members)}


def _map(values: Json) -> Json:
    return {"type": "object", "additionalProperties": values}


_CHANGE: Json = {"node": _TEXT, "added": _COUNT, "removed": _COUNT, "corrected": _COUNT, "delivered": _MAYBE_COUNT | {"description": "Rows of the last epoch; null where there was none."}}


_EVENTS: dict[str, tuple[str, Json]] = {
    "run_started": ("The first event.", {
        "pipeline": _MAYBE_TEXT, "batch_id": _TEXT, "engine": {"enum": ["auto", "spark", "sail"]}, "version": _TEXT, "epoch": _COUNT | {"description": "The last committed one; 0 before the first."},
        "dry_run": _FLAG, "channel": _MAYBE_TEXT,
    }),
    "problem": ("A diagnostic of the pipeline.", {
        "code": _TEXT, "severity": {"enum": ["error", "warning"]}, "message": _TEXT, "file": _MAYBE_TEXT, "line": _MAYBE_COUNT, "column": _MAYBE_COUNT, "help": _MAYBE_TEXT, "node": _MAYBE_TEXT,
    }),
    "planned": ("What the run will do, as `errata plan --format json`.", {"nodes": {"type": "array", "items": _object(_PLANNED)}}),
    "progress": ("How far a source is read; at most one a second.", {"node": _TEXT, "rows_read": _COUNT, "bytes_read": _COUNT, "bytes_total": _MAYBE_COUNT}),
    "source_read": ("A source was read.", {
        "node": _TEXT, "rows": _COUNT | {"description": "Records of the inputs that were read."}, "rejected": _COUNT, "bytes": _COUNT, "inputs": _COUNT | {"description": "Files or queries that were read."},
        "skipped": _COUNT | {"description": "Files that did not change."}, "cursor": _MAYBE_COUNT,
    }),
    "node_finished": ("A node ended its work.", {"node": _TEXT, "ops": _OPS, "rejected": _COUNT, "seconds": _SECONDS}),
    "rejected": ("Records that this run newly rejected.", {"node": _TEXT, "category": _TEXT, "count": _COUNT}),
    "expectation": ("An expectation that fails at the end of the run.", {"node": _TEXT, "expectation": _TEXT, "severity": {"enum": ["warn", "reject", "stop"]}, "failing": _COUNT}),
    "warning": ("A warning.", {"code": _MAYBE_TEXT, "message": _TEXT, "node": _MAYBE_TEXT}),
    "committed": ("An epoch is committed.", {
        "epoch": _COUNT | {"minimum": 1}, "ops": _map(_OPS) | {"description": "By node."}, "rejected": _COUNT | {"description": "Entries of the dead letter queue that stand."},
        "cursors": _map(_COUNT), "ledger": _TEXT | {"description": "The hash of the ledger's row."},
    }),
    "output_written": ("A file or table was written.", {"node": _TEXT, "kind": _TEXT, "target": _TEXT, "rows": _MAYBE_COUNT, "bytes": _MAYBE_COUNT, "epoch": _COUNT}),
    "run_finished": ("The last event.", {
        "exit_code": {"type": "integer"}, "outcome": {"enum": ["clean", "rejected", "failed", "interrupted"]}, "committed": _FLAG, "epoch": _COUNT, "rejected": _COUNT,
        "retry": {"enum": ["none", "after_change", "later", "report"]}, "code": _MAYBE_TEXT, "message": _MAYBE_TEXT, "seconds": _SECONDS, "batch_id": _TEXT,
        "outputs": {"type": "array", "items": _object(_CHANGE), "description": "What the run changed in each output, in rows; outputs without a change are not listed."},
    }),
}  # fmt: skip


def event_schema() -> Json:
    """Return the JSON Schema (draft 7) of one event. New members and new events may come under the same number."""
    envelope: Json = {
        "schema": {"const": SCHEMA}, "seq": {"type": "integer", "minimum": 1, "description": "1, 2, 3, without a gap."},
        "time": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$"}, "run": _TEXT | {"description": "The execution id."}, "event": _TEXT,
    }  # fmt: skip
    kinds = [
        {"if": {"properties": {"event": {"const": name}}}, "then": {"description": about, "properties": members, "required": list(members)}}
        for name, (about, members) in _EVENTS.items()
    ]
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "An event of a run of Errata", "type": "object", "properties": envelope, "required": list(envelope), "allOf": kinds}
