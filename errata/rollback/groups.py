"""Correlation groups: which records of a source share a key, and which groups have more records than the cap."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

from changelog.columns import column
from changelog.keys.decode import arrow_keys
from changelog.keys.encoding import bare, decode_key, encode_key
from changelog.keys.spark import key_column
from changelog.lazy_imports import F, pa, pc, pl
from errata.plan.plan import Node, Plan
from errata.rollback.provenance import leads_of_rejects
from errata.state.run_state import RunState
from operators.core.operator import SHARED, shared_number
from operators.core.row_type import CK, STATUS, RowType, Status, key_type, physical_type
from storage.delta.columns import declared

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

GROUP = "__group"


def group_column(row: RowType, fields: Sequence[str]) -> Column:
    """The bytes of a record's group by these fields; null where one of them is null: such a record is a group of its own."""
    riders = [(column(CK + name), key_type(row.riders[CK + name])) for name in fields]
    complete = reduce(lambda one, other: one & other, [value.isNotNull() for value, _ in riders])
    return F.when(complete, key_column(riders))


def groups_in(rows: pa.Table, row: RowType, fields: Sequence[str]) -> pa.Array:
    """The same bytes of rows on the driver, none where there are no fields; made once for each group."""
    if not fields:
        return pa.nulls(rows.num_rows, pa.binary())
    types = [key_type(row.riders[CK + name]) for name in fields]
    values = pl.DataFrame({str(at): rows.column(CK + name) for at, name in enumerate(fields)})
    groups = values.unique()
    made = [None if None in one else encode_key(one, types) for one in groups.iter_rows()]
    groups = groups.with_columns(pl.Series(GROUP, made, dtype=pl.Binary))
    return arrow_keys(values.join(groups, on=values.columns, how="left", nulls_equal=True, maintain_order="left")[GROUP])


def group_values(row: RowType, fields: Sequence[str], groups: Iterable[bytes]) -> pa.Table:
    """The values of groups by the columns that records have them in."""
    names = [key_type(row.riders[CK + name]) for name in fields]
    values = list(zip(*(decode_key(group, names) for group in groups), strict=True)) or [()] * len(fields)
    schema = pa.schema(declared({CK + name: physical_type(row.riders[CK + name]) for name in fields}))
    return pa.Table.from_arrays([pa.array(one, kind) for one, kind in zip(values, schema.types, strict=True)], schema=schema)


@dataclass(frozen=True, slots=True)
class Overflow:
    """Groups that are too large: the fields of their key, and the sources that have such a key."""

    fields: tuple[str, ...]
    sources: list[str]
    groups: list[bytes]


@dataclass(slots=True)
class Groups:
    """Looks up the records of a plan's sources by group while a run is under way."""

    run: RunState
    plan: Plan
    carried: dict[str, pa.Table] = field(default_factory=dict)
    """By source the records whose groups are known: `_key` and the columns of its correlation key."""

    def carry(self, node: Node, rejects: pa.Table) -> None:
        """Keep what rows that fail in this run, ahead of every barrier, have of their records' groups: these need not be looked up."""
        leads = leads_of_rejects(node, pl.Series(rejects.column("_key")), pl.zeros(rejects.num_rows, pl.Boolean, eager=True))
        for name in leads["lead"].drop_nulls().unique():
            own = {rider: type_ for rider, type_ in self.plan[name].operator.output.riders.items() if rider.startswith(CK)}
            if own.items() <= node.operator.output.riders.items():
                rows = rejects.select(list(own)).append_column("_key", arrow_keys(leads["record"])).filter((leads["lead"] == name).to_arrow())
                self.carried[name] = pa.concat_tables([*([self.carried[name]] if name in self.carried else []), rows])

    def _truth(self, source: str) -> DataFrame:
        """`_key` and `_error` of all records of a source and the columns of its correlation key."""
        run, node = self.run, self.plan[source]
        live = run.tables.live(run.engine, node, run.values).as_frame()
        return live.select("_key", "_error", *(column(name) for name in node.operator.output.riders if name.startswith(CK)))

    def of_records(self, source: str, keys: Iterable[bytes], fields: Sequence[str]) -> dict[bytes, bytes | None]:
        """The groups of those among the keys that are admitted records or still count; None for a record that is a group of its own."""
        wanted = set(keys)
        known = self._known(source, fields)
        if wanted <= known.keys():
            return {key: known[key] for key in wanted}
        found = self._truth(source).where(F.col("_error").isNull()).join(F.broadcast(self.run.engine.keys_frame(wanted)), "_key", "left_semi")
        return self._answer(source, found, fields) | {key: group for key, group in self.counted(source, fields).items() if key in wanted}

    def _known(self, source: str, fields: Sequence[str]) -> dict[bytes, bytes | None]:
        """The groups of the records that rows brought along."""
        rows = self.carried.get(source)
        return {} if rows is None else dict(zip(rows.column("_key").to_pylist(), groups_in(rows, self.plan[source].operator.output, fields).to_pylist(), strict=True))

    def counted(self, source: str, fields: Sequence[str] = ()) -> dict[bytes, bytes | None]:
        """The groups of the suppressed records of a source that still count behind relaxed aggregates."""
        node = self.plan[source]
        if not node.operator.takes_counted:
            return {}
        rejects = self.run.tables.rejects(self.run.engine, node).as_table()
        rows = rejects.filter(pc.equal(rejects.column(STATUS), Status.COUNTED))
        return dict(zip(map(bare, rows.column("_key").to_pylist()), groups_in(rows, node.operator.output, fields).to_pylist(), strict=True))

    def of_rejects(self, source: str, keys: Collection[bytes], fields: Sequence[str]) -> dict[bytes, bytes]:
        """The groups of records that the source itself rejected; a key field that could not be read has none."""
        node = self.plan[source]
        rows = self.run.tables.rejects(self.run.engine, node).as_table()
        groups = zip(map(bare, rows.column("_key").to_pylist()), groups_in(rows, node.operator.output, fields).to_pylist(), strict=True)
        return {key: group for key, group in groups if group is not None and key in keys}

    def mates(self, source: str, groups: Iterable[bytes], fields: Sequence[str]) -> dict[bytes, bytes]:
        """The admitted records of groups: key to group."""
        row, wanted = self.plan[source].operator.output, set(groups)
        admitted = self._truth(source).where(F.col("_error").isNull())
        number = shared_number([(column(CK + name), row.riders[CK + name]) for name in fields])
        if number is None:
            asked = self.run.engine.keys_frame(wanted, GROUP)
            near = admitted.withColumn(GROUP, group_column(row, fields)).join(F.broadcast(asked), GROUP, "left_semi")
        else:  # much quicker to compute than the bytes of groups
            asked = self.run.engine.from_arrow(group_values(row, fields, wanted)).select(number.alias(SHARED)).distinct()
            near = admitted.withColumn(SHARED, number).join(F.broadcast(asked), SHARED, "left_semi")
        rows = self.run.engine.to_arrow(near.select("_key", *(column(CK + name) for name in fields)))
        found = zip(rows.column("_key").to_pylist(), groups_in(rows, row, fields).to_pylist(), strict=True)
        return {key: group for key, group in found if group in wanted}

    def _answer(self, source: str, frame: DataFrame, fields: Sequence[str]) -> dict[bytes, bytes | None]:
        row = self.plan[source].operator.output
        group = group_column(row, fields) if fields else F.lit(None).cast("binary")
        table = self.run.engine.to_arrow(frame.select("_key", group.alias(GROUP)))
        return dict(zip(table.column("_key").to_pylist(), table.column(GROUP).to_pylist(), strict=True))

    # -- groups that are too large

    def overflowing(self, cap: int, at_most: int | None) -> tuple[int, list[Overflow]]:
        """How many records the largest group has at most, and the groups with more than the cap; sources with the same key count together.

        `at_most` is what is known of the largest group before the groups are counted, None where nothing is.
        """
        largest, found = 0, []
        for fields, names in self._families():
            bound = min(at_most if at_most is not None else cap + 1, sum(self.run.live_rows.get(name, 0) for name in names))
            if bound > cap:
                bound, groups = self._counted(fields, names, cap)
                found += [Overflow(fields, names, groups)] if groups else []
            largest = max(largest, bound)
        return largest, found

    def _counted(self, fields: Sequence[str], names: Sequence[str], cap: int) -> tuple[int, list[bytes]]:
        """The records of the largest group, and the groups with more than the cap."""
        engine = self.run.engine
        rows = [self._truth(name).select(group_column(self.plan[name].operator.output, fields).alias(GROUP)) for name in names]
        every = reduce(lambda one, other: one.unionByName(other), rows).where(F.col(GROUP).isNotNull())
        counted = every.groupBy(GROUP).agg(F.count("*").alias("__n")).orderBy(F.col("__n").desc())
        table = engine.to_arrow(counted, 1)
        largest = int(table.column("__n")[0].as_py()) if table.num_rows else 0
        return largest, sorted(engine.to_arrow(counted.where(F.col("__n") > cap).select(GROUP)).column(GROUP).to_pylist()) if largest > cap else []

    def _families(self) -> list[tuple[tuple[str, ...], list[str]]]:
        """Sources by the fields and types of their keys."""
        families: dict[tuple[tuple[str, str], ...], list[str]] = {}
        for node in self.plan.of_kind("source"):
            riders = node.operator.output.riding(CK)
            if riders:
                families.setdefault(tuple((name, physical_type(type_)) for name, type_ in riders.items()), []).append(node.name)
        return [(tuple(name for name, _ in family), names) for family, names in families.items()]
