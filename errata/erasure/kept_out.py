"""Records that were erased and that input files may bring again: they are known by keyed hashes of some columns, and left out wherever a source reads them.

The ledger carries the hashes from epoch to epoch. Without the key of erasures nobody can find a value by trying.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

import orjson

from changelog.columns import column
from changelog.keys.spark import key_column
from changelog.lazy_imports import F, pa, pc, pl
from changelog.ops import Op
from changelog.rows import Rows
from cxl.types.types import Kind
from errata.erasure.record import KEPT_OUT, keyed_hash, made_key
from errata.erasure.unread_records import Layout, LayoutOf, NamingColumn, readings, readings_of_cells, typed
from errata.plan.plan import Node, Plan
from operators.core.row_type import key_parts, key_type, physical_type
from operators.source.request import IngestResult
from storage.state.entry import Entry
from storage.state.location import State

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from changelog.rows import RowEngine

_PLAIN: Final = (Kind.STRING, Kind.INT, Kind.DATE, Kind.BOOL)
"""Kinds whose values are one text, so that the hash stays where a column gets another type."""
_AS_WRITTEN: Final = (Kind.ARRAY, Kind.MAP)
"""Kinds whose values are hashed as they are written: ledgers have such hashes, and what they were made of is erased."""

Hashes = Mapping[tuple[str, ...], Sequence[str]]
"""By the columns that are hashed the hashes of the records that are kept out."""


@dataclass(frozen=True, slots=True)
class KeptOut:
    """The erased records of a source that stay out. `secret`: what the hashes were made with."""

    plan: Plan
    node: Node
    hashes: Hashes
    secret: str

    @classmethod
    def of(cls, plan: Plan, state: State, head: Entry | None, node: Node) -> KeptOut | None:
        """The records that are kept out of a source, by the ledger; None where there are none."""
        stored = {} if head is None else head.counters.get(KEPT_OUT, {}).get(node.name, {})
        if not stored:
            return None
        return cls(plan, node, {tuple(columns.split("\0")): hashes for columns, hashes in stored.items()}, secret_of(made_key(state)))

    def condition(self) -> Column:
        """Whether a row of the source is kept out."""
        known = self.node.operator.output.data
        met = [hash_of(self.node, names, self.secret).isin(*hashes) for names, hashes in self.hashes.items() if all(name in known for name in names)]
        return reduce(or_, met) if met else F.lit(False)

    @property
    def lost(self) -> list[str]:
        """Columns by which records are kept out and that the source lacks now."""
        return [name for names in self.hashes for name in names if name not in self.node.operator.output.data]

    def left_out(self, made: IngestResult, layout_of: LayoutOf, warn: Callable[[str], object]) -> tuple[IngestResult, pa.Table | None]:
        """The result of reading a source without these records, and the op rows that were left out; None where there are none.

        A record that becomes one of them is retracted. The chunk lists of its files are not kept, since they count the record.

        Args:
            made: What the source reads.
            layout_of: Gives how a file has its records as cells.
            warn: Hears of records that cannot be read.
        """
        if made.rows is None:
            return made, None
        rows, engine = made.rows.as_frame(), made.rows.engine
        come = rows.where(F.col("_op").isin(int(Op.APPEND), int(Op.CORRECT_TO)))
        out = engine.to_arrow(come.where(F.coalesce(self.condition(), F.lit(False))))
        unread = engine.to_arrow(come.where(self._unread() & ~F.coalesce(self.condition(), F.lit(False)))) if "_error" in rows.columns else out.slice(0, 0)
        unread = unread.filter(pa.array([_is_unjudged(row, self.hashes) for row in unread.to_pylist()], pa.bool_()))
        if unread.num_rows:
            named = self._named(engine, unread, layout_of)
            out = pa.concat_tables([out, unread.filter(named)])
            if gone := named.true_count:
                what = "a record that cannot be read was" if gone == 1 else f"{gone:,} records that cannot be read were"
                warn(f"source '{self.node.name}': {what} left out: the text has what tells an erased record")
            if left := named.false_count:
                what = "a record that cannot be read is rejected with its text" if left == 1 else f"{left:,} records that cannot be read are rejected with their texts"
                warn(f"source '{self.node.name}': {what}: whether {'it is' if left == 1 else 'they are'} an erased one only its values would tell")
        if not out.num_rows:
            return replace(made, lists={}), None
        keys = pl.Series(out.column("_key"))
        marks = engine.from_arrow(pa.table({"_key": keys.to_arrow().cast(pa.binary()), "__op": out.column("_op")}))
        kept = _without(rows, marks)
        return replace(made, rows=Rows(engine, frame=kept), lists={}), out

    def _unread(self) -> Column:
        """Whether a record, or a column of it that tells an erased one, cannot be read."""
        names = {name for names in self.hashes for name in names if name in self.node.operator.output.data}
        empty = reduce(or_, [column(name).isNull() for name in sorted(names)], F.lit(False))
        return _raw().isNotNull() | (F.col("_error").contains('"fields":{"') & empty)

    def _named(self, engine: RowEngine, unread: pa.Table, layout_of: LayoutOf) -> pa.BooleanArray:
        """Which records that cannot be read say in their text, or in their cells, what tells an erased record."""
        errors = [orjson.loads(error) for error in unread.column("_error").to_pylist()]
        texts = [error["raw"] if error.get("raw") is not None else error["fields"] for error in errors]
        layouts = [layout_of(path) for path in unread.column("_file").to_pylist()]
        met = set[int]()
        for names, hashes in self.hashes.items():
            if not all(name in self.node.operator.output.data for name in names):
                continue
            columns = [NamingColumn.of(self.plan, self.node, name) for name in names]
            some_unread = reduce(pc.or_, [pc.is_null(unread.column(name)) for name in names]).to_pylist()
            for found in _in_batches(columns, {at: text for at, text in enumerate(texts) if some_unread[at]}, layouts):
                rows = engine.from_arrow(typed(columns, list(found)))
                rows = rows.select("__at", *(column(name).cast(physical_type(self.node.operator.output.data[name])).alias(name) for name in names))
                hits = engine.to_arrow(rows.where(hash_of(self.node, names, self.secret).isin(*hashes)).select("__at")).column("__at").to_pylist()
                several = list(found.values())
                met.update(*(several[hit] for hit in hits))
        return pa.array([at in met for at in range(len(texts))], pa.bool_())


_MOST_READINGS: Final = 100_000
"""Readings of texts that are hashed at a time."""


def _in_batches(columns: Sequence[NamingColumn], texts: Mapping[int, str | Mapping[str, str | None]], layouts: Sequence[Layout | None]) -> Iterator[Mapping[tuple[str, ...], list[int]]]:
    """The readings of texts, or of cells, by their numbers, each with the numbers of the ones that have it."""
    found: dict[tuple[str, ...], list[int]] = {}
    for at, text in texts.items():
        for reading in readings(columns, text, layouts[at]) if isinstance(text, str) else readings_of_cells(columns, text):
            found.setdefault(reading, []).append(at)
        if len(found) > _MOST_READINGS:
            yield found
            found = {}
    if found:
        yield found


def _is_unjudged(row: Mapping[str, Any], hashes: Hashes) -> bool:
    """Whether a record has no columns, or a cell of a column that tells an erased record could not be read."""
    error = orjson.loads(row["_error"])
    cells = error.get("fields") or {}
    return error.get("raw") is not None or any(cells.get(name) and row.get(name) is None for names in hashes for name in names)


def _raw() -> Column:
    """The text of a record that cannot be read; null for any other."""
    return F.get_json_object("_error", "$.raw")


def _without(rows: DataFrame, marks: DataFrame) -> DataFrame:
    """Op rows without the ones that are marked; the other half of a correction becomes a retraction."""
    marked = rows.join(F.broadcast(marks), "_key", "left")
    stays = marked.where(F.col("__op").isNull() | (F.col("_op") != F.col("__op")))
    op = F.when(F.col("__op").isNotNull() & (F.col("_op") == int(Op.CORRECT_FROM)), F.lit(int(Op.RETRACT))).otherwise(F.col("_op")).cast("tinyint")
    return stays.withColumn("_op", op).select(*map(column, rows.columns))


def secret_of(key: bytes) -> str:
    """The secret of the hashes of records, out of the key of erasures."""
    return keyed_hash(key, [b"kept out"])


def hash_of(node: Node, names: Sequence[str], secret: str) -> Column:
    """The keyed hash of some columns of a source's rows."""
    text = F.concat(*[part for name in names for part in _distinct_texts(node, name)])
    return F.sha2(F.concat(F.lit(secret), F.sha2(F.concat(F.lit(secret), text), 256)), 256)


def _distinct_texts(node: Node, name: str) -> list[Column]:
    """A value as texts that no other value has."""
    type_, value = node.operator.output.data[name], column(name)
    parts = [(value, key_type(type_))] if type_.kind in _AS_WRITTEN else key_parts(value, type_)
    text = value.cast("string") if type_.kind in _PLAIN else F.hex(key_column(parts))
    prefixed = F.coalesce(F.concat(F.length(text).cast("string"), F.lit(":"), text), F.lit("-"))
    return [prefixed]


def with_hashes(before: Mapping[str, Any], found: Iterable[tuple[str, Sequence[str], Sequence[str]]]) -> dict[str, Any]:
    """The kept out records in the ledger, by source, with further hashes: sources, columns and the hashes of their values."""
    merged = {name: dict(columns) for name, columns in before.items()}
    for name, columns, hashes in found:
        at = "\0".join(columns)
        merged.setdefault(name, {})[at] = sorted({*merged.get(name, {}).get(at, ()), *hashes})
    return merged
