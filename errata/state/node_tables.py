"""The changelog and state tables of a plan: where they lie, what columns they have, how the rows of a node are read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from changelog.arrow_algebra import newest, standing
from changelog.columns import column
from changelog.frames import accepted, alike, among, chosen, known, of_keys, told, united
from changelog.lazy_imports import F, Window, pa, pc
from changelog.ops import Op
from changelog.spark_algebra import consolidate, live
from errata.plan.correlation import TRIGGERS
from errata.plan.plan import Node, Plan
from errata.state.trigger_table import COLUMNS
from operators.core.evaluate import Narrow, as_it_is
from operators.core.provenance import key_slice
from operators.core.row_type import CK, OWN_HIDDEN
from operators.core.run_values import RunValues, qualifying
from storage.delta.changelog_table import ChangelogTable
from storage.delta.columns import declared
from storage.errors import Damaged
from storage.state.entry import Entry
from storage.uris import is_local

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from storage.engines.base import Engine

SMALL_ROWS = 10_000
"""Tables and deltas of no more rows are read, written and held on the driver: delta-rs needs milliseconds where an engine needs a job."""

DRIVER_ROWS = 100_000
"""Rows that small deltas lead to are held on the driver up to this number: computing them twice or writing them with an engine takes longer."""

SYSTEM_COLUMNS = {"_op": "tinyint", "_key": "binary", "_cause": "string"}


class Tables:
    """The tables under one state folder or URI. `writer`: the run that alone writes them, if one does."""

    def __init__(self, root: str, plan: Plan, *, writer: str = "") -> None:
        self.root = root.rstrip("/")
        self.plan = plan
        self._writer = writer
        self._opened: dict[str, ChangelogTable] = {}
        self.discarded: set[str] = set()
        """The paths of tables that were removed as damaged."""

    def changelog(self, node: Node) -> ChangelogTable:
        """The op rows of a node, rejects among them."""
        return self._table(f"changelog/{node.name}", lambda: self.columns(node))

    def wider(self, node: Node, columns: Mapping[str, str]) -> ChangelogTable:
        """The same with columns that the node had besides those that it has."""
        return ChangelogTable(f"{self.root}/changelog/{node.name}", {**columns, **self.columns(node)})

    def columns(self, node: Node) -> dict[str, str]:
        """The columns of a node's changelog besides `_epoch`."""
        return SYSTEM_COLUMNS | node.operator.output.stored()

    def schema(self, node: Node) -> pa.Schema:
        """The same as Arrow has them."""
        return pa.schema(declared(SYSTEM_COLUMNS | node.operator.output.columns()))

    def state(self, name: str) -> ChangelogTable:
        """The accumulators of a node; its columns are those of the first rows."""
        return self._table(f"state/{name}")

    @property
    def triggers(self) -> ChangelogTable:
        """The failed rows of aggregates whose records are rolled back."""
        return self._table(TRIGGERS, lambda: COLUMNS)

    def by_path(self, path: str) -> ChangelogTable:
        """The table at a path that the ledger names (`changelog/orders`)."""
        folder, _, name = path.partition("/")
        if path == TRIGGERS:
            return self.triggers
        if folder == "state":
            return self.state(name)
        node = self.plan.nodes.get(name)
        return self._table(path) if node is None else self.changelog(node)

    def _table(self, path: str, columns: Callable[[], Mapping[str, str] | None] = lambda: None) -> ChangelogTable:
        if path not in self._opened:
            self._opened[path] = ChangelogTable(f"{self.root}/{path}", columns(), writer=self._writer)
        return self._opened[path]

    def rows(self, engine: Engine, node: Node, values: RunValues, epochs: tuple[int, int] | None = None, at: int | None = None) -> DataFrame:
        """The op rows of a node with `_epoch`; derived from its inputs' where the node keeps none (persist: boundaries)."""
        if self.plan.persisted(node):
            return stored_rows(engine, self.changelog(node), epochs, at)
        return consolidate_epochs(self._derived(engine, node, values, epochs, at))

    def _derived(self, engine: Engine, node: Node, values: RunValues, epochs: tuple[int, int] | None, at: int | None) -> DataFrame:
        """The same of a node without a table, not consolidated: through a chain of such nodes they are so once, at its end."""
        def read(above: Node) -> DataFrame:
            return stored_rows(engine, self.changelog(above), epochs, at) if self.plan.persisted(above) else self._derived(engine, above, values, epochs, at)

        return _through(node, self._inputs(node, read), values)

    def live(self, engine: Engine, node: Node, values: RunValues, at: int | None = None) -> DataFrame:
        """The live rows of a node, rejects among them: `_epoch`, `_key`, hidden and data columns."""
        if self.plan.persisted(node):
            return self.narrowed(engine, node, values, as_it_is, at)
        return _without_ops(_through(node, map(_as_appends, self._inputs(node, lambda above: self.live(engine, above, values, at))), values))

    def narrowed(self, engine: Engine, node: Node, values: RunValues, narrow: Narrow, at: int | None = None) -> DataFrame:
        """The live rows of a node that `narrow` chooses; it passes over the rejects of a node without a table. The others are not folded."""
        if self.plan.persisted(node):
            return folded(engine, self.changelog(node), at, narrow)
        if len(node.inputs) > 1 or node.operator.output.key != node.operator.inputs[0].key:
            return narrow(self.live(engine, node, values, at))
        [(name, port)] = node.inputs
        above = self.plan[name]

        def mapped(rows: DataFrame) -> DataFrame:
            return narrow(_without_ops(_through(node, [_as_appends(entered(stands(rows, above, port, node), node, 0))], values)))

        return self.narrowed(engine, above, values, mapped, at)

    def _inputs(self, node: Node, read: Callable[[Node], DataFrame]) -> Iterator[DataFrame]:
        """What comes in at each input of a node of the rows that `read` gives of the nodes above."""
        for index, (name, port) in enumerate(node.inputs):
            above = self.plan[name]
            yield entered(stands(read(above), above, port, node), node, index)

    def few_live(self, node: Node, at: int) -> pa.Table | None:
        """The live rows of a node with a table on the driver, None where they may be many."""
        table = self.changelog(node)
        return standing(table.read_arrow(at=at)) if table.exists() and table.statistics.rows() <= SMALL_ROWS else None

    def rejects(self, engine: Engine, node: Node, at: int | None = None) -> DataFrame:
        """The live rejects of a node as a frame, also of one that keeps no other rows; few of them come by way of the driver."""
        few = self._few_rejects(node, at)
        return self._rejects_by_engine(engine, node, at) if few is None else engine.from_arrow(few)

    def rejects_arrow(self, engine: Engine, node: Node, at: int | None = None) -> pa.Table:
        """The same rows on the driver."""
        few = self._few_rejects(node, at)
        return engine.to_arrow(self._rejects_by_engine(engine, node, at)) if few is None else few

    def _few_rejects(self, node: Node, at: int | None) -> pa.Table | None:
        """The live rejects of a node without an engine, None where they may be many."""
        table = self.changelog(node)
        rows = table.statistics.rejected_rows()
        return None if rows is None or rows > DRIVER_ROWS else standing(table.rejects_arrow(at))

    def _rejects_by_engine(self, engine: Engine, node: Node, at: int | None) -> DataFrame:

        return live(stored_rows(engine, self.changelog(node), at=at).where(F.col("_error").isNotNull()))

    def latest_state(self, engine: Engine, name: str, at: int, narrow: Narrow = as_it_is) -> DataFrame | None:
        """The accumulators of each key, those of the newest epoch up to `at`; None where there is no table. `narrow` chooses keys."""
        table = self.state(name)
        if not table.exists():
            return None
        if table.statistics.rows() <= SMALL_ROWS:
            return narrow(engine.from_arrow(with_more_than_keys(newest(table.read_arrow(at=at)))))
        rank = F.row_number().over(Window.partitionBy("_key").orderBy(F.col("_epoch").desc()))
        rows = narrow(stored_rows(engine, table, at=at))
        names = [name for name in rows.columns if name != "_epoch"]
        last = rows.withColumn("__rank", rank).where(F.col("__rank") == 1)
        return more_than_keys(told(last.select(*map(column, names)), among(known(rows), names)))

    def state_of(self, engine: Engine, name: str, at: int, keys: pa.ChunkedArray) -> pa.Table | None:
        """The same of a few keys, on the driver."""
        table = self.state(name)
        if table.exists() and table.statistics.rows() <= SMALL_ROWS:
            rows = table.read_arrow(at=at)
            return with_more_than_keys(newest(rows.filter(pc.is_in(rows.column("_key"), value_set=keys))))
        found = self.latest_state(engine, name, at, lambda rows: of_keys(rows, engine.from_arrow(pa.table({"_key": keys})), "_key"))
        return None if found is None else engine.to_arrow(found)

    def versions(self) -> Mapping[str, int]:
        """The version of every table of the plan that exists, for the ledger."""
        found: dict[str, int] = {}
        for node in self.plan:
            for path, table in ((f"changelog/{node.name}", self.changelog(node)), (f"state/{node.name}", self.state(node.name))):
                version = table.version() if self._has_been(path) else None
                if version is not None:
                    found[path] = version
        triggers = self.triggers.version() if any(node.operator.output.riding(CK) for node in self.plan.of_kind("source")) else None
        return found if triggers is None else found | {TRIGGERS: triggers}

    def require(self, head: Entry) -> None:
        """Raise `Damaged` where a table of the plan is not what an entry of the ledger says: what it held would be taken for nothing."""
        for path in self._named(head):
            self.by_path(path).check(head.tables[path], head.marks.get(path, ""))

    def discard_damaged(self, head: Entry) -> None:
        """Remove each table of the plan that is not what an entry of the ledger says. On an object store raise `Damaged` for it instead."""
        for path in self._named(head):
            table = self.by_path(path)
            try:
                table.check(head.tables[path], head.marks.get(path, ""))
            except Damaged:
                if not is_local(self.root):
                    raise
                table.discard()
                self.discarded.add(path)

    def _named(self, head: Entry) -> Iterator[str]:
        """The paths of the tables of the plan that an entry names."""
        known = {TRIGGERS, *(f"{kind}/{name}" for name in self.plan.nodes for kind in ("changelog", "state"))}
        return (path for path in head.tables if path in known)

    def raw(self, path: str) -> ChangelogTable:
        """The table at a path. From now on its rows are read and replaced in the fields that are stored."""
        self._opened[path] = ChangelogTable(f"{self.root}/{path}", raw=True, writer=self._writer)
        return self._opened[path]

    def fence(self) -> None:
        """Let no commit land in a table of the plan that another run began before."""
        for path in self.existing():
            self.by_path(path).fence()

    def require_untouched(self) -> None:
        """Raise `Overtaken` where somebody else wrote to a table that was opened."""
        for table in self._opened.values():
            table.require_untouched()

    def at(self, path: str, version: int) -> ChangelogTable:
        """The table at a path as it was at a version."""
        table = self.by_path(path)
        return table if self._writer and table.version() == version else ChangelogTable(f"{self.root}/{path}", pinned=version)

    def existing(self) -> set[str]:
        """The paths of all tables of the plan that exist."""
        return set(self.versions())

    def _has_been(self, path: str) -> bool:
        folder, _, name = path.partition("/")
        return folder == "changelog" or self.plan[name].operator.keeps_state


def stored_rows(engine: Engine, table: ChangelogTable, epochs: tuple[int, int] | None = None, at: int | None = None) -> DataFrame:
    """The op rows of a table as a frame, with `_epoch`: those of small tables, or of few and small files, come by way of the driver."""
    if (table.statistics.rows() if epochs is None else table.statistics.rows_near(epochs)) <= SMALL_ROWS:
        return engine.from_arrow(table.read_arrow(epochs=epochs, at=at))
    return table.read(engine, epochs=epochs, at=at)


def folded(engine: Engine, table: ChangelogTable, at: int | None = None, narrow: Narrow = as_it_is) -> DataFrame:
    """The live rows of a table, rejects among them. Few rows are folded on the driver; what few retractions of many rows took back comes from there, so that the many need not meet it in a shuffle."""
    if table.statistics.rows() <= SMALL_ROWS:
        return narrow(engine.from_arrow(standing(table.read_arrow(at=at))))
    most = table.statistics.retractions()
    taken = engine.from_arrow(table.taken_back(at)) if 0 < most <= SMALL_ROWS else None
    return live(table.read(engine, at=at), has_negatives=most > 0, taken=taken, narrow=narrow)


def _as_appends(rows: DataFrame) -> DataFrame:
    """Live rows as op rows, each of its epoch."""
    return rows.withColumns({"_op": F.lit(int(Op.APPEND)).cast("tinyint"), "_cause": F.lit("recompute")})


def _through(node: Node, inputs: Iterable[DataFrame], values: RunValues) -> DataFrame:
    """What a node without a table makes of the op rows of its inputs."""
    own = values.of(node.name)
    made: list[DataFrame] = [node.operator.images(rows, index, own) for index, rows in enumerate(inputs)]  # type: ignore[attr-defined]  # only linear nodes keep no table
    return united(*made)


def _without_ops(rows: DataFrame) -> DataFrame:
    return alike(rows, lambda rows: rows.drop("_op", "_cause"))


def more_than_keys(state: DataFrame) -> DataFrame:
    """Accumulators without those that are there no more: nothing stands beside their key."""
    return state.where(F.coalesce(*(column(name).cast("string") for name in state.columns if name != "_key")).isNotNull())


def with_more_than_keys(state: pa.Table) -> pa.Table:
    """`more_than_keys` on the driver."""
    return state.filter(reduce(pc.or_, (state.column(name).is_valid() for name in state.column_names if name != "_key")))


def stands(rows: DataFrame, node: Node, port: str | None, consumer: Node) -> DataFrame:
    """The rows of a node that a consumer of a port sees: no rejects, none of the columns that are the node's own."""
    rows = accepted(rows)
    port_rows = node.operator.port_rows(rows.where(condition) if (condition := _seen(rows, node, consumer)) is not None else rows, port)
    unseen = OWN_HIDDEN if consumer.operator.takes_counted else {*OWN_HIDDEN, "_counted"}
    return chosen(port_rows, [name for name in port_rows.columns if name not in unseen])


def _seen(rows: DataFrame, node: Node, consumer: Node) -> Column | None:
    """Which rows of a node are no rejects to a consumer: a source keeps records that only count among its rejects."""
    good = F.col("_error").isNull() if "_error" in rows.columns else None
    if "_counted" not in rows.columns:
        return good
    if not consumer.operator.takes_counted:
        return F.col("_counted").isNull() if good is None else good & F.col("_counted").isNull()
    return good if good is None or not node.is_source else good | F.col("_counted").isNotNull()


def entered(rows: DataFrame, node: Node, index: int) -> DataFrame:
    """The rows as input `index` of a node: source variables carry the name of the input of a merge or combine."""
    if index >= len(node.entries):
        return rows
    names = qualifying(rows.columns, node.entries[index])
    return rows.withColumnsRenamed(names) if names else rows


def consolidate_epochs(rows: DataFrame) -> DataFrame:
    """The net change of each key in each epoch of derived op rows."""
    marked = rows.withColumns({"_key": F.concat(F.lpad(F.hex(F.col("_epoch")), 16, "0").cast("binary"), F.col("_key")), "__epoch": F.col("_epoch")})
    names = [name for name in rows.columns if name not in ("_key", "_epoch")]
    return consolidate(marked).select(F.col("__epoch").alias("_epoch"), key_slice(F.col("_key"), 17).alias("_key"), *map(column, names))
