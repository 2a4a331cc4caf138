"""What stands and what happened: `status`, `log`, `show`, `diff` over committed epochs (CONTRACT, "Commands").

Data is read by the in-process engine, so that no command that only looks starts a JVM.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from changelog.algebra import diff, live
from changelog.ops import SYMBOLS, Op
from changelog.schema import column
from errata.failures import Usage
from errata.options import LogFilter
from errata.plan import Node
from errata.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from errata.project import Project
    from operators.evaluation import RunValues
    from storage.engines import Engine
    from storage.ledger import Entry

Row = Mapping[str, Any]
OP_SYMBOLS = ("+A", "-R", "-C", "+C")


class Reading:
    """Answers about one project's committed state."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.plan = project.plan
        self.tables = Tables(project.state.root, project.plan)

    @cached_property
    def engine(self) -> Engine:
        """The in-process engine."""
        from storage.engines import EngineChoice, engine

        return engine(EngineChoice("sail"))

    @cached_property
    def head(self) -> Entry | None:
        """The last committed run."""
        return self.project.head()

    @cached_property
    def values(self) -> RunValues:
        """System variables for nodes that keep no table: the constants of the pipeline."""
        from operators.evaluation import RunValues

        constants = {f"{scope}.{name}": one.default for (scope, name), one in self.plan.settings.variables.items()}
        return RunValues({**constants, "pipeline.name": self.plan.settings.name}, self._labels())

    def _labels(self) -> Any:
        from changelog.labels import row_label
        from operators.lineage import FileLabels

        entries = self.head.sources.items() if self.head else ()
        paths = {bytes([one["number"]]) + row_label(tuple(file["label"])): file["path"] for _, one in entries for file in one["files"]}
        return FileLabels(paths)

    # -- frames

    def _node(self, name: str) -> Node:
        if name not in self.plan.nodes:
            raise Usage(f"the pipeline has no node '{name}'")
        return self.plan[name]

    def _committed(self, node: Node) -> int:
        """The last epoch to look at; 0 where the node has no committed table yet."""
        if self.head is None:
            return 0
        known = not self.plan.persisted(node) or f"changelog/{node.name}" in self.head.tables
        return self.head.epoch if known and node.name in self.head.plan else 0

    def _rows(self, node: Node, epochs: tuple[int, int]) -> DataFrame:
        from pyspark.sql import functions as F

        engine = self.engine
        _ = engine.session
        rows = self.tables.rows(engine, node, self.values, epochs=epochs)
        return rows.where(F.col("_error").isNull()) if "_error" in rows.columns else rows

    def _live(self, node: Node, at: int) -> DataFrame:
        from pyspark.sql import functions as F

        engine = self.engine
        _ = engine.session
        rows = self.tables.live(engine, node, self.values, at=at)
        return rows.where(F.col("_error").isNull()) if "_error" in rows.columns else rows

    def live(self, name: str, at: int | None) -> DataFrame:
        """Live data columns of a node."""
        node = self._node(name)
        return self._live(node, self._epoch(node, at)).select(*map(column, node.operator.output.data))

    def changelog(self, name: str, epochs: tuple[int, int] | None) -> DataFrame:
        """Op rows of a node with `_epoch`, `_op`, `_key`, `_cause` and data columns."""
        node = self._node(name)
        first, last = epochs or (1, self._committed(node))
        names = ("_epoch", "_op", "_key", "_cause", *node.operator.output.data)
        return self._rows(node, (first, min(last, self._committed(node)))).select(*map(column, names))

    def _epoch(self, node: Node, at: int | None) -> int:
        committed = self._committed(node)
        if at is not None and at > committed:
            raise Usage(f"there is no epoch {at}; the last one is {committed}")
        return committed if at is None else at

    # -- answers

    def status(self) -> Mapping[str, Any]:
        """The object of CONTRACT.md."""
        head = self.head
        nodes = head.nodes if head else {}
        sources = head.sources if head else {}
        return {
            "pipeline": self.plan.settings.name,
            "epoch": head.epoch if head else None,
            "per_source_rollback_cursors": {name: one["cursor"] for name, one in sources.items() if one["cursor"]},
            "sources": [self._source_status(node, sources.get(node.name, {}), nodes.get(node.name, {})) for node in self.plan.of_kind("source")],
            "nodes": [self._node_status(node, nodes.get(node.name, {})) for node in self.plan],
            "rejected": int(head.counters.get("rejected", 0)) if head else 0,
        }

    def _source_status(self, node: Node, source: Mapping[str, Any], counts: Mapping[str, Any]) -> Row:
        files = [{"path": one["path"], "rows": one["rows"]} for one in source.get("files", ())]
        return {
            "name": node.name, "cursor": source.get("cursor", 0), "rows_live": counts.get("live", 0),
            "rows_suppressed": source.get("suppressed", 0), "files": files,
        }  # fmt: skip

    def _node_status(self, node: Node, counts: Mapping[str, Any]) -> Row:
        return {"name": node.name, "type": node.kind, "rows_live": counts.get("live", 0), "last_epoch": counts.get("last_epoch")}

    def runs(self) -> Iterator[Row]:
        """One row a committed run."""
        from storage.ledger import Ledger

        for entry in Ledger(self.project.state.ledger).entries():
            counts = {name: {op: one[op] for op in OP_SYMBOLS if one.get(op)} for name, one in entry.nodes.items() if name in entry.plan}
            yield {
                "epoch": entry.epoch, "started": entry.started, "finished": entry.finished, "execution_id": entry.execution_id,
                "counts": {name: ops for name, ops in counts.items() if ops}, "exit_code": entry.exit_code,
            }  # fmt: skip

    def log(self, name: str, filters: LogFilter) -> Iterator[Row]:
        """Changelog rows in changelog order with dense offsets."""
        from errata.streams import formed

        node = self._node(name)
        last = self._committed(node)
        rows = self._ordered(self._rows(node, (1, last)), node) if last else []
        numbered = (row | {"offset": offset} for offset, row in enumerate(rows))
        chosen = (row for row in numbered if _wanted(row, filters))
        kept = self._where(node, chosen, filters.where)
        shaped = formed(kept, filters.form, self.plan.settings.name, name)
        for count, row in enumerate(shaped):
            if filters.limit is not None and count >= filters.limit:
                return
            yield row

    def _ordered(self, rows: DataFrame, node: Node) -> list[dict[str, Any]]:
        """The rows with the members of CONTRACT.md, in changelog order."""
        data = list(node.operator.output.data)
        table = self.engine.to_arrow(rows.select("_epoch", "_op", "_key", "_cause", *map(column, self._shown(node))))
        found = table.to_pylist()
        found.sort(key=lambda row: (row["_epoch"], bytes(row["_key"]), row["_op"]))
        return [
            {
                "epoch": row["_epoch"], "offset": 0, "op": SYMBOLS[Op(row["_op"])], "op_code": row["_op"], "node": node.name,
                "cause": row["_cause"], "key": bytes(row["_key"]).hex(), "data": self._data(node, row, data),
            }
            for row in found
        ]  # fmt: skip

    def _shown(self, node: Node) -> list[str]:
        hidden = ["_widened"] if node.kind == "output" and "_widened" in node.operator.output.hidden else []
        return [*hidden, *node.operator.output.data]

    def _data(self, node: Node, row: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """The data of a row as values for people and programs; an output's undeclared fields stand behind its columns."""
        types = node.operator.output.data
        values = {name: shown_value(row[name], dynamic=types[name].is_dynamic) for name in names}
        extra = json.loads(row["_widened"]) if row.get("_widened") else {}
        return values | {name: value for name, value in extra.items() if name not in values}

    def _where(self, node: Node, rows: Iterable[dict[str, Any]], text: str | None) -> Iterable[dict[str, Any]]:
        if text is None:
            return rows
        from errata.conditions import data_condition

        return filter(data_condition(text, node.operator.output.data), rows)

    def show(self, name: str, at: int | None) -> Iterator[Row]:
        """Live rows in key order, data columns only."""
        node = self._node(name)
        epoch = self._epoch(node, at)
        if not epoch:
            return
        order = [one for one in ("_lookup", "_key") if one == "_key" or (node.kind == "output" and one in node.operator.output.hidden)]
        frame = self._live(node, epoch).orderBy(*order).select(*map(column, self._shown(node)))
        for row in self.engine.to_arrow(frame).to_pylist():
            yield self._data(node, row, node.operator.output.data)

    def diff(self, name: str, start: int, end: int) -> Iterator[Row]:
        """Net difference between two epochs by key."""
        node = self._node(name)
        last = self._committed(node)
        for epoch in (start, end):
            if epoch > last:
                raise Usage(f"there is no epoch {epoch}; the last one is {last}")
        if not last:
            return
        data = list(node.operator.output.data)
        frames = [self._live(node, epoch).select("_key", *map(column, data)) for epoch in (start, end)]
        changes = self._ordered_diff(diff(frames[0], frames[1], ""), node)
        for old, new in changes:
            op = "+A" if old is None else "-R" if new is None else "+C"
            yield {"op": op, "before": old, "after": new}

    def _ordered_diff(self, delta: DataFrame, node: Node) -> Iterator[tuple[dict[str, Any] | None, dict[str, Any] | None]]:
        pairs: dict[bytes, list[dict[str, Any] | None]] = {}
        for row in self.engine.to_arrow(delta).to_pylist():
            pair = pairs.setdefault(bytes(row["_key"]), [None, None])
            pair[1 if Op(row["_op"]).weight > 0 else 0] = self._data(node, row, node.operator.output.data)
        return ((old, new) for _, (old, new) in sorted(pairs.items()))


def _wanted(row: Mapping[str, Any], filters: LogFilter) -> bool:
    checks = (
        filters.epoch is None or row["epoch"] == filters.epoch,
        filters.since is None or row["epoch"] >= filters.since,
        filters.op is None or row["op"] == filters.op,
        filters.cause is None or str(row["cause"]).startswith(filters.cause),
    )
    return all(checks)


def shown_value(value: Any, *, dynamic: bool = False) -> Any:
    """A stored value as JSON shows it: dynamic values as what their text says, date-times without zone."""
    if dynamic and isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None).isoformat()
    return value


__all__ = ["Reading", "live", "shown_value"]
