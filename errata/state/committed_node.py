"""Op rows as the values that people and programs see, in changelog order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from changelog.columns import column
from changelog.ops import SYMBOLS, Op
from cxl.types.types import Schema
from cxl.values.dynamic import loads
from cxl.values.text import date_time_text
from errata.state.node_tables import SYSTEM_COLUMNS
from errata.state.ordered_rows import OutputRows
from operators.core.row_type import stored_types
from storage.values.python_rows import dictionaries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.engines.base import Engine


@dataclass(frozen=True, slots=True)
class CommittedNode:
    """A node as the last epoch's ledger entry describes it: enough to read its table, whatever became of the pipeline file."""

    name: str
    kind: str
    data: Schema
    hidden: Mapping[str, str]
    persisted: bool

    @classmethod
    def of(cls, name: str, entry: Mapping[str, Any]) -> CommittedNode:
        """Read a ledger entry's summary of a node."""
        return cls(name, entry["type"], Schema.of(dict(entry["columns"])), dict(entry["hidden"]) | entry.get("riders", {}), entry["persisted"])

    def columns(self) -> dict[str, str]:
        """The table's columns without `_epoch`."""
        return SYSTEM_COLUMNS | dict(self.hidden) | stored_types(self.data)

    @property
    def shown(self) -> list[str]:
        """The columns that the data of its rows is made of."""
        hidden = ["_widened"] if self.kind == "output" and "_widened" in self.hidden else []
        return [*hidden, *self.data]

    def values(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The data of a row as values for people and programs; an output's undeclared fields stand behind its columns."""
        found = {name: shown_value(row[name], dynamic=type_.is_dynamic) for name, type_ in self.data.items()}
        extra = json.loads(row["_widened"]) if row.get("_widened") else {}
        return found | {name: value for name, value in extra.items() if name not in found}


def in_order(engine: Engine, rows: DataFrame, node: CommittedNode, offset: int = 0, *, few: bool = False) -> Iterator[dict[str, Any]]:
    """Op rows of a node in changelog order (epoch, key, op), numbered from `offset`; sorted by the engine, made one by one. Unless they are `few`, a batch of them at a time is on the driver."""
    wanted = rows.select("_epoch", "_op", "_key", "_cause", *map(column, node.shown)).orderBy("_epoch", "_key", "_op")
    found = OutputRows(engine.to_arrow(wanted), None) if few else OutputRows(None, wanted)
    for batch in found.batches(engine, lambda batch: batch):
        for number, row in enumerate(dictionaries(batch), offset):
            yield {
                "epoch": row["_epoch"], "offset": number, "op": SYMBOLS[Op(row["_op"])], "op_code": row["_op"], "node": node.name,
                "cause": row["_cause"], "key": bytes(row["_key"]).hex(), "data": node.values(row),
            }  # fmt: skip
        offset += batch.num_rows


def paired(rows: Iterator[Mapping[str, Any]] | list[dict[str, Any]], node: CommittedNode) -> Iterator[tuple[dict[str, Any] | None, dict[str, Any] | None]]:
    """The data before and after of each key of a delta (`_op`, `_key`, data), by key; None where there is none."""
    pairs: dict[bytes, list[dict[str, Any] | None]] = {}
    for row in rows:
        pair = pairs.setdefault(bytes(row["_key"]), [None, None])
        pair[1 if Op(row["_op"]).weight > 0 else 0] = node.values(row)
    return ((old, new) for _, (old, new) in sorted(pairs.items()))


def shown_value(value: Any, *, dynamic: bool = False) -> Any:
    """A stored value as JSON shows it: dynamic values as what their text says, date-times without zone and as files have them."""
    if dynamic and isinstance(value, str):
        try:
            return loads(value)
        except ValueError:
            return value
    if isinstance(value, datetime):
        return date_time_text(value.astimezone(UTC).replace(tzinfo=None))
    return value
