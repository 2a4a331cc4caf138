"""Rows of aggregates that failed and were rolled back with the records behind them: the part of the DLQ that no source record holds.

Each stands in a changelog of its own, `rollback/triggers`, until a run does without it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from changelog.lazy_imports import pa
from changelog.ops import Op
from storage.delta.changelog_table import ChangelogTable

COLUMNS = {"_op": "tinyint", "_key": "binary", "_cause": "string", "_error": "string"}


@dataclass(frozen=True, slots=True)
class Trigger:
    """A row of a node that failed: its key there, what the node said of it, and the epoch since when it stands."""

    node: str
    key: bytes
    error: Mapping[str, Any]
    epoch: int = 0

    @property
    def identity(self) -> bytes:
        """The key of its row in the table."""
        return self.node.encode() + b"\x00" + self.key

    @property
    def text(self) -> str:
        """Its error, as the table keeps it."""
        return json.dumps(dict(self.error), ensure_ascii=False)


def live_triggers(table: ChangelogTable, at: int | None = None) -> list[Trigger]:
    """The live triggers after an epoch (None: the last)."""
    if not table.exists():
        return []
    found: dict[bytes, Trigger] = {}
    rows = table.read_arrow(at=at).sort_by([("_epoch", "ascending"), ("_op", "descending")]).to_pylist()
    for row in rows:
        if Op(row["_op"]).weight < 0:
            found.pop(row["_key"], None)
        else:
            node, _, key = row["_key"].partition(b"\x00")
            found[row["_key"]] = Trigger(node.decode(), key, json.loads(row["_error"]), row["_epoch"])
    return list(found.values())


def replace_triggers(table: ChangelogTable, now: Sequence[Trigger], epoch: int) -> bool:
    """Bring the table to these triggers. True where something changed."""
    before = {one.identity: one.text for one in live_triggers(table, epoch - 1)}
    after = {one.identity: one.text for one in now}
    rows = [(int(Op.RETRACT), key, text) for key, text in before.items() if after.get(key) != text]
    rows += [(int(Op.APPEND), key, text) for key, text in after.items() if before.get(key) != text]
    if not rows:
        return False
    ops, keys, texts = zip(*rows, strict=True)
    columns = {"_op": pa.array(ops, pa.int8()), "_key": pa.array(keys, pa.binary()), "_cause": pa.repeat("rollback", len(rows)), "_error": pa.array(texts, pa.string())}
    table.append(pa.table(columns), epoch)
    return True
