"""Why rows of a node changed: the causes of the source rows behind changes that operators answered with `recompute`.

A change is followed upstream within its epoch. Where each row of an input tells by itself to which rows it belongs, the op rows of the input are enough,
for all epochs at once. Other operators look at the live rows at the epoch and before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from changelog.lazy_imports import pa, pl
from errata.core.failures import Usage
from errata.inspect.why import LineageWalk
from errata.plan.plan import Node
from errata.state.node_tables import accepted, qualify_input, visible_rows
from operators.core.operator import Linear
from operators.core.provenance import ASKER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from errata.inspect.snapshot import Snapshot

Change = tuple[int, bytes]
"""A changed row: epoch and key."""
RECOMPUTE: Final = "recompute"
"""The cause of rows that an operator computed anew."""
ERASE: Final = "erase"
"""The cause of rows that an erasure takes back."""
_MARKS = (ASKER, "_epoch", "_key")


class CauseWalk:
    """The way from changes of a node's rows up to the op rows of sources. Raises Usage where the pipeline is not the one that last ran."""

    def __init__(self, reading: Snapshot) -> None:
        self.walk = LineageWalk(reading)
        self.engine = reading.engine
        self.plan = self.walk.plan

    def causes(self, name: str, changes: list[Change]) -> Mapping[Change, list[str]]:
        """The causes of the source rows of its epoch behind each change of a node's rows, by name. A change without any is left out."""
        if not changes:
            return {}
        wanted = {name: _marks(changes)}
        reads: dict[str, frozenset[str]] = {}
        found: list[pl.DataFrame] = []
        for node in reversed([*self.plan.upstream(name), self.plan[name]]):
            marks = wanted.pop(node.name, None)
            if marks is None or not marks.height:
                continue
            if node.is_source:
                found.append(self._of_source(node, marks))
                continue
            if node.kind == "corrections":
                found.append(self._by_code(node, marks))
            needed = reads.get(node.name, frozenset()) | node.operator.reads_source()
            for (above, _), more in zip(node.inputs, self._above(node, marks, needed), strict=True):
                reads[above] = reads.get(above, frozenset()) | needed
                wanted[above] = more if above not in wanted else pl.concat([wanted[above], more]).unique()
        return _by_change(changes, found)

    def _of_source(self, node: Node, marks: pl.DataFrame) -> pl.DataFrame:
        """Who asks and the cause of each op row of a source that was asked for."""
        rows = self.walk.tables.rows(self.engine, node, self.walk.values, epochs=_epochs(marks)).as_frame().select("_epoch", "_key", "_cause")
        return self._fetched(rows.join(self._frame(marks), ["_epoch", "_key"]).select(ASKER, "_cause").distinct())

    def _by_code(self, node: Node, marks: pl.DataFrame) -> pl.DataFrame:
        """Who asks of op rows that come from an edit of corrections as code."""
        return self._of_source(node, marks).filter(pl.col("_cause") == "correction")

    def _above(self, node: Node, marks: pl.DataFrame, reads: frozenset[str]) -> Iterator[pl.DataFrame]:
        """The rows of each input that a node's rows come from."""
        if isinstance(node.operator, Linear):
            for found in node.operator.origins(self._frame(marks), [], self.walk.values, reads):
                yield _dated(self._fetched(found), marks)
            return
        placed = node.as_operator.placed(self._changes(node, 0, _epochs(marks)), self.walk.values) if len(node.inputs) == 1 else None
        if placed is None:
            yield from self._one_by_one(node, marks, reads)
            return
        own = self.walk.tables.rows(self.engine, node, self.walk.values, epochs=_epochs(marks)).as_frame().select("_epoch", "_key", "_lookup")
        asked = own.join(self._frame(marks), ["_epoch", "_key"]).select(ASKER, "_epoch", "_lookup").distinct()
        yield self._fetched(placed.select("_epoch", "_lookup", "_key").join(asked, ["_epoch", "_lookup"]).select(*_MARKS).distinct())

    def _one_by_one(self, node: Node, marks: pl.DataFrame, reads: frozenset[str]) -> Iterator[pl.DataFrame]:
        """The same, epoch by epoch: of the rows that were live before it, and of the changed rows that are live at it."""
        found: list[list[pl.DataFrame]] = [[_marks([])] for _ in node.inputs]
        for (epoch,), asking in marks.group_by("_epoch", maintain_order=True):
            for at in (int(str(epoch)) - 1, int(str(epoch))):
                rows = self._live(node, at).join(self._frame(asking).select(ASKER, "_key"), "_key")
                inputs = [qualify_input(visible_rows(self.walk.live(self.plan[name], at), self.plan[name], port, node), node, index).as_frame() for index, (name, port) in enumerate(node.inputs)]
                for index, keys in enumerate(node.as_operator.origins(rows, inputs, self.walk.values, reads)):
                    changed = self._changes(node, index, (int(str(epoch)), int(str(epoch)))).select("_key").distinct()
                    found[index].append(_dated(self._fetched(keys.join(changed, "_key", "left_semi").select(ASKER, "_key")), asking))
        for parts in found:
            yield pl.concat(parts).unique()

    def _live(self, node: Node, at: int) -> DataFrame:
        return self.walk.live(node, at).as_frame()

    def _changes(self, node: Node, index: int, epochs: tuple[int, int]) -> DataFrame:
        """The op rows of an input of a node in some epochs, as the node sees them."""
        name, port = node.inputs[index]
        above = self.plan[name]
        rows = self.walk.tables.rows(self.engine, above, self.walk.values, epochs=epochs)
        return accepted(qualify_input(visible_rows(rows, above, port, node), node, index)).as_frame()

    def _frame(self, marks: pl.DataFrame) -> DataFrame:
        schema = pa.schema([(ASKER, pa.binary()), ("_epoch", pa.int64()), ("_key", pa.binary())])
        return self.engine.from_arrow(marks.select(*_MARKS).to_arrow().cast(schema))

    def _fetched(self, frame: DataFrame) -> pl.DataFrame:
        return pl.DataFrame(self.engine.to_arrow(frame))


def traced(reading: Snapshot, name: str, changes: list[Change]) -> Mapping[Change, list[str]]:
    """The causes of source rows behind changes of a node's rows that were computed anew; none where the pipeline is not the one that last ran.

    An erasure is the cause of all changes of its epoch: the source rows behind them are gone.
    """
    erasures = {entry.epoch for entry in reading.entries if entry.counters.get("kind") == ERASE} if changes else ()
    found = {change: [ERASE] for change in changes if change[0] in erasures}
    others = [change for change in changes if change not in found]
    if not others:
        return found
    try:
        walk = CauseWalk(reading)
    except Usage:
        return found
    return {**found, **walk.causes(name, others)}


def _marks(changes: list[Change]) -> pl.DataFrame:
    """Each change with a number of its own, as bytes: who asks."""
    numbers = [at.to_bytes(8, "big") for at in range(len(changes))]
    content = {ASKER: numbers, "_epoch": [epoch for epoch, _ in changes], "_key": [key for _, key in changes]}
    return pl.DataFrame(content, schema={ASKER: pl.Binary, "_epoch": pl.Int64, "_key": pl.Binary})


def _dated(found: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """Keys with the epoch of who asks."""
    return found.join(marks.select(ASKER, "_epoch").unique(), on=ASKER).select(*_MARKS).unique()


def _epochs(marks: pl.DataFrame) -> tuple[int, int]:
    """The first and the last epoch that somebody asks for."""
    epochs = marks["_epoch"].to_list()
    return min(epochs), max(epochs)


def _by_change(changes: list[Change], found: list[pl.DataFrame]) -> dict[Change, list[str]]:
    if not found:
        return {}
    grouped = pl.concat(found).unique().group_by(ASKER).agg(pl.col("_cause").sort())
    return {changes[int.from_bytes(asker, "big")]: causes for asker, causes in grouped.select(ASKER, "_cause").iter_rows()}
