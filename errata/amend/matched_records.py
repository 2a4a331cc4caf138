"""The records of a source that an erasure means: by the values of columns, or by a condition that the engine evaluates.

Records that only older versions of a table have are meant too, such as a full refresh leaves there: their values are looked for, and the versions go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from changelog.columns import column
from changelog.keys.decode import bare_keys
from changelog.lazy_imports import F, pa, pl
from cxl import spark
from errata.core.options import Erasure
from errata.erasure.named_values import date_formats_of, read_as
from errata.erasure.selection import IDENTITY, ErasedKeys, gathered, live_of, of_images, op_rows
from errata.erasure.values import as_frame
from errata.inspect.snapshot import predicate
from errata.inspect.why import value_is
from errata.plan.plan import Node
from errata.state.node_tables import stored_rows
from errata.state.run_state import RunState
from operators.core.evaluate import prepare
from operators.source.events.columns import CORRECTS, PATCHES, STANDS
from operators.source.node import SourceNode
from operators.source.row_layout import REJECT_TAG
from storage.delta.scrubbing import superseded_rows
from storage.state.location import State
from storage.stores.folders import folder_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Matched:
    """The records of a source that an erasure means.

    Attributes:
        keys: Their keys, at all times.
        rows: Their op rows, by `IDENTITY`.
        live: The keys of their live rows.
        older: Their op rows that only older versions of the table have.
    """

    keys: ErasedKeys
    rows: pl.DataFrame
    live: frozenset[bytes]
    older: pl.DataFrame

    @property
    def superseded(self) -> int:
        """How many op rows the present version of the table does not have; the ones of erasures that were undone do not count."""
        return self.older.filter(pl.col("_cause") != "erase").join(self.rows, IDENTITY, "anti").height if self.older.height else 0

    def __bool__(self) -> bool:
        return bool(self.keys) or bool(self.older.height)

    def op_rows(self, run: RunState, node: Node) -> DataFrame:
        """Their op rows with all columns, as the epoch before has them."""
        known = self.rows.select(*IDENTITY).to_arrow().cast(pa.schema({"_epoch": pa.int64(), "_op": pa.int8(), "_key": pa.binary()}))
        return run.tables.changelog(node).read(run.engine, at=run.epoch - 1).join(run.engine.from_arrow(known), [*IDENTITY], "left_semi")


@dataclass(frozen=True, slots=True)
class Meant:
    """Chooses the records of a source that an erasure means."""

    state: State
    run: RunState
    node: Node
    wanted: Erasure

    def chosen(self, rows: DataFrame) -> DataFrame:
        """The rows that are meant by their values. A row for which the condition fails is not."""
        if self.wanted.where is None:
            for name, text in self.wanted.key.items():
                type_ = self.node.operator.output.data[name]
                read = read_as(text, type_, date_formats_of(self.run.plan, self.node, name))
                rows = rows.where(F.lit(False) if read is None else value_is(column(name), type_, read))
            return rows
        program = predicate(self.wanted.where, self.node.operator.output.data)
        assert program.expression is not None  # a predicate
        ready, context = prepare(rows, program.reads_system, self.node.operator.output, self.run.values_of(self.node))
        value, failed = spark.column(program.expression, context)
        meets = F.coalesce(value, F.lit(False))
        return ready.where(meets if failed is None else meets & ~F.coalesce(failed, F.lit(False)))

    def named_by(self, names: Sequence[str], erased: DataFrame) -> DataFrame:
        """The op rows of erased records whose values in some columns name the record. In other op rows the columns of the erasure may have values that belong to the records of others."""
        return self.chosen(erased) if list(names) == list(self.wanted.key) else erased

    def matched(self) -> Matched:
        """The records, in all epochs before this one."""
        table = self.run.tables.changelog(self.node)
        keyed = cast("SourceNode", self.node.operator).keyed
        if not table.exists():
            none = gathered(())
            return Matched(ErasedKeys(frozenset()), none, frozenset(), none)
        rows = self.chosen(table.read(self.run.engine, at=self.run.epoch - 1)).select(*IDENTITY)
        found = gathered([as_frame(self.run.engine.to_arrow(rows))]).select(*IDENTITY)
        remembered = self._remembered()
        bare = pl.concat([bare_keys(found["_key"]), pl.Series("key", [*remembered], dtype=pl.Binary)]).unique()
        every = gathered(part.filter(bare_keys(part["_key"]).is_in(bare.implode())) for part in op_rows(table)).select(*IDENTITY)
        by_key, by_image = every.filter(_named(every, keyed=keyed)), found.filter(~_named(found, keyed=keyed))
        keys = ErasedKeys(remembered | {*map(bytes, bare_keys(by_key["_key"]))}).union(of_images(by_image, every.filter(~_named(every, keyed=keyed))))
        ours = gathered([by_key, by_image]).select(*IDENTITY)
        live = live_of(every).join(ours, IDENTITY, "semi") if every.height else every
        return Matched(keys, ours, frozenset(map(bytes, live["_key"])), self._older(keyed=keyed))

    def _remembered(self) -> frozenset[bytes]:
        """The keys of events that are meant by their values: they may have come and gone within a run, so that no row had them. What a retraction says is no row's."""
        table = self.run.tables.state(self.node.name)
        if not cast("SourceNode", self.node.operator).has_memory or not table.exists():
            return frozenset()
        rows = stored_rows(self.run.engine, table, at=self.run.epoch - 1).as_frame()
        if not {"__of", "__does", "_error", *self.node.operator.output.data} <= {*rows.columns}:
            return frozenset()
        said = self.chosen(rows.where(F.col("__does").isin(STANDS, CORRECTS, PATCHES) & F.col("_error").isNull()))
        return frozenset(self.run.engine.to_arrow(said.select("__of").distinct()).column("__of").to_pylist())

    def _older(self, *, keyed: bool) -> pl.DataFrame:
        """The op rows that only older versions of the table have: of keyed records all rows of their keys."""
        files = list(self._superseded())
        hits = [as_frame(self.run.engine.to_arrow(self.chosen(self.run.engine.from_arrow(part)).select(*IDENTITY))) for part in files]
        found = gathered(hits)
        if not found.height:
            return found
        named = found.filter(_named(found, keyed=keyed))["_key"].unique().implode()
        return gathered(pl.concat([rows.filter(rows["_key"].is_in(named)), rows.filter(~rows["_key"].is_in(named)).join(found, IDENTITY, "semi")]) for rows in map(as_frame, files))

    def _superseded(self) -> Iterator[pa.Table]:
        table = self.run.tables.changelog(self.node)
        fields = [pa.field("_epoch", pa.int64()), *self.run.tables.schema(self.node)]
        for rows in superseded_rows(folder_at(table.uri, self.state.connection), table.data_files()):
            if {*IDENTITY} <= {*rows.column_names}:
                yield pa.table({field.name: _cast(rows, field) for field in fields}, schema=pa.schema(fields))


def _named(rows: pl.DataFrame, *, keyed: bool) -> pl.Series:
    """Which op rows have a key that names their record at all times; the key of any other, as of a reject, is its place, which another record may have at other times."""
    return ~rows["_key"].bin.starts_with(REJECT_TAG) if keyed else pl.repeat(False, rows.height, eager=True)


def _cast(rows: pa.Table, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    """A column of an older file as the column is today; null where it was not there, or of a type that does not convert."""
    if field.name in rows.column_names:
        with suppress(pa.ArrowException):
            return rows.column(field.name).cast(field.type)
    return pa.nulls(rows.num_rows, field.type)


def ways_of_naming(node: Node, wanted: Erasure) -> Sequence[Sequence[str]]:
    """The columns that name the records, in each way of naming them: the ones of the erasure, and the primary key; where there are none, all columns."""
    source = cast("SourceNode", node.operator)
    primary_key = tuple(source.config.merge.primary_key) if source.keyed else ()
    return list(filter(None, dict.fromkeys((tuple(wanted.key), primary_key)))) or [tuple(source.output.data)]
