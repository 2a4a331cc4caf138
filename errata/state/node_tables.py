"""The changelog and state tables of a plan: where they lie, what columns they have, how the rows of a node are read back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, cast

from changelog import arrow_algebra, spark_algebra
from changelog.algebra import fold, latest
from changelog.columns import KEY, column
from changelog.lazy_imports import F, pa
from changelog.ops import Op
from changelog.rows import Predicate, Rows, has_value, is_null, is_set, some_set
from errata.plan.correlation import TRIGGERS
from errata.plan.plan import Node, Plan
from errata.state import triage_events
from errata.state.triage_events import TRIAGE
from errata.state.trigger_table import COLUMNS
from operators.core.evaluate import as_it_is
from operators.core.operator import Linear
from operators.core.provenance import key_slice
from operators.core.row_type import CK, OWN_HIDDEN, STATUS, Status
from operators.core.run_values import RunValues, qualifying
from storage.delta.changelog_table import ChangelogTable
from storage.delta.chosen_rows import Choice, InValues
from storage.delta.columns import declared
from storage.errors import Damaged
from storage.state.entry import Entry
from storage.uris import is_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.engines.base import Engine

Choose = Callable[[Rows], Rows]
"""Chooses rows by what they hold, and may shape them; `_key` and `_epoch` stay."""

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
        """The same table with earlier columns of the node."""
        return ChangelogTable(f"{self.root}/changelog/{node.name}", {**columns, **self.columns(node)})

    def columns(self, node: Node) -> dict[str, str]:
        """The columns of a node's changelog without `_epoch`."""
        return SYSTEM_COLUMNS | node.operator.output.stored()

    def schema(self, node: Node) -> pa.Schema:
        """The same as Arrow has them."""
        return pa.schema(declared(SYSTEM_COLUMNS | node.operator.output.columns()))

    def state(self, name: str) -> ChangelogTable:
        """The accumulators of a node; the first rows decide its columns."""
        return self._table(f"state/{name}")

    @property
    def triggers(self) -> ChangelogTable:
        """The failed rows of aggregates whose records are rolled back."""
        return self._table(TRIGGERS, lambda: COLUMNS)

    @property
    def triage(self) -> ChangelogTable:
        """The decisions of people about dead letters."""
        return self._table(TRIAGE, lambda: triage_events.COLUMNS)

    def by_path(self, path: str) -> ChangelogTable:
        """The table at a path that the ledger names (`changelog/orders`)."""
        folder, _, name = path.partition("/")
        if path in (TRIGGERS, TRIAGE):
            return self.triggers if path == TRIGGERS else self.triage
        if folder == "state":
            return self.state(name)
        node = self.plan.nodes.get(name)
        return self._table(path) if node is None else self.changelog(node)

    def _table(self, path: str, columns: Callable[[], Mapping[str, str] | None] = lambda: None) -> ChangelogTable:
        if path not in self._opened:
            self._opened[path] = ChangelogTable(f"{self.root}/{path}", columns(), writer=self._writer)
        return self._opened[path]

    def rows(self, engine: Engine, node: Node, values: RunValues, epochs: tuple[int, int] | None = None, at: int | None = None) -> Rows:
        """The op rows of a node with `_epoch`; of a node without a table, what its inputs' op rows become."""
        if self.plan.persisted(node):
            return stored_rows(engine, self.changelog(node), epochs, at)
        return self._derived(engine, node, values, epochs, at).through(consolidate_epochs)

    def _derived(self, engine: Engine, node: Node, values: RunValues, epochs: tuple[int, int] | None, at: int | None) -> Rows:
        """The op rows of a node without a table, not consolidated. A chain of such nodes is consolidated once, at its end."""
        def read(above: Node) -> Rows:
            return stored_rows(engine, self.changelog(above), epochs, at) if self.plan.persisted(above) else self._derived(engine, above, values, epochs, at)

        return _through(node, self._inputs(node, read), values)

    def live(self, engine: Engine, node: Node, values: RunValues, at: int | None = None, choose: Choose | None = None, *, few: bool = False) -> Rows:
        """The live rows of a node, rejects among them: `_epoch`, `_key`, hidden and data columns.

        Args:
            engine: Where rows that are many are folded.
            node: The node.
            values: System variables, for nodes without a table.
            at: The epoch; None for the last.
            choose: Chooses rows by what they hold, and may shape them. The others are not folded.
            few: Whether these rows are known to be small, whatever their history.
        """
        if self.plan.persisted(node):
            return folded(engine, self.changelog(node), at, choose, few=few)
        if choose is None or len(node.inputs) > 1 or node.operator.output.key != node.operator.inputs[0].key:
            found = _images_of_live(node, self._inputs(node, lambda above: self.live(engine, above, values, at)), values)
            return found if choose is None else choose(found)
        [(name, port)] = node.inputs
        above, chosen = self.plan[name], choose
        return self.live(engine, above, values, at, lambda rows: chosen(_images_of_live(node, [qualify_input(visible_rows(rows, above, port, node), node, 0)], values)))

    def live_with(self, engine: Engine, node: Node, keys: Rows, on: str, at: int) -> Rows:
        """The live rows of a node with a table that have one of some keys in one of Errata's own columns."""
        table = self.changelog(node)
        if (few := self._few(engine, table, keys, on)) is not None:
            found = chosen_live(engine, table, InValues(on, few), at, engine.limits.held_rows)
            if found is not None:
                return Rows(engine, found)
        return folded(engine, table, at, lambda rows: rows.semi_join(keys, on))

    def _few(self, engine: Engine, table: ChangelogTable, keys: Rows, name: str) -> list[bytes] | None:
        """Keys, ascending, where they are few and the rows of a local table are many; else None."""
        limits = engine.limits
        if not is_local(self.root) or keys.at_most is None or keys.at_most > limits.driver_rows or limits.are_small(table.statistics.rows()):
            return None
        return sorted(keys.as_table().column(name).drop_null().to_pylist())

    def _inputs(self, node: Node, read: Callable[[Node], Rows]) -> Iterator[Rows]:
        """The rows at each input of a node, out of the rows that `read` returns for the nodes upstream."""
        for index, (name, port) in enumerate(node.inputs):
            above = self.plan[name]
            yield qualify_input(visible_rows(read(above), above, port, node), node, index)

    def rejects(self, engine: Engine, node: Node, at: int | None = None) -> Rows:
        """The live rejects of a node with `_epoch`, also of a node that stores no other rows."""
        return fold(self.op_rows_of_rejects(engine, node, at))

    def op_rows_of_rejects(self, engine: Engine, node: Node, at: int | None = None) -> Rows:
        """The op rows of a node's rejects with `_epoch`."""
        table = self.changelog(node)
        count = table.statistics.rejected_rows()
        if count is not None and count <= engine.limits.driver_rows:
            return Rows(engine, table.rejects_arrow(at))
        return stored_rows(engine, table, at=at).where(is_set("_error"))

    def latest_state(self, engine: Engine, name: str, at: int, keys: Rows | None = None) -> Rows | None:
        """The state of each key at an epoch; None where the node has no state table.

        Args:
            engine: Where states that are many are looked up.
            name: The node.
            at: The epoch.
            keys: Choose the states that have one of these as `_key`.
        """
        table = self.state(name)
        if not table.exists():
            return None
        if keys is not None and (few := self._few(engine, table, keys, KEY)) is not None:
            newest = table.newest_arrow(few, at, engine.limits.held_rows)
            if newest is not None:
                return without_removed(Rows(engine, newest).without("_epoch"))
        rows = stored_rows(engine, table, at=at)
        return without_removed(latest(rows if keys is None else rows.semi_join(keys, "_key")))

    def versions(self) -> Mapping[str, int]:
        """The version of every table of the plan that exists, for the ledger."""
        found: dict[str, int] = {}
        for node in self.plan:
            for path, table in ((f"changelog/{node.name}", self.changelog(node)), (f"state/{node.name}", self.state(node.name))):
                version = table.version() if self._has_been(path) else None
                if version is not None:
                    found[path] = version
        triggers = self.triggers.version() if any(node.operator.output.riding(CK) for node in self.plan.of_kind("source")) else None
        beside = {TRIGGERS: triggers, TRIAGE: self.triage.version()}
        return found | {path: version for path, version in beside.items() if version is not None}

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
        known = {TRIGGERS, TRIAGE, *(f"{kind}/{name}" for name in self.plan.nodes for kind in ("changelog", "state"))}
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


def stored_rows(engine: Engine, table: ChangelogTable, epochs: tuple[int, int] | None = None, at: int | None = None) -> Rows:
    """The op rows of a table with `_epoch`: on the driver where the table is small, or the files that may hold the epochs are."""
    if engine.limits.are_small(table.statistics.rows() if epochs is None else table.statistics.rows_near(epochs)):
        return Rows(engine, table.read_arrow(epochs=epochs, at=at))
    return Rows(engine, frame=table.read(engine, epochs=epochs, at=at))


def folded(engine: Engine, table: ChangelogTable, at: int | None = None, choose: Choose | None = None, *, few: bool = False) -> Rows:
    """The live rows of a table, rejects among them.

    Few op rows are folded on the driver, and more of them where the live rows are known to be `few`. Of many rows, the keys that few retractions
    took back come from there, so that the rows need no shuffle.
    """
    rows, limits = table.statistics.rows(), engine.limits
    if limits.are_small(rows) or (few and rows <= limits.driver_rows):
        live = fold(Rows(engine, table.read_arrow(at=at)))
        return live if choose is None else choose(live)
    most = table.statistics.retractions()
    taken = engine.from_arrow(table.taken_back(at)) if most > 0 and limits.are_small(most) else None
    narrow = as_it_is if choose is None else lambda frame: choose(Rows(engine, frame=frame)).as_frame()
    return Rows(engine, frame=spark_algebra.fold(table.read(engine, at=at), has_negatives=most > 0, taken=taken, narrow=narrow))


def chosen_live(engine: Engine, table: ChangelogTable, choice: Choice, at: int, most: int | None = None) -> pa.Table | None:
    """The live rows of a table that are chosen, on the driver. None where many rows were taken back, or more than `most` op rows are chosen.

    A key has at most one live row, and its last epoch says which.
    """
    if isinstance(choice, InValues) and choice.column == KEY:
        newest = table.newest_arrow(choice.values, at, most)
        return None if newest is None else arrow_algebra.fold(newest)
    taken = table.statistics.retractions()
    rows = None if taken > engine.limits.driver_rows else table.few_chosen_arrow(choice, at, most)
    if rows is None:
        return None
    return arrow_algebra.remaining(rows, table.taken_back(at)) if taken else arrow_algebra.fold(rows)


def _through(node: Node, inputs: Iterable[Rows], values: RunValues) -> Rows:
    """The op rows of a node without a table, from the op rows of its inputs."""
    own = values.of(node.name)
    first, *others = (cast("Linear", node.operator).images(rows, index, own) for index, rows in enumerate(inputs))
    return first.union(*others)


def _images_of_live(node: Node, inputs: Iterable[Rows], values: RunValues) -> Rows:
    """The live rows of a node without a table, from the live rows of its inputs, with the same epochs."""
    ops = {"_op": F.lit(int(Op.APPEND)).cast("tinyint"), "_cause": F.lit("recompute")}
    return _through(node, (rows.through(lambda frame: frame.withColumns(ops)) for rows in inputs), values).without("_op", "_cause")


def without_removed(states: Rows) -> Rows:
    """The states of keys that have one: a removed state has nothing but its key."""
    return states.where(some_set([name for name in states.columns if name != "_key"]))


def accepted(rows: Rows) -> Rows:
    """The rows that are no rejects."""
    return rows.where(is_null("_error")) if "_error" in rows.columns else rows


def visible_rows(rows: Rows, node: Node, port: str | None, consumer: Node) -> Rows:
    """The rows of a node that a consumer of a port reads: no rejects, none of the node's own columns."""
    rows = rows.accepted
    condition = _seen(rows.columns, node, consumer)
    port_rows = node.operator.port_rows(rows if condition is None else rows.where(condition), port)
    unseen = OWN_HIDDEN if consumer.operator.takes_counted else {*OWN_HIDDEN, STATUS}
    return port_rows.select([name for name in port_rows.columns if name not in unseen])


def _seen(columns: Collection[str], node: Node, consumer: Node) -> Predicate | None:
    """Which rows of a node are no rejects to a consumer; None for all. A source has records that only count among its rejects."""
    good = is_null("_error") if "_error" in columns else None
    if STATUS not in columns:
        return good
    if not consumer.operator.takes_counted:
        return is_null(STATUS) if good is None else good & is_null(STATUS)
    return good if good is None or not node.is_source else good | has_value(STATUS, Status.COUNTED)


def qualify_input(rows: Rows, node: Node, index: int) -> Rows:
    """The rows as an input of a node: source variables carry the name of the input of a merge or combine."""
    return rows.renamed(qualifying(rows.columns, node.entries[index])) if index < len(node.entries) else rows


def consolidate_epochs(rows: DataFrame) -> DataFrame:
    """The net change of each key in each epoch of derived op rows."""
    marked = rows.withColumns({"_key": F.concat(F.lpad(F.hex(F.col("_epoch")), 16, "0").cast("binary"), F.col("_key")), "__epoch": F.col("_epoch")})
    names = [name for name in rows.columns if name not in ("_key", "_epoch")]
    return spark_algebra.repair(marked).select(F.col("__epoch").alias("_epoch"), key_slice(F.col("_key"), 17).alias("_key"), *map(column, names))
