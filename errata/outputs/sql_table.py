"""Outputs that are tables of databases: their rows and op rows as one transaction a run.

A table is written after the ledger's commit. Its control row names the ledger and the epoch that it holds. The op rows since then bring it on;
where that epoch is unknown, or somebody else changed the table, all rows are written anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, cast

from changelog.arrow_algebra import weights
from changelog.columns import column
from changelog.lazy_imports import F, pa, pc, pl
from errata.core.failures import StorageFailed
from errata.outputs.changes_file import odf_events
from errata.outputs.context import OutputContext
from errata.outputs.database_targets import Looked, failing
from errata.outputs.staged_files import StagedTable
from errata.outputs.writer import output_columns
from errata.plan.plan import Node
from errata.rendering.rows import json_text
from errata.state.committed_node import CommittedNode, in_order
from errata.state.node_tables import accepted
from errata.state.ordered_rows import BATCH_ROWS, output_rows
from errata.state.run_state import RunState
from errata.state.stream_forms import Stream, formed
from errata.state.undeclared_columns import Shape as RowColumns
from operators.core.value_text import shown
from operators.output.operator import Output
from storage.sql.mirror import DELETE, INSERT, UPDATE, Delta, Write, write
from storage.sql.tables import KEY, Column, ControlRow, Shape
from storage.values.text import plain_decimals
from storage.values.types import arrow_type, is_dynamic

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

MOST_ROWS = 500_000
"""The most op rows that are brought one by one; with more, all rows are written."""
FEW_ROWS = 10_000
"""Up to this number, changes are always brought one by one, also where the table has fewer rows than twice as many."""
AS_JSON = ("single", "debezium")
"""Forms whose events are one column of JSON."""


def write_database(context: OutputContext, run: RunState, node: Node, looked: Looked, extra: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Prepare what a run brings to a table; what the ledger keeps of it. `extra`: names and types of the undeclared fields of the sources' files.

    Raises:
        StorageFailed: The primary key is not one (E611), or the database cannot hold a value (E614). Nothing was written.
    """
    return _Writing(context, run, node, looked, extra).staged()


@dataclass(frozen=True)
class _Writing:
    """One output's table in one run."""

    context: OutputContext
    run: RunState
    node: Node
    looked: Looked
    extra: Sequence[tuple[str, str]]

    @property
    def output(self) -> Output:
        return cast("Output", self.node.operator)

    @cached_property
    def shape(self) -> Shape:
        """The columns of the table."""
        return self.looked.shape(self.extra)

    @cached_property
    def written(self) -> tuple[int, str, datetime]:
        """The epoch that the table shall hold, the run that made it, and when."""
        writer = self.context.writer
        return writer.epoch, writer.execution_id, writer.started

    def staged(self) -> list[dict[str, Any]]:
        """Stage the transaction."""
        self.looked.refuse_columns(self.shape)  # the undeclared fields are known now
        since = self.looked.since(self.shape)
        if self.shape.mode == "op_rows":
            delta, live = None, self._events(since)
            if self.shape.form not in AS_JSON:
                self._check_values(None, lambda: self.run.op_rows(self.node, (since or 0) + 1, self.written[0]))
        else:
            delta = None if since is None else self._changes(since)
            if delta is None or self._has_new_keys(delta):
                self._check_keys()
            self._check_values(delta, lambda: self._frame)
            live = self._live
        epoch, execution, _ = self.written
        looked = self.looked

        def publish() -> None:
            row = ControlRow(looked.table.shown, looked.chain(), epoch, execution, self.shape.text)
            given = Write(
                self.context.plan.settings.name, self.node.name, looked.table, self.shape, looked.standing, row, live, delta, anew=since is None,
                replaces=looked.foreign, warn=self.context.warn,
            )  # fmt: skip
            with looked.replacing(), failing(looked, epoch):
                write(looked.connection, given)

        self.context.staged.tables.append(StagedTable([publish], self.node.name))
        return [looked.ledger_entry()]

    # -- rows of a mirror

    @cached_property
    def _columns(self) -> RowColumns:
        """The columns of the table, taken out of a row of the output's changelog."""
        shape = output_columns(self.output, self.extra)[1]
        return replace(shape, names=(*shape.names, "_key")) if KEY in self.shape.names else shape

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        given = ((plain_decimals(values) if is_dynamic(one.type) else values, one) for values, one in zip(self._columns(batch).columns, self.shape.columns, strict=True))
        arrays = [values.cast(_arrow(one.type)) for values, one in given]
        return pa.RecordBatch.from_arrays(arrays, names=self.shape.names)

    def _live(self) -> Iterator[pa.RecordBatch]:
        """The live rows in order."""
        rows = output_rows(self.run, self.node, self.output)
        return rows.batches(self.run.engine, self._typed, len(self.shape.columns))

    def _changes(self, since: int) -> Delta | None:
        """The net change of each row since an epoch; None where they are too many."""
        run = self.run
        hidden = [name for name in ("_widened",) if name in self.output.output.hidden]
        rows = run.changes(self.node, since + 1, self.written[0]).select(["_op", "_key", "_epoch", *hidden, *self.output.projection.data]).on_driver(MOST_ROWS)
        if not rows.are_here or rows.count() > MOST_ROWS:
            return None
        table = rows.as_table()
        typed = [self._typed(batch) for batch in table.to_batches(BATCH_ROWS)]
        made = pa.Table.from_batches(typed, pa.schema([(one.name, _arrow(one.type)) for one in self.shape.columns]))
        net = _net(table)
        return None if len(net) > FEW_ROWS and 2 * len(net) > (run.live_rows.get(self.node.name) or 0) else self._delta(made, net)

    def _delta(self, rows: pa.Table, net: pl.DataFrame) -> Delta:
        shape = self.shape
        by_values = not shape.primary_key
        identity = shape.columns if by_values else tuple(one for one in shape.columns if one.name in shape.primary_key)
        old, new = (rows.take(net[side].to_arrow()) for side in ("old", "new"))
        nth = _numbers(old.select([one.name for one in identity]), net["op"]) if by_values else pa.repeat(pa.scalar(1, pa.int64()), len(net))
        columns = {"at": pa.array(range(len(net)), pa.int64()), "op": net["op"].to_arrow(), "nth": nth}
        columns |= {f"k{at}": old.column(one.name) for at, one in enumerate(identity)}
        columns |= {f"c{at}": new.column(one.name) for at, one in enumerate(shape.columns)}
        return Delta(pa.table(columns), identity, by_values)

    # -- checks before the commit

    @property
    def _frame(self) -> DataFrame:
        return accepted(self.run.tables.live(self.run.engine, self.node, self.run.values)).as_frame()

    def _has_new_keys(self, delta: Delta) -> bool:
        """Whether a change brings a primary key that its row did not have: else they are as unique as they were."""
        names = self.shape.names
        moved = pc.equal(delta.rows.column("op"), INSERT)
        for at, one in enumerate(delta.identity):
            same = pc.equal(delta.rows.column(f"k{at}"), delta.rows.column(f"c{names.index(one.name)}"))
            moved = pc.or_(moved, pc.and_(pc.equal(delta.rows.column("op"), UPDATE), pc.invert(pc.fill_null(same, False))))
        return bool(pc.any(moved).as_py())

    def _check_keys(self) -> None:
        """Raise StorageFailed for live rows whose primary key is null or not unique."""
        names = [name for name in self.shape.primary_key if name != KEY]
        if not names:
            return
        null = F.lit(False)
        for name in names:
            null = null | column(name).isNull()
        counted = self._frame.groupBy(*map(column, names)).agg(F.count(F.lit(1)).alias("__rows"))
        wrong = self.run.engine.to_arrow(counted.where((F.col("__rows") > 1) | null).orderBy(*map(column, names)), 1).to_pylist()
        if wrong:
            empty = [name for name in names if wrong[0][name] is None]
            key = ", ".join(empty or (f"{name}={shown(wrong[0][name])}" for name in names))
            fault = "is null" if empty else f"stands for {wrong[0]['__rows']} rows"
            redacted = f"E611: output '{self.node.name}': the primary key is null or stands for several rows"
            raise StorageFailed(f"E611: output '{self.node.name}': the primary key {key} {fault}", help="name columns whose values tell the rows apart, or leave primary_key out: the column _key is then the key", redacted=redacted)

    def _check_values(self, delta: Delta | None, rows: Callable[[], DataFrame]) -> None:
        """Raise StorageFailed for a value that the database cannot hold, in a delta, or, without one, in rows."""
        kind = self.looked.connection.kind
        refused = {"sqlite": ("float", "NaN"), "postgresql": ("string", "U+0000")}.get(kind)
        columns = [] if refused is None else [(at, one) for at, one in enumerate(self.shape.columns) if one.type == refused[0]]
        if delta is None and not self._any_in_rows(rows, [one for _, one in columns], kind):
            return
        for at, one in columns:
            found = self._in_delta(delta, at, kind) if delta is not None else self._in_rows(rows, one, kind)
            if found is not None:
                redacted = f"E614: output '{self.node.name}': column '{one.name}' holds {refused[1] if refused else ''}, which {kind} cannot hold"
                raise StorageFailed(f"{redacted} ({found})", redacted=redacted)

    def _in_delta(self, delta: Delta, at: int, kind: str) -> str | None:
        values = delta.rows.column(f"c{at}")
        wrong = pc.is_nan(values) if kind == "sqlite" else pc.match_substring(values, "\x00")
        rows = delta.rows.filter(pc.fill_null(wrong, False))
        return self._shown(dict(zip(self.shape.names, (rows.column(f"c{at}")[0].as_py() for at in range(len(self.shape.names))), strict=True))) if rows.num_rows else None

    def _any_in_rows(self, all_rows: Callable[[], DataFrame], columns: Sequence[Column], kind: str) -> bool:
        """Whether a column has a value that the database refuses: the rows are read once for all columns."""
        wrong = [_refused(one, kind) for one in columns if one.name in self.output.projection.data]
        return bool(wrong) and bool(self.run.engine.to_arrow(all_rows().where(reduce(or_, wrong)).select(F.lit(1).alias("found")), 1).num_rows)

    def _in_rows(self, all_rows: Callable[[], DataFrame], one: Column, kind: str) -> str | None:
        if one.name not in self.output.projection.data:
            return None
        names = [name for name in self.shape.names if name in (*self.output.projection.data, "_key")]
        rows = self.run.engine.to_arrow(all_rows().where(_refused(one, kind)).select(*map(column, names)), 1).to_pylist()
        return self._shown(rows[0]) if rows else None

    def _shown(self, row: Mapping[str, Any]) -> str:
        """How messages tell a row: by its primary key, or by its values."""
        names = [name for name in self.shape.primary_key if name != KEY and name in row] or [name for name in row if name != KEY]
        return ", ".join(f"{name}={row[name]!r}" for name in names)[:200]

    # -- op rows

    def _events(self, since: int | None) -> Callable[[], Iterator[pa.RecordBatch]]:
        """The op rows of the epochs that the table lacks."""
        def events() -> Iterator[pa.RecordBatch]:
            for epoch, moment in self._epochs(since or 0):
                yield from self._as_json(epoch, moment) if self.shape.form in AS_JSON else self._flat(epoch, moment)

        return events

    def _flat(self, epoch: int, moment: datetime) -> Iterator[pa.RecordBatch]:
        for batch in odf_events(self.run, self.node, self.shape.form or "two", (epoch, moment), self.extra).batches:
            yield pa.RecordBatch.from_arrays([values.cast(_arrow(one.type)) for values, one in zip(batch.columns, self.shape.columns, strict=True)], names=self.shape.names)

    def _as_json(self, epoch: int, moment: datetime) -> Iterator[pa.RecordBatch]:
        run = self.run
        kept = CommittedNode.of(self.node.name, self.context.plan.summary()[self.node.name])
        rows, start = run.op_rows(self.node, epoch), run.offset(self.node, epoch)
        few = run.op_count(self.node, epoch) <= run.engine.limits.driver_rows
        changes = in_order(run.engine, rows, kept, start, few=few)
        events = list(formed(changes, str(self.shape.form), Stream(self.context.plan.settings.name, self.node.name, {epoch: moment})))
        stamps = pa.repeat(pa.scalar(moment, pa.timestamp("us", "UTC")), len(events))
        offsets = [event.get("offset", event.get("source", {}).get("offset")) for event in events]
        columns = [pa.array(offsets, pa.int64()), pa.array([event["op"] for event in events], pa.string()), stamps, stamps, pa.array(map(json_text, events), pa.string())]
        yield pa.RecordBatch.from_arrays(columns, names=self.shape.names)

    def _epochs(self, since: int) -> Iterator[tuple[int, datetime]]:
        """The epochs behind one, and when they were made."""
        entries = [] if self.context.head is None else self.context.history()
        known = {entry.epoch: entry.started for entry in entries if not entry.maintains}
        known[self.written[0]] = self.written[2]
        return ((epoch, known[epoch]) for epoch in sorted(known) if since < epoch <= self.written[0])


def _refused(one: Column, kind: str) -> SparkColumn:
    """Whether a value is one that the kind of database cannot hold."""
    return F.isnan(column(one.name)) if kind == "sqlite" else column(one.name).contains("\x00")


def _net(rows: pa.Table) -> pl.DataFrame:
    """One row a key: `op`, and the numbers of the op rows with its old and its new image."""
    frame = pl.DataFrame({"key": rows.column("_key"), "epoch": rows.column("_epoch"), "weight": weights(rows)}).with_row_index("at")
    sides = frame.sort("key", "epoch", "weight").group_by("key", maintain_order=True).agg(
        pl.col("at").first().alias("first"), pl.col("weight").first().alias("was"), pl.col("at").last().alias("last"), pl.col("weight").last().alias("is")
    )
    old = pl.when(pl.col("was") < 0).then(pl.col("first")).cast(pl.Int64).alias("old")
    new = pl.when(pl.col("is") > 0).then(pl.col("last")).cast(pl.Int64).alias("new")
    there = sides.select(old, new).filter(pl.col("old").is_not_null() | pl.col("new").is_not_null())
    op = pl.when(pl.col("old").is_null()).then(INSERT).when(pl.col("new").is_null()).then(DELETE).otherwise(UPDATE).cast(pl.Int64)
    return there.with_columns(op.alias("op"))


def _numbers(old: pa.Table, ops: pl.Series) -> pa.Array:
    """The number of each old row among equal ones, from 1."""
    frame = pl.DataFrame(old).with_columns((ops == INSERT).alias("__new"))
    return frame.select(pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(frame.columns).alias("nth")).to_series().to_arrow()


def _arrow(type_: str) -> pa.DataType:
    return pa.binary() if type_ == "key" else arrow_type(type_)

