"""Suppressed records at the beginning of a run: which are tried again, and which stay because nothing that they failed of has changed.

A record that fails at a node by what it holds alone fails there in every run. So a group that a record rolled back stays as it is while no
record of the group comes, goes or changes, and while the logic is the same. All others take part again, and the run settles them anew.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from changelog.lazy import F
from errata.correlation_blame import CORRELATED, OVERFLOW
from errata.correlation_groups import GROUP, group_column, groups_in
from errata.correlation_plan import key_fields, ranks
from errata.record_places import bare
from errata.rejects import errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from errata.plan import Node, Plan
    from errata.propagate import Flow


@dataclass(frozen=True, slots=True)
class Held:
    """A suppressed record: its key, its group by the first field of the correlation key (None: a group of its own), what is said of it."""

    key: bytes
    group: bytes | None
    told: Mapping[str, Any]

    @property
    def collateral(self) -> bool:
        """Whether it did not fail itself."""
        return bool(self.told.get("category") == CORRELATED)


@dataclass(frozen=True)
class Steady:
    """Tells the suppressed records of a run's sources apart, once the sources have been read."""

    flow: Flow
    plan: Plan

    @cached_property
    def alone(self) -> frozenset[str]:
        """The nodes at which a record fails by what it holds alone: neither other records nor the clock nor variables decide."""
        order = ranks(self.plan)
        return frozenset(
            node.name for node in self.plan
            if order[node.name] == 0 and all(one.operator.deterministic and not one.feeds for one in (*self.plan.upstream(node.name), node))
        )  # fmt: skip

    def parted(self, node: Node, held: pa.Table) -> tuple[pa.Table, list[Held]]:
        """The suppressed live rows of a source that are to be tried again, and the records that stay; `held` are all of them."""
        import pyarrow as pa

        columns = (held.column("_key").to_pylist(), groups_in(held, node.operator.output, key_fields(node)[:1]), errors(held.column("_error")))
        records = [Held(*record) for record in zip(*columns, strict=True)]
        again = self._again(node, records)
        return held.filter(pa.array(again, pa.bool_())), [one for one, tried in zip(records, again, strict=True) if not tried]

    def _again(self, node: Node, records: Collection[Held]) -> list[bool]:
        """Whether each of the records is to be tried again."""
        touched, keys = self._touched({one.group for one in records if one.group is not None}), self._own_keys(node, records)
        large = {one.told["by"] for one in records if one.told.get("category") == OVERFLOW}
        own = f"{node.name}:"

        def stays(one: Held) -> bool:
            by = one.told["by"]
            steady = by.startswith(own) and by not in large and one.told.get("node") in self.alone
            return steady and one.group not in touched and bare(one.key) not in keys

        return [not stays(one) for one in records]

    def _touched(self, groups: Collection[bytes]) -> set[bytes]:
        """Those of the groups of which this run brings or takes records, in whatever source."""
        found: set[bytes] = set()
        for node in self.plan.of_kind("source"):
            done, fields, row = self.flow.done[node.name], key_fields(node)[:1], node.operator.output
            if done.frame is None or not fields or not groups:
                continue
            if done.table is not None:
                found |= set(groups).intersection(groups_in(done.table, row, fields))
            else:
                found |= self._met(done.frame.select(group_column(row, fields).alias(GROUP)), GROUP, groups)
        return found

    def _own_keys(self, node: Node, records: Collection[Held]) -> set[bytes]:
        """Those of the records without a group that this run brings or takes."""
        done = self.flow.done[node.name]
        alone = {key for one in records if one.group is None for key in (one.key, bare(one.key))}
        if done.frame is None or not alone:
            return set()
        if done.table is not None:
            return {bare(key) for key in done.table.column("_key").to_pylist() if key in alone}
        return {bare(key) for key in self._met(done.frame.select("_key"), "_key", alone)}

    def _met(self, rows: DataFrame, name: str, wanted: Collection[bytes]) -> set[bytes]:
        met = rows.join(F.broadcast(self.flow.engine.keys_frame(wanted, name)), name, "left_semi").distinct()
        return set(self.flow.engine.to_arrow(met).column(name).to_pylist())
